import { plural, shown, table, toLatin1 } from "../base/text.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import { JOB_STREAMS, ROW_STREAMS, streamNamed } from "../catalog/streams.ts";
import { secretsOf } from "../config/config.ts";
import { forecastsOf } from "../jobs/report.ts";
import { secretMask } from "../protocol/mask.ts";
import { write } from "../protocol/writer.ts";
import type { RequestedStream } from "../run/reader.ts";
import { RowReader } from "../run/row-reader.ts";
import type { Run } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { statesByName } from "../state/envelopes.ts";
import { stateOf } from "../state/resume.ts";
import { planWindows } from "../sync/plan.ts";
import { prepare } from "../sync/prepare.ts";
import { describe } from "../sync/window.ts";
import { wouldSubmit } from "./jobs.ts";

/** The days of a stream that the next run would read, in order, without empty ranges. `rows` null: not counted. */
type Outlook = { readonly stream: string; readonly days: readonly string[]; readonly rows: number | null };

/** Limits that never divide a range of days, because a division takes as many requests as a read. */
const ALL = Number.POSITIVE_INFINITY;
const UNDIVIDED = { rows: ALL, maxRows: ALL, undividedRows: ALL };
const MAX_RANGES = 5;

/** Prints what a run would read and buy: a table at a terminal, or one JSON object. */
export async function showOutlook(
  { session }: Run,
  asked: readonly RequestedStream[],
  states: ReadonlyMap<string, unknown>,
  { json }: { readonly json?: boolean },
  { stdout, environment }: Runtime,
): Promise<true> {
  const { config } = session;
  const streams: Outlook[] = [];
  const names = asked.map(
    ({ configured: { name } }) => streamNamed(name, config, "Discover again and update the catalog").name,
  );
  for (const { configured } of asked) {
    const spec = ROW_STREAMS.find(({ name }) => name === configured.name);
    if (spec === undefined) continue;
    const reader = new RowReader(spec, session);
    streams.push(await outlookOf(reader, configured, stateOf(configured, asked, states)));
  }
  const hasJobs = JOB_STREAMS.some(({ name }) => names.includes(name));
  const jobs = hasJobs ? await forecastsOf(config, environment, statesByName(states)) : [];
  const isTable = stdout.isTTY === true && json !== true;
  const lines = isTable
    ? [
        ...table([["stream", "rows", "days"], ...streams.flatMap(rowsOf)]),
        ...jobs.map(wouldSubmit),
        "Nothing was read, written or bought",
      ]
    : [JSON.stringify({ streams, jobs })];
  await write(stdout, toLatin1(`${secretMask(secretsOf(config))(lines.join("\n"))}\n`));
  return true;
}

/** Counts the rows of a stream that a run would read. */
async function outlookOf(
  reader: RowReader,
  configured: ConfiguredStream,
  savedState: unknown,
): Promise<Outlook> {
  const days: string[] = [];
  let rows: number | null = 0;
  const { name: stream } = reader.spec;
  const { saved, open } = await reader.resume(configured, savedState);
  if (saved.kind === "delivered") return { stream, days, rows };
  const run = open(saved.state);
  const prepared = await prepare(run);
  for await (const planned of planWindows(prepared, { ...prepared.rules, windowSize: UNDIVIDED })) {
    const { window } = planned;
    const isCounted = planned.count?.known === true || !run.source.isListed;
    const count = isCounted ? planned.count : await run.service.count(window);
    const own = count?.known === true ? count.rows + count.undated : null;
    if (own === 0) continue;
    days.push(describe(window));
    rows = own === null || rows === null ? null : rows + own;
  }
  return { stream, days, rows };
}

function rowsOf({ stream, days, rows }: Outlook): readonly string[][] {
  const more = days.length - MAX_RANGES;
  const [first = "nothing", ...rest] = days.slice(0, MAX_RANGES);
  const all = more > 0 ? [...rest, `and ${plural(more, "other range")}`] : rest;
  return [
    [stream, rows === null ? "not counted" : shown(rows), first],
    ...all.map((range) => ["", "", range]),
  ];
}
