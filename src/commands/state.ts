import { isObject, objectOf, printable } from "../base/json.ts";
import { toLatin1 } from "../base/text.ts";
import { addDays, BEGINNING, dayOf, startOf } from "../base/time.ts";
import { STREAMS, type StreamSpec } from "../catalog/streams.ts";
import { describeJobState } from "../jobs/report.ts";
import { readText } from "../output/files/read-file.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { parseStateText } from "../state/envelopes.ts";
import { parseDatedState } from "../state/parse-state.ts";
import { covered, type DayRange, missingDaysOf, uncovered, withStatus } from "../sync/coverage.ts";
import type { DatedState } from "../sync/state.ts";

export type StateOptions = {
  /** A state in any envelope; `-` is stdin. */
  readonly file: string;
  /** A stream whose rows are complete only up to a moment longer ago is reported, and the exit code is 1. */
  readonly maxAgeMs?: number | undefined;
};

/** Says for a person how far each stream of a state has come, whoever wrote it. Throws ConfigError for what is no state. */
export async function showState({ file, maxAgeMs }: StateOptions, runtime: Runtime): Promise<number> {
  const { streams } = parseStateText(await readText("state", file));
  const paragraphs = [...streams].map(([stream, state]) => paragraph(stream, describeStream(stream, state)));
  const text =
    paragraphs.length === 0 ? "The state is empty: the next run reads everything.\n" : paragraphs.join("\n");
  await write(runtime.stdout, toLatin1(text));
  if (maxAgeMs === undefined) return 0;
  const late = lateStreams(streams, runtime.clock.now() - maxAgeMs);
  for (const one of late) runtime.stderr.write(`Too old: ${printable(one)}\n`);
  return late.length === 0 ? 0 : 1;
}

/** The streams with a date that are complete only up to a moment before `limit` (epoch ms), or not at all. */
function lateStreams(streams: ReadonlyMap<string, unknown>, limit: number): readonly string[] {
  const dated = [...streams].filter(([, state]) => isDated(state));
  if (dated.length === 0) return ["the state holds no stream that is read by its dates"];
  return dated.flatMap(([stream, saved]) => {
    const state = parseDatedState(stream, saved);
    const until = state === null ? Number.NEGATIVE_INFINITY : completeUntil(state);
    if (until >= limit) return [];
    return Number.isFinite(until)
      ? `${stream} is complete up to ${new Date(until).toISOString()}`
      : `${stream} was never read whole`;
  });
}

/**
 * Epoch ms: the beginning of the last run that left no day behind it unread, or of the first day that is still to be read.
 * The days that every run reads again, its yesterday and its today, are in no state.
 */
function completeUntil({ asked, discoveredAt, days }: DatedState): number {
  const moment = asked ?? discoveredAt;
  const [first] = days[0] ?? [];
  if (moment === null || first === undefined) return Number.NEGATIVE_INFINITY;
  const until = Date.parse(moment);
  const holes = uncovered(days, [first, addDays(dayOf(until), -2)]).map(([from]) => from);
  const [lacking] = [...missingDaysOf(days), ...holes].sort();
  return lacking === undefined ? until : startOf(lacking);
}

const isDated = (state: unknown): boolean =>
  isObject(state) && ("discoveredAt" in state || "replication_key_value" in state);

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
  if (spec.reading === "proof")
    return [`records of all runs up to the one that began at ${String(objectOf(state)["run_started_at"])}`];
  if (!isDated(state)) return ["is read from the start in every run"];
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
