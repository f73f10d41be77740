import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "../../../src/base/clock.ts";
import { RENEW_MS } from "../../../src/output/files/lock.ts";
import { type Program, runInProcess } from "../../support/in-process.ts";
import { fastClock } from "../faultlab/read-once.ts";
import { judgeEnded, KEY, type Language, type Verdict } from "./verdict.ts";

/**
 * Runs a command line, "$" being a file, as the program does: real files and sockets, within this process, where nobody waits
 * on its clock. Throws unless it ends as it may.
 */
export async function runAndJudge(
  line: string,
  environment: Readonly<Record<string, string>>,
  file = "",
): Promise<Verdict> {
  const [program, ...args] = line.split(" ").map((word) => (word === "$" ? file : word));
  const ended = await runInProcess(program as Program, args, environment, impatientClock());
  return judgeEnded(languageOf(line), ended, / check/.test(line) && !line.includes("--exit-code"));
}

/** What the output of a command line is. */
function languageOf(line: string): Language {
  if (/^tap(?!.* --discover)/.test(line)) return "singer";
  const [, found = "text"] =
    /^connector (?:read --format )?(airbyte|jsonl|check|discover)\b/.exec(line) ?? [];
  return found as Language;
}

/** A clock on which only the wait for the renewal of a lock takes time, which would otherwise be done all the time. */
function impatientClock(): Clock {
  const fast = fastClock();
  const sleep: Clock["sleep"] = (ms, signal) =>
    ms === RENEW_MS ? wait(20, undefined, { ...(signal && { signal }), ref: false }) : fast.sleep(ms, signal);
  return { ...fast, sleep };
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
