import type { RowStreamSpec } from "../catalog/streams.ts";
import { prepare, windowsOf } from "../sync/read-stream.ts";
import { describe } from "../sync/window.ts";
import { WindowSize } from "../sync/window-size.ts";
import { type Asked, resumeStream } from "./read-stream.ts";
import type { Session } from "./session.ts";

/** What the next run would read of a stream. */
export type Outlook = {
  readonly stream: string;
  /** Ranges of days in words, in the order in which they would be read. */
  readonly days: readonly string[];
  /** Null: the service does not count them. */
  readonly rows: number | null;
  readonly requests: number;
  readonly minutes: number;
};

/** Rows a second that one request brings where nobody has measured it: a window of usual size takes ten seconds. */
const ROWS_PER_SECOND = 2_500;
const PAGE_ROWS = 1_000;

/** Each range of days is one window: to cut it by its density would take as many requests as to read it. */
const ALL = Number.POSITIVE_INFINITY;
const WHOLE = { rows: ALL, most: ALL, smallRange: ALL };

/** Counts what a run would read of a stream, with a handful of requests. Reads no row, and writes nothing. */
export async function outlookOf(
  session: Session,
  spec: RowStreamSpec,
  asked: Asked,
  savedState: unknown,
): Promise<Outlook> {
  const { requestsPerMinute, numWorkers, maxWindowRows } = session.config;
  const before = session.usage.requests;
  const days: string[] = [];
  const { saved, open } = await resumeStream(session, spec, asked, savedState);
  if (saved.kind === "delivered") return { stream: spec.name, days, rows: 0, requests: 0, minutes: 0 };
  const run = open(saved.state);
  const prepared = await prepare(run);
  const { service, source } = run;
  let requests = session.usage.requests - before;
  let rows: number | null = 0;
  const size = new WindowSize(maxWindowRows);
  const context = { ...prepared.rules, windowSize: WHOLE };
  for await (const { window, count: known } of windowsOf(prepared, context)) {
    const count = known?.known === true || !source.isListed ? known : await service.count(window);
    const shown = count?.known === true ? count.rows + count.undated : null;
    if (shown === 0) continue;
    days.push(describe(window));
    rows = shown === null || rows === null ? null : rows + shown;
    const parts = shown === null || shown <= size.smallRange ? 1 : Math.ceil(shown / size.rows);
    // A window that is one of several is counted before it is read.
    requests += source.isExported ? (parts === 1 ? 1 : 2 * parts) : Math.ceil((shown ?? 1) / PAGE_ROWS);
  }
  const seconds = (rows ?? 0) / (ROWS_PER_SECOND * numWorkers);
  return {
    stream: spec.name,
    days,
    rows,
    requests,
    minutes: Math.max(requests / requestsPerMinute, seconds / 60),
  };
}
