import { STREAMS, type StreamSpec } from "../catalog/streams.ts";
import { readText } from "../files/read.ts";
import { describeJobState } from "../jobs/report.ts";
import { isObject, objectOf, printable } from "../json.ts";
import { toLatin1 } from "../latin1.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { parseDatedState } from "../state/dated.ts";
import { parseStateText } from "../state/envelopes.ts";
import { covered, type DayRange, missingDaysOf, withStatus } from "../streams/coverage.ts";
import type { DatedState } from "../streams/dated-state.ts";
import { BEGINNING } from "../time.ts";

export type StateOptions = {
  /** A state in any envelope; `-` is stdin. */
  readonly file: string;
};

/** Says for a person how far each stream of a state has come, whoever wrote it. Throws ConfigError for what is no state. */
export async function showState({ file }: StateOptions, runtime: Runtime): Promise<number> {
  const { streams } = parseStateText(await readText("state", file));
  const paragraphs = [...streams].map(([stream, state]) => paragraph(stream, describeStream(stream, state)));
  const text =
    paragraphs.length === 0 ? "The state is empty: the next run reads everything.\n" : paragraphs.join("\n");
  await write(runtime.stdout, toLatin1(text));
  return 0;
}

const paragraph = (stream: string, facts: readonly string[]): string =>
  `${printable(stream)}\n${facts.map((fact) => `  ${printable(fact)}\n`).join("")}`;

function describeStream(stream: string, state: unknown): readonly string[] {
  const spec = STREAMS.find(({ name }) => name === stream);
  if (spec === undefined) return ["this program has no such stream"];
  return [versionText(objectOf(state)["version"]), ...describeKnown(spec, state)];
}

/** Which program wrote a state, and which can read it. */
function versionText(version: unknown = null): string {
  if (version === null)
    return "state without a version: written by hand, and read by every version of this program";
  if (version === 1)
    return "state version 1: written by version 0.1.0, and read by every version of this program";
  return `state version ${JSON.stringify(version)}: written after version 0.1.0, which refuses it`;
}

function describeKnown(spec: StreamSpec, state: unknown): readonly string[] {
  if (spec.reading === "job") return describeJobState(spec, state);
  const isDated = isObject(state) && ("discoveredAt" in state || "replication_key_value" in state);
  if (!isDated) return ["is read from the start in every run"];
  const dated = parseDatedState(spec.name, state);
  return dated === null ? ["nothing is read yet"] : describeDated(dated);
}

function describeDated(state: DatedState): readonly string[] {
  const { discoveredAt, days, undated, filters, full_refresh, plan } = state;
  const missing = missingDaysOf(days);
  const again = withStatus(days, "again");
  return [
    discoveredAt === null ? "no row is read yet" : `read up to ${discoveredAt}`,
    `days that are covered: ${days.length === 0 ? "none" : inWords(covered(days))}`,
    missing.length === 0 ? "no missing days" : `missing days: ${missing.join(", ")}`,
    ...(again.length === 0 ? [] : [`to be checked again: ${inWords(again)}`]),
    `rows without a date: ${undated === null ? "not read yet" : "read"}`,
    ...(filters ? [`filters: source ${filters.source_slug ?? "any"}, is_user ${filters.is_user}`] : []),
    ...(full_refresh === null ? [] : [`full refresh: ${full_refresh.done ? "complete" : "not complete"}`]),
    ...(plan === null ? [] : [`part of the plan ${plan}`]),
  ];
}

/** "the beginning to 2026-01-31, 2026-02-02" */
const inWords = (ranges: readonly DayRange[]): string =>
  ranges
    .map(([first, last]) => {
      const from = first === BEGINNING ? "the beginning" : first;
      return first === last ? first : `${from} to ${last}`;
    })
    .join(", ");
