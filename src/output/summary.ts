import { dirname } from "node:path";
import { joined, type Part, plural, shown } from "../base/text.ts";
import { BEGINNING } from "../base/time.ts";
import { JOB_STREAMS, SOURCES } from "../catalog/streams.ts";
import type { Mask } from "../protocol/mask.ts";
import { type Coverage, covered, type Span } from "../sync/coverage.ts";
import type { WindowRecord } from "../sync/event.ts";
import { filterText } from "../sync/state.ts";
import { cannotMake } from "./files/reason.ts";
import { replaceFile } from "./files/replace.ts";
import type { RunSummary, StreamSummary } from "./stats.ts";

/** The facts about a run that its summary does not contain. */
type Ending = {
  /** The folder that takes the rows; undefined: stdout takes them. */
  readonly folder: string | undefined;
  /** Whether the service's counts prove the rows. */
  readonly isCounted: boolean;
  /** Whether `ignore_missing_days` leaves out days. */
  readonly isIgnoring: boolean;
  /** Whether a person runs the program, and not a platform. */
  readonly isForPerson: boolean;
  /** Whether later days can have new rows. */
  readonly isOpen: boolean;
  /** Whether another run can only succeed after a person has acted. */
  readonly mustAct: boolean;
};

/** "complete, 2,003 rows in 1 new file, 9 requests, 3.2 s", and then what the next run does. */
export function streamText(stream: StreamSummary): string {
  const { outcome, rows, files, suppressed, retries, missing_days: missing, recheck } = stream;
  const { expected_rows: expected, reread_rows: reread, saved_up_to: until } = stream;
  const place = files === null || files === 0 ? "" : ` in ${plural(files, "new file")}`;
  const isPaused = outcome === "paused";
  const result = isPaused ? `paused${pauseText(rows, expected)}` : `${outcome}, ${plural(rows, "row")}`;
  const isIdle = rows === 0 && outcome === "complete" && !hasJobs(stream);
  return joined([
    isIdle ? "nothing new" : `${result}${place}`,
    reread > 0 && `${plural(reread, "row")} read again in turn`,
    suppressed > 0 && `${shown(suppressed)} suppressed`,
    plural(stream.requests, "request"),
    retries > 0 && plural(retries, "retry", "retries"),
    shownSeconds(stream.seconds),
    missing.length > 0 && `${plural(missing.length, "day")} missing`,
    recheck.length > 0 && `the next run reads ${plural(recheck.length, "range")} of days again`,
    isPaused && (until === null ? "nothing is saved yet" : `saved up to ${until.slice(0, 10)}`),
  ]);
}

/** " after 1,500 of about 3,000 rows (time limit)"; without the expected number if the number is too low. */
function pauseText(rows: number, expected: number | null): string {
  const isKnown = expected !== null && expected >= rows;
  const text = isKnown ? `${shown(rows)} of about ${plural(expected, "row")}` : plural(rows, "row");
  return ` after ${text} (time limit)`;
}

/** "Run complete: 20,058 rows in 3 new files, 10.3 MB, in contacts/. All days up to 2026-11-24 are proven. Run again for …" */
export function endText(summary: RunSummary, ending: Ending): string {
  const { outcome, sample, streams } = summary;
  const isGood = outcome === "complete" || outcome === "paused";
  const only = sample === undefined ? "" : ` (a sample of at most ${plural(sample, "row")} a stream)`;
  const sentences = [
    `Run ${outcome}${only}${rowsText(summary)}${filesText(streams, ending.folder)}`,
    ...streams.map((stream) => spentText(stream, streams)),
    repairText(summary, ending),
    isGood && sample === undefined && ending.isCounted && provenText(streams),
    isGood ? nextText(summary, ending) : outcome !== "interrupted" && savedText(summary, ending),
  ];
  return joined(sentences, ". ");
}

function rowsText({ outcome, rows, streams }: RunSummary): string {
  const expected = streams.reduce((sum, stream) => sum + Math.max(stream.rows, stream.expected_rows ?? 0), 0);
  if (outcome === "paused") return pauseText(rows, expected);
  if (rows > 0 || streams.some(hasJobs)) return `: ${plural(rows, "row")}`;
  return outcome === "complete" ? ": nothing new" : "";
}

function filesText(streams: readonly StreamSummary[], folder = ""): string {
  const files = sumOf(streams, "files");
  if (files === 0) return "";
  const bytes = shownBytes(sumOf(streams, "file_bytes"));
  return ` in ${plural(files, "new file")}, ${bytes}, in ${folder.replace(/\/*$/, "/")}`;
}

/** The next step after a run that did not fail; false: a platform decides, or a later run cannot read more rows. */
function nextText({ outcome, streams, saved_to: place }: RunSummary, ending: Ending): Part {
  if (!ending.isForPerson || place === null) return false;
  if (outcome === "paused") return "Run again to continue";
  const hasOpenJobs = streams.some(({ spent }) => spent !== null && spent.open > 0);
  if (hasOpenJobs) return "Run again to collect the open jobs";
  return ending.isOpen && "Run again for what is new";
}

type Sum = "files" | "file_bytes" | "cut_exports" | "failed_exports";

const sumOf = (streams: readonly StreamSummary[], field: Sum): number =>
  streams.reduce((sum, stream) => sum + (stream[field] ?? 0), 0);

/** Whether the run submitted jobs, or jobs are open. */
const hasJobs = ({ spent }: StreamSummary): boolean => spent !== null && spent.submissions + spent.open > 0;

/** "company_lookups: 2 submitted, 4 credits used, 1 still open". Streams of one setting share open jobs: the first shows them. */
function spentText({ stream, spent }: StreamSummary, streams: readonly StreamSummary[]): Part {
  if (spent === null) return false;
  const settingOf = (name: string) => JOB_STREAMS.find((spec) => spec.name === name)?.setting;
  const first = streams.find((other) => settingOf(other.stream) === settingOf(stream));
  const open = first?.stream === stream ? spent.open : 0;
  const { submissions, credits } = spent;
  const text = joined([
    submissions > 0 && `${shown(submissions)} submitted`,
    credits > 0 && `${plural(credits, "credit")} used`,
    open > 0 && `${shown(open)} still open`,
  ]);
  return text !== "" && `${stream}: ${text}`;
}

/** "3 exports were cut and read again; every row is proven"; false: no export was cut or failed. */
function repairText({ streams, outcome }: RunSummary, { isCounted, isIgnoring }: Ending): Part {
  const [cut, failed] = [sumOf(streams, "cut_exports"), sumOf(streams, "failed_exports")];
  if (cut + failed === 0) return false;
  const were = (exports: number): string => (exports === 1 ? "was" : "were");
  const again = joined([
    cut > 0 && `${plural(cut, "export")} ${were(cut)} cut and read again`,
    failed > 0 && `${plural(failed, "export")} failed and ${were(failed)} read again`,
  ]);
  if (!isCounted) return again;
  const all = isIgnoring ? "every row outside ignore_missing_days" : "every row";
  const rows = { complete: all, paused: `${all} so far` }[String(outcome)];
  return `${again}; ${(streams.every(isProven) && rows) || "not every row"} is proven`;
}

/** Whether all rows are proven. The list of sources shows its own end, so sources need no count. */
const isProven = ({ stream, missing_days: missing, recheck, windows }: StreamSummary): boolean =>
  missing.length + recheck.length === 0 &&
  (stream === SOURCES.name || windows.every(({ counted }) => counted !== null));

/** A sentence about proven days (in every stream with days), or about days with moved rows; false: nothing to say. */
function provenText(streams: readonly StreamSummary[]): Part {
  const ranges = streams.reduce((sum, { recheck }) => sum + recheck.length, 0);
  if (ranges > 0)
    return `Rows moved in ${plural(ranges, "range")} of days while they were read: the next run reads them again`;
  const all = streams
    .map(({ state_after, state_before }) => (state_after ?? state_before ?? {}) as { days?: Coverage })
    .flatMap(({ days = [] }) => (days.length > 0 ? [days] : []));
  if (!all.every((days) => covered(days).length === 1 && days.every(isRead))) return false;
  const first = all
    .map(([span]) => span?.from ?? "")
    .sort()
    .at(-1);
  const [last] = all.map((days) => days.at(-1)?.to ?? "").sort();
  if (first === undefined || last === undefined || last < first) return false;
  return `All days ${first === BEGINNING ? "" : `from ${first} `}up to ${last} are proven`;
}

const isRead = ({ status }: Span): boolean => status === "proven" || status === "reread";

/** A range of days at the level debug: "people, 2024-01-01 to 2024-01-31: 3,003 of 3,003 rows, 2 attempts, proven, 0.4 s". */
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
export function savedText(summary: RunSummary, { isForPerson, mustAct }: Ending): string {
  const { saved_to, sample, streams } = summary;
  if (sample !== undefined) return "A sample saves no state";
  if (saved_to === null && isForPerson && streams.length > 0)
    return "No state is saved. Add --state-file FILE or --output DIR to save it";
  const saved = streams.filter(({ state_after }) => state_after !== null).map(savedStreamText);
  const place = saved_to === null ? "the last STATE message on stdout" : `"${saved_to}"`;
  const start = saved.length === 0 ? "Nothing new was saved" : `Saved ${saved.join(", ")} in ${place}`;
  const next = saved.length === 0 ? "The next run starts at the same place" : "Run again to continue";
  return `${start}. ${mustAct ? "Correct the cause, then run again" : next}`;
}

function savedStreamText({ stream, saved_up_to: until, files, rows }: StreamSummary): string {
  const inFiles =
    files === null || files === 0 ? "" : ` (${plural(rows, "row")} in ${plural(files, "new file")})`;
  return `${stream}${until === null ? "" : ` up to ${until}`}${inFiles}`;
}

/** The summary for a person at a terminal: a line for each stream, the end of the run, how to load files. */
export function summaryText({ streams, saved_to: place }: RunSummary, end: string | undefined): string {
  const read = streams.filter(({ outcome, requests }) => outcome !== "interrupted" || requests > 0);
  const hasFiles = place !== null && sumOf(streams, "files") > 0;
  const lines = [
    ...read.map((stream) => `${stream.stream}: ${streamText(stream)}`),
    ...(end === undefined ? [] : [end]),
    ...(hasFiles ? [`To query the files: ${SHOW} "${dirname(place)}" --sql duckdb (docs/recipes.md)`] : []),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

const SHOW = "source-contact-intelligence state show";

/** Replaces the file with the object. Throws ConfigError. */
export async function writeSummary(path: string, summary: RunSummary, mask: Mask["apply"]): Promise<void> {
  await replaceFile(path, mask(`${JSON.stringify(summary, null, 2)}\n`)).catch((cause: unknown) => {
    throw cannotMake(`write the summary "${path}"`, cause);
  });
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
