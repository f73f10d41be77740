import type { World } from "../service/session.ts";

/** What the process hands to a command. */
export type Process = World & {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly pid: number;
};

/** A stream that may be a terminal. */
type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };
