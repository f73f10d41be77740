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
  /** The number of this process. The lock contains the number, for the message of another run. */
  readonly pid: number;
  /** Finds out whether another process of this machine still runs. */
  readonly processes?: Processes;
  /** Registers an action that runs if a signal ends the process before the work is done. */
  readonly atEnd?: (act: () => void) => void;
};

/** A stream that may be a terminal. */
type Terminal = NodeJS.WritableStream & { readonly isTTY?: boolean };
