import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { type Behaviour, CountingService } from "./counting-service.ts";
import { JobRuntime, type Ran } from "./job-runtime.ts";
import { tempDir } from "./temp-dir.ts";

const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

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
  readonly syncMode?: string | undefined;
  /** What the platform numbers, such as `sync_id`. */
  readonly ids?: object;
  readonly idsOf?: Readonly<Record<string, object>>;
  /** Whether the platform has lost the state. */
  readonly isForgotten?: boolean;

  /** The class of the failure. Left out: the sync has to be complete. Null: either. */
  readonly fails?: string | null | undefined;
  /** The items that are bought, or how many. */
  readonly bought?: readonly string[] | number;
  /** How many submissions the service gets, those that it refuses included, and the item of the first. */
  readonly submissions?: number;
  readonly first?: string;
  /** The items of the records, or how many records there are. */
  readonly delivered?: readonly string[] | number;
  /** How many questions for results there are. */
  readonly polls?: number;
  /** The steps of what the last state holds in full, and how many items it says are done. */
  readonly steps?: readonly string[];
  readonly done?: number;
  /** All warnings, or a part of them; a part of the output. */
  readonly warnings?: readonly string[] | number;
  readonly warns?: string;
  readonly says?: string;
  /** How long (ms) the run sleeps at most. */
  readonly sleeps?: number;
};

type Service = Sandbox | CountingService;

/** A config for both APIs of a service. */
export function jobConfig({ url, key = "k" }: { url: string; key?: string }, settings: object): object {
  const external_api = { api_url: url, api_key: key };
  return { base_url: url, api_key: key, requests_per_minute: 6000, external_api, ...settings };
}

/** A connection with its service and what it saved. */
export class JobStage<Of extends Service = Service> {
  readonly service: Of;
  readonly runtime: JobRuntime;
  readonly config: object;
  readonly #setting: Setting;
  readonly #settings: object;
  #state: unknown;

  constructor(service: Of, setting: Setting, settings: object, config: object) {
    this.service = service;
    this.#setting = setting;
    this.#settings = settings;
    this.config = jobConfig(service, { [setting]: settings, ...config });
    this.runtime = new JobRuntime(this.config, service);
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

  get state(): unknown {
    return this.#state;
  }

  /** Plays syncs, and holds each against what should come of it. Returns the last. */
  async play(...syncs: readonly [Sync, ...Sync[]]): Promise<Ran> {
    const runs: Ran[] = [];
    for (const [nth, sync] of syncs.entries()) {
      const before = this.#seen;
      const ran = await this.#run(sync);
      const { bought, tried, requests } = this.#seen;
      const news = { bought: bought.slice(before.bought.length), first: tried[before.tried.length] };
      const asked = requests.slice(before.requests.length);
      check(sync, { ...news, ...foundIn(ran, asked) }, ran, `sync ${nth + 1} of ${syncs.length}`);
      runs.push(ran);
    }
    return runs.at(-1) as Ran;
  }

  get #seen() {
    const tried = "tried" in this.service ? [...this.service.tried] : [];
    return { bought: [...this.bought], requests: [...this.requests], tried };
  }

  async #run({ after = 0, clockMoves = 0, fault, behaviour, settings, ...sync }: Sync): Promise<Ran> {
    const { runtime, service } = this;
    runtime.pass(after);
    if (fault !== undefined && "fault" in service) service.fault(...(fault === "" ? [] : [fault]));
    if ("behaviour" in service) service.behaviour = behaviour ?? {};
    service.advance(clockMoves);
    const { config, streams = `${this.#setting}s`, syncMode, ids, idsOf, isForgotten = false } = sync;
    const ran = await runtime.readStream(streams, {
      config: { ...(settings && { [this.#setting]: { ...this.#settings, ...settings } }), ...config },
      ...{ ids, idsOf, syncMode: syncMode ?? "incremental", state: isForgotten ? undefined : this.#state },
    });
    this.#state = ran.state() ?? this.#state;
    return ran;
  }
}

const foundIn = (ran: Ran, requests: readonly string[]) => ({
  fails: ran.errors().map(({ failure_type }) => failure_type),
  code: ran.code,
  submissions: requests.filter((request) => request.startsWith("POST")).length,
  delivered: ran.records().map(({ domain, email }) => String(domain ?? email)),
  polls: requests.filter((request) => /^GET .*\/(job|chk)_(?!0_check)/.test(request)).length,
  steps: ran.jobs().map(({ step }) => step),
  done: ran.done(),
  warnings: ran.warnings(),
});

function check(sync: Sync, found: object, ran: Ran, at: string): void {
  const { fails, warns = "", says = "", sleeps = Number.POSITIVE_INFINITY } = sync;
  const ends = fails === undefined ? { fails: [], code: 0 } : { fails: [fails], code: 1 };
  const values = new Map<string, unknown>(Object.entries(found));
  for (const [name, wanted] of Object.entries({
    ...sync,
    ...(fails === null ? { fails: undefined } : ends),
  })) {
    const value = values.get(name);
    if (wanted === undefined || !values.has(name)) continue;
    const items = Array.isArray(value) ? value.toSorted() : value;
    expect(
      typeof wanted === "number" && Array.isArray(items) ? items.length : items,
      `${at}: ${name}\n${ran.text.slice(-1_500)}`,
    ).toEqual(Array.isArray(wanted) ? wanted.toSorted() : wanted);
  }
  expect(ran.warnings().join("\n"), at).toContain(warns);
  expect(ran.text, at).toContain(says);
  expect(ran.slept, at).toBeLessThanOrEqual(sleeps);
}

const MONDAY = "2026-03-02T10:00:00Z";

/** A connection to a sandbox, until the test ends. */
export async function sandboxStage(
  setting: Setting,
  settings: object,
  options: SandboxOptions = {},
  config: object = {},
): Promise<JobStage<Sandbox>> {
  const sandbox = await startSandbox({
    ...{ people: 20, companies: 4, requestsPerMinute: 0, now: MONDAY },
    ...(setting === "email_check" && { plan: "agency" }),
    ...options,
  });
  onTestFinished(() => sandbox.close());
  return new JobStage(sandbox, setting, settings, config);
}

/** A connection with receipts to a service that counts, where it is ten in the morning, until the test ends. */
export async function countingStage(
  setting: Setting,
  settings: object,
  config: object = {},
): Promise<JobStage<CountingService>> {
  const service = await CountingService.start();
  onTestFinished(() => service[Symbol.asyncDispose]());
  service.advance(10 * HOUR - (Date.now() % DAY));
  const receipts_file = join(await tempDir(), "receipts.jsonl");
  const stage = new JobStage(service, setting, settings, { receipts_file, ...config });
  await stage.runtime.discover();
  return stage;
}
