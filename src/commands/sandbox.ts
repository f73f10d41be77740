import { once } from "node:events";
import { describeFaults, type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { UsageError } from "../errors.ts";
import type { Runtime } from "../run/runtime.ts";

export type SandboxCommand = {
  readonly port: number;
  readonly people: number;
  readonly seed: number;
  readonly faults: readonly string[];
  /** Of the key: Enterprise lists people, Agency checks e-mails. */
  readonly plan: "enterprise" | "agency";
};

const MOST_PEOPLE = 1_000_000_000;

/** Runs the stand-in for the service until a signal ends it. Throws UsageError. */
export async function sandbox(options: SandboxCommand, { stdout, signal }: Runtime): Promise<number> {
  mustBeWhole("--port", options.port, 65_535);
  mustBeWhole("--people", options.people, MOST_PEOPLE);
  mustBeWhole("--seed", options.seed, 2 ** 31);
  const service = await start(options);
  stdout.write(
    `The sandbox listens at ${service.url} until you stop it (Ctrl-C).\n` +
      `Config: {"base_url":"${service.url}","api_key":"${service.key}"}\n`,
  );
  if (!signal.aborted) await once(signal, "abort");
  await service.close();
  throw signal.reason;
}

async function start(options: SandboxCommand): Promise<Sandbox> {
  try {
    return await startSandbox(options);
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`${error.message}. See sandbox --help`);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    const why = code === "EACCES" ? "this user may not" : "another program does";
    throw new Error(`Cannot listen on 127.0.0.1:${options.port}: ${why}. Choose another --port`);
  }
}

function mustBeWhole(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= most) return;
  throw new UsageError(`Cannot use ${name}: it must be a whole number from 0 to ${most}`);
}

/** Columns of the help: where descriptions begin, and where they end. */
const BEGIN = 28;
const END = 77;

/** The faults for the help: how to combine them, then each with what it does. */
export function describeSandboxFaults(): string {
  return [
    "Faults, for --fault or for one request in its header X-Sandbox-Fault.",
    "Each may be followed by:",
    ...described(":path=TEXT", "strikes requests whose path holds this text; TEXT$: ends with it"),
    ...described(":times=N", "strikes so many requests; always: all"),
    ...described(":skip=N", "lets so many requests pass first"),
    ...described(":after=ROWS", "strikes after so many rows; all: after the last one"),
    ...described(":from=DAY, :to=DAY", "strikes requests for these days; none: requests that name none"),
    "For example: --fault end:times=2 --fault recheck=5:times=always",
    "",
    ...describeFaults().flatMap(({ usage, description }) => described(usage, description)),
  ].join("\n");
}

/** A term beside its description, or above it where it is too long. */
function described(term: string, description: string): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of description.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > END - BEGIN) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  const [first = "", ...rest] = [...lines, line].map((text) => " ".repeat(BEGIN) + text);
  const head = `  ${term}`;
  const isLong = head.length >= BEGIN;
  return isLong ? [head, first, ...rest] : [head + first.slice(head.length), ...rest];
}
