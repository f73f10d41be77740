import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { read } from "../../src/commands/read.ts";
import { readOptions, runtimeWith } from "../support/in-process.ts";

const SRC = fileURLToPath(new URL("../../src", import.meta.url));

/** Our frames of the longest stack in which a write to stdout begins, innermost first. */
async function longestStack(): Promise<readonly string[]> {
  await using sandbox = await startSandbox({ people: 100, requestsPerMinute: 0 });
  let longest: readonly string[] = [];
  const before = Error.stackTraceLimit;
  const runtime = runtimeWith(sandbox, () => {
    const frames = (new Error().stack ?? "").split("\n").filter((line) => line.includes(SRC));
    if (frames.length > longest.length) longest = frames;
  });
  Error.stackTraceLimit = 100;
  try {
    expect(await read(readOptions("people"), runtime)).toBe(0);
  } finally {
    Error.stackTraceLimit = before;
  }
  return longest;
}

describe("the way from a command to the writer", () => {
  it("has at most nine frames of ours between the program's start and the writer", async () => {
    const frames = await longestStack();
    const between = frames.filter((frame) => !frame.includes("protocol/writer.ts"));
    expect(between.length, between.join("\n")).toBeGreaterThan(3);
    // main.ts adds one: it parses the command line and calls the command.
    expect(between.length + 1, between.join("\n")).toBeLessThanOrEqual(9);
  });
});
