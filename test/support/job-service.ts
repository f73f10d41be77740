import { TransientError } from "../../src/base/errors.ts";
import { type JobStreamSpec, jobSpecsOf } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import { type JobServices, type Jobs, openJobs, type SelectedJobs } from "../../src/jobs/jobs.ts";
import type { Client, Posted } from "../../src/service/client.ts";

export const DAY = 86_400_000;
const API = { base_url: "https://service.example", api_key: "k" };
const EXTERNAL = { external_api: { api_url: "https://service.example", api_key: "k" } };
const LOOKUPS = [{ name: "company_lookups", syncMode: "incremental" }] as const;

type Job = { readonly item: string; readonly at: number; isReady: boolean };

/** One sync of job streams. */
type JobSync = {
  /** Streams in the order of their turns. Default: the look-ups. */
  readonly streams?: readonly SelectedJobs[];
  /** The state of each stream. Default: what the sync before has saved. */
  readonly states?: Readonly<Record<string, unknown>>;
  readonly settings?: object;
  readonly items?: readonly string[];
  /** The process dies before its n-th event is delivered. */
  readonly diesAt?: number;
  readonly checkState?: JobServices["checkState"];
};

/**
 * A service with both APIs that takes items, and counts what is bought. Its script says when it loses answers, forgets jobs,
 * or the process of the sync dies. Syncs run the jobs by their door, `openJobs()`, with receipts in a real file.
 */
export class JobService {
  /** Every item that was ever bought, once for each time. */
  readonly bought: string[] = [];
  /** Items whose result said that it failed and cost nothing. */
  readonly failed: string[] = [];
  /** Items that were delivered as a success. */
  readonly delivered: string[] = [];
  /** Every submission gets this instead of an answer by the script. */
  answer: ((item: string) => Posted | undefined) | undefined;
  /** The result of every job, instead of one by the script: its status and value. */
  result: ((item: string, jobId: string) => readonly [number, unknown] | undefined) | undefined;
  /** Called for each row before it is delivered. */
  onRow: (row: Record<string, unknown>) => void = () => {};
  /** How long (ms) a job takes. */
  takes = 0;
  /** How long (ms) the reader of the sync takes for a state. */
  stateMs = 0;
  cost = 2;
  /** After this number of slots the process dies while it waits for the next. */
  slots = Number.POSITIVE_INFINITY;
  /** How many submissions there were. */
  submissions = 0;
  now = Date.UTC(2026, 2, 2, 10);
  saved: Readonly<Record<string, unknown>> = {};
  readonly #script: number[];
  readonly #receipts: string;
  readonly #jobs = new Map<string, Job>();
  /** Jobs of earlier runs, by their ids: the items that they are about. */
  known: Readonly<Record<string, string>> = {};
  #life = 0;
  #dies = (): void => {};

  /**
   * @param receipts the file of receipts; empty: none; a folder, with "/" at its end: that of the user's states
   * @param script what happens next, number by number; when there are none left, nothing goes wrong any more
   */
  constructor(receipts: string, script: readonly number[] = []) {
    this.#receipts = receipts;
    this.#script = [...script];
  }

  /** Returns the rows, and what was said, in order: levels and texts. */
  async sync({ streams = LOOKUPS, states = this.saved, settings, items, diesAt, checkState }: JobSync = {}) {
    const lookups = items && { company_lookup: { domains: items, max_wait_seconds: 300 } };
    const receipts_file = this.#receipts.endsWith("/") ? null : this.#receipts;
    const config = parseConfig({ ...API, ...EXTERNAL, receipts_file, ...lookups, ...settings }, {});
    const died = new Promise<void>((resolve) => {
      this.#dies = () => {
        this.#life += 1;
        resolve();
      };
    });
    const [said, rows]: [string[], Record<string, unknown>[]] = [[], []];
    let left = diesAt ?? Number.POSITIVE_INFINITY;
    const life = ++this.#life;
    this.saved = states;
    const services = {
      ...this.#services((text) => said.push(`warned: ${text}`)),
      ...(checkState && { checkState }),
    };
    let jobs: Jobs | undefined;
    let error: Error | undefined;
    try {
      jobs = await openJobs(config, streams, new Map(Object.entries(states)), services);
      for (const { name } of streams) {
        const spec = jobSpecsOf(config).find((one) => one.name === name) as JobStreamSpec;
        // A process that dies ends no generator.
        const events = jobs.read(spec, { schema: null });
        for (;;) {
          const next = await Promise.race([events.next(), died]);
          if (next?.done !== false) break;
          if (left-- <= 0) this.#dies();
          if (life !== this.#life) break;
          const event = next.value;
          if (event.kind === "log") said.push(`${event.level}: ${event.text}`);
          if (event.kind === "checkpoint") {
            this.now += this.stateMs;
            this.saved = { ...this.saved, [name]: JSON.parse(JSON.stringify(event.state)) };
          }
          if (event.kind === "records")
            rows.push(...event.lines.map((line) => this.#deliver(JSON.parse(line))));
        }
        if (life !== this.#life) break;
      }
    } catch (thrown) {
      error = thrown as Error;
    } finally {
      await jobs?.close();
    }
    return { states: this.saved, rows, said, error };
  }

  #deliver(row: Record<string, unknown>): Record<string, unknown> {
    this.onRow(row);
    if (row["status"] !== "error") this.delivered.push(String(row["domain"] ?? row["email"]));
    return row;
  }

  #services(notify: (text: string) => void): JobServices {
    const life = this.#life;
    const now = (): number => this.now;
    /** Once the process is dead, it sends nothing and hears nothing. */
    const alive = async <T>(work: () => T | Promise<T>): Promise<T> =>
      life === this.#life ? await work() : await new Promise<never>(() => {});
    const soon = () => alive(() => undefined);
    const client = {
      ...{ now, knowsTime: true, backOff: soon },
      requestSlot: () => {
        this.slots -= 1;
        if (this.slots < 0) this.#dies();
        return soon();
      },
      refusal: (what: string, status: number, code?: string) =>
        new TransientError(`Cannot ${what}: ${code ?? status}`),
      post: (_what: string, _path: string, body: object) =>
        alive(() => this.#post(String(Object.values(body)[0]))),
      ask: (_what: string, path: string, read: Parameters<Client["ask"]>[2]) =>
        alive(() => {
          const [status, value] = this.#ask(/job_\w+/.exec(path)?.[0] ?? "");
          const answer = read(status, value);
          if (answer === undefined) throw new TransientError("It is no answer");
          return answer;
        }),
    } as unknown as Client;
    const sleep = (ms: number): Promise<void> =>
      alive(() => {
        this.now += ms;
      });
    const services: Partial<JobServices> = {
      ...{ publicApi: client, externalApi: client, pid: process.pid, notify },
      environment: this.#receipts.endsWith("/") ? { XDG_STATE_HOME: this.#receipts } : {},
      ...{ signal: new AbortController().signal, endsAt: Number.POSITIVE_INFINITY },
      ...{ checkState: async () => {}, replacementFor: () => null },
      clock: { now, monotonic: now, sleep },
    };
    return services as JobServices;
  }

  /** One of the choices; the first when the script is at its end. */
  #choose<Choice>(...choices: readonly [Choice, ...Choice[]]): Choice {
    return choices[(this.#script.shift() ?? 0) % choices.length] ?? choices[0];
  }

  #post(item: string): Posted | Promise<Posted> {
    this.submissions += 1;
    const given = this.answer?.(item);
    if (given !== undefined) return given;
    const error = new TransientError("no answer");
    const fate = this.#choose("taken", "taken", "taken", "lost", "dropped", "later", "killed");
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
    const { [id]: item } = this.known;
    const job = this.#jobs.get(id) ?? (item !== undefined && { item, at: 0, isReady: true });
    if (job === undefined || job === false)
      return [404, { success: false, error: { code: "JOB_NOT_FOUND" } }];
    if (this.now < job.at + this.takes) return [202, { status: "processing" }];
    const given = this.result?.(job.item, id);
    if (given !== undefined) return given;
    const fate = job.isReady
      ? "ready"
      : this.#choose("ready", "ready", "failed", "pending", "later", "unusable");
    if (fate === "pending") return [202, { status: "processing" }];
    const inEightHours = new Date(this.now + DAY / 3).toISOString();
    if (fate === "later") return [202, { status: "queued", scheduled_processing_time: inEightHours }];
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
