import { Socket } from "node:net";
import { plural, shown } from "../base/text.ts";
import type { Runtime } from "../run/runtime.ts";
import type { RunStats } from "./stats.ts";
import { rowsText, shownSeconds } from "./summary.ts";

/** Shows a person at a terminal how a run gets on. */
export type Display = {
  /** Draws the progress again, unless that was done a moment ago. */
  show(): void;
  /** Takes the progress off the screen. */
  stop(): void;
};

/** The time (ms) between two drawings. */
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
  // The reader of a pipe may write to this terminal too.
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
      line.text = progressText(stats) ?? "connecting";
    },
    stop: () => void line.stop(),
  };
}

const canRedraw = ({ TERM, CI }: Runtime["environment"]): boolean => TERM !== "dumb" && CI === undefined;

/** Rows must have come for this long (s) before their rate is shown. */
const SECONDS_BEFORE_GUESS = 3;

/** "people: 1,500 of about 3,000 rows, 9 requests, 500 rows/s, about 3.0 s left"; undefined: nothing is being read. */
export function progressText({ current }: RunStats): string | undefined {
  if (current === undefined || current.outcome !== "interrupted") return undefined;
  const { stream, arrived, expected_rows: expected, requests, seconds } = current;
  const rate = seconds < SECONDS_BEFORE_GUESS ? 0 : Math.round(arrived / seconds);
  const left = expected === null || rate === 0 ? 0 : (expected - arrived) / rate;
  return [
    `${stream}: ${rowsText(arrived, expected)}`,
    plural(requests, "request"),
    ...(rate === 0 ? [] : [`${shown(rate)} rows/s`]),
    ...(left < 1 ? [] : [`about ${shownSeconds(left)} left`]),
  ].join(", ");
}
