import { isObject, objectOf, printable } from "../base/json.ts";
import { toLatin1 } from "../base/text.ts";
import { addDays, BEGINNING, type Day, dayOf, startOf } from "../base/time.ts";
import { STREAMS, type StreamSpec } from "../catalog/streams.ts";
import { keyDigest } from "../config/address.ts";
import { describeJobState } from "../jobs/report.ts";
import { readText } from "../output/files/read-file.ts";
import { write } from "../protocol/writer.ts";
import { openConfig } from "../run/config-files.ts";
import type { Runtime } from "../run/runtime.ts";
import { parseStateText } from "../state/envelopes.ts";
import { parseRowState } from "../state/parse-state.ts";
import { covered, type DayRange, isProven, missingDaysOf, uncovered } from "../sync/coverage.ts";
import { type ReadSettings, whatToRead } from "../sync/range.ts";
import type { RowState } from "../sync/state.ts";

export type StateOptions = {
  /** A state in any envelope; `-` is stdin. */
  readonly file: string;
  /** The settings of the next run; undefined: the defaults. */
  readonly config?: string | undefined;
  /** A stream whose rows are complete only up to a moment longer ago is reported, and the exit code is 1. */
  readonly maxAgeMs?: number | undefined;
};

/** Says for a person how far each stream of a state has come, whoever wrote it. Throws ConfigError for what is no state. */
export async function showState({ file, config, maxAgeMs }: StateOptions, runtime: Runtime): Promise<number> {
  const { streams } = parseStateText(await readText("state", file));
  const settings = config === undefined ? undefined : await openConfig(config, runtime.environment);
  const next: NextRun = {
    settings: settings ?? DEFAULTS,
    isAssumed: settings === undefined,
    key: settings && keyDigest(settings.apiKey),
    today: dayOf(runtime.clock.now()),
  };
  const paragraphs = [...streams].map(([stream, state]) =>
    paragraph(stream, describeStream(stream, state, next)),
  );
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
    const state = parseRowState(stream, saved);
    const until = state === null ? Number.NEGATIVE_INFINITY : completeUntil(state);
    if (until >= limit) return [];
    return Number.isFinite(until)
      ? `${stream} is complete up to ${new Date(until).toISOString()}`
      : `${stream} was never read completely`;
  });
}

/**
 * Epoch ms: the beginning of the last run that left no day behind it unread, or of the first day that is still to be read.
 * The days that every run reads again, its yesterday and its today, are in no state.
 */
function completeUntil({ asked, discoveredAt, days }: RowState): number {
  const moment = asked ?? discoveredAt;
  const first = days[0]?.from;
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

/** How the run after a state is going to read. */
type NextRun = {
  readonly settings: ReadSettings;
  /** Whether the settings are the defaults. */
  readonly isAssumed: boolean;
  /** Digest of the API key's id; undefined: unknown. */
  readonly key: string | undefined;
  readonly today: Day;
};

const DEFAULTS: ReadSettings = {
  ...{ startDate: null, endDate: null, lookbackWindowDays: 1, ignoreMissingDays: [] },
  ...{ maxWindowRows: 0, numWorkers: 1, verifyCounts: true },
};

function describeStream(stream: string, state: unknown, next: NextRun): readonly string[] {
  const spec = STREAMS.find(({ name }) => name === stream);
  if (spec === undefined) return ["this program has no such stream"];
  const { version = null } = objectOf(state);
  const written = version === null ? "state without a version" : `state version ${JSON.stringify(version)}`;
  return [written, ...describeKnown(spec, state, next)];
}

function describeKnown(spec: StreamSpec, state: unknown, next: NextRun): readonly string[] {
  if (spec.reading === "job") return describeJobState(spec, state);
  if (!isDated(state)) return ["every run reads it from the start"];
  const rows = parseRowState(spec.name, state);
  return rows === null ? ["nothing is read yet"] : [...describeRows(rows), ...describeNext(rows, next)];
}

function describeRows(state: RowState): readonly string[] {
  const { discoveredAt, days, undated, filters, full_refresh } = state;
  const missing = missingDaysOf(days);
  return [
    discoveredAt === null ? "no row is read yet" : `read up to ${discoveredAt}`,
    `proven days: ${inWords(covered(days.filter(isProven)))}`,
    `missing days: ${missing.length === 0 ? "none" : missing.join(", ")}`,
    `rows without a date: ${undated === null ? "not read yet" : undated.rows}`,
    ...(filters ? [`filters: source ${filters.source_slug ?? "any"}, is_user ${filters.is_user}`] : []),
    ...(full_refresh === null ? [] : [`full refresh: ${full_refresh.done ? "complete" : "not complete"}`]),
  ];
}

/** What a run on this day reads, as `read` decides it. */
function describeNext(state: RowState, { settings, isAssumed, key, today }: NextRun): readonly string[] {
  const { missing, again, holes, undated, window, daily, isNewKey } = whatToRead(state, settings, today, key);
  const assumed = isAssumed
    ? `, with the defaults (lookback_window_days ${settings.lookbackWindowDays}, no dates)`
    : "";
  const parts = [
    ...(isNewKey
      ? ["compare all days with the numbers of the new API key"]
      : daily
        ? ["count the proven days once"]
        : []),
    ...(missing.length === 0 ? [] : [`missing days: ${missing.join(", ")}`]),
    ...(again.length === 0 ? [] : [`days that changed while they were read: ${inWords(again)}`]),
    ...(holes.length === 0 ? [] : [`days that were never read: ${inWords(holes)}`]),
    ...(undated === undefined ? [] : ["rows without a date"]),
    ...(window === undefined
      ? []
      : [`${window.from === BEGINNING ? "the beginning" : window.from} to ${window.until}`]),
  ];
  return [
    `a run on ${today} reads${assumed}:`,
    ...(parts.length === 0 ? ["nothing"] : parts).map((part) => `  ${part}`),
  ];
}

/** "the beginning to 2026-01-31, 2026-02-02" */
const inWords = (ranges: readonly DayRange[]): string =>
  ranges.length === 0
    ? "none"
    : ranges
        .map(([first, last]) => {
          const from = first === BEGINNING ? "the beginning" : first;
          return first === last ? first : `${from} to ${last}`;
        })
        .join(", ");
