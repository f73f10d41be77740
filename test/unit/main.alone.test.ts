import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { parseCommand } from "../../src/cli.ts";
import { main } from "../../src/main.ts";
import { sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Kept } from "../support/terminal.ts";

const openParse = async () => parseCommand;

/** Lends `main` this process: its words, its output, its signals. `ends`: how it asked to be ended. */
function lentProcess(words: readonly string[], stdout: Writable = new Kept()) {
  const handlers = new Map<unknown, () => void>();
  const ends: unknown[] = [];
  const { argv, exitCode, on } = process;
  onTestFinished(() => {
    vi.restoreAllMocks();
    Object.assign(process, { argv, exitCode });
  });
  process.argv = ["node", "program", ...words];
  vi.spyOn(process, "stdout", "get").mockReturnValue(stdout as never);
  vi.spyOn(process, "stderr", "get").mockReturnValue(new Kept() as never);
  vi.spyOn(process, "removeAllListeners").mockReturnThis();
  vi.spyOn(process, "on").mockImplementation((name, listener) => {
    if (!String(name).startsWith("SIG")) return on.call(process, name, listener);
    handlers.set(name, listener);
    return process;
  });
  vi.spyOn(process, "kill").mockImplementation((_, signal) => {
    ends.push(signal);
    return true;
  });
  return { handlers, ends };
}

describe("a run that a signal interrupts", () => {
  it("gives its locks back before it is ended by force, eight seconds later", async () => {
    const { sandbox, config } = await sandboxWith({ people: 5, faults: ["stall-headers:times=always"] });
    const state = join(await tempDir(), "state.json");
    const words = ["read", "--stream", "people", "--config", config, "--state-file", state];
    const { handlers, ends } = lentProcess(words);
    const ended = main(openParse);
    await expect.poll(() => sandbox.requests.length, { timeout: 20_000, interval: 5 }).toBeGreaterThan(0);
    const timer = vi.spyOn(globalThis, "setTimeout").mockReturnValue({ unref: () => undefined } as never);
    handlers.get("SIGTERM")?.();
    const [force, after] = timer.mock.calls[0] ?? [];
    timer.mockRestore();
    expect([after, existsSync(`${state}.lock`), ends]).toEqual([8_000, true, []]);
    force?.();
    expect([existsSync(`${state}.lock`), ends]).toEqual([false, ["SIGTERM"]]);
    await ended;
  });
});
