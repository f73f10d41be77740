import { openBook } from "../../src/jobs/adopt.ts";
import type { Caps } from "../../src/jobs/caps.ts";
import { companyLookups } from "../../src/jobs/company-lookups.ts";
import { newDigests } from "../../src/jobs/digest.ts";
import { Inputs } from "../../src/jobs/inputs.ts";
import type { Job } from "../../src/jobs/job.ts";
import type { JobContext } from "../../src/jobs/job-context.ts";
import type { Answer, Asked, JobType, Submission } from "../../src/jobs/job-type.ts";
import type { Receipt } from "../../src/jobs/receipts.ts";
import { readJobs } from "../../src/jobs/run.ts";
import { type Wishes, wantOf } from "../../src/jobs/schedule.ts";
import { parseJobState, type Saved } from "../../src/jobs/state.ts";
import type { Event, RawLine } from "../../src/streams/event.ts";

export const DAY = 86_400_000;
const STREAM = "company_lookups";
const CURSOR = "created_at";

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
  /** Items whose submission never told its job. */
  readonly untold: string[] = [];
  readonly delivered: string[] = [];
  /** What was charged when each submission left: credits known, and jobs open. */
  readonly submissions: { readonly item: string; readonly day: string; readonly at: number }[] = [];
  now = Date.UTC(2026, 2, 2, 10);
  /** Receipts that reached the disk. */
  receipts = new Map<string, Receipt>();
  readonly #tape: Tape;
  readonly #prices: readonly number[];
  readonly #jobs = new Map<string, Taken>();
  #life = 0;

  constructor(tape: Tape, prices: readonly number[] = [2]) {
    this.#tape = tape;
    this.#prices = prices;
  }

  /** The credits of answered jobs that were submitted in a span of time. */
  price(jobId: string): number {
    return this.#jobs.get(jobId)?.price ?? 0;
  }

  /** What one run works with. `saved`: the state that it is given. */
  context(items: readonly string[], saved: unknown, options: RunOptions = {}): JobContext {
    const life = ++this.#life;
    const { wishes = WISHES, caps = CAPS, hasReceipts = true, isFullRefresh = false } = options;
    const states: ReadonlyMap<string, Saved> = new Map([[STREAM, parseJobState(STREAM, saved, CURSOR)]]);
    const selected = [{ name: STREAM, syncMode: isFullRefresh ? "full_refresh" : "incremental" }];
    const news = hasReceipts ? [...this.receipts.values()].sort((a, b) => a.job.at - b.job.at) : [];
    const opened = openBook(states, selected, newDigests("salt"), news);
    const now = (): number => this.now;
    const alive = (): void => {
      if (life !== this.#life) throw new Killed();
    };
    const type: JobType = {
      ...companyLookups(SETTINGS, undefined),
      wishes,
      caps,
      submit: async (item) => this.#submit(item, life),
      ask: async (jobId) => this.#ask(jobId),
    };
    return {
      type,
      stream: STREAM,
      cursorField: CURSOR,
      cursor: states.get(STREAM)?.cursor ?? null,
      ...opened,
      inputs: new Inputs({
        kind: "domain",
        listName: "domains",
        list: items,
        file: null,
        sources: [],
        book: opened.book,
        want: (job, finished) => wantOf(job, finished, wishes, this.now),
        readsAll: false,
        now,
      }),
      streams: [STREAM],
      receipts: hasReceipts
        ? {
            salt: "salt",
            write: async (setting, jobs) => {
              alive();
              for (const [key, job] of jobs)
                this.receipts.set(`${key} ${job.at}`, { setting, key, job, sealed: null });
            },
            void: async (_setting, key, at) => {
              alive();
              this.receipts.delete(`${key} ${at}`);
            },
          }
        : undefined,
      blocked: undefined,
      isFullRefresh,
      isSecond: false,
      knowsThePast: true,
      mostSubmissions: Number.POSITIVE_INFINITY,
      answers: new Map(),
      asked: new Set(),
      stateBudget: { share: 1, times: 20, besides: () => 0 },
      toLines: (records) => ({ lines: records.map((record) => JSON.stringify(record) as RawLine) }),
      checkLocks: async () => {},
      ready: async () => {},
      turn: async () => {},
      backOff: async () => {},
      sleep: async (ms) => {
        this.now += ms;
      },
      now,
      skew: () => 0,
      monotonic: now,
      endsAt: Number.POSITIVE_INFINITY,
      signal: new AbortController().signal,
    };
  }

  /** The process of a run is gone: it writes nothing more. */
  kill(): void {
    this.#life += 1;
  }

  #submit(item: string, life: number): Promise<Submission> | Submission {
    const error = new Error("no answer");
    const fate = this.#tape.choose("taken", "taken", "taken", "lost", "dropped", "later", "killed");
    if (fate === "later") return { kind: "refused", error, why: "time", code: "" };
    if (fate === "dropped") return { kind: "unknown", error };
    const jobId = `job_${this.bought.length}`;
    const price = this.#prices[this.bought.length % this.#prices.length] ?? 1;
    this.bought.push(item);
    this.submissions.push({ item, day: new Date(this.now).toISOString().slice(0, 10), at: this.now });
    this.#jobs.set(jobId, { item, at: this.now, price, isReady: false });
    if (fate === "taken") return { kind: "taken", jobId, notBefore: null };
    this.untold.push(item);
    if (fate === "lost") return { kind: "unknown", error };
    if (life === this.#life) this.kill();
    return new Promise(() => {});
  }

  #ask(jobId: string): Asked {
    const job = this.#jobs.get(jobId);
    const error = new Error("odd");
    if (job === undefined) return { kind: "odd", error, code: "JOB_NOT_FOUND", heals: false, names: true };
    const fate = job.isReady
      ? "ready"
      : this.#tape.choose("ready", "ready", "failed", "pending", "queued", "odd", "denied", "silent");
    switch (fate) {
      case "ready":
        job.isReady = true;
        return { kind: "answered", answer: this.#answer(jobId, job, false) };
      case "failed":
        this.failed.push(job.item);
        return { kind: "answered", answer: this.#answer(jobId, job, true) };
      case "pending":
        return { kind: "pending", notBefore: null };
      case "queued":
        return { kind: "pending", notBefore: this.now + DAY / 3 };
      case "odd":
        return { kind: "odd", error, code: "JOB_NOT_FOUND", heals: false, names: true };
      case "denied":
        return { kind: "denied", error, code: "ACCESS_DENIED" };
      case "silent":
        return { kind: "silent", error };
    }
  }

  #answer(jobId: string, { item, price }: Taken, failed: boolean): Answer {
    const value = { job_id: jobId, domain: item, status: failed ? "error" : "success" };
    return {
      value,
      cursor: null,
      cost: failed ? 0 : price,
      failed,
      code: failed ? "INTERNAL_ERROR" : null,
      sources: [],
    };
  }
}

export type RunOptions = {
  readonly wishes?: Wishes;
  readonly caps?: Caps;
  readonly hasReceipts?: boolean;
  readonly isFullRefresh?: boolean;
};

export const WISHES: Wishes = { refreshAfterDays: null, retryUnknown: false };
const NONE = Number.POSITIVE_INFINITY;
export const CAPS: Caps = {
  submissions: { sync: NONE, day: NONE },
  credits: { sync: NONE, day: NONE, month: NONE },
};

const SETTINGS = {
  domains: [],
  domainsFile: null,
  fromCompanies: false,
  fromPeople: false,
  maxLookupsPerSync: 1000,
  maxCreditsPerSync: 1000,
  maxCreditsPerDay: null,
  maxCreditsPerMonth: null,
  maxWaitSeconds: 300,
  webhookUrl: null,
  refreshAfterDays: null,
  retryUnknown: false,
};

/** What a run left: the state that the platform has, and its last jobs. */
export type Left = {
  readonly state: unknown;
  readonly jobs: readonly Job[];
  readonly events: readonly Event[];
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
