import { plural, shown, table, toLatin1 } from "../base/text.ts";
import { hasRows, type RowStreamSpec, STREAMS } from "../catalog/streams.ts";
import { secretsOf } from "../config/config.ts";
import { forecastsOf } from "../jobs/report.ts";
import { secretMask } from "../protocol/mask.ts";
import { write } from "../protocol/writer.ts";
import { type Asked, resumeStream } from "../run/read-stream.ts";
import { type Run, stateOf } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { type Session, statesByName, streamNamed } from "../run/session.ts";
import { prepare, windowsOf } from "../sync/read-stream.ts";
import { describe } from "../sync/window.ts";
import { wouldSubmit } from "./jobs.ts";

/** The days that the next run would read of a stream, in this order. `rows` null: the service does not count them. */
type Outlook = { readonly stream: string; readonly days: readonly string[]; readonly rows: number | null };

/** Each range of days is one window: to divide it by counts would take as many requests as to read it. */
const ALL = Number.POSITIVE_INFINITY;
const UNDIVIDED = { rows: ALL, most: ALL, smallRange: ALL };
const MAX_RANGES = 5;

/** Says what a run would read and buy: as a table to a person, or as one JSON object. Returns true. */
export async function showOutlook(
  { session }: Run,
  asked: readonly Asked[],
  states: ReadonlyMap<string, unknown>,
  { json }: { readonly json?: boolean },
  { stdout, environment }: Runtime,
): Promise<true> {
  const { config } = session;
  const streams: Outlook[] = [];
  for (const one of asked) {
    const spec = streamNamed(one.configured.name, config, "Discover again and update the catalog");
    if (hasRows(spec))
      streams.push(await outlookOf(session, spec, one, stateOf(one.configured, asked, states)));
  }
  const names = asked.map(({ configured }) => configured.name);
  const hasJobs = STREAMS.some(({ name, reading }) => reading === "job" && names.includes(name));
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

/** Counts what a run would read of a stream. */
async function outlookOf(
  session: Session,
  spec: RowStreamSpec,
  asked: Asked,
  savedState: unknown,
): Promise<Outlook> {
  const days: string[] = [];
  let rows: number | null = 0;
  const { saved, open } = await resumeStream(session, spec, asked, savedState);
  if (saved.kind === "delivered") return { stream: spec.name, days, rows };
  const run = open(saved.state);
  const prepared = await prepare(run);
  for await (const planned of windowsOf(prepared, { ...prepared.rules, windowSize: UNDIVIDED })) {
    const { window } = planned;
    const isCounted = planned.count?.known === true || !run.source.isListed;
    const count = isCounted ? planned.count : await run.service.count(window);
    const own = count?.known === true ? count.rows + count.undated : null;
    if (own === 0) continue;
    days.push(describe(window));
    rows = own === null || rows === null ? null : rows + own;
  }
  return { stream: spec.name, days, rows };
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
