import type { Clock } from "../base/clock.ts";
import type { Environment } from "../config/environment.ts";
import type { Processes } from "../output/files/processes.ts";

/** The parts of the process that commands use. */
export type Runtime = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly environment: Environment;
  readonly random: () => number;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  /** Opens stdin. */
  readonly stdin?: () => NodeJS.ReadableStream & { readonly isTTY?: boolean };
  /** The number of this process, for another run that finds this run's lock. */
  readonly pid: number;
  /** Finds out whether another process of this machine still runs. */
  readonly processes?: Processes;
  /** Registers an action for a signal that ends the process before its work has ended. */
  readonly atEnd?: (act: () => void) => void;
};

/** A stream that may be a terminal. */
type Terminal = NodeJS.WritableStream & { readonly isTTY?: boolean };
