import type { ChildProcess } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../src/sandbox/server.ts";
import { CONNECTOR, file, run } from "../support/cli.ts";
import type { Job } from "../support/job-types.ts";
import { type Message, parseMessages } from "../support/job-world.ts";

/** A stream, its setting, and the items that are bought. */
type Tried = readonly [stream: string, setting: string, list: string, items: readonly string[]];
const STREAMS: readonly Tried[] = [
  ["company_lookups", "company_lookup", "domains", ["1.example", "2.example", "nobody.example"]],
  ["email_checks", "email_check", "emails", ["a@x.example", "b@x.example"]],
  ["email_verifications", "email_verification", "emails", ["a@x.example", "b@x.example"]],
];

const start = (options: SandboxOptions = {}): Promise<Sandbox> =>
  startSandbox({
    people: 1,
    companies: 1,
    sources: 2,
    plan: "agency",
    requestsPerMinute: 0,
    now: "2026-03-02T10:00:00Z",
    // So quick that each run finds what the run before it has submitted.
    jobs: { lookupSeconds: 0, checkSeconds: 0 },
    ...options,
  });

/** What a platform has after a run: the messages that were written whole. */
type Run = { readonly messages: readonly Message[]; readonly code: number | null };

class Platform {
  readonly delivered = new Set<string>();
  jobs: readonly Job[] = [];
  readonly #sandbox: Sandbox;
  readonly #tried: Tried;
  #state: unknown = [];

  constructor(sandbox: Sandbox, tried: Tried) {
    this.#sandbox = sandbox;
    this.#tried = tried;
  }

  /** Whether there is something to collect. */
  get isParked(): boolean {
    return this.jobs.some(({ step }) => step === "submitted");
  }

  /** Runs the built program, and kills it as soon as so many lines have arrived. */
  async sync(killedAfter = Number.POSITIVE_INFINITY, signal: NodeJS.Signals = "SIGKILL"): Promise<Run> {
    const [stream, setting, list, items] = this.#tried;
    const { url, key } = this.#sandbox;
    const config = {
      base_url: url,
      api_key: key,
      requests_per_minute: 6000,
      external_api: { api_url: url, api_key: key },
      [setting]: { [list]: items, ...(setting !== "email_verification" && { max_wait_seconds: 0 }) },
    };
    const catalog = { streams: [{ stream: { name: stream, json_schema: {} }, sync_mode: "incremental" }] };
    const args = [
      "read",
      "--config",
      await file("config.json", config),
      "--catalog",
      await file("catalog.json", catalog),
      "--state",
      await file("state.json", this.#state),
    ];
    const started = (child: ChildProcess): void => killAfter(child, killedAfter, signal);
    const { code, stdout } = await run(CONNECTOR, args, { started });
    const messages = parseMessages(stdout.slice(0, stdout.lastIndexOf("\n") + 1));
    this.#take(messages);
    return { messages, code };
  }

  #take(messages: readonly Message[]): void {
    for (const { record, state } of messages) {
      if (record !== undefined) this.delivered.add(String(record.data["domain"] ?? record.data["email"]));
      if (state === undefined) continue;
      this.#state = [{ type: "STREAM", ...state }];
      this.jobs = state.stream.stream_state.jobs;
    }
  }
}

function killAfter(child: ChildProcess, lines: number, signal: NodeJS.Signals): void {
  let seen = 0;
  child.stdout?.on("data", (chunk: Buffer) => {
    seen += chunk.toString("latin1").split("\n").length - 1;
    if (seen >= lines) child.kill(signal);
  });
}

/** Each number of lines that a whole run writes, and zero. */
async function lineCounts(tried: Tried): Promise<readonly number[]> {
  await using sandbox = await start();
  const { messages } = await new Platform(sandbox, tried).sync();
  return Array.from(messages, (_, nth) => nth + 1);
}

const boughtOnce = (sandbox: Sandbox): void => {
  const items = sandbox.submissions.map(({ item }) => item);
  expect([...items].sort()).toEqual([...new Set(items)].sort());
};

/** Some two hundred processes, on a machine that may have other things to do. */
const TIMEOUT = { timeout: 900_000 };

describe.each(STREAMS)("%s", TIMEOUT, (...tried) => {
  const [stream, , , items] = tried;
  const lives = stream === "company_lookups" ? 2 : 1;

  it("buys nothing twice and loses nothing, killed after each line of each run", async () => {
    for (const killedAfter of await lineCounts(tried)) {
      await using sandbox = await start();
      const platform = new Platform(sandbox, tried);
      for (let life = 0; life < lives; life++) await platform.sync(killedAfter);
      expect((await platform.sync()).code).toBe(0);
      if (platform.isParked) expect((await platform.sync()).code).toBe(0);
      boughtOnce(sandbox);
      const unknown = platform.jobs.filter(({ step }) => step === "submitting").length;
      const done = platform.jobs.filter(({ step }) => step === "done").length;
      expect(done + unknown).toBe(items.length);
      expect(platform.delivered.size).toBeGreaterThanOrEqual(done);
    }
  });

  it("knows of everything that it submitted, told to end after any line", async () => {
    for (const killedAfter of (await lineCounts(tried)).slice(2, 7)) {
      await using sandbox = await start({ latencyMs: 60 });
      const platform = new Platform(sandbox, tried);
      await platform.sync(killedAfter, "SIGTERM");
      expect(platform.jobs.filter(({ step }) => step === "submitting")).toEqual([]);
      expect(platform.jobs.length).toBe(sandbox.submissions.length);
      await platform.sync();
      if (platform.isParked) await platform.sync();
      boughtOnce(sandbox);
      expect([...platform.delivered].sort()).toEqual([...items].sort());
    }
  });
});
