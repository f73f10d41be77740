import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { read } from "../../../src/commands/read.ts";
import { tapSync } from "../../../src/commands/tap-sync.ts";
import type { Runtime } from "../../../src/run/runtime.ts";
import { readOptions, runtimeWith } from "../../support/in-process.ts";

const SRC = fileURLToPath(new URL("../../../src", import.meta.url));

/** Reads 100 people. */
async function readPeople(
  command: (runtime: Runtime) => Promise<number>,
  written: (text: string) => void = () => undefined,
): Promise<void> {
  await using sandbox = await startSandbox({ people: 100, requestsPerMinute: 0 });
  expect(await command(runtimeWith(sandbox, written))).toBe(0);
}

const asAirbyte = (runtime: Runtime): Promise<number> => read(readOptions("people"), runtime);

const asSinger = (runtime: Runtime): Promise<number> =>
  tapSync(
    {
      ...{ mode: "sync", format: "text", configs: ["ENV"] },
      ...{ catalog: undefined, state: undefined, stateFile: undefined, logLevel: undefined },
    },
    runtime,
  );

/** Our frames of the longest stack in which a write to stdout begins, innermost first. */
async function longestStack(): Promise<readonly string[]> {
  let longest: readonly string[] = [];
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 100;
  try {
    await readPeople(asAirbyte, () => {
      const frames = (new Error().stack ?? "").split("\n").filter((line) => line.includes(SRC));
      if (frames.length > longest.length) longest = frames;
    });
  } finally {
    Error.stackTraceLimit = before;
  }
  return longest;
}

type Generator = AsyncGenerator<unknown, unknown, unknown>;

const GENERATORS = Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})())) as Generator;
const NODES_OWN = Object.getPrototypeOf(new Readable()[Symbol.asyncIterator]());

/** How many async generators of ours wait for the first bytes of an export when they arrive. */
async function generatorsOf(command: (runtime: Runtime) => Promise<number>): Promise<number> {
  const waiting = new Set<Generator>();
  let most = 0;
  const { next } = GENERATORS;
  GENERATORS.next = async function (...args) {
    if (Object.getPrototypeOf(this) !== NODES_OWN) waiting.add(this);
    const result = await next.apply(this, args);
    if (Buffer.isBuffer(result.value)) most = Math.max(most, waiting.size);
    waiting.delete(this);
    return result;
  };
  try {
    await readPeople(command);
  } finally {
    GENERATORS.next = next;
  }
  return most;
}

describe("the way from a command to the writer", () => {
  it("has at most nine frames of ours between the program's start and the writer", async () => {
    const frames = await longestStack();
    const between = frames.filter((frame) => !frame.includes("protocol/writer.ts"));
    expect(between.length, between.join("\n")).toBeGreaterThan(3);
    // main.ts adds one: it parses the command line and calls the command.
    expect(between.length + 1, between.join("\n")).toBeLessThanOrEqual(9);
  });

  it("leads a batch through at most 12 async generators, in Airbyte's language and in Singer's", async () => {
    const counts = [await generatorsOf(asAirbyte), await generatorsOf(asSinger)];
    for (const count of counts) {
      expect(count).toBeGreaterThan(5);
      expect(count).toBeLessThanOrEqual(12);
    }
  });
});
