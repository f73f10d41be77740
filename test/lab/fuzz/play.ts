import { spawn } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "../../../src/api/clock.ts";
import type { Command } from "../../../src/cli.ts";
import { RENEW_MS } from "../../../src/files/lock.ts";
import { runProgram } from "../../../src/main.ts";
import type { Runtime } from "../../../src/run/runtime.ts";
import { Kept } from "../../support/in-process.ts";
import { type Ended, endOf } from "../../support/run.ts";
import { fastClock } from "../faultlab/read-once.ts";
import { argvOf } from "./argv.ts";
import { KEY } from "./canary.ts";

/** A run that does not end. The slowest wait for silence on a real clock. */
const HUNG_MS = 100_000;

/**
 * Does what a command line asks for within this process, as the program's own `main` does it: the same commands, real
 * files and sockets, and the same last words. Nobody waits on its clock. Texts hold one byte a character.
 */
export async function play(command: Command, environment: Runtime["environment"]): Promise<Ended> {
  const [stdout, stderr] = [new Kept("latin1"), new Kept("latin1")];
  const abort = new AbortController();
  const runtime: Runtime = {
    ...{ clock: labClock(), signal: abort.signal, environment, random: Math.random, pid: 1 },
    ...{ stdout, stderr },
  };
  const patience = setTimeout(() => abort.abort(new Error("The command does not end")), HUNG_MS);
  try {
    const code = await runProgram(async () => async () => command, [], runtime);
    return { code, signal: null, stdout: stdout.text, stderr: stderr.text };
  } finally {
    clearTimeout(patience);
  }
}

/** Does the same as the built program, in a process of its own and on a real clock. */
export async function playApart(command: Command, environment: Runtime["environment"]): Promise<Ended> {
  const child = spawn(process.execPath, argvOf(command), { env: environment, timeout: HUNG_MS });
  child.stdin.end();
  return await endOf(child, "latin1");
}

/** What an environment says of a service, and of a home that is nobody's. */
export const environmentOf = (url: string, home: string): Record<string, string> => ({
  CONTACT_INTELLIGENCE_BASE_URL: url,
  CONTACT_INTELLIGENCE_API_KEY: KEY,
  CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE: "6000",
  ...safeEnvironment(url, home),
});

/** Sends every request that does not go to this machine to `url`, and keeps files in `home`. */
export const safeEnvironment = (url: string, home: string): Record<string, string> => ({
  ...{ HTTP_PROXY: url, HTTPS_PROXY: url, HOME: home, XDG_STATE_HOME: home },
});

/** How long (ms) a wait takes that may be for the renewal of a lock, which would otherwise be done all the time. */
const RENEWAL_MS = 20;

/** Nobody waits for long. */
function labClock(): Clock {
  const fast = fastClock();
  return {
    ...fast,
    sleep: async (ms, signal) => {
      if (ms === RENEW_MS) await wait(RENEWAL_MS, undefined, { ...(signal && { signal }), ref: false });
      else await fast.sleep(ms, signal);
    },
  };
}
