import type { Event } from "../sync/event.ts";
import { Tally } from "./tally.ts";
import type { Process } from "./world.ts";

/** Shows a person at a terminal how a run gets on. */
export type Display = {
  show(event: Event): void;
  /** Takes the progress off the screen. */
  stop(): void;
  /** Says what the run came to. */
  summarize(): void;
};

/** More often than this (ms) nobody can read. */
const REFRESH_MS = 100;

/** Undefined where stderr is no terminal: there nothing of this is said, and nothing of it is loaded. */
export async function openDisplay({
  stderr,
  stdout,
  clock,
  environment,
}: Process): Promise<Display | undefined> {
  if (stderr.isTTY !== true) return undefined;
  const tally = new Tally(clock.monotonic);
  const line = stdout.isTTY === true || !canRedraw(environment) ? undefined : await openLine(stderr);
  let shown = Number.NEGATIVE_INFINITY;
  return {
    show(event) {
      tally.note(event);
      const now = clock.monotonic();
      if (line === undefined || now - shown < REFRESH_MS) return;
      shown = now;
      line.text = tally.line();
    },
    stop: () => void line?.stop(),
    summarize: () => void stderr.write(tally.summary()),
  };
}

const canRedraw = ({ TERM, CI }: Process["environment"]): boolean => TERM !== "dumb" && CI === undefined;

/** A line that is drawn over itself; what else is written to the terminal goes above it. Signals are not its business. */
async function openLine(stream: NodeJS.WritableStream): Promise<{ text: string; stop(): unknown }> {
  const { default: spinner } = await import("yocto-spinner");
  return spinner({ stream: stream as NodeJS.WriteStream, handleSignals: false }).start("connecting");
}
