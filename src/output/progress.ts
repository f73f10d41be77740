import { Socket } from "node:net";
import { plural, shown } from "../base/text.ts";
import type { Runtime } from "../run/runtime.ts";
import type { CurrentStream, RunStats, Waiting } from "./stats.ts";
import { rowsText, shownSeconds } from "./summary.ts";

/** Shows a person at a terminal how a run gets on. */
export type Display = {
  /** Draws the progress again, unless that was done a moment ago. */
  show(): void;
  /** Takes the progress off the screen. */
  stop(): void;
};

/** More often than this (ms) nobody can read. */
const REFRESH_MS = 100;

/**
 * Undefined where stderr is no terminal that can draw over a line, or where records may come to the same terminal.
 * @param files whether records go to files
 */
export async function openDisplay(
  stats: RunStats,
  runtime: Runtime,
  files: boolean,
): Promise<Display | undefined> {
  const { stderr, stdout, clock, environment } = runtime;
  // What reads a pipe may write to this terminal too.
  const isTaken = !files && (stdout.isTTY === true || stdout instanceof Socket);
  if (stderr.isTTY !== true || isTaken || !canRedraw(environment)) return undefined;
  const { default: spinner } = await import("yocto-spinner");
  // A line that is drawn over itself; what else is written to the terminal goes above it.
  const line = spinner({ stream: stderr as NodeJS.WriteStream, handleSignals: false }).start("connecting");
  let last = Number.NEGATIVE_INFINITY;
  return {
    show() {
      const now = clock.monotonic();
      if (now - last < REFRESH_MS) return;
      last = now;
      line.text = progressText(stats);
    },
    stop: () => void line.stop(),
  };
}

const canRedraw = ({ TERM, CI }: Runtime["environment"]): boolean => TERM !== "dumb" && CI === undefined;

/** Records must have come for this long (s) before their rate says anything. */
const SECONDS_BEFORE_GUESS = 3;

/** "people: 1,500 of about 3,000 rows, 500 rows/s, 1 of about 2 windows done, about 3.0 s left" */
function progressText({ current, waiting }: RunStats): string {
  if (current === undefined) return waiting === undefined ? "connecting" : waitingText(waiting);
  const rate = rateOf(current);
  const parts = [
    `${current.stream}: ${rowsText(current)}`,
    rate === 0 ? "" : `${shown(rate)} rows/s`,
    windowsOf(current, rate > 0),
    waiting === undefined ? leftOf(current, rate) : waitingText(waiting),
  ];
  return parts.filter((part) => part !== "").join(", ");
}

/** How far a run is, for a log. */
export function progressLog({ current, waiting }: RunStats): string | undefined {
  if (current === undefined || current.outcome !== "interrupted") return undefined;
  const parts = [
    `Stream "${current.stream}": ${rowsText(current)}`,
    ...(current.windows.length === 0 ? [] : [plural(current.windows.length, "window")]),
    plural(current.requests, "request"),
    shownSeconds(current.seconds),
    ...(waiting === undefined ? [] : [waitingText(waiting)]),
  ];
  return parts.join(", ");
}

/** "try 2 of 5: the connection was refused (ECONNREFUSED)" */
export function waitingText(waiting: Waiting): string {
  if (waiting.kind === "retrying") {
    return `try ${waiting.attempt} of ${waiting.attempts}: ${waiting.reason}`;
  }
  return `waiting for the rate limit until ${new Date(waiting.until).toISOString()}`;
}

/** Windows are planned as they are needed: how many there will be follows from the rows that are still expected. */
function windowsOf(
  { windows: { length: windows }, rows, expected_rows: expected }: CurrentStream,
  canGuess: boolean,
): string {
  if (windows === 0) return "";
  if (!canGuess || expected === null || rows >= expected) return `${plural(windows, "window")} done`;
  return `${shown(windows)} of about ${shown(Math.max(windows + 1, Math.round((windows * expected) / rows)))} windows done`;
}

/** Rows a second since the first of them; 0: too early to say. */
function rateOf({ rows, secondsOfRows }: CurrentStream): number {
  return secondsOfRows < SECONDS_BEFORE_GUESS ? 0 : Math.round(rows / secondsOfRows);
}

/** "about 10 s left"; nothing once it is less than a second. @param rate rows a second; 0: unknown */
function leftOf(
  { rows, expected_rows: expected }: Pick<CurrentStream, "rows" | "expected_rows">,
  rate: number,
): string {
  const seconds = expected === null || rate === 0 ? 0 : (expected - rows) / rate;
  return seconds < 1 ? "" : `about ${shownSeconds(seconds)} left`;
}
