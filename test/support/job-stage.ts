import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import type { Clock } from "../../src/base/clock.ts";
import { read } from "../../src/commands/read.ts";
import { errorsOf, expectAirbyteMessages, linesOf } from "./airbyte-messages.ts";
import { file } from "./cli.ts";
import { type Behaviour, CountingService } from "./counting-service.ts";
import { tempDir } from "./temp-dir.ts";
import { Kept, testProcess } from "./terminal.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
/** A question for a result, but for that which tells whether this is the service. */
const POLL = /^GET .*\/(job|chk)_(?!0_check)/;
const MONDAY = "2026-03-02T10:00:00Z";

export type Setting = "company_lookup" | "email_check" | "email_verification";

/** What happens before and in a sync, and what comes of it; what is left out is not looked at. */
export type Sync = {
  /** How much later (ms) than the sync before. */
  readonly after?: number;
  /** What goes wrong from now on in a sandbox, or in this sync at a service that counts. */
  readonly fault?: string;
  readonly behaviour?: Behaviour;
  /** How far (ms) the service's clock moves against this machine's. */
  readonly clockMoves?: number;
  /** Settings of the job that this sync has instead. */
  readonly settings?: object;
  readonly config?: object;
  readonly streams?: string | readonly string[];
  readonly syncMode?: string;
  /** What the platform numbers, such as `sync_id`, and what it numbers otherwise for one of the streams. */
  readonly ids?: object;
  readonly idsOf?: Readonly<Record<string, object>>;
  /** Whether the platform has lost the state. */
  readonly isForgotten?: boolean;

  /** The class of the failure. Left out: the sync has to be complete. Null: either. */
  readonly fails?: string | null | undefined;
  /** The items that are bought, or how many. */
  readonly bought?: readonly string[] | number;
  /** The items that a service that counts is asked for, those that it refuses included, or how many. */
  readonly tried?: readonly string[] | number;
  /** The items of the records, or how many records there are. */
  readonly delivered?: readonly string[] | number;
  /** How many questions for results there are. */
  readonly polls?: number;
  /** A part of the warnings; a part of the output. */
  readonly warns?: string;
  readonly says?: string;
  /** What the output does not contain. */
  readonly lacks?: string;
  /** How long (ms) the run sleeps at most. */
  readonly sleeps?: number;
};

/** Syncs of a connection, one after the other. */
export type Scene = {
  readonly setting?: Setting;
  readonly settings?: object;
  readonly config?: object;
  /** Of the sandbox. */
  readonly options?: SandboxOptions;
  readonly syncs: readonly [Sync, ...Sync[]];
};

type Service = Sandbox | CountingService;
type Ran = ReturnType<typeof ran>;

/** A config for both APIs of a service. */
export function jobConfig({ url, key = "k" }: { url: string; key?: string }, settings: object): object {
  const external_api = { api_url: url, api_key: key };
  return { base_url: url, api_key: key, requests_per_minute: 6000, external_api, ...settings };
}

/** Airbyte's catalog of these streams. */
export const airbyteCatalogOf = (
  streams: readonly string[],
  ids: object = {},
  idsOf: Readonly<Record<string, object>> = {},
): object => ({
  streams: streams.map((name) => ({
    ...{ stream: { name, json_schema: {} }, sync_mode: "incremental", ...ids },
    ...idsOf[name],
  })),
});

/** How many items the state of a job stream says are done. */
export const doneIn = ({
  delivered,
}: {
  delivered: readonly (readonly [day: string, packed: string])[];
}): number => delivered.reduce((sum, [, packed]) => sum + packed.length / 16, 0);

/** A connection with its service and what it saved. Commands run in this process, and what they sleep passes at both. */
export class JobStage<Of extends Service = Service> {
  readonly service: Of;
  /** What the platform has saved. */
  state: unknown;
  readonly #setting: Setting;
  readonly #settings: object;
  readonly #config: object;
  #offset: number;

  /** @param offset how far (ms) the service's clock is ahead of this machine's */
  constructor(service: Of, setting: Setting, settings: object, config: object, offset: number) {
    this.service = service;
    this.#setting = setting;
    this.#settings = settings;
    this.#config = jobConfig(service, { [setting]: settings, ...config });
    this.#offset = offset;
  }

  /** All that was bought so far, in this order. */
  get bought(): readonly string[] {
    const { service } = this;
    return "submissions" in service ? service.submissions.map(({ item }) => item) : service.bought;
  }

  /** The requests so far, such as "POST /api/v1/external/company-lookup". */
  get requests(): readonly string[] {
    return this.service.requests.map((one) => (typeof one === "string" ? one : `${one.method} ${one.path}`));
  }

  /** Plays syncs, and holds each against what should come of it. Returns the last. */
  async play(...syncs: readonly [Sync, ...Sync[]]): Promise<Ran> {
    const runs: Ran[] = [];
    for (const [nth, sync] of syncs.entries()) {
      const before = this.#seen;
      const one = await this.#run(sync);
      const { bought, tried, requests } = this.#seen;
      const found = {
        bought: bought.slice(before.bought.length),
        tried: tried.slice(before.tried.length),
        polls: requests.slice(before.requests.length).filter((request) => POLL.test(request)).length,
        delivered: one.records().map(({ domain, email }) => String(domain ?? email)),
      };
      check(sync, found, one, `sync ${nth + 1} of ${syncs.length}`);
      runs.push(one);
    }
    return runs.at(-1) as Ran;
  }

  get #seen() {
    const { bought, requests, service } = this;
    return { bought: [...bought], requests, tried: "tried" in service ? [...service.tried] : [] };
  }

  async #run(sync: Sync): Promise<Ran> {
    const { service } = this;
    this.#pass(sync.after ?? 0);
    if (sync.fault !== undefined && "fault" in service) service.fault(sync.fault);
    if ("behaviour" in service) service.behaviour = sync.behaviour ?? {};
    service.advance(sync.clockMoves ?? 0);
    const { settings, streams = `${this.#setting}s`, syncMode = "incremental", ids, idsOf } = sync;
    const changed = settings && { [this.#setting]: { ...this.#settings, ...settings } };
    const catalog = airbyteCatalogOf([streams].flat(), { sync_mode: syncMode, ...ids }, idsOf);
    const isNew = sync.isForgotten === true || this.state === undefined;
    const files = {
      config: await file("config.json", { ...this.#config, ...changed, ...sync.config }),
      catalog: await file("catalog.json", catalog),
      state: isNew ? undefined : await file("state.json", this.state),
    };
    const [stdout, before] = [new Kept(), this.#offset];
    const runtime = testProcess({ clock: this.#clock, random: () => 0.5, stdout, stderr: new Kept() });
    const code = await read({ ...files, streams: [], format: "airbyte" }, runtime);
    const one = ran(code, stdout.text, this.#offset - before);
    if (one.states.length > 0) this.state = one.states;
    return one;
  }

  #pass(ms: number): void {
    this.#offset += ms;
    this.service.advance(ms);
  }

  get #clock(): Clock {
    return {
      now: () => Date.now() + this.#offset,
      monotonic: () => performance.now() + this.#offset,
      sleep: async (ms, signal) => {
        signal?.throwIfAborted();
        this.#pass(ms);
        await new Promise((resolve) => setImmediate(resolve));
      },
    };
  }
}

function ran(code: number, text: string, slept: number) {
  const messages = expectAirbyteMessages(linesOf(text));
  const states = messages.flatMap(({ state }) => state ?? []);
  return {
    ...{ code, messages, text, slept },
    /** The last of each stream. */
    states: [...new Map(states.map((one) => [one.stream.stream_descriptor.name, one])).values()],
    records: () => messages.flatMap(({ record }) => (record ? [record.data] : [])),
    warnings: () => messages.flatMap(({ log }) => (log?.level === "WARN" ? [log.message] : [])),
  };
}

function check(sync: Sync, found: Partial<Record<keyof Sync, unknown>>, one: Ran, at: string): void {
  const { fails, warns = "", says = "", sleeps = Number.POSITIVE_INFINITY } = sync;
  const text = one.text.slice(-1_500);
  const failed = errorsOf(one.messages).map(({ failure_type }) => failure_type);
  if (fails !== null)
    expect([one.code, ...failed], `${at}\n${text}`).toEqual(fails === undefined ? [0] : [1, fails]);
  for (const [name, value] of Object.entries(found)) {
    const wanted = sync[name as keyof Sync];
    if (wanted === undefined) continue;
    const inOrder = (list: unknown): unknown => (Array.isArray(list) ? list.toSorted() : list);
    const compared = typeof wanted === "number" && Array.isArray(value) ? value.length : value;
    expect(inOrder(compared), `${at}: ${name}\n${text}`).toEqual(inOrder(wanted));
  }
  expect(one.warnings().join("\n"), at).toContain(warns);
  expect(one.text, at).toContain(says);
  if (sync.lacks !== undefined) expect(one.text.toLowerCase(), at).not.toContain(sync.lacks);
  expect(one.slept, at).toBeLessThanOrEqual(sleeps);
}

/** A connection to a sandbox, until the test ends. */
export async function sandboxStage(
  setting: Setting,
  settings: object,
  options: SandboxOptions = {},
  config: object = {},
): Promise<JobStage<Sandbox>> {
  const plan = setting === "email_check" ? ({ plan: "agency" } as const) : {};
  const now = options.now ?? MONDAY;
  const small = { people: 20, companies: 4 };
  const sandbox = await startSandbox({ ...small, ...plan, ...options, now });
  onTestFinished(() => sandbox.close());
  return new JobStage(sandbox, setting, settings, config, Date.parse(now) - Date.now());
}

/** A connection with receipts to a service that counts, where it is ten in the morning, until the test ends. */
export async function countingStage(
  setting: Setting,
  settings: object,
  config: object = {},
): Promise<JobStage<CountingService>> {
  const service = await CountingService.start();
  onTestFinished(() => service[Symbol.asyncDispose]());
  const offset = 10 * HOUR - (Date.now() % DAY);
  service.advance(offset);
  const receipts_file = join(await tempDir(), "receipts.jsonl");
  return new JobStage(service, setting, settings, { receipts_file, ...config }, offset);
}

/** Plays a scene in a sandbox. */
export async function playInSandbox({ setting = "company_lookup", settings = {}, ...scene }: Scene) {
  const stage = await sandboxStage(setting, settings, scene.options, scene.config);
  await stage.play(...scene.syncs);
}

/** Plays a scene at a service that counts, where nothing may be bought twice. */
export async function playScene({ setting = "company_lookup", settings = {}, config, syncs }: Scene) {
  const stage = await countingStage(setting, settings, config);
  await stage.play(...syncs);
  expect(stage.service.orderedTwice).toEqual([]);
}
