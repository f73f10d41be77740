import { Socket } from "node:net";
import { printable } from "../base/json.ts";
import { joined, type Part, plural, shown } from "../base/text.ts";
import type { Runtime } from "../run/runtime.ts";
import type { RunStats } from "./stats.ts";
import { shownSeconds } from "./summary.ts";

/** Shows the progress of a run in one line of a terminal. */
export type Display = {
  /** Returns a text for the terminal that replaces the line. The next drawing is below the text. */
  readonly above: (text: string) => string;
  /** Removes the line. */
  readonly stop: () => void;
};

/** The time (ms) between two drawings. */
const REFRESH_MS = 100;
/** Goes to the start of the line and clears it. */
const CLEAR = "\r\u001b[K";
const FRAMES = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];

/** Opens the progress; undefined: stderr cannot redraw a line, or shows records too. @param files whether stdout gets no records */
export function openDisplay(stats: RunStats, runtime: Runtime, files: boolean): Display | undefined {
  const { stderr, stdout, environment } = runtime;
  // If stdout is a pipe, the reading program may write to this terminal too.
  const isTaken = !files && (stdout.isTTY === true || stdout instanceof Socket);
  if (stderr.isTTY !== true || isTaken || !canRedraw(environment)) return undefined;
  let frame = 0;
  const draw = (): void => {
    const { columns } = stderr as { columns?: number };
    // The spinner and a space need two columns, and the last column stays free.
    const text = lineOf(stats, (columns || 80) - 3);
    stderr.write(`${CLEAR}${FRAMES[frame++ % FRAMES.length]} ${text}`);
  };
  draw();
  // During a wait there are no events, so a clock draws the line.
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

/** A stream shows its rate after this time (s). */
const SECONDS_BEFORE_RATE = 3;

/** "people: 50%, 1,500 of about 3,000 rows, 500 rows/s, 3 s left"; undefined: the run reads no stream. */
export const progressText = (stats: RunStats): string | undefined => variantsOf(stats)?.[0];

/** The longest text that fits. */
function lineOf(stats: RunStats, width: number): string {
  const [wait = stats.current === undefined ? "connecting" : "finishing"] = waitTexts(stats);
  const variants = variantsOf(stats) ?? [wait];
  const text = variants.find(({ length }) => length <= width) ?? (variants.at(-1) ?? "").slice(0, width);
  // The name of a stream may be from a catalog, so the name may contain control characters.
  return printable(text);
}

/** Texts for one moment, from the longest to the shortest; undefined: the run reads no stream. */
function variantsOf(stats: RunStats): readonly string[] | undefined {
  const { current } = stats;
  if (current?.outcome !== "interrupted") return undefined;
  const { stream, arrived, expected_rows: counted } = current;
  // The run may also read days that are not in the count. If more rows arrived than counted, no percent is shown.
  const expected = counted !== null && counted > 0 && arrived <= counted ? counted : undefined;
  const percent = expected !== undefined && `${Math.floor((100 * arrived) / expected)}%`;
  const lineWith = (...parts: Part[]): string => `${stream}: ${joined(parts)}`;
  const [waits, cuts] = [waitTexts(stats), cutTexts(stats)];
  const texts = waits.length > 0 ? waits : cuts;
  if (texts.length > 0)
    return [...texts.flatMap((text) => [lineWith(percent, text), lineWith(text)]), ...texts];
  return rowParts(current, expected, percent).map((parts) => lineWith(...parts));
}

const waitTexts = ({ wait }: RunStats): readonly string[] => {
  const text = `waiting ${shown(wait?.seconds ?? 0)} s`;
  return wait === undefined ? [] : [`${text} (${wait.why})`, text];
};

function cutTexts({ cut }: RunStats): readonly string[] {
  if (cut === undefined) return [];
  const missing = cut.missing !== null && `${plural(cut.missing, "row")} missing`;
  const again = "reading again";
  return [joined([missing, `reading ${cut.days} again`]), joined([missing, again]), missing || again, again];
}

/** The rows, the rate, the time left and the open jobs. */
function rowParts(current: NonNullable<RunStats["current"]>, expected?: number, percent: Part = false) {
  const { arrived, requests, seconds, spent } = current;
  const rate = seconds < SECONDS_BEFORE_RATE ? 0 : Math.round(arrived / seconds);
  const speed = rate > 0 && `${shown(rate)} rows/s`;
  const rows = plural(expected ?? arrived, "row");
  const jobs = spent !== null && spent.open > 0 && `waiting for ${plural(spent.open, "job")}`;
  if (expected === undefined)
    return [[rows, jobs, plural(requests, "request"), speed], [rows, jobs, speed], [rows]];
  const secondsLeft = rate === 0 ? 0 : (expected - arrived) / rate;
  const left =
    secondsLeft >= 1 &&
    `${secondsLeft < 120 ? `${Math.round(secondsLeft)} s` : shownSeconds(secondsLeft)} left`;
  return [
    [percent, `${shown(arrived)} of about ${rows}`, speed, left],
    [`${percent} of about ${rows}`, speed, left],
    [`${percent} of ${rows}`, speed, left],
    [`${percent} of ${rows}`, left],
    [percent, left],
    [percent],
  ];
}
