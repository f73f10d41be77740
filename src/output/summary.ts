import { dirname } from "node:path";
import { plural, shown } from "../base/text.ts";
import type { WindowRecord } from "../sync/event.ts";
import { filterText } from "../sync/state.ts";
import { cannotMake } from "./files/reason.ts";
import { replaceFile } from "./files/replace.ts";
import type { RunSummary, StreamSummary } from "./stats.ts";

/** How a stream ended: "complete, 2,003 rows in 4 windows, 9 requests, 3.2 s", and what follows from it. */
export function streamText(stream: StreamSummary): string {
  const { outcome, rows, suppressed, retries, missing_days: missing, recheck, saved_up_to: until } = stream;
  const end = [
    `${outcome}, ${plural(rows, "row")}${placeText(stream)}${rereadText([stream])}`,
    suppressed > 0 && `${shown(suppressed)} suppressed`,
    plural(stream.requests, "request"),
    retries > 0 && plural(retries, "retry", "retries"),
    shownSeconds(stream.seconds),
    missing.length > 0 && `${plural(missing.length, "day")} missing`,
    recheck.length > 0 && `the next run reads ${plural(recheck.length, "range")} of days again`,
  ].filter(Boolean);
  const saved = until === null ? "nothing is saved yet" : `saved up to ${until.slice(0, 10)}`;
  const limit = `. Time limit reached: ${rowsText(rows, stream.expected_rows)}, ${saved}. Run again to continue`;
  return `${end.join(", ")}${stream.time_limit_reached ? limit : ""}`;
}

/** "1,500 of about 3,000 rows" */
export const rowsText = (rows: number, expected: number | null): string =>
  expected === null ? plural(rows, "row") : `${shown(rows)} of about ${plural(expected, "row")}`;

function placeText({ windows: { length: windows }, files }: StreamSummary): string {
  if (files !== null) return ` in ${plural(files, "new file")}`;
  return windows === 0 ? "" : ` in ${plural(windows, "window")}`;
}

function rereadText(streams: readonly StreamSummary[]): string {
  const rows = streams.reduce((sum, { reread_rows }) => sum + reread_rows, 0);
  return rows === 0 ? "" : `, ${plural(rows, "row")} read again in turn`;
}

/** How a run ended: "complete: 2,003 rows of 1 stream, 9 requests, 3.2 s". */
export function runText({ outcome, sample, streams, rows, requests, seconds }: RunSummary): string {
  const names = plural(streams.length, "stream");
  const only = sample === undefined ? "" : ` (a sample of at most ${plural(sample, "row")} a stream)`;
  return `Run ${outcome}${only}: ${plural(rows, "row")} of ${names}${rereadText(streams)}, ${plural(requests, "request")}, ${shownSeconds(seconds)}`;
}

/** A log line cannot have more windows than this. */
const MAX_WINDOWS = 50;

/**
 * The windows of a run for platforms that pass no `--summary`, those that are not proven first: "people 2026-01-01 to
 * 2026-01-07: 2,003 counted, 2,003 shown, 1 pass, proven, 0.4 s". Empty if no window was read.
 */
export function windowsText({ streams }: RunSummary): string {
  const all = streams.flatMap(({ stream, windows }) => windows.map((window) => ({ stream, ...window })));
  const isProven = ({ verdict }: WindowRecord): boolean => verdict === "proven";
  const windows = [...all.filter((one) => !isProven(one)), ...all.filter(isProven)];
  const texts = windows
    .slice(0, MAX_WINDOWS)
    .map(({ stream, ...window }) => `${stream} ${windowText(window)}`);
  const more = windows.length - texts.length;
  return [...texts, ...(more > 0 ? [`and ${plural(more, "window")} more`] : [])].join("; ");
}

function windowText(window: WindowRecord): string {
  const { kind, discovered_from: from, discovered_to: to } = window;
  const days = from === null && to === null ? kind : `${from ?? "the start"} to ${to ?? "now"}`;
  const filters = filterText(window);
  const where = filters === "" ? days : `${days} (${filters})`;
  const counted = window.counted === null ? "not counted" : `${shown(window.counted)} counted`;
  const passes = plural(window.passes, "pass", "passes");
  return `${where}: ${counted}, ${shown(window.shown)} shown, ${passes}, ${window.verdict}, ${shownSeconds(window.seconds)}`;
}

/** The saved part of an interrupted run, and its place. @param hasStateMessages whether stdout shows a state that has no place */
export function savedText({ saved_to, sample, streams }: RunSummary, hasStateMessages: boolean): string {
  if (sample !== undefined) return "of a sample no state is saved";
  if (saved_to === null && !hasStateMessages)
    return "no state is saved. Add --state-file FILE or --output DIR to save it";
  const place = saved_to === null ? "the last STATE message on stdout" : `"${saved_to}"`;
  const named = streams
    .filter((stream) => stream.state_after !== null)
    .map(({ stream, saved_up_to: until, files, rows }) => {
      const inFiles = files === null ? "" : ` (${plural(rows, "row")} in ${plural(files, "new file")})`;
      return `${stream}${until === null ? "" : ` up to ${until}`}${inFiles}`;
    });
  if (named.length === 0) return "nothing new was ready to be saved. Run again to start where this run did";
  return `saved ${named.join(", ")} in ${place}. Run again to continue`;
}

/** The summary for a person at a terminal: a line for each stream, how to load files, and what a run that failed has saved. */
export function summaryText(
  { streams, outcome, saved_to: place }: RunSummary,
  saved: string | undefined,
): string {
  const lines = streams.map((stream) => `${stream.stream}: ${streamText(stream)}\n`);
  const hasFiles = place !== null && streams.some(({ files }) => files !== null && files > 0);
  const tables =
    hasFiles && `To query the files: ${SHOW} "${dirname(place)}" --sql duckdb (docs/recipes.md)\n`;
  return [...lines, tables, saved !== undefined && `Run ${outcome}: ${saved}\n`].filter(Boolean).join("");
}

const SHOW = "source-contact-intelligence state show";

/** Replaces the file with the object. Throws ConfigError. */
export async function writeSummary(
  path: string,
  summary: RunSummary,
  mask: (text: string) => string,
): Promise<void> {
  try {
    await replaceFile(path, mask(`${JSON.stringify(summary, null, 2)}\n`));
  } catch (cause) {
    throw cannotMake(`write the summary "${path}"`, cause);
  }
}

export function shownSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
