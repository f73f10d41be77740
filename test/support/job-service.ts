import type { Client, Posted } from "../../src/api/client.ts";
import { type JobStreamSpec, jobSpecsOf } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import { TransientError } from "../../src/errors.ts";
import { type Lent, openJobs, type SelectedJobs } from "../../src/jobs/jobs.ts";

export const DAY = 86_400_000;
const URL = "https://service.example";

/** What happens next, number by number; when there are none left, nothing goes wrong any more. */
export class Tape {
  readonly #numbers: number[];

  constructor(numbers: readonly number[] = []) {
    this.#numbers = [...numbers];
  }

  /** One of the choices; the first when the tape is at its end. */
  choose<Choice>(...choices: readonly [Choice, ...Choice[]]): Choice {
    return choices[(this.#numbers.shift() ?? 0) % choices.length] ?? choices[0];
  }
}

type Job = { readonly item: string; readonly at: number; isReady: boolean };

/** One sync of job streams. */
export type JobSync = {
  /** Streams in the order of their turns. Default: the look-ups. */
  readonly streams?: readonly SelectedJobs[];
  /** What the state of each stream says. Default: what the sync before has saved. */
  readonly states?: Readonly<Record<string, unknown>>;
  readonly settings?: object;
  readonly items?: readonly string[];
  /** The process dies before its n-th event is delivered. */
  readonly diesAt?: number;
  readonly changes?: Partial<Lent>;
};

/** What a sync did. */
export type Synced = {
  /** Its last state of each stream that saved one. */
  readonly states: Readonly<Record<string, unknown>>;
  readonly rows: readonly Record<string, unknown>[];
  /** What it said, in order: levels and texts. */
  readonly said: readonly string[];
  readonly error: Error | undefined;
};

/**
 * A service with both APIs that takes items, and counts what is bought. Its tape says when it loses answers, forgets jobs,
 * or the process of the sync dies. Syncs run the jobs by their door, `openJobs()`, with receipts in a real file.
 */
export class JobService {
  /** Every item that was ever bought, once for each time. */
  readonly bought: string[] = [];
  /** Items whose result said that it failed and cost nothing. */
  readonly failed: string[] = [];
  /** Items that were delivered as a success. */
  readonly delivered: string[] = [];
  /** What every submission gets instead of an answer by the tape. */
  answer: ((item: string) => Posted | undefined) | undefined;
  /** What the result of every job is, instead of one by the tape: its status and value. */
  result: ((item: string, jobId: string) => readonly [number, unknown] | undefined) | undefined;
  /** Called for each row before it is delivered. */
  onRow: (row: Record<string, unknown>) => void = () => {};
  /** How long (ms) a job takes. */
  takes = 0;
  cost = 2;
  polls = 0;
  now = Date.UTC(2026, 2, 2, 10);
  saved: Readonly<Record<string, unknown>> = {};
  readonly #tape: Tape;
  readonly #receipts: string;
  readonly #jobs = new Map<string, Job>();
  #life = 0;
  #dies = (): void => {};

  /** @param receipts the file of receipts; empty: none */
  constructor(receipts: string, tape = new Tape()) {
    this.#receipts = receipts;
    this.#tape = tape;
  }

  async sync(options: JobSync = {}): Promise<Synced> {
    const { settings = {}, diesAt = Number.POSITIVE_INFINITY } = options;
    const { streams = [{ name: "company_lookups", syncMode: "incremental" }], states = this.saved } = options;
    const config = parseConfig(
      {
        ...{ base_url: URL, api_key: "k", external_api: { api_url: URL, api_key: "k" } },
        receipts_file: this.#receipts,
        ...(options.items !== undefined && {
          company_lookup: { domains: options.items, max_wait_seconds: 300 },
        }),
        ...settings,
      },
      {},
    );
    this.#life += 1;
    const died = new Promise<"died">((resolve) => {
      this.#dies = () => {
        this.#life += 1;
        resolve("died");
      };
    });
    const result = {
      states: { ...states } as Record<string, unknown>,
      rows: [] as Record<string, unknown>[],
    };
    const said: string[] = [];
    const lent = { ...this.#lent((text) => said.push(`told: ${text}`)), ...options.changes };
    const done = (error?: unknown): Synced => {
      this.saved = result.states;
      return { ...result, said, error: error as Error | undefined };
    };
    let jobs: Awaited<ReturnType<typeof openJobs>> | undefined;
    try {
      jobs = await openJobs(config, streams, new Map(Object.entries(states)), lent);
      let nth = 0;
      for (const { name } of streams) {
        const spec = jobSpecsOf(config).find((one) => one.name === name) as JobStreamSpec;
        const events = jobs.read(spec, null);
        for (;;) {
          const next = await Promise.race([events.next(), died]);
          if (next === "died") return done();
          if (next.done === true) break;
          if (nth++ >= diesAt) {
            this.#dies();
            return done();
          }
          const event = next.value;
          if (event.kind === "log") said.push(`${event.level}: ${event.text}`);
          if (event.kind === "checkpoint") {
            result.states[name] = JSON.parse(JSON.stringify(event.state));
            this.saved = result.states;
          }
          if (event.kind === "records") this.#deliver(event.lines, result.rows);
        }
      }
      return done();
    } catch (error) {
      return done(error);
    } finally {
      await jobs?.close();
    }
  }

  #deliver(lines: readonly string[], rows: Record<string, unknown>[]): void {
    for (const line of lines) {
      const row = JSON.parse(line);
      this.onRow(row);
      rows.push(row);
      if (row.status !== "error") this.delivered.push(row.domain ?? row.email);
    }
  }

  #lent(notify: (text: string) => void): Lent {
    const life = this.#life;
    const now = (): number => this.now;
    /** Once the process is dead, it sends nothing and hears nothing. */
    const alive = async <T>(work: () => T | Promise<T>): Promise<T> =>
      life === this.#life ? await work() : await new Promise<never>(() => {});
    const client = {
      now,
      knowsTime: true,
      requestSlot: () => alive(() => undefined),
      backOff: () => alive(() => undefined),
      refusal: (what: string, status: number, code?: string) =>
        new TransientError(`Cannot ${what}: ${code ?? status}`),
      post: (_what: string, _path: string, body: object) =>
        alive(() => this.#post(String(Object.values(body)[0]))),
      ask: (_what: string, path: string, _isResult: unknown, read: Parameters<Client["ask"]>[3]) =>
        alive(() => {
          const [status, value] = this.#ask(/job_\w+/.exec(path)?.[0] ?? "");
          const answer = read(status, value, { bytes: 0, credits: null } as never);
          if (answer === undefined) throw new TransientError("It is no answer");
          return answer;
        }),
    } as unknown as Client;
    return {
      ...{ publicApi: client, externalApi: client, environment: {}, pid: process.pid, notify },
      ...{ signal: new AbortController().signal, endsAt: Number.POSITIVE_INFINITY },
      checkState: async () => {},
      streamApi: () => {
        throw new Error("no list names rows");
      },
      filtersOf: () => ({}),
      echoOf: () => null,
      clock: {
        now,
        monotonic: now,
        sleep: (ms) =>
          alive(() => {
            this.now += ms;
          }),
      },
    };
  }

  #post(item: string): Posted | Promise<Posted> {
    const given = this.answer?.(item);
    if (given !== undefined) return given;
    const error = new TransientError("no answer");
    const fate = this.#tape.choose("taken", "taken", "taken", "lost", "dropped", "later", "killed");
    if (fate === "later") return answered(this.now, 503, { success: false, error: { code: "RATE_LIMITED" } });
    if (fate === "dropped") return { kind: "unanswered", error };
    const id = `job_${this.bought.length}`;
    this.bought.push(item);
    this.#jobs.set(id, { item, at: this.now, isReady: false });
    if (fate === "lost") return { kind: "unanswered", error };
    if (fate === "taken") return answered(this.now, 202, { job_id: id, status: "processing" });
    this.#dies();
    return new Promise(() => {});
  }

  #ask(id: string): readonly [number, unknown] {
    this.polls += 1;
    const job = this.#jobs.get(id);
    if (job === undefined) return [404, { success: false, error: { code: "JOB_NOT_FOUND" } }];
    if (this.now < job.at + this.takes) return [202, { status: "processing" }];
    const given = this.result?.(job.item, id);
    if (given !== undefined) return given;
    const fate = job.isReady
      ? "ready"
      : this.#tape.choose("ready", "ready", "failed", "pending", "later", "unusable");
    if (fate === "pending") return [202, { status: "processing" }];
    if (fate === "later")
      return [
        202,
        { status: "queued", scheduled_processing_time: new Date(this.now + DAY / 3).toISOString() },
      ];
    if (fate === "unusable") return [200, "nonsense"];
    if (fate === "failed") {
      this.failed.push(job.item);
      return [200, { domain: job.item, status: "error", error_code: "INTERNAL_ERROR", credits_used: 0 }];
    }
    job.isReady = true;
    const created_at = new Date(this.now).toISOString();
    return [200, { domain: job.item, status: "success", credits_used: this.cost, contacts: [], created_at }];
  }
}

/** An answer to a submission. */
export const answered = (now: number, status: number, value: unknown): Posted =>
  ({ kind: "answered", status, value, answered: now }) as Posted;
