import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "../errors.ts";
import { reasonOf } from "../files/reason.ts";
import { replaceFile, statReplaceable } from "../files/replace.ts";
import { plural, shown } from "../plural.ts";
import { userMessage } from "../protocol/error-text.ts";
import { type Coverage, missingDaysOf, withStatus } from "../streams/coverage.ts";
import type { Spent, StreamState } from "../streams/event.ts";
import type { RunStats, StreamStats } from "./stats.ts";

export type RunOutcome = "complete" | "incomplete" | "failed" | "interrupted";

/** What `--summary` writes: what a run delivered and what that took. Names and units are fixed. */
export type RunSummary = Counts & {
  readonly version: 1;
  readonly started_at: string;
  readonly ended_at: string;
  readonly outcome: RunOutcome;
  readonly error: string | null;
  readonly time_limit_reached: boolean;
  /** The file or folder that the next run continues from; null: the state went to stdout. */
  readonly saved_to: string | null;
  readonly streams: readonly StreamSummary[];
};

export type StreamSummary = Counts & {
  readonly stream: string;
  readonly outcome: "complete" | "incomplete" | "interrupted";
  readonly error: string | null;
  readonly expected_rows: number | null;
  /** Files that were published; null: none are written. */
  readonly files: number | null;
  readonly windows: number;
  readonly passes: number | null;
  readonly missing_days: readonly string[];
  readonly recheck: readonly (readonly [string, string])[];
  readonly time_limit_reached: boolean;
  /** Up to where all rows are delivered: a day or a moment. */
  readonly saved_up_to: string | null;
  readonly state_before: unknown;
  readonly state_after: unknown;
  /** What jobs bought in this run; null for other streams. */
  readonly spent: Spent | null;
};

type Counts = {
  readonly rows: number;
  readonly seconds: number;
  readonly requests: number;
  readonly retries: number;
  readonly bytes_received: number;
  readonly waited_seconds: number;
};

/** How a run ended, apart from what its streams tell. */
export type Ending = {
  /** Epoch ms. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly interrupted: boolean;
  readonly savedTo: string | null;
};

export function toSummary(stats: RunStats, ending: Ending): RunSummary {
  const streams = stats.streams.map(streamSummary);
  const { failure, seconds, usage } = stats;
  return {
    version: 1,
    started_at: new Date(ending.startedAt).toISOString(),
    ended_at: new Date(ending.endedAt).toISOString(),
    outcome: outcomeOf(streams, failure !== undefined, ending.interrupted),
    error: failure === undefined ? null : userMessage(failure),
    time_limit_reached: streams.some((stream) => stream.time_limit_reached),
    rows: streams.reduce((sum, { rows }) => sum + rows, 0),
    ...countsOf(seconds, usage),
    saved_to: ending.savedTo,
    streams,
  };
}

function outcomeOf(streams: readonly StreamSummary[], failed: boolean, interrupted: boolean): RunOutcome {
  if (interrupted) return "interrupted";
  if (failed) return "failed";
  return streams.every(({ outcome }) => outcome === "complete") ? "complete" : "incomplete";
}

export function streamSummary(stats: StreamStats): StreamSummary {
  const { report, error, stateAfter } = stats;
  return {
    stream: stats.stream,
    outcome: stats.outcome === "reading" ? "interrupted" : stats.outcome,
    error: error === undefined ? null : userMessage(error),
    rows: stats.rows,
    expected_rows: stats.expectedRows,
    files: stats.files,
    windows: stats.windows,
    passes: report?.passes ?? null,
    ...countsOf(stats.seconds, stats.usage),
    missing_days: report?.missingDays ?? missingDaysOf(daysIn(stateAfter)),
    recheck: report?.recheck ?? withStatus(daysIn(stateAfter), "again"),
    time_limit_reached: report?.timeLimit.reached ?? false,
    saved_up_to: report?.timeLimit.savedUpTo ?? textAt(stateAfter, "discoveredAt"),
    state_before: stats.stateBefore,
    state_after: stateAfter,
    spent: stats.spent,
  };
}

function countsOf(seconds: number, usage: StreamStats["usage"]): Omit<Counts, "rows"> {
  return {
    seconds: rounded(seconds),
    requests: usage.requests,
    retries: usage.retries,
    bytes_received: usage.bytesReceived,
    waited_seconds: rounded(usage.waitedMs / 1000),
  };
}

const daysIn = (state: StreamState | null): Coverage => (state?.["days"] ?? []) as Coverage;

function textAt(state: StreamState | null, name: string): string | null {
  const value = state?.[name];
  return typeof value === "string" ? value : null;
}

const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000;

/** "complete, 2,003 rows in 4 windows, 9 requests, 3.2 s" */
export function streamText(stream: StreamSummary): string {
  const { outcome, missing_days: missing, recheck } = stream;
  return [
    `${outcome}, ${plural(stream.rows, "row")}${placeText(stream)}`,
    plural(stream.requests, "request"),
    ...(stream.retries === 0 ? [] : [plural(stream.retries, "retry", "retries")]),
    shownSeconds(stream.seconds),
    ...(missing.length === 0 ? [] : [`${plural(missing.length, "day")} missing`]),
    ...(recheck.length === 0
      ? []
      : [
          `the next run checks ${plural(recheck.length, "range")} of days again, because rows moved meanwhile`,
        ]),
  ].join(", ");
}

function placeText({ windows, files }: StreamSummary): string {
  if (files !== null) return ` in ${plural(files, "new file")}`;
  return windows === 0 ? "" : ` in ${plural(windows, "window")}`;
}

/** "Time limit reached: 399,372 of about 2,000,003 rows, saved up to 2018-11-22. Run again to continue." */
export function timeLimitText(stream: StreamSummary): string | undefined {
  if (!stream.time_limit_reached) return undefined;
  const { rows, expected_rows: expected, saved_up_to: until } = stream;
  const of = expected === null ? plural(rows, "row") : `${shown(rows)} of about ${plural(expected, "row")}`;
  const saved = until === null ? "nothing is saved yet" : `saved up to ${until.slice(0, 10)}`;
  return `Time limit reached: ${of}, ${saved}. Run again to continue.`;
}

/** The last log line of a run. */
export function runText({ outcome, streams, rows, requests, seconds }: RunSummary): string {
  const names = plural(streams.length, "stream");
  return `Run ${outcome}: ${plural(rows, "row")} of ${names}, ${plural(requests, "request")}, ${shownSeconds(seconds)}`;
}

/** What a person at a terminal reads at the end: a line for each stream. */
export function summaryText(summary: RunSummary): string {
  const lines = summary.streams.flatMap((stream) => {
    const limit = timeLimitText(stream);
    return [`${stream.stream}: ${streamText(stream)}`, ...(limit === undefined ? [] : [`  ${limit}`])];
  });
  return lines.map((line) => `${line}\n`).join("");
}

/** Throws ConfigError for a path where no summary can be written: better now than after hours. */
export async function checkSummaryPath(path: string): Promise<void> {
  await statReplaceable(path);
  await access(dirname(path)).catch((cause) => {
    throw new ConfigError(`Cannot write the summary "${path}": there is no folder "${dirname(path)}"`, {
      cause,
    });
  });
}

/** Replaces the file with the object. Throws ConfigError. */
export async function writeSummary(
  path: string,
  summary: RunSummary,
  mask: (text: string) => string,
): Promise<void> {
  try {
    await replaceFile(path, mask(`${JSON.stringify(summary, null, 2)}\n`));
  } catch (cause) {
    throw new ConfigError(`Cannot write the summary "${path}": ${reasonOf(cause)}`, { cause });
  }
}

export function shownSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
