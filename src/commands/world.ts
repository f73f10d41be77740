import type { World } from "../service/session.ts";

/** What the process hands to a command. */
export type Process = World & {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
};
