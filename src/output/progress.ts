import { Socket } from "node:net";
import { printable } from "../base/json.ts";
import { plural, shown } from "../base/text.ts";
import type { Runtime } from "../run/runtime.ts";
import type { RunStats } from "./stats.ts";
import { rowsText, shownSeconds } from "./summary.ts";

/** Shows a person at a terminal how a run proceeds, in one line that is drawn over itself. */
export type Display = {
  /** A text for the terminal, as it is written above the line. */
  readonly above: (text: string) => string;
  /** Removes the line. */
  readonly stop: () => void;
};

/** The time (ms) between two drawings. */
const REFRESH_MS = 100;

/** Goes to the start of the line and clears it. */
const CLEAR = "\r\u001b[K";
const FRAMES = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];

/**
 * Undefined where stderr is no terminal that can draw over a line, or where records may come to the same terminal.
 * @param files whether records go to files
 */
export function openDisplay(stats: RunStats, runtime: Runtime, files: boolean): Display | undefined {
  const { stderr, stdout, environment } = runtime;
  // The reader of a pipe may write to this terminal too.
  const isTaken = !files && (stdout.isTTY === true || stdout instanceof Socket);
  if (stderr.isTTY !== true || isTaken || !canRedraw(environment)) return undefined;
  let frame = 0;
  const draw = (): void => {
    const { columns } = stderr as { columns?: number };
    // The spinner and its space take two columns, and the last column stays free.
    const text = lineOf(stats, (columns || 80) - 3);
    stderr.write(`${CLEAR}${FRAMES[frame++ % FRAMES.length]} ${text}`);
  };
  draw();
  // A wait ends no event, so that the line is drawn by the clock.
  const timer = setInterval(draw, REFRESH_MS).unref();
  let isOpen = true;
  return {
    above: (text) => (isOpen ? `${CLEAR}${text}` : text),
    stop() {
      if (isOpen) stderr.write(CLEAR);
      clearInterval(timer);
      isOpen = false;
    },
  };
}

export const canRedraw = ({ TERM, CI }: Runtime["environment"]): boolean =>
  TERM !== "dumb" && CI === undefined;

/** Rows must arrive for this long (s) before their rate is shown. */
const SECONDS_BEFORE_GUESS = 3;

/** "people: 50%, 1,500 of about 3,000 rows, 500 rows/s, 3 s left"; undefined: no stream is being read. */
export const progressText = (stats: RunStats): string | undefined => variantsOf(stats)?.[0];

/** The longest text that fits. */
function lineOf(stats: RunStats, width: number): string {
  const [wait] = waitsOf(stats);
  const variants = variantsOf(stats) ?? [wait ?? (stats.current === undefined ? "connecting" : "finishing")];
  const text = variants.find(({ length }) => length <= width) ?? (variants.at(-1) ?? "").slice(0, width);
  // A name of a stream may come from a catalog.
  return printable(text);
}

const waitsOf = ({ wait }: RunStats): readonly string[] =>
  wait === undefined
    ? []
    : [`waiting ${shown(wait.seconds)} s (${wait.why})`, `waiting ${shown(wait.seconds)} s`];

/** The same progress in texts that become shorter. */
function variantsOf(stats: RunStats): readonly string[] | undefined {
  const { current, cut } = stats;
  if (current === undefined || current.outcome !== "interrupted") return undefined;
  const { stream, arrived, expected_rows: counted, requests, seconds } = current;
  // Rows of other days may be read too. Then the count says nothing.
  const expected = counted !== null && counted > 0 && arrived <= counted ? counted : null;
  const percent = expected === null ? [] : [`${Math.floor((100 * arrived) / expected)}%`];
  const waits = waitsOf(stats);
  if (waits.length > 0) return [...linesOf(stream, percent, waits), ...waits];
  if (cut !== undefined) {
    const missing = cut.missing === 0 ? [] : [`${plural(cut.missing, "row")} missing`];
    const rest = (work: string): string => [...missing, work].join(", ");
    const works = [rest(`reading ${cut.days} again`), rest("reading again"), ...missing, "reading again"];
    return [...linesOf(stream, percent, works), ...works];
  }
  const rate = seconds < SECONDS_BEFORE_GUESS ? 0 : Math.round(arrived / seconds);
  const rates = rate === 0 ? [] : [`${shown(rate)} rows/s`];
  if (expected === null) {
    const rows = plural(arrived, "row");
    const requested = [plural(requests, "request")];
    return [[rows, ...requested, ...rates], [rows, ...rates], [rows]].map(
      (parts) => `${stream}: ${parts.join(", ")}`,
    );
  }
  const secondsLeft = rate === 0 ? 0 : (expected - arrived) / rate;
  const left =
    secondsLeft < 1
      ? []
      : [`${secondsLeft < 120 ? `${Math.round(secondsLeft)} s` : shownSeconds(secondsLeft)} left`];
  const of = `${percent} of ${plural(expected, "row")}`;
  return [
    [...percent, rowsText(arrived, expected), ...rates, ...left],
    [`${percent} of about ${plural(expected, "row")}`, ...rates, ...left],
    [of, ...rates, ...left],
    [of, ...left],
    [...percent, ...left],
    percent,
  ].map((parts) => `${stream}: ${parts.join(", ")}`);
}

/** Each text behind the stream and its percent, then each behind the stream alone. */
const linesOf = (stream: string, percent: readonly string[], texts: readonly string[]): readonly string[] =>
  texts.flatMap((text) => [`${stream}: ${[...percent, text].join(", ")}`, `${stream}: ${text}`]);
