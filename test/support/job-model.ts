import { STREAMS } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import { Book } from "../../src/jobs/book.ts";
import type { Caps } from "../../src/jobs/caps.ts";
import { newDigests } from "../../src/jobs/identity.ts";
import { Inputs } from "../../src/jobs/inputs.ts";
import type { JobContext } from "../../src/jobs/job-run.ts";
import type { JobReply, Submission } from "../../src/jobs/job-type.ts";
import { jobTypeOf } from "../../src/jobs/kinds.ts";
import type { Delta } from "../../src/jobs/lattice.ts";
import { readJobs } from "../../src/jobs/run.ts";
import { parseJobState, tellBook, toJobState } from "../../src/jobs/state.ts";
import type { RawLine } from "../../src/streams/event.ts";

export const DAY = 86_400_000;
const SPEC = STREAMS[3];
const URL = "https://service.example";
const CONFIG = parseConfig(
  {
    ...{ base_url: URL, api_key: "k", external_api: { api_url: URL, api_key: "k" } },
    company_lookup: { domains: ["a.example"], max_wait_seconds: 300 },
  },
  {},
);

/** What happens next, number by number; when there are none left, nothing goes wrong any more. */
export class Tape {
  readonly #numbers: number[];

  constructor(numbers: readonly number[]) {
    this.#numbers = [...numbers];
  }

  /** One of the choices; the first when the tape is at its end. */
  choose<Choice>(...choices: readonly [Choice, ...Choice[]]): Choice {
    return choices[(this.#numbers.shift() ?? 0) % choices.length] ?? choices[0];
  }
}

/** The process ended at this moment. */
class Killed extends Error {}

type Taken = { readonly item: string; readonly at: number; readonly price: number; isReady: boolean };

/** A service that takes items and counts what is bought; it loses answers, forgets jobs and answers nonsense as its tape says. */
export class JobService {
  /** Every item that was ever bought, once for each time. */
  readonly bought: string[] = [];
  /** Items whose result said that it failed and cost nothing. */
  readonly failed: string[] = [];
  readonly delivered: string[] = [];
  /** How often results were asked for. */
  polls = 0;
  now = Date.UTC(2026, 2, 2, 10);
  /** Receipts that reached the disk. */
  readonly receipts: Delta[] = [];
  readonly #tape: Tape;
  readonly #prices: readonly number[];
  /** How long (ms) every job takes. */
  readonly #takes: number;
  readonly #jobs = new Map<string, Taken>();
  /** The jobs that receipts named. */
  readonly #told = new Set<string>();
  #life = 0;

  constructor(tape: Tape, prices: readonly number[] = [2], takes = 0) {
    this.#tape = tape;
    this.#prices = prices;
    this.#takes = takes;
  }

  /** Items that were bought by a submission whose job no memory knows. */
  get untold(): readonly string[] {
    return [...this.#jobs].flatMap(([id, { item }]) => (this.#told.has(id) ? [] : [item]));
  }

  price(jobId: string): number {
    return this.#jobs.get(jobId)?.price ?? 0;
  }

  /** What one run works with. `saved`: the state that it is given. */
  context(items: readonly string[], saved: unknown, options: RunOptions = {}): JobContext {
    const life = ++this.#life;
    const { caps = CAPS, hasReceipts = true, isFullRefresh = false } = options;
    const name = `run${life}`;
    const book = new Book({ author: { sync: name, by: name }, digests: newDigests("salt") });
    if (hasReceipts) for (const delta of this.receipts) book.add(delta, 0);
    const state = parseJobState(SPEC, saved);
    if (state !== null) tellBook(book, SPEC.name, state, !isFullRefresh);
    if (hasReceipts) this.receipts.push(...book.newsToReceipts());
    const now = (): number => this.now;
    const type = { ...jobTypeOf(SPEC.setting, CONFIG), list: items, caps };
    const inputs = new Inputs({
      type,
      sources: [],
      book,
      now,
      stream: SPEC.name,
      readsAll: false,
      suppressed: CONFIG.suppressed,
    });
    return {
      ...{ type, book, inputs, endsAt: Number.POSITIVE_INFINITY, signal: new AbortController().signal },
      task: {
        ...{ spec: SPEC, isSecond: false, generation: null },
        cursor: state?.cursor ?? null,
        ...{
          buys: !isFullRefresh,
          truncates: isFullRefresh,
          knowsThePast: true,
          readsAllRows: false,
          looksFirst: isFullRefresh,
        },
        mostSubmissions: Number.POSITIVE_INFINITY,
      },
      shared: { answers: undefined, asked: new Set(), hasSeenAll: false, suppressed: 0 },
      memory: {
        ...{ salt: "salt", hasReceipts, blocked: undefined },
        write: async (_setting, deltas) => {
          if (life !== this.#life) throw new Killed();
          await options.disk?.();
          if (hasReceipts) this.receipts.push(...deltas);
          for (const { items: written = [] } of deltas)
            for (const [, { subs }] of written)
              for (const { job } of Object.values(subs)) if (job !== null) this.#told.add(job);
        },
        state: (spec, cursor) => toJobState(spec, book, { cursor, service: "s", generation: null }, this.now),
      },
      client: {
        ready: async () => {},
        requestSlot: async () => {},
        submit: async (item) => this.#submit(item, life),
        ask: async (jobId) => this.#ask(jobId),
        backOff: async () => {},
        now,
      },
      clock: {
        now,
        monotonic: now,
        sleep: async (ms) => {
          this.now += ms;
        },
      },
      toLines: (records) => ({ lines: records.map((record) => JSON.stringify(record) as RawLine) }),
      checkLocks: async () => {},
    };
  }

  /** The process of a run is gone: it writes and sends nothing more. */
  kill(): void {
    this.#life += 1;
  }

  #submit(item: string, life: number): Promise<Submission> | Submission {
    if (life !== this.#life) return new Promise(() => {});
    const error = new Error("no answer");
    const fate = this.#tape.choose("taken", "taken", "taken", "lost", "dropped", "later", "killed");
    if (fate === "later") return { kind: "refused", error, why: "time", code: "" };
    if (fate === "dropped") return { kind: "unknown", error };
    const jobId = `job_${this.bought.length}`;
    const price = this.#prices[this.bought.length % this.#prices.length] ?? 1;
    this.bought.push(item);
    this.#jobs.set(jobId, { item, at: this.now, price, isReady: false });
    if (fate === "taken") return { kind: "taken", jobId, notBefore: null };
    if (fate === "lost") return { kind: "unknown", error };
    if (life === this.#life) this.kill();
    return new Promise(() => {});
  }

  #ask(jobId: string): JobReply {
    const job = this.#jobs.get(jobId);
    const error = new Error("unusable");
    if (job === undefined) return { ...UNUSABLE, error };
    this.polls += 1;
    if (this.now < job.at + this.#takes) return { kind: "pending", notBefore: null };
    const fate = job.isReady
      ? "ready"
      : this.#tape.choose("ready", "ready", "failed", "pending", "queued", "unusable", "denied", "silent");
    if (fate === "pending" || fate === "queued")
      return { kind: "pending", notBefore: fate === "queued" ? this.now + DAY / 3 : null };
    if (fate === "unusable") return { ...UNUSABLE, error };
    if (fate === "denied" || fate === "silent") return { kind: fate, error, code: fate, isRetryable: false };
    const failed = fate === "failed";
    if (failed) this.failed.push(job.item);
    else job.isReady = true;
    const value = { job_id: jobId, domain: job.item, status: failed ? "error" : "success" };
    const answer = { value, cursor: null, cost: failed ? 0 : job.price, failed, sources: [] };
    return { kind: "answered", answer: { ...answer, code: failed ? "INTERNAL_ERROR" : null } };
  }
}

const UNUSABLE = { kind: "known", code: "JOB_NOT_FOUND", isRetryable: false } as const;

export type RunOptions = {
  readonly caps?: Caps;
  readonly hasReceipts?: boolean;
  readonly isFullRefresh?: boolean;
  /** What the disk does before receipts are on it. */
  readonly disk?: () => Promise<void>;
};

const NONE = Number.POSITIVE_INFINITY;
export const CAPS: Caps = {
  submissions: { sync: NONE, day: NONE },
  credits: { sync: NONE, day: NONE, month: NONE },
};

/** Runs until the end, or until the process dies before its n-th event is delivered. */
export async function runOnce(
  service: JobService,
  items: readonly string[],
  saved: unknown,
  options: RunOptions & { readonly diesAt?: number } = {},
): Promise<unknown> {
  const { diesAt = Number.POSITIVE_INFINITY } = options;
  const events = readJobs(service.context(items, saved, options));
  let state = saved;
  for (let nth = 0; ; nth++) {
    const next = await Promise.race([events.next(), stuck()]).catch(() => undefined);
    if (next === undefined || next === "stuck" || next.done === true) break;
    if (nth >= diesAt) break;
    const event = next.value;
    if (event.kind === "checkpoint") state = JSON.parse(JSON.stringify(event.state));
    if (event.kind === "records")
      for (const line of event.lines) {
        const { domain, status } = JSON.parse(line) as { domain: string; status: string };
        if (status === "success") service.delivered.push(domain);
      }
  }
  service.kill();
  return state;
}

/** A process that waits for an answer which its own death keeps away. */
const stuck = (): Promise<"stuck"> =>
  new Promise((resolve) => setTimeout(() => resolve("stuck"), 200).unref());
