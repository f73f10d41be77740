import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "../../sandbox/server.ts";
import type { Clock } from "../../src/api/clock.ts";
import { check } from "../../src/commands/check.ts";
import { discover } from "../../src/commands/discover.ts";
import { read } from "../../src/commands/read.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import { Kept } from "./in-process.ts";
import { doneIn, type Job, type JobState, subsIn } from "./job-types.ts";
import { tempDir } from "./temp-dir.ts";
import { testProcess } from "./terminal.ts";

export type Message = {
  readonly type: string;
  readonly record?: { readonly stream: string; readonly data: Readonly<Record<string, unknown>> };
  readonly state?: { readonly stream: { readonly stream_state: JobState } };
  readonly log?: { readonly level: string; readonly message: string };
  readonly trace?: {
    readonly error?: { readonly failure_type: string; readonly message: string };
    readonly stream_status?: { readonly status: string };
  };
  readonly connectionStatus?: { readonly status: string; readonly message: string };
  readonly catalog?: { readonly streams: readonly { readonly name: string }[] };
};

export type Ran = {
  readonly code: number;
  readonly messages: readonly Message[];
  readonly text: string;
  records(): readonly Readonly<Record<string, unknown>>[];
  /** The stream's last state, as a state file's value. */
  state(): unknown;
  jobs(): readonly Job[];
  /** How many items the last state says are done. */
  done(): number;
  warnings(): readonly string[];
  errors(): readonly { readonly failure_type: string; readonly message: string }[];
  /** How long the run slept, in ms. */
  readonly slept: number;
};

export type Told = {
  readonly state?: unknown;
  readonly syncMode?: string;
  readonly signal?: AbortSignal;
  /** Settings that take the place of the runtime's. */
  readonly config?: object;
};

/** A service whose clock can be moved. */
type Moved = Pick<Sandbox, "url" | "advance">;

/** Runs commands in this process, against a sandbox whose clock runs as fast as they sleep. */
export class JobRuntime {
  readonly #sandboxes: readonly Moved[];
  readonly #config: object;
  #offset = 0;
  #isAligned = false;

  constructor(config: object, ...sandboxes: readonly Moved[]) {
    this.#config = config;
    this.#sandboxes = sandboxes;
  }

  /** Time passes between runs. */
  pass(ms: number): void {
    this.#offset += ms;
    for (const sandbox of this.#sandboxes) sandbox.advance(ms);
  }

  /** Reads a stream, or several in one run. */
  readStream(
    named: string | readonly string[],
    { state, syncMode = "incremental", signal, config = {} }: Told = {},
  ): Promise<Ran> {
    const streams = [named]
      .flat()
      .map((name) => ({ stream: { name, json_schema: {} }, sync_mode: syncMode }));
    return this.#read(signal, { config, catalog: { streams }, ...(state !== undefined && { state }) });
  }

  readAll(): Promise<Ran> {
    return this.#read(undefined, {});
  }

  /** Reads with files of these contents, besides the config. */
  #read(
    signal: AbortSignal | undefined,
    files: { config?: object; catalog?: unknown; state?: unknown },
  ): Promise<Ran> {
    return this.#run(signal, async (runtime, file) => {
      const [config, catalog, state] = [
        await file("config", { ...this.#config, ...files.config }),
        files.catalog === undefined ? undefined : await file("catalog", files.catalog),
        files.state === undefined ? undefined : await file("state", files.state),
      ];
      return await read({ config, catalog, state, streams: [], format: "airbyte" }, runtime);
    });
  }

  check(): Promise<Ran> {
    return this.#run(undefined, async (runtime, file) =>
      check({ config: await file("config", this.#config) }, runtime),
    );
  }

  discover(): Promise<Ran> {
    return this.#run(undefined, async (runtime, file) =>
      discover(await file("config", this.#config), runtime),
    );
  }

  async #run(
    signal: AbortSignal | undefined,
    command: (runtime: Runtime, file: (name: string, value: unknown) => Promise<string>) => Promise<number>,
  ): Promise<Ran> {
    const folder = await tempDir();
    const file = async (name: string, value: unknown): Promise<string> => {
      const path = join(folder, `${name}.json`);
      await writeFile(path, JSON.stringify(value));
      return path;
    };
    const out = new Kept();
    if (!this.#isAligned) this.#offset = await offsetOf(this.#sandboxes[0]);
    this.#isAligned = true;
    const before = this.#offset;
    const runtime = testProcess({
      clock: this.#clock(),
      random: () => 0.5,
      stdout: out,
      stderr: new Kept(),
      ...(signal && { signal }),
    });
    const code = await command(runtime, file);
    return ran(code, out.text, this.#offset - before);
  }

  #clock(): Clock {
    return {
      now: () => Date.now() + this.#offset,
      monotonic: () => performance.now() + this.#offset,
      sleep: async (ms, signal) => {
        signal?.throwIfAborted();
        this.pass(ms);
        await new Promise((resolve) => setImmediate(resolve));
      },
    };
  }
}

/** How far a sandbox's clock is ahead of this machine's, in ms. */
async function offsetOf(sandbox: Moved | undefined): Promise<number> {
  const answer = await fetch(`${sandbox?.url}/api/v1/public/none`).catch(() => undefined);
  const date = Date.parse(answer?.headers.get("date") ?? "");
  return Number.isNaN(date) ? 0 : date - Date.now();
}

function ran(code: number, text: string, slept: number): Ran {
  const messages = parseMessages(text);
  const states = messages.flatMap(({ state }) => (state === undefined ? [] : [state]));
  return {
    code,
    messages,
    text,
    slept,
    records: () => messages.flatMap(({ record }) => (record === undefined ? [] : [record.data])),
    state: () => {
      const last = states.at(-1);
      return last === undefined ? undefined : [{ type: "STREAM", ...last }];
    },
    jobs: () => subsIn(states.at(-1)?.stream.stream_state ?? { jobs: [] }),
    done: () => doneIn(states.at(-1)?.stream.stream_state ?? { jobs: [], done: [] }),
    warnings: () =>
      messages.flatMap(({ log }) => (log === undefined || log.level !== "WARN" ? [] : [log.message])),
    errors: () => messages.flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error])),
  };
}

export const parseMessages = (text: string): readonly Message[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Message => JSON.parse(line));
