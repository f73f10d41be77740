import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "../../sandbox/server.ts";
import type { Clock } from "../../src/api/clock.ts";
import { discover } from "../../src/commands/discover.ts";
import { read } from "../../src/commands/read.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import { errorsOf, expectAirbyteMessages, linesOf } from "./airbyte-messages.ts";
import { doneIn, type JobState, subsIn } from "./job-types.ts";
import { tempDir } from "./temp-dir.ts";
import { Kept, testProcess } from "./terminal.ts";

export type Ran = ReturnType<typeof ran>;

export type Told = {
  readonly state?: unknown;
  readonly syncMode?: string;
  /** What the platform numbers, such as `sync_id`, and what it numbers otherwise for one of the streams. */
  readonly ids?: object | undefined;
  readonly idsOf?: Readonly<Record<string, object>> | undefined;
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
    { state, syncMode = "incremental", ids = {}, idsOf = {}, signal, config = {} }: Told = {},
  ): Promise<Ran> {
    const streams = [named]
      .flat()
      .map((name) => ({ stream: { name, json_schema: {} }, sync_mode: syncMode, ...ids, ...idsOf[name] }));
    return this.#read(signal, { config, catalog: { streams }, ...(state !== undefined && { state }) });
  }

  /** Reads with files of these contents, besides the config. */
  #read(
    signal: AbortSignal | undefined,
    { config = {}, catalog, state }: { config?: object; catalog?: unknown; state?: unknown },
  ): Promise<Ran> {
    return this.#run(signal, async (runtime, file) => {
      const files = {
        config: await file("config", { ...this.#config, ...config }),
        catalog: catalog === undefined ? undefined : await file("catalog", catalog),
        state: state === undefined ? undefined : await file("state", state),
      };
      return await read({ ...files, streams: [], format: "airbyte" }, runtime);
    });
  }

  discover(): Promise<Ran> {
    return this.#run(undefined, async (runtime, file) =>
      discover({ config: await file("config", this.#config) }, runtime),
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

function ran(code: number, text: string, slept: number) {
  const messages = expectAirbyteMessages(linesOf(text));
  const all = messages.flatMap(({ state }) => state ?? []);
  const states = new Map(all.map((one) => [one.stream.stream_descriptor.name, one]));
  const last = all.at(-1);
  const state = (last?.stream.stream_state ?? { jobs: [], done: [] }) as JobState;
  return {
    ...{ code, messages, text },
    /** How long the run slept, in ms. */
    slept,
    records: () => messages.flatMap(({ record }) => (record ? [record.data] : [])),
    /** The last state of each stream, as a state file's value. */
    state: (): unknown => (last === undefined ? undefined : [...states.values()]),
    jobs: () => subsIn(state),
    /** How many items the last state says are done. */
    done: () => doneIn(state),
    warnings: () => messages.flatMap(({ log }) => (log?.level === "WARN" ? [log.message] : [])),
    errors: () => errorsOf(messages),
  };
}
