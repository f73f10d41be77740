import { plural, shown, table, toLatin1 } from "../base/text.ts";
import { hasRows, STREAMS } from "../catalog/streams.ts";
import { secretsOf } from "../config/config.ts";
import { forecastsOf } from "../jobs/report.ts";
import { secretMask } from "../protocol/mask.ts";
import { write } from "../protocol/writer.ts";
import { type Outlook, outlookOf } from "../run/outlook.ts";
import type { Asked } from "../run/read-stream.ts";
import { type Run, stateOf } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { statesByName, streamNamed } from "../run/session.ts";
import { wouldSubmit } from "./jobs.ts";

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
    ? [...shownOutlooks(streams), ...jobs.map(wouldSubmit), "Nothing was read, written or bought"]
    : [JSON.stringify({ streams, jobs })];
  await write(stdout, toLatin1(`${secretMask(secretsOf(config))(lines.join("\n"))}\n`));
  return true;
}

function shownOutlooks(streams: readonly Outlook[]): readonly string[] {
  const rows = streams.flatMap(({ stream, days, rows, requests, minutes }) => {
    const many = days.length > MOST_RANGES ? [`and ${plural(days.length - MOST_RANGES, "other range")}`] : [];
    const [first = "nothing", ...rest] = [...days.slice(0, MOST_RANGES), ...many];
    const head = [
      stream,
      rows === null ? "not counted" : shown(rows),
      shown(requests),
      minutesText(minutes),
      first,
    ];
    return [head, ...rest.map((range) => ["", "", "", "", range])];
  });
  const all = streams.reduce((sum, { minutes }) => sum + minutes, 0);
  return [
    ...table([["stream", "rows", "requests", "minutes", "days"], ...rows]),
    `About ${minutesText(all)} min in all`,
  ];
}

const MOST_RANGES = 5;

const minutesText = (minutes: number): string => (minutes < 1 ? "<1" : shown(Math.ceil(minutes)));
