import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rename, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { read } from "../../src/commands/read.ts";
import type { Process } from "../../src/commands/world.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/server.ts";
import { systemClock } from "../../src/service/clock.ts";
import { parseStateText } from "../../src/source/state.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run } from "../support/cli.ts";
import { configFor, recordsOf, TAP, tap } from "../support/tap.ts";

const QUICK = { requestsPerMinute: 0, companies: 4 } as const;

const idsOf = (text: string): string[] => linesOf(text).map((line) => JSON.parse(line).id);

const cursorIn = async (path: string): Promise<unknown> => {
  const blob = parseStateText(await readFile(path, "utf8")).streams.get("people");
  return (blob as { discoveredAt?: unknown } | undefined)?.discoveredAt;
};

describe("--state-file", () => {
  it("goes on where the last run ended, in every language", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 300 });
    const config = await configFor(sandbox);
    const state = await file("state.json", "");
    const jsonl = [
      "read",
      "--config",
      config,
      "--format",
      "jsonl",
      "--stream",
      "people",
      "--state-file",
      state,
    ];
    const first = await run(CONNECTOR, jsonl);
    expect(first.code).toBe(0);
    expect(new Set(idsOf(first.stdout))).toEqual(new Set(sandbox.people().map(({ id }) => id)));
    expect(await cursorIn(state)).toMatch(/Z$/);

    sandbox.arrive(2);
    const second = await connector(["read", "--config", config, "--stream", "people", "--state-file", state]);
    expect(second.messages.filter(({ type }) => type === "RECORD").length).toBeLessThan(20);
    sandbox.arrive(2);
    const third = await tap(["--config", config, "--state-file", state]);
    expect(recordsOf(third.messages, "people").length).toBeLessThan(20);
    sandbox.arrive(2);
    const fourth = await run(CONNECTOR, jsonl);
    expect(idsOf(fourth.stdout).length).toBeLessThan(20);
    expect(Object.keys(JSON.parse(await readFile(state, "utf8")).bookmarks)).toContain("sources");
    expect(existsSync(`${state}.previous`)).toBe(true);
  });

  it("loses nothing to a kill at any moment", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 4000, latencyMs: 20 });
    const config = await configFor(sandbox, { max_window_rows: 1000 });
    const state = await file("state.json", "");
    const args = [
      "read",
      "--config",
      config,
      "--format",
      "jsonl",
      "--stream",
      "people",
      "--state-file",
      state,
    ];
    const seen = new Set<string>();
    for (const afterMs of [300, 500, 700, 900, 1200, undefined]) {
      const { stdout, code } = await run(CONNECTOR, args, {
        started: (child) => afterMs !== undefined && void delay(afterMs).then(() => child.kill("SIGKILL")),
      });
      const whole = stdout.slice(0, stdout.lastIndexOf("\n") + 1);
      for (const id of idsOf(whole)) seen.add(id);
      if (afterMs === undefined) expect(code).toBe(0);
    }
    expect(seen.size).toBe(sandbox.people().length);
  });

  it("does not move on before the records have left", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 3000 });
    const state = `${await file("state.json", "")}.new`;
    const config = await configFor(sandbox);
    const args = [
      "read",
      "--config",
      config,
      "--format",
      "jsonl",
      "--stream",
      "people",
      "--state-file",
      state,
    ];
    const child = spawn(process.execPath, [CONNECTOR, ...args], { stdio: ["ignore", "pipe", "ignore"] });
    const opened = (): boolean => sandbox.requests.some(({ path }) => path.endsWith("/stream"));
    await expect.poll(opened, { timeout: 20_000 }).toBe(true);
    await delay(1500);
    expect(existsSync(state), "nobody has read a byte").toBe(false);
    child.stdout.resume();
    await once(child, "close");
    expect(await cursorIn(state)).toMatch(/Z$/);
  });

  it("is the only say on where to go on from", async () => {
    const both = ["--state", "a", "--state-file", "b"];
    expect(await run(CONNECTOR, ["read", ...both])).toMatchObject({ code: 2 });
    expect(await run(TAP, both)).toMatchObject({ code: 2 });
  });
});

describe("read --format jsonl", () => {
  it("says on stderr what it has to say, in JSON", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const args = ["read", "--config", await configFor(sandbox), "--format", "jsonl", "--stream", "people"];
    const { stderr } = await run(CONNECTOR, args);
    expect(linesOf(stderr).map((line) => JSON.parse(line).message)).toContain('Stream "people": complete');
    sandbox.fault("status=401:times=always");
    const failed = await run(CONNECTOR, args);
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    expect(JSON.parse(linesOf(failed.stderr).at(-1) ?? "")).toMatchObject({ level: "critical" });
  });

  it("takes its config from the environment alone", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const env = { CONTACT_INTELLIGENCE_BASE_URL: sandbox.url, CONTACT_INTELLIGENCE_API_KEY: sandbox.key };
    const args = ["read", "--format", "jsonl", "--stream", "sources"];
    expect(linesOf((await run(CONNECTOR, args, { env })).stdout)).toHaveLength(sandbox.sources().length);
  });

  it("ends within its budget, and goes on from there", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5000, latencyMs: 150 });
    const config = await configFor(sandbox, { max_window_rows: 1000, max_run_seconds: 1 });
    const state = await file("state.json", "");
    const args = [
      "read",
      "--config",
      config,
      "--format",
      "jsonl",
      "--stream",
      "people",
      "--state-file",
      state,
    ];
    const seen = new Set<string>();
    let runs = 0;
    for (; seen.size < sandbox.people().length && runs < 10; runs++) {
      const { code, stdout } = await run(CONNECTOR, args);
      expect(code).toBe(0);
      for (const id of idsOf(stdout)) seen.add(id);
    }
    expect(seen.size).toBe(sandbox.people().length);
    expect(runs).toBeGreaterThan(1);
  });
});

describe("docs/standalone.md", () => {
  it.runIf(existsSync("/usr/bin/flock"))("has a line for cron that works as cron runs it", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 30, latencyMs: 500 });
    const page = await readFile(new URL("../../docs/standalone.md", import.meta.url), "utf8");
    const [, path, line] = /```cron\nPATH=(.*)\n\S+ \* \* \* \* (.*)\n```/.exec(page) ?? [];
    const folder = await mkdtemp(join(tmpdir(), "cron-"));
    await symlink(CONNECTOR, join(folder, "source-contact-intelligence"));
    await rename(await configFor(sandbox), join(folder, "config.json"));
    const command = line?.replaceAll("\\%", "%").replace("/var/lib/contacts", folder) ?? "exit 9";
    const env = { PATH: [folder, dirname(process.execPath), path].join(delimiter) };
    const start = (): Promise<unknown> => promisify(execFile)("/bin/sh", ["-c", command], { env });
    const first = start();
    await delay(1100);
    await expect(start(), "the first still holds the lock").rejects.toMatchObject({ code: 1 });
    await first;
    const written = (await readdir(folder)).filter((name) => name.endsWith(".jsonl"));
    const texts = await Promise.all(written.map((name) => readFile(join(folder, name), "utf8")));
    expect(idsOf(texts.join(""))).toHaveLength(sandbox.people().length);
    expect(await cursorIn(join(folder, "people.state.json"))).toMatch(/Z$/);
  });
});

/** What a terminal shows; it knows how to move its cursor. */
class Terminal extends Writable {
  readonly isTTY = true;
  readonly columns = 120;
  text = "";
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
  cursorTo(): boolean {
    return true;
  }
  moveCursor(): boolean {
    return true;
  }
  clearLine(): boolean {
    return true;
  }
}

class Sink extends Writable {
  text = "";
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    setTimeout(done, 5);
  }
}

async function readAt(stderr: Terminal, stdout: Writable, { url, key }: Sandbox, env = {}): Promise<number> {
  const world: Process = {
    ...{
      clock: systemClock,
      signal: new AbortController().signal,
      random: Math.random,
      pid: 1,
      stdout,
      stderr,
    },
    environment: {
      CONTACT_INTELLIGENCE_BASE_URL: url,
      CONTACT_INTELLIGENCE_API_KEY: key,
      CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE: "6000",
      ...env,
    },
  };
  return await read(
    { config: undefined, catalog: undefined, state: undefined, streams: [], format: "airbyte" },
    world,
  );
}

describe("at a terminal", () => {
  // A terminal in a pipeline's machine draws no spinner.
  beforeEach(() => void vi.stubEnv("CI", undefined));
  afterEach(() => void vi.unstubAllEnvs());

  it("shows progress and a summary on stderr", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 2000, bytesPerSecond: 2_000_000 });
    const stderr = new Terminal();
    expect(await readAt(stderr, new Sink(), sandbox)).toBe(0);
    expect(stderr.text).toMatch(/people: [\d,]+ of about 2,003 rows, [\d,]+ rows\/s/);
    expect(stderr.text).toMatch(
      /people: 2,003 rows in .* complete\ncompanies: 4 rows in .*\nsources: 5 rows/,
    );
    expect(stderr.text, "the cursor is back").toContain("\u001b[?25h");
  });

  it("gives the terminal back when nobody reads the output", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 2000 });
    const stderr = new Terminal();
    const closed = new Writable({ write: (_chunk, _encoding, done) => done(new Error("EPIPE")) });
    await expect(readAt(stderr, closed, sandbox)).rejects.toThrow("Cannot write the output");
    expect(stderr.text.endsWith("\u001b[?25h")).toBe(true);
  });

  it("only sums up where a line cannot be drawn over", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 10 });
    const stderr = new Terminal();
    expect(await readAt(stderr, new Terminal(), sandbox)).toBe(0);
    expect(stderr.text).toMatch(/^people: 13 rows/);
    expect(stderr.text).not.toContain("\u001b");
    const dumb = new Terminal();
    await readAt(dumb, new Sink(), sandbox, { TERM: "dumb" });
    expect(dumb.text).not.toContain("\u001b");
  });
});
