import { Writable } from "node:stream";
import { systemClock } from "../../src/api/clock.ts";
import type { ReadOptions } from "../../src/commands/read.ts";
import type { Process } from "../../src/run/runtime.ts";
import type { Sandbox } from "../../src/sandbox/server.ts";

/** What the process lends to a command that a test runs within its own process, against a sandbox. */
export function worldWith(sandbox: Sandbox, written: (text: string) => void): Process {
  const stdout = new Writable({
    write(chunk: Buffer, _, done) {
      written(chunk.toString("utf8"));
      done();
    },
  });
  return {
    ...{ clock: systemClock, random: Math.random, pid: 1, signal: new AbortController().signal },
    ...{ stdout, stderr: new Writable({ write: (_, __, done) => done() }) },
    environment: {
      CONTACT_INTELLIGENCE_BASE_URL: sandbox.url,
      CONTACT_INTELLIGENCE_API_KEY: sandbox.key,
      CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE: "6000",
    },
  };
}

/** The options of `read` for one stream, with everything else from the environment. */
export const readOptions = (stream: string): ReadOptions => ({
  ...{ config: undefined, catalog: undefined, state: undefined },
  streams: [stream],
  format: "airbyte",
});
