import type { RowStreamSpec } from "../catalog/streams.ts";
import { planWindows } from "../sync/plan.ts";
import type { Count } from "../sync/service.ts";
import { describe, type Window } from "../sync/window.ts";
import { WindowSize } from "../sync/window-size.ts";
import { type Asked, measure, streamRun } from "./read-stream.ts";
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
const WHOLE = { rows: Number.POSITIVE_INFINITY, most: Number.POSITIVE_INFINITY };

/** Counts what a run would read of a stream, with a handful of requests. Reads no row, and writes nothing. */
export async function outlookOf(
  session: Session,
  spec: RowStreamSpec,
  asked: Asked,
  savedState: unknown,
): Promise<Outlook> {
  const { requestsPerMinute, numWorkers, maxWindowRows } = session.config;
  const before = session.usage.requests;
  const run = await streamRun(session, spec, asked, savedState);
  const days: string[] = [];
  if (run.saved.kind === "delivered") return { stream: spec.name, days, rows: 0, requests: 0, minutes: 0 };
  const { api, source } = run;
  const range = await measure(run, run.saved.state);
  let requests = session.usage.requests - before;
  let rows: number | null = 0;
  const size = new WindowSize(maxWindowRows);
  const rules = { api, yesterday: range.yesterday, windowSize: { ...WHOLE, smallRange: WHOLE.most } };
  for await (const { window, count: counted } of planWindows(range, rules)) {
    const count = counted?.known === true || !source.isListed ? counted : await api.count(window);
    const held = count?.known === true ? rowsOf(window, count) : null;
    if (held === 0) continue;
    days.push(describe(window));
    rows = held === null || rows === null ? null : rows + held;
    const parts = held === null || held <= size.smallRange ? 1 : Math.ceil(held / size.rows);
    // A window that is one of several is counted before it is read.
    requests += source.isExported ? (parts === 1 ? 1 : 2 * parts) : Math.ceil((held ?? 1) / PAGE_ROWS);
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

const rowsOf = (window: Window, { rows, undated }: Count): number =>
  window.kind === "undated" ? undated : rows + undated;
