import { type ChildProcess, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { type AirbyteMessage, expectAirbyteMessages, linesOf } from "./airbyte-messages.ts";
import { runInProcess } from "./in-process.ts";
import { type Ended, endOf, ROOT } from "./run.ts";
import { commonTempDir } from "./temp-dir.ts";

export type { Ended } from "./run.ts";

/** The built programs, as package.json's "bin" names them. The sandbox always runs with `asProcess`. */
export const CONNECTOR = `${ROOT}dist/source-contact-intelligence.js`;
export const TAP = `${ROOT}dist/tap-contact-intelligence.js`;
export const SANDBOX = `${ROOT}dist/sandbox/contact-intelligence-sandbox.js`;

export type RunOptions = {
  readonly env?: Readonly<Record<string, string>>;
  /** By which a run within this process waits. */
  readonly clock?: Clock;
  /** Runs the built program, as a process of its own. */
  readonly asProcess?: boolean;
  /** For a process: what it reads from stdin. */
  readonly input?: string;
  /** Called with the process as soon as it runs. */
  readonly started?: (child: ChildProcess) => void;
};

/**
 * Runs a program to its end: from its source and within this process, which takes a tenth of the time, or as the built
 * program where the test is about the process, feeds it or kills it.
 */
export async function run(
  program: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ended> {
  const { env, clock, input, started } = options;
  const { asProcess = input !== undefined || started !== undefined } = options;
  const environment = { ...(await bareEnvironment()), ...env };
  if (asProcess) {
    const child = spawn(process.execPath, [program, ...args], { env: environment });
    started?.(child);
    child.stdin.on("error", () => undefined).end(input ?? "");
    return await endOf(child);
  }
  return await runInProcess(program === TAP ? "tap" : "connector", args, environment, clock);
}

/** Runs the connector and holds every message that it wrote against the protocol. */
export async function connector(
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ended & { readonly messages: readonly AirbyteMessage[] }> {
  const ended = await run(CONNECTOR, args, options);
  return { ...ended, messages: expectAirbyteMessages(linesOf(ended.stdout)) };
}

let files = 0;

/** Writes a file of this test run and returns its path. */
export async function file(name: string, content: unknown): Promise<string> {
  // Named before anything is waited for: several tests may write files at once.
  const unique = `${files++}-${name}`;
  const path = join(await commonTempDir(), unique);
  const isRaw = typeof content === "string" || content instanceof Uint8Array;
  await writeFile(path, isRaw ? content : JSON.stringify(content));
  return path;
}

/** What a program under test learns of this machine. The user's own files stay out of its reach. */
async function bareEnvironment(): Promise<Record<string, string>> {
  const { PATH = "", TZ = "" } = process.env;
  return { PATH, TZ, TMPDIR: tmpdir(), HOME: await commonTempDir() };
}
