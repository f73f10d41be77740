import type { Processes } from "../files/processes.ts";
import type { World } from "./session.ts";

/** What the process hands to a command. */
export type Process = World & {
  readonly stdout: Output;
  readonly stderr: Output;
  /** Opens stdin, which few commands read. */
  readonly stdin?: () => NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly pid: number;
  /** Tells whether another process of this machine still runs. */
  readonly processes?: Processes;
  /** Takes what must be done when a signal ends the process before its work has ended. */
  readonly atEnd?: (act: () => void) => void;
};

/** A stream that may be a terminal. */
type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };
