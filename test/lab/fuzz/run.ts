import { spawn } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { RENEW_MS } from "../../../src/files/lock.ts";
import { runProgram } from "../../../src/main.ts";
import { CONNECTOR, TAP } from "../../support/cli.ts";
import { type Ended, endOf } from "../../support/run.ts";
import { Kept } from "../../support/terminal.ts";
import { fastClock } from "../faultlab/read-once.ts";
import type { Dice } from "./dice.ts";
import { judgeEnded, KEY, type Language, type Verdict } from "./verdict.ts";

/** A run that does not end. The slowest wait for silence on a real clock. */
const HUNG_MS = 100_000;
/** How long (ms) a wait takes that may be for the renewal of a lock, which would otherwise be done all the time. */
const RENEWAL_MS = 20;

/** A command line, its program first, and what its output is. `alwaysZero`: it exits with 0 whatever it says. */
export type Asked = {
  readonly language: Language;
  readonly words: readonly ["connector" | "tap", ...string[]];
  readonly alwaysZero?: boolean;
};

export const read = (format: "airbyte" | "jsonl", ...words: string[]): Asked => ({
  language: format,
  words: ["connector", "read", "--format", format, ...words],
});
export const tap = (...words: string[]): Asked => ({ language: "singer", words: ["tap", ...words] });
export const text = (program: "connector" | "tap", ...words: string[]): Asked => ({
  language: "text",
  words: [program, ...words],
});
export const check = (dice: Dice, ...words: string[]): Asked => {
  const tells = dice.chance(0.5);
  return {
    language: "check",
    words: ["connector", "check", ...words, ...(tells ? ["--exit-code"] : [])],
    alwaysZero: !tells,
  };
};
export const discover = (...words: string[]): Asked => ({
  language: "discover",
  words: ["connector", "discover", ...words],
});

/**
 * Runs a command line as the program does: real files and sockets, within this process, where nobody waits on its clock; or
 * `apart`, as the built program on a real clock. Throws unless it ends as it may. Texts hold one byte a character.
 */
export async function runAndJudge(
  { language, words: [program, ...args], alwaysZero }: Asked,
  environment: Readonly<Record<string, string>>,
  apart = false,
): Promise<Verdict> {
  const ended = await (apart ? inProcessOfItsOwn : inThisProcess)(program, args, environment);
  return judgeEnded(language, ended, alwaysZero);
}

async function inThisProcess(
  program: Asked["words"][0],
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Ended> {
  const [stdout, stderr] = [new Kept("latin1"), new Kept("latin1")];
  const abort = new AbortController();
  const patience = setTimeout(() => abort.abort(new Error("The command does not end")), HUNG_MS);
  const fast = fastClock();
  const sleep: typeof fast.sleep = async (ms, signal) => {
    if (ms === RENEW_MS) await wait(RENEWAL_MS, undefined, { ...(signal && { signal }), ref: false });
    else await fast.sleep(ms, signal);
  };
  const runtime = {
    clock: { ...fast, sleep },
    signal: abort.signal,
    environment,
    random: Math.random,
    pid: 1,
  };
  try {
    const code = await runProgram(PARSERS[program], args, { ...runtime, stdout, stderr });
    return { code, signal: null, stdout: stdout.text, stderr: stderr.text };
  } finally {
    clearTimeout(patience);
  }
}

const PARSERS = {
  connector: async () => (await import("../../../src/cli.ts")).parseCommand,
  tap: async () => (await import("../../../src/tap-cli.ts")).parseTapCommand,
};

async function inProcessOfItsOwn(
  program: Asked["words"][0],
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const file = program === "tap" ? TAP : CONNECTOR;
  const child = spawn(process.execPath, [file, ...args], { env, timeout: HUNG_MS });
  child.stdin.end();
  return await endOf(child, "latin1");
}

/** Sends every request that does not go to this machine to `url`, and keeps files in `home`. */
export const safeEnvironment = (url: string, home: string): Record<string, string> => ({
  ...{ HTTP_PROXY: url, HTTPS_PROXY: url, HOME: home, XDG_STATE_HOME: home },
});

/** What an environment says of a service, and of a home that is nobody's. `settings`: without their prefix. */
export const environmentOf = (
  url: string,
  home: string,
  settings: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  ...safeEnvironment(url, home),
  ...Object.fromEntries(
    Object.entries({ BASE_URL: url, API_KEY: KEY, REQUESTS_PER_MINUTE: "6000", ...settings }).map(
      ([name, value]) => [`CONTACT_INTELLIGENCE_${name}`, value],
    ),
  ),
});

/** Settings of jobs. Nothing is kept of what they buy. */
export const jobsAt = (url: string): Record<string, string> => ({
  ...{ RECEIPTS_FILE: "", EXTERNAL_API__API_URL: url },
  EXTERNAL_API__API_KEY: "svc_0a1b2c3d_ffeeddccbbaa99887766554433221100",
});
