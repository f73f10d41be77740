import { existsSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Command, parseCommand } from "../../src/cli.ts";
import { main, runProgram } from "../../src/main.ts";
import { CONNECTOR, file, run, TAP } from "../support/cli.ts";
import { environmentOf, sandboxWith } from "../support/configs.ts";
import { Kept } from "../support/in-process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testProcess } from "../support/terminal.ts";

const SMALL = { people: 20, undated: 2, companies: 3, sources: 2, requestsPerMinute: 0 };
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** How long (ms) an interrupted run may go on; platforms kill after ten seconds. */
const GRACE_MS = 8_000;

/** A process that `main` is lent in place of the one that runs the tests. `ends`: how it asked to be ended, in order. */
function lentProcess(words: readonly string[], stdout: Writable = new Kept()) {
  const handlers = new Map<unknown, () => void>();
  const ends: unknown[] = [];
  const stderr = new Kept();
  const { argv, exitCode, on } = process;
  onTestFinished(() => {
    vi.restoreAllMocks();
    Object.assign(process, { argv, exitCode });
  });
  process.argv = ["node", "program", ...words];
  vi.spyOn(process, "stdout", "get").mockReturnValue(stdout as never);
  vi.spyOn(process, "stderr", "get").mockReturnValue(stderr as never);
  vi.spyOn(process, "on").mockImplementation((name, listener) => {
    if (!SIGNALS.includes(name as never)) return on.call(process, name, listener);
    handlers.set(name, listener);
    return process;
  });
  vi.spyOn(process, "removeAllListeners").mockImplementation((name) => {
    ends.push(["handles no more", name]);
    return process;
  });
  vi.spyOn(process, "kill").mockImplementation((pid, signal) => {
    ends.push([pid === process.pid, signal]);
    return true;
  });
  /** Sends a signal. Returns what is done when its time is over; undefined: nothing is. */
  const send = (signal: NodeJS.Signals): (() => void) | undefined => {
    const unref = vi.fn();
    const timer = vi.spyOn(globalThis, "setTimeout").mockReturnValue({ unref } as never);
    handlers.get(signal)?.();
    const [call] = timer.mock.calls;
    timer.mockRestore();
    if (call === undefined) return undefined;
    expect([call[1], unref.mock.calls.length]).toEqual([GRACE_MS, 1]);
    return call[0];
  };
  return { handlers, ends, stderr, stdout, send };
}

const openParse = async () => parseCommand;

/** A run of `read` that waits for a service which does not answer. */
async function waitingRun(stdout?: Writable) {
  const { sandbox, config } = await sandboxWith({ ...SMALL, faults: ["stall-headers:times=always"] });
  const state = join(await tempDir(), "state.json");
  const words = ["read", "--stream", "people", "--config", config, "--state-file", state];
  const lent = lentProcess(words, stdout);
  const ended = main(openParse);
  await expect.poll(() => sandbox.requests.length, { timeout: 20_000, interval: 5 }).toBeGreaterThan(0);
  return { ...lent, ended, lock: `${state}.lock` };
}

describe("main()", () => {
  it.each([
    [["spec"], 0],
    [["state", "show", "no such file"], 1],
    [["reed"], 2],
  ])("ends %j with exit code %i", async (words, code) => {
    const { handlers, ends } = lentProcess(words);
    await main(openParse);
    expect([process.exitCode, ends]).toEqual([code, []]);
    expect([...handlers.keys()]).toEqual(SIGNALS);
  });

  it.each(SIGNALS)(
    "saves what it can after %s, and then ends as that signal ends a process",
    async (signal) => {
      const { ended, ends, send, stdout, lock } = await waitingRun();
      expect(existsSync(lock)).toBe(true);
      expect(send(signal)).toBeTypeOf("function");
      // The first signal is the one that counts.
      for (const other of SIGNALS) expect(send(other)).toBeUndefined();
      await ended;
      expect((stdout as Kept).text).toContain(`Interrupted by ${signal}: nothing new was ready`);
      expect(ends).toEqual([
        ["handles no more", signal],
        [true, signal],
      ]);
      expect([existsSync(lock), process.exitCode]).toEqual([false, undefined]);
    },
  );

  it("gives its locks back before it is ended by force", async () => {
    const { ended, ends, send, lock } = await waitingRun();
    const force = send("SIGTERM");
    vi.mocked(process.kill).mockImplementation((_pid, signal) => {
      ends.push([existsSync(lock), signal]);
      return true;
    });
    force?.();
    expect(ends).toEqual([
      ["handles no more", "SIGTERM"],
      [false, "SIGTERM"],
    ]);
    await ended;
  });

  it("ends with 128 and the number of the signal as the first process, which signals of its own do not end", async () => {
    const { ended, ends, send } = await waitingRun();
    const { pid } = process;
    Object.defineProperty(process, "pid", { value: 1, configurable: true, writable: true });
    onTestFinished(() => void Object.defineProperty(process, "pid", { value: pid }));
    vi.spyOn(process, "exit").mockImplementation((code) => {
      throw new Error(`exit ${code}`);
    });
    send("SIGTERM");
    await expect(ended).rejects.toThrow("exit 143");
    expect(ends).toEqual([]);
  });

  it("lets the lines leave that it has begun before it ends", async () => {
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    let left = 0;
    const slow = new Writable({
      write: (chunk: Buffer, _, done) =>
        void opened.then(() => {
          left += chunk.length;
          done();
        }),
    });
    // Of the command, so that nothing but the end waits for the output.
    const { ends, send } = lentProcess([], slow);
    const ended = main(async () => async () => {
      process.stdout.write("begun\n");
      send("SIGINT");
      throw new Error("Interrupted");
    });
    await new Promise(setImmediate);
    expect(ends).toEqual([]);
    open();
    await ended;
    expect([left, ends.length]).toEqual(["begun\n".length, 2]);
  });

  it("rejects with what nobody could be told of", async () => {
    const { stderr, ends } = lentProcess(["reed"]);
    vi.spyOn(stderr, "write").mockImplementation(() => {
      throw new Error("Cannot tell");
    });
    await expect(main(openParse)).rejects.toThrow("Cannot tell");
    expect(ends).toEqual([]);
  });

  it("tells the engine not to optimize what runs once", async () => {
    const flags: string[] = [];
    vi.resetModules();
    vi.doMock("node:v8", () => ({ setFlagsFromString: (text: string) => void flags.push(text) }));
    onTestFinished(() => {
      vi.doUnmock("node:v8");
      vi.resetModules();
    });
    lentProcess(["--version"]);
    await (await import("../../src/main.ts")).main(openParse);
    expect(flags).toEqual([
      "--liftoff-only --no-wasm-dynamic-tiering --no-wasm-tier-up",
      "--max-optimized-bytecode-size=1000",
    ]);
  });
});

describe("runProgram()", () => {
  /** What a command line that parses to a command ends with. */
  async function ended(command: Command | Error | string, stdout: Writable = new Kept(), words = ["x"]) {
    const stderr = new Kept();
    const parse = vi.fn(async () => {
      if (command instanceof Error || typeof command === "string") throw command;
      return command;
    });
    const code = await runProgram(async () => parse, words, testProcess({ stdout, stderr }));
    return { code, stdout: stdout instanceof Kept ? stdout.text : "", stderr: stderr.text, parse };
  }

  it.each([["--version"], ["-v"]])("answers %s without a parser", async (word) => {
    const { code, stdout, parse } = await ended({ kind: "spec" }, undefined, [word]);
    expect([code, parse.mock.calls]).toEqual([0, []]);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([["--version", "x"], ["-v", "x"], ["x", "-v"], ["x"], []])(
    "leaves %j %j to the parser, which learns the version",
    async (...words) => {
      const { parse, ...answer } = await ended({ kind: "text", text: "help" }, undefined, words);
      expect(answer).toEqual({ code: 0, stdout: "help\n", stderr: "" });
      expect(parse.mock.calls).toEqual([[words, expect.stringMatching(/^\d+\.\d+\.\d+$/)]]);
    },
  );

  it("says on stderr what was thrown, whatever it is, without what moves a cursor", async () => {
    expect(await ended("a \u001b[2J text")).toMatchObject({ code: 1, stderr: "a \\u001b[2J text\n" });
    expect(await ended(new Error("a bug"))).toMatchObject({ code: 1, stdout: "", stderr: "a bug\n" });
    const usage = await parseCommand(["reed"], "1.0.0").catch((error: Error) => error);
    expect(await ended(usage as Error)).toMatchObject({ code: 2, stderr: `${(usage as Error).message}\n` });
  });

  const ABOUT: Command = {
    ...{ kind: "tap", mode: "about", configs: [], catalog: undefined, state: undefined },
    ...{ stateFile: undefined, logLevel: undefined, format: "json" },
  };

  it.each([
    ["spec", { kind: "spec" }, "EPIPE", 0, ""],
    ["spec", { kind: "spec" }, "ENOSPC", 1, "Cannot write the output: no space left on device\n"],
    ["the tap", ABOUT, "EPIPE", 1, ""],
  ] as const)("ends %s whose output fails (%j %s) with %i", async (_what, command, code, exit, text) => {
    const broken = new Writable({
      write: (_chunk, _, done) => done(Object.assign(new Error(code), { code })),
    });
    expect(await ended(command, broken)).toMatchObject({ code: exit, stderr: text });
  });

  it.each([
    ["airbyte", 1],
    ["jsonl", 0],
  ])("ends a read in %s that nobody reads with %i", async (format, exit) => {
    const { sandbox } = await sandboxWith(SMALL);
    const words = ["read", "--stream", "people", "--format", format];
    const broken = new Writable({
      write: (_chunk, _, done) => done(Object.assign(new Error("EPIPE"), { code: "EPIPE" })),
    });
    const runtime = testProcess({ stdout: broken, stderr: new Kept(), environment: environmentOf(sandbox) });
    expect(await runProgram(openParse, words, runtime)).toBe(exit);
  });

  /** What every command answers when it is right, and when the answer is no. */
  it("gives back the exit code of every command", async () => {
    const { sandbox, config } = await sandboxWith(SMALL);
    const folder = join(await tempDir(), "out");
    const state = join(folder, "state.json");
    const empty = await file("empty.jsonl", "");
    const keys = await file(
      "keys.jsonl",
      sandbox
        .people()
        .slice(-3)
        .map((row) => JSON.stringify(row))
        .join("\n"),
    );
    const wrong = await file("config.json", { base_url: sandbox.url, api_key: "x" });
    const expected: readonly (readonly [line: string, code: number])[] = [
      ["--help", 0],
      ["spec", 0],
      [`check -c ${config} --exit-code`, 0],
      [`check -c ${wrong} --exit-code`, 1],
      [`discover -c ${config}`, 0],
      [`read -c ${config} --stream people --output ${folder}`, 0],
      [`read -c ${wrong} --output ${folder}`, 2],
      [`jobs -c ${config}`, 0],
      [`jobs -c ${empty}`, 1],
      [`plan -c ${config}`, 0],
      [`plan -c ${config} --stream sources`, 2],
      [`state show ${state}`, 0],
      [`state show --max-age 1m ${empty}`, 1],
      [`state merge ${state}`, 0],
      [`state merge ${empty}`, 1],
      [`output compact ${folder}`, 0],
      [`reconcile -c ${config} --table ${keys} --full`, 1],
      ["reconcile --sql duckdb", 0],
      [`init --config ${join(folder, "config.json")}`, 1],
    ];
    for (const [line, code] of expected)
      expect([line, (await run(CONNECTOR, line.split(" "))).code]).toEqual([line, code]);
    for (const [words, code] of [
      [["--about"], 0],
      [["--config", config, "--discover"], 0],
      [["--config", config, "--test"], 0],
      [["--config", config], 0],
      [["--config", wrong], 1],
    ] as const)
      expect([words, (await run(TAP, words)).code]).toEqual([words, code]);
  });
});
