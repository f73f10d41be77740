import { describe, expect, it } from "vitest";
import { type ReadOptions, read } from "../../src/commands/read.ts";
import { UsageError } from "../../src/errors.ts";
import { Kept } from "../support/in-process.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

/** A config that is not there, so that a read which is not refused ends before it asks or writes anything. */
const OPTIONS: ReadOptions = {
  ...{ config: "/nowhere/config.json", catalog: undefined, state: undefined, stateFile: undefined },
  ...{ output: undefined, streams: [], format: "airbyte" },
};

/** What a read says before it looks at its config. `code`: of one that was not refused. */
async function started(options: Partial<ReadOptions>, isTTY: boolean) {
  const [stdout, stderr] = [isTTY ? new Terminal() : new Kept(), new Kept()];
  try {
    const code = await read({ ...OPTIONS, ...options }, testProcess({ stdout, stderr }));
    return { code, stdout: stdout.text, stderr: stderr.text };
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return { refusal: (error as Error).message, said: stdout.text + stderr.text };
  }
}

const FLOOD = `The messages of all rows would fill this screen. Choose where they go:
  # all streams into files, and later what is new
  source-contact-intelligence read --config /nowhere/config.json --output contacts
  # bare records of one stream
  source-contact-intelligence read --config /nowhere/config.json --format jsonl --stream people > people.jsonl
  # Airbyte messages (to this screen: --json)
  source-contact-intelligence read --config /nowhere/config.json > messages.jsonl`;

describe("a read at a terminal", () => {
  it.each<[isRefused: boolean, options: Partial<ReadOptions>]>([
    [true, {}],
    [true, { json: false, dryRun: false, fullRefresh: true, streams: ["people"], catalog: "c", state: "s" }],
    [false, { json: true }],
    [false, { dryRun: true }],
    [false, { limit: 5 }],
    [false, { format: "jsonl", streams: ["people"] }],
    [false, { output: "/nowhere/out" }],
    [false, { stateFile: "/nowhere/state.json" }],
  ])("is refused: %j, with %j, and never where nobody has to read it", async (isRefused, options) => {
    const told = await started(options, true);
    expect(told).toEqual(
      isRefused ? { refusal: FLOOD, said: "" } : expect.objectContaining({ code: expect.any(Number) }),
    );
    expect(await started(options, false)).toHaveProperty("code");
  });

  it("names config.json where no config is named", async () => {
    const { refusal } = await started({ config: undefined }, true);
    expect(refusal).toBe(FLOOD.replaceAll("/nowhere/", ""));
  });
});

describe("a read of a stream that costs money", () => {
  const SAMPLE = 'Cannot take a sample of "email_checks": it costs money. See: read --dry-run';
  const FORGETFUL =
    'Cannot read "email_checks" with --format jsonl: nothing would keep what was bought, so the next run could buy it again. ' +
    "Add --state-file FILE or --output DIR";
  const jobs = { streams: ["email_checks"] };
  const bare = { ...jobs, format: "jsonl" } as const;

  it.each<[refusal: string | undefined, options: Partial<ReadOptions>]>([
    [undefined, jobs],
    [FORGETFUL, bare],
    [undefined, { ...bare, stateFile: "/nowhere/state.json" }],
    [undefined, { ...bare, output: "/nowhere/out" }],
    [undefined, { ...bare, dryRun: true }],
    [FORGETFUL, { ...bare, dryRun: false }],
    [SAMPLE, { ...jobs, limit: 5 }],
    [SAMPLE, { ...bare, limit: 5, stateFile: "/nowhere/state.json" }],
    [SAMPLE, { streams: ["people", "email_checks"], limit: 5, output: "/nowhere/out" }],
    [undefined, { ...jobs, limit: 5, dryRun: true }],
    [undefined, { streams: ["people"], format: "jsonl" }],
    [undefined, { streams: ["sync_windows"], format: "jsonl", limit: 5 }],
    [undefined, { streams: [], limit: 5 }],
  ])("says %j for %j", async (refusal, options) => {
    const told = await started(options, false);
    expect(told.refusal).toBe(refusal);
  });
});

describe("a read whose config is not there", () => {
  const why = 'Cannot read the config file \\"/nowhere/config.json\\": there is none';

  it.each<[options: Partial<ReadOptions>, code: number, isOnStdout: boolean]>([
    [{}, 1, true],
    [{ stateFile: "/nowhere/state.json" }, 1, true],
    [{ format: "jsonl", streams: ["people"] }, 2, false],
    [{ output: "/nowhere/out" }, 2, false],
    [{ dryRun: true }, 2, false],
  ])("says so with %j, with code %i, as a message on stdout: %j", async (options, code, isOnStdout) => {
    const told = await started(options, false);
    expect(told.code).toBe(code);
    expect([told.stdout?.includes(why), told.stderr?.includes(why)]).toEqual([isOnStdout, !isOnStdout]);
    expect([told.stdout === "", told.stderr === ""]).toEqual([!isOnStdout, isOnStdout]);
  });
});
