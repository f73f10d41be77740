import type { Clock } from "../base/clock.ts";
import type { Environment } from "../config/environment.ts";
import type { Processes } from "../output/files/processes.ts";

/** The process, as a command sees it. Each function takes the members that it needs. */
export type Runtime = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly environment: Environment;
  readonly random: () => number;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  /** Opens stdin, which few commands read. */
  readonly stdin?: () => NodeJS.ReadableStream & { readonly isTTY?: boolean };
  /** Shown to a run that finds this run's lock. */
  readonly pid: number;
  /** Tells whether another process of this machine still runs. */
  readonly processes?: Processes;
  /** Takes what must be done when a signal ends the process before its work has ended. */
  readonly atEnd?: (act: () => void) => void;
};

/** A stream that may be a terminal. */
type Terminal = NodeJS.WritableStream & { readonly isTTY?: boolean };
