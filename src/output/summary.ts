import { dirname } from "node:path";
import { plural, shown } from "../base/text.ts";
import { BEGINNING } from "../base/time.ts";
import { type Coverage, covered, type Span } from "../sync/coverage.ts";
import type { WindowRecord } from "../sync/event.ts";
import { filterText } from "../sync/state.ts";
import { cannotMake } from "./files/reason.ts";
import { replaceFile } from "./files/replace.ts";
import type { RunSummary, StreamSummary } from "./stats.ts";

/** How a stream ended: "complete, 2,003 rows in 1 new file, 9 requests, 3.2 s", and what follows from it. */
export function streamText(stream: StreamSummary): string {
  const { suppressed, retries, missing_days: missing, recheck, saved_up_to: until } = stream;
  return [
    `${resultText(stream)}${rereadText(stream)}`,
    suppressed > 0 && `${shown(suppressed)} suppressed`,
    plural(stream.requests, "request"),
    retries > 0 && plural(retries, "retry", "retries"),
    shownSeconds(stream.seconds),
    missing.length > 0 && `${plural(missing.length, "day")} missing`,
    recheck.length > 0 && `the next run reads ${plural(recheck.length, "range")} of days again`,
    stream.outcome === "paused" &&
      (until === null ? "nothing is saved yet" : `saved up to ${until.slice(0, 10)}`),
  ]
    .filter(Boolean)
    .join(", ");
}

function resultText(stream: StreamSummary): string {
  const { outcome, rows, files, expected_rows: expected } = stream;
  const place = files === null || files === 0 ? "" : ` in ${plural(files, "new file")}`;
  if (outcome === "paused") return `paused after ${rowsText(rows, expected)} (time limit)${place}`;
  if (rows === 0 && outcome === "complete" && !hasJobs(stream)) return "nothing new";
  return `${outcome}, ${plural(rows, "row")}${place}`;
}

/** "1,500 of about 3,000 rows"; a count that is too low is left out. */
export const rowsText = (rows: number, expected: number | null): string =>
  expected === null || expected < rows
    ? plural(rows, "row")
    : `${shown(rows)} of about ${plural(expected, "row")}`;

const rereadText = ({ reread_rows: rows }: StreamSummary): string =>
  rows === 0 ? "" : `, ${plural(rows, "row")} read again in turn`;

/** The facts about a run that its summary does not have. */
export type Ending = {
  /** The folder that takes the rows; undefined: they went to stdout. */
  readonly folder: string | undefined;
  /** Whether the service's counts prove what was read. */
  readonly isCounted: boolean;
  /** Whether a person runs it, and not a platform. */
  readonly isForPerson: boolean;
  /** Whether later days can have new rows. */
  readonly isOpen: boolean;
  /** Whether a person must act before another run can do better. */
  readonly mustAct: boolean;
};

/**
 * How a run ended: "Run complete: 20,058 rows in 3 new files, 10.3 MB, in contacts/. All days up to 2026-11-24 are proven. Run
 * again for what is new".
 */
export function endText(summary: RunSummary, ending: Ending): string {
  const { outcome, sample, streams } = summary;
  const isGood = outcome === "complete" || outcome === "paused";
  const only = sample === undefined ? "" : ` (a sample of at most ${plural(sample, "row")} a stream)`;
  return [
    `Run ${outcome}${only}${runRowsText(summary)}${runFilesText(summary, ending)}`,
    ...streams.flatMap(spentText),
    repairText(summary, ending),
    isGood && sample === undefined && ending.isCounted && provenText(streams),
    isGood ? nextText(summary, ending) : outcome !== "interrupted" && savedText(summary, ending),
  ]
    .filter(Boolean)
    .join(". ");
}

function runRowsText({ outcome, rows, streams }: RunSummary): string {
  const expected = streams.reduce((sum, one) => sum + Math.max(one.rows, one.expected_rows ?? 0), 0);
  if (outcome === "paused") return ` after ${rowsText(rows, expected)} (time limit)`;
  if (rows > 0 || streams.some(hasJobs)) return `: ${plural(rows, "row")}`;
  return outcome === "complete" ? ": nothing new" : "";
}

function runFilesText({ streams }: RunSummary, { folder = "" }: Ending): string {
  const files = sumOf(streams, "files");
  if (files === 0) return "";
  const bytes = shownBytes(sumOf(streams, "file_bytes"));
  return ` in ${plural(files, "new file")}, ${bytes}, in ${folder.replace(/\/*$/, "/")}`;
}

/** The next step after a run that did not fail; false: a platform decides, or no later run can have more rows. */
function nextText({ outcome, streams, saved_to: place }: RunSummary, ending: Ending): string | false {
  if (!ending.isForPerson || place === null) return false;
  if (outcome === "paused") return "Run again to continue";
  if (streams.some(({ spent }) => spent !== null && spent.open > 0))
    return "Run again to collect the open jobs";
  return ending.isOpen && "Run again for what is new";
}

const sumOf = (streams: readonly StreamSummary[], field: "files" | "file_bytes" | "cut_exports"): number =>
  streams.reduce((sum, stream) => sum + (stream[field] ?? 0), 0);

/** Whether jobs were submitted, or are open. */
const hasJobs = ({ spent }: StreamSummary): boolean => spent !== null && spent.submissions + spent.open > 0;

/** "company_lookups: 2 submitted, 4 credits used, 1 still open" */
function spentText({ stream, spent }: StreamSummary): readonly string[] {
  if (spent === null) return [];
  const { submissions, credits, open } = spent;
  const parts = [
    submissions > 0 && `${shown(submissions)} submitted`,
    credits > 0 && `${plural(credits, "credit")} used`,
    open > 0 && `${shown(open)} still open`,
  ].filter(Boolean);
  return parts.length === 0 ? [] : [`${stream}: ${parts.join(", ")}`];
}

/** "3 exports were cut and read again; every row is proven"; false: none was cut. */
function repairText({ streams, outcome }: RunSummary, { isCounted }: Ending): string | false {
  const cut = sumOf(streams, "cut_exports");
  if (cut === 0) return false;
  const again = `${plural(cut, "export")} ${cut === 1 ? "was" : "were"} cut and read again`;
  if (!isCounted) return again;
  const isProven = streams.every(
    ({ missing_days: missing, recheck, cut_exports: cuts, windows }) =>
      missing.length + recheck.length === 0 &&
      (cuts === 0 || windows.every(({ counted }) => counted !== null)),
  );
  if (outcome === "complete" && isProven) return `${again}; every row is proven`;
  if (outcome === "paused" && isProven) return `${again}; every row so far is proven`;
  return `${again}; not every row is proven`;
}

/** Says which days are proven in every stream that has days, or which are not; false: no stream has days. */
function provenText(streams: readonly StreamSummary[]): string | false {
  const ranges = streams.reduce((sum, { recheck }) => sum + recheck.length, 0);
  if (ranges > 0)
    return `Rows moved in ${plural(ranges, "range")} of days while they were read: the next run reads them again`;
  const spans = streams.flatMap((stream) => {
    const { days = [] } = (stream.state_after ?? stream.state_before ?? {}) as { days?: Coverage };
    const [range, ...others] = covered(days);
    return range === undefined ? [] : [{ range, isProven: others.length === 0 && days.every(isRead) }];
  });
  const [first] = spans
    .map(({ range: [from] }) => from)
    .sort()
    .slice(-1);
  const [last] = spans.map(({ range: [, to] }) => to).sort();
  if (first === undefined || last === undefined || last < first || spans.some(({ isProven }) => !isProven))
    return false;
  return `All days ${first === BEGINNING ? "" : `from ${first} `}up to ${last} are proven`;
}

const isRead = ({ status }: Span): boolean => status === "proven" || status === "reread";

/** A range of days as the log of the level debug has it: "people, 2024-01-01 to 2024-01-31: 3,003 of 3,003 rows, 2 attempts, proven, 0.4 s". */
export function windowText(stream: string, window: WindowRecord): string {
  const { kind, discovered_from: from, discovered_to: to, counted, passes } = window;
  const filters = filterText(window);
  const days = from === null && to === null ? `${kind} rows` : `${from ?? "the beginning"} to ${to ?? "now"}`;
  const where = filters === "" ? days : `${days} (${filters})`;
  const rows =
    counted === null
      ? `${plural(window.shown, "row")}, not counted`
      : `${shown(window.shown)} of ${plural(counted, "row")}`;
  return `${stream}, ${where}: ${rows}, ${plural(passes, "attempt")}, ${window.verdict}, ${shownSeconds(window.seconds)}`;
}

/** The rows that a run saved before it ended early, and the next step. */
export function savedText(
  { saved_to, sample, streams }: RunSummary,
  { isForPerson, mustAct }: Ending,
): string {
  if (sample !== undefined) return "A sample saves no state";
  if (saved_to === null && isForPerson && streams.length > 0)
    return "No state is saved. Add --state-file FILE or --output DIR to save it";
  const place = saved_to === null ? "the last STATE message on stdout" : `"${saved_to}"`;
  const named = streams
    .filter((stream) => stream.state_after !== null)
    .map(({ stream, saved_up_to: until, files, rows }) => {
      const inFiles = files === null ? "" : ` (${plural(rows, "row")} in ${plural(files, "new file")})`;
      return `${stream}${until === null ? "" : ` up to ${until}`}${inFiles}`;
    });
  const saved = named.length === 0 ? "Nothing new was saved" : `Saved ${named.join(", ")} in ${place}`;
  if (mustAct) return `${saved}. Correct the cause, then run again`;
  return `${saved}. ${named.length === 0 ? "The next run starts at the same place" : "Run again to continue"}`;
}

/** The summary for a person at a terminal: a line for each stream, the end of the run, how to load files. */
export function summaryText({ streams, saved_to: place }: RunSummary, end: string | undefined): string {
  const asked = streams.filter(({ outcome, requests }) => outcome !== "interrupted" || requests > 0);
  const lines = asked.map((stream) => `${stream.stream}: ${streamText(stream)}\n`);
  const hasFiles = place !== null && streams.some(({ files }) => files !== null && files > 0);
  const tables =
    hasFiles && `To query the files: ${SHOW} "${dirname(place)}" --sql duckdb (docs/recipes.md)\n`;
  return [...lines, end !== undefined && `${end}\n`, tables].filter(Boolean).join("");
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

const shownBytes = (bytes: number): string =>
  bytes < 1_000_000
    ? `${shown(Math.ceil(bytes / 1000))} kB`
    : `${shown(Math.round(bytes / 100_000) / 10)} MB`;
