import type { RawLine } from "../../src/sync/event.ts";
import type { Job, Jobs, Rules } from "../../src/sync/job-moves.ts";
import { type Answer, type Collected, type Family, readJobs, type Submission } from "../../src/sync/jobs.ts";

export const DAY = 86_400_000;

export const RULES: Rules = {
  refreshAfter: null,
  retryUnknown: false,
  mostInFlight: 3,
  mostSubmissions: 1000,
  mostCredits: Number.POSITIVE_INFINITY,
  firstPoll: 5_000,
  longestPoll: 300_000,
  polling: 300_000,
  maxWait: 300_000,
};

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

type Taken = {
  readonly item: string;
  /** Whether the client was told of the job. */
  readonly told: boolean;
  readonly at: number;
  state: "working" | "ready" | "forgotten";
  fails?: boolean;
};

/** A service that takes items, answers them at some time, and forgets them, as its tape says. */
export class JobService {
  readonly bought: string[] = [];
  readonly forgotten: string[] = [];
  readonly failed: string[] = [];
  readonly delivered: string[] = [];
  now = Date.UTC(2026, 2, 2, 10);
  mostInFlight = 0;
  /** Credits that had come to light when each submission of the latest run was made. */
  creditsBefore: number[] = [];
  readonly #tape: Tape;
  readonly #jobs = new Map<string, Taken>();
  readonly #faults: { readonly forgets: boolean; readonly fails: boolean };
  #credits = 0;

  constructor(tape: Tape, faults: { readonly forgets: boolean; readonly fails: boolean }) {
    this.#tape = tape;
    this.#faults = faults;
  }

  family(items: readonly string[], rules: Partial<Rules> = {}): Family {
    this.#credits = 0;
    this.creditsBefore = [];
    return {
      stream: "company_lookups",
      setting: "company_lookup",
      canBeLost: true,
      rules: { ...RULES, ...rules },
      items: async () => new Map(items.map((item) => [`#${item}`, item])),
      submit: async (item) => this.#submit(item),
      collect: async (jobId) => this.#collect(jobId),
      ready: async () => {},
      turn: async () => {},
      rest: async () => {},
      sleep: async (ms) => {
        this.now += ms;
      },
      now: () => this.now,
      monotonic: () => this.now,
    };
  }

  #submit(item: string): Submission {
    const error = new ServiceFailed("no answer");
    const fate = this.#tape.choose("taken", "taken", "taken", "lost", "dropped", "later", "limited");
    if (fate === "later") return { kind: "refused", error, heals: "time" };
    if (fate === "limited") return { kind: "refused", error, heals: "limit" };
    if (fate === "dropped") return { kind: "unknown", error };
    const jobId = `job_${this.bought.length}`;
    this.creditsBefore.push(this.#credits);
    this.bought.push(item);
    this.#jobs.set(jobId, { item, told: fate !== "lost", at: this.now, state: "working" });
    const working = [...this.#jobs.values()].filter(({ told, state }) => told && state === "working").length;
    this.mostInFlight = Math.max(this.mostInFlight, working);
    return fate === "lost" ? { kind: "unknown", error } : { kind: "submitted", jobId, notBefore: null };
  }

  #collect(jobId: string): Collected {
    const job = this.#jobs.get(jobId);
    if (job === undefined || job.state === "forgotten") return { kind: "gone" };
    // Without forgetting, no job is in process for so long that it counts as lost.
    const isLate = !this.#faults.forgets && this.now - job.at > 6 * DAY;
    if (job.state === "working" && !isLate) {
      const fate = this.#tape.choose("ready", "ready", "working", "queued", "forgotten");
      if (fate === "forgotten" && this.#faults.forgets) {
        job.state = "forgotten";
        this.forgotten.push(job.item);
        return { kind: "gone" };
      }
      if (fate === "working" && this.now - job.at >= 7 * DAY) this.forgotten.push(job.item);
      if (fate === "working") return { kind: "pending", processing: true, notBefore: null };
      if (fate === "queued") return { kind: "pending", processing: false, notBefore: this.now + DAY / 3 };
    }
    job.state = "ready";
    return { kind: "answered", answer: this.#answer(job) };
  }

  #answer(job: Taken): Answer {
    const { item } = job;
    if (job.fails === undefined) {
      job.fails = this.#faults.fails && this.#tape.choose(false, false, true);
      if (job.fails) this.failed.push(item);
    }
    const again = job.fails;
    this.#credits += again ? 0 : 2;
    const lines = [JSON.stringify({ item }) as RawLine];
    return { lines, cursor: null, credits: again ? 0 : 2, again, spent: false };
  }
}

/** Runs until the end, or until the process dies at its n-th event; returns what of state was delivered. */
export async function runOnce(
  service: JobService,
  family: Family,
  jobs: Jobs | null,
  diesAt = Number.POSITIVE_INFINITY,
): Promise<Jobs | null> {
  let kept = jobs;
  let nth = 0;
  const toState = (now: Jobs): Readonly<Record<string, unknown>> => ({ jobs: new Map(now) });
  try {
    for await (const event of readJobs(family, { jobs, cursor: null }, toState)) {
      if (nth++ >= diesAt) return kept;
      if (event.kind === "checkpoint") kept = event.state["jobs"] as ReadonlyMap<string, Job>;
      if (event.kind === "records") {
        for (const line of event.lines) service.delivered.push(JSON.parse(line).item);
      }
    }
  } catch (error) {
    if (!(error instanceof ServiceFailed)) throw error;
  }
  return kept;
}

class ServiceFailed extends Error {}
