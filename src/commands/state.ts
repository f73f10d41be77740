import { isObject, objectOf, printable } from "../base/json.ts";
import { toLatin1 } from "../base/text.ts";
import { addDays, BEGINNING, type Day, dayOf, startOf } from "../base/time.ts";
import { JOB_STREAMS, STREAMS } from "../catalog/streams.ts";
import { keyDigest } from "../config/address.ts";
import type { Config } from "../config/config.ts";
import { findConfig } from "../config/config-files.ts";
import { configSpec, innerProperty } from "../config/spec.ts";
import { describeJobState } from "../jobs/report.ts";
import { readState } from "../output/state-file.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { streamOfKey } from "../state/envelopes.ts";
import { parseRowState } from "../state/parse-state.ts";
import { covered, type DayRange, isProven, missingDaysOf, uncovered, withStatus } from "../sync/coverage.ts";
import { withTurn } from "../sync/daily-check.ts";
import { type DaySettings, whatToRead } from "../sync/range.ts";
import { filterText, NEW_STATE, type RowState } from "../sync/state.ts";

export type StateOptions = {
  /** A state file or a folder; `-` is stdin. */
  readonly file: string;
  /** The config of the next run; undefined: `config.json`, variables, or the defaults. */
  readonly config?: string | undefined;
  /** The allowed age of a stream (ms). For an older stream the exit code is 1. */
  readonly maxAgeMs?: number | undefined;
};

/** Prints how far each stream of a state is, in sentences. @throws ConfigError for a wrong state */
export async function showState(options: StateOptions, runtime: Runtime): Promise<number> {
  const { file, config: path, maxAgeMs } = options;
  const { streams } = await readState(file);
  const config = await findConfig(path, runtime.environment);
  const now = runtime.clock.now();
  const paragraphs = [...streams].map(([key, saved]) => {
    const facts = describeStream(streamOfKey(key), saved, config, dayOf(now));
    return [key, ...facts.map((fact) => `  ${fact}`)].map((line) => `${printable(line)}\n`).join("");
  });
  const text =
    streams.size === 0 ? "The state is empty: the next run reads everything.\n" : paragraphs.join("\n");
  await write(runtime.stdout, toLatin1(text));
  for (const warning of config?.warnings ?? []) runtime.stderr.write(`Warning: ${warning}\n`);
  const late = maxAgeMs === undefined ? [] : lateStreams(streams, now - maxAgeMs);
  for (const one of late) runtime.stderr.write(`Too old: ${printable(one)}\n`);
  return late.length === 0 ? 0 : 1;
}

/** Sentences about dated streams that are not complete up to `limit` (epoch ms). */
function lateStreams(streams: ReadonlyMap<string, unknown>, limit: number): readonly string[] {
  const dated = [...streams].filter(([, state]) => isDated(state));
  if (dated.length === 0) return ["the state has no stream that is read by its dates"];
  return dated.flatMap(([stream, saved]) => {
    const until = completeUntil(parseRowState(stream, saved) ?? NEW_STATE);
    if (until === null) return [`${stream} was never complete`];
    return until < limit ? [`${stream} is complete up to ${new Date(until).toISOString()}`] : [];
  });
}

/** Epoch ms up to which all days are read: the start of the last run or of the first unread day. Null: no day is read. */
function completeUntil({ asked, discoveredAt, days }: RowState): number | null {
  const moment = asked ?? discoveredAt;
  const [first] = days;
  if (moment === null || first === undefined) return null;
  const until = Date.parse(moment);
  const holes = uncovered(days, [first.from, addDays(dayOf(until), -2)]).map(([from]) => from);
  const [lacking] = [...missingDaysOf(days), ...holes].sort();
  return lacking === undefined ? until : startOf(lacking);
}

/** Whether a stream is read by its dates. Otherwise the tap writes a null `replication_key`. */
const isDated = (state: unknown): boolean =>
  isObject(state) &&
  ("discoveredAt" in state || ("replication_key_value" in state && state["replication_key"] !== null));

/** The default settings. */
function defaults(): DaySettings {
  const lookbackWindowDays = Number(innerProperty(configSpec(), "lookback_window_days")?.default);
  return { startDate: null, endDate: null, lookbackWindowDays, rereadDays: 0, ignoreMissingDays: [] };
}

function describeStream(
  stream: string,
  saved: unknown,
  config: Config | undefined,
  today: Day,
): readonly string[] {
  const job = JOB_STREAMS.find(({ name }) => name === stream);
  if (!STREAMS.some(({ name }) => name === stream)) return ["this program does not know the stream"];
  const { version = null } = objectOf(saved);
  const written = version === null ? "state without a format" : `state format ${JSON.stringify(version)}`;
  if (job !== undefined) return [written, ...describeJobState(job, saved)];
  const state = parseRowState(stream, saved);
  if (!isDated(saved)) return [written, "every run reads it from the start"];
  if (state === null) return [written, "nothing is read yet"];
  return [written, ...describeRows(state), ...describeNext(state, config, today)];
}

function describeRows(state: RowState): readonly string[] {
  const { discoveredAt, days, undated, filters, full_refresh } = state;
  return [
    `newest row: ${discoveredAt ?? "none"}`,
    `proven days: ${inWords(covered(days.filter(isProven))) || "none"}`,
    `missing days: ${missingDaysOf(days).join(", ") || "none"}`,
    `days to read again: ${inWords(withStatus(days, "again")) || "none"}`,
    `rows without a date: ${undated === null ? "not read yet" : undated.rows}`,
    ...(filters ? [`filters: ${filterText(filters) || "none"}`] : []),
    ...(full_refresh === null ? [] : [`full refresh: ${full_refresh.done ? "complete" : "not complete"}`]),
  ];
}

/** Sentences about the days that `read` would choose. @param config undefined: the defaults */
function describeNext(saved: RowState, config: Config | undefined, today: Day): readonly string[] {
  const key = config && keyDigest(config.apiKey);
  const settings = config ?? defaults();
  const state = withTurn(saved, whatToRead(saved, settings, today), settings, today);
  const plan = whatToRead(state, settings, today, key);
  const { missing, again, holes, reread, undated, window } = plan;
  const check = plan.daily ? "the counts of the proven days" : "";
  const parts = [
    plan.isNewKey ? "the counts of all days, because the API key is new" : check,
    missing.length > 0 && `missing days: ${missing.join(", ")}`,
    again.length > 0 && `days that changed while they were read: ${inWords(again)}`,
    holes.length > 0 && `days that were never read: ${inWords(holes)}`,
    reread.length > 0 && `days whose turn it is to be read again: ${inWords(reread)}`,
    undated && "rows without a date",
    window &&
      (window.until === "now" ? `${nameOf(window.from)} up to now` : inWords([[window.from, window.until]])),
  ].flatMap((part) => part || []);
  return [
    `a run today (${today}) reads${config === undefined ? ", with default settings" : ""}:`,
    ...(parts.length === 0 ? ["nothing"] : parts).map((part) => `  ${part}`),
  ];
}

const nameOf = (day: Day): string => (day === BEGINNING ? "the beginning" : day);

/** "the beginning to 2026-01-31, 2026-02-02" */
export const inWords = (ranges: readonly DayRange[]): string =>
  ranges.map(([first, last]) => (first === last ? first : `${nameOf(first)} to ${last}`)).join(", ");
