import type { Event } from "../streams/event.ts";
import { type Day, dayOf } from "../time.ts";
import { roomFor } from "./caps.ts";
import type { Collector } from "./collector.ts";
import type { Candidate } from "./inputs.ts";
import { type Job, newJob } from "./job.ts";
import type { JobCheckpoints } from "./job-checkpoints.ts";
import type { JobContext } from "./job-context.ts";
import type { Submission } from "./job-type.ts";
import { seal } from "./seal.ts";
import type { Recovery, SubmitFailures } from "./submit-failures.ts";

const OPEN_AT_ONCE = 20;
/** Before the first answer of a run one look-up is in flight; each that is silent for so long (ms) lets another go, a few in all. */
const SILENT_MS = 300_000;
const MOST_BEFORE_ANSWER = 5;
/** A job that waits for longer (ms) holds no place among those in flight. */
const LONG_WAIT_MS = 3_600_000;

/** An item whose intent is written. */
export type Sent = Candidate & { readonly at: number; readonly takeBack: () => void };

/** What became of a submission, and what is to be done about it. */
export type Noted = {
  readonly sent: Sent;
  readonly submission: Submission;
  readonly recovery: Recovery | undefined;
};

/** Submits items: writes down that they may leave, lets them go, and keeps what became of them. */
export class Submitter {
  /** Items that the service does not take, for the report. */
  readonly refused: { readonly place: string; readonly code: string }[] = [];
  readonly #context: JobContext;
  readonly #checkpoints: JobCheckpoints;
  readonly #failures: SubmitFailures;
  readonly #collector: Collector;
  readonly #queue: Candidate[] = [];
  /** Items whose intent is written and which have not left. */
  readonly #outbox: Sent[] = [];
  /** Items that are about to leave or have left without an answer so far. */
  readonly #underWay = new Set<string>();
  readonly #doubted: { readonly key: string; readonly place: string; readonly code: string }[] = [];

  constructor(
    context: JobContext,
    checkpoints: JobCheckpoints,
    failures: SubmitFailures,
    collector: Collector,
  ) {
    this.#context = context;
    this.#checkpoints = checkpoints;
    this.#failures = failures;
    this.#collector = collector;
  }

  add(candidates: readonly Candidate[]): void {
    this.#queue.push(...candidates);
  }

  /** Whether items are lacking that could be submitted. */
  get lacksItems(): boolean {
    return this.#queue.length === 0 && this.#mayBuy() > 0;
  }

  /** How many more submissions may be under way when so many are. */
  mayPost(underWay: number): number {
    return (this.#failures.isProbing ? 1 : this.#context.type.postsAtOnce) - underWay;
  }

  /** Whether items are left of the batch whose intent is written. */
  get hasBatch(): boolean {
    return this.#outbox.length > 0 && !this.#failures.ended;
  }

  /** Whether another batch may leave. `mayFree`: whether an answer of this run may free places. */
  mayIntend(mayFree: boolean): boolean {
    const room = this.#outbox.length === 0 ? this.#room() : 0;
    const batch = this.#batch();
    // Where states are large, places have to become free first.
    return batch > 0 && (room >= batch || (room > 0 && !mayFree));
  }

  /** How many items the next state covers; 0: none may leave. */
  #batch(): number {
    const wanted = Math.min(this.#mayBuy(), this.#queue.length);
    const most = this.#context.type.setting === "companyLookup" ? Math.min(OPEN_AT_ONCE, wanted) : wanted;
    this.#checkpoints.reserved = wanted < 1 ? 0 : Math.ceil(wanted / most);
    if (wanted < 1) return 0;
    return Math.min(this.#checkpoints.batchOf(wanted), this.#failures.isProbing ? 1 : most);
  }

  /** Writes down what is about to leave. Nothing leaves if that fails. */
  async *intend(): AsyncGenerator<Event> {
    const { book, streams, receipts, type, checkLocks, now } = this.#context;
    const count = Math.min(this.#room(), this.#batch());
    if (this.#outbox.length > 0 || count < 1) return;
    const batch = this.#queue.splice(0, count);
    try {
      await checkLocks();
      const at = now();
      const day = this.#today();
      for (const candidate of batch) {
        this.#outbox.push({ ...candidate, at, takeBack: book.intend(candidate.key, at, day, streams) });
        this.#underWay.add(candidate.key);
      }
      await receipts?.write(
        type.setting,
        batch.flatMap(({ key }) => {
          const job = book.get(key);
          return job === undefined ? [] : [[key, job] as const];
        }),
      );
    } catch (error) {
      this.#failures.end(error);
      await this.withdraw();
      return;
    }
    yield this.#checkpoints.write(receipts === undefined);
  }

  /** Submits the next item of the batch; undefined if there is none. `turn`: until it may start. */
  post(turn: Promise<void>): Promise<Noted> | undefined {
    const sent = this.#failures.ended ? undefined : this.#outbox.shift();
    if (sent === undefined) return undefined;
    return this.#send(sent, turn);
  }

  async #send(sent: Sent, turn: Promise<void>): Promise<Noted> {
    try {
      await turn;
      await this.#context.checkLocks();
    } catch (error) {
      await this.#void(sent);
      throw error;
    }
    return await this.#note(sent, await this.#context.type.submit(sent.item));
  }

  /** Nothing of the batch leaves any more. */
  async withdraw(): Promise<void> {
    for (const sent of this.#outbox.splice(0).reverse()) await this.#void(sent);
  }

  /** Says what became of a submission. */
  async *take({ sent, submission, recovery }: Noted): AsyncGenerator<Event> {
    const { key } = sent;
    if (submission.kind === "taken") this.#collector.add(key, submission.notBefore);
    if (submission.kind === "taken" || submission.kind === "answered") await this.#refuseDoubted();
    if (submission.kind === "answered") {
      yield* this.#collector.deliver(key, submission.answer);
      return;
    }
    if (submission.kind === "refused") await this.#recover(sent, submission.code, recovery);
    // Without receipts only the state knows by which id the answer can be had.
    yield* this.#checkpoints.afterAnswer(submission.kind === "taken" && this.#context.receipts === undefined);
  }

  /** Keeps what became of a submission, in the book and on the disk, whether or not somebody still reads the output. */
  async #note(sent: Sent, submission: Submission): Promise<Noted> {
    const { book, type, receipts, monotonic } = this.#context;
    const { key } = sent;
    const job = book.get(key);
    this.#underWay.delete(key);
    const noted = { sent, submission, recovery: undefined };
    if (job === undefined) throw new Error("Cannot note a submission: its item is not known");
    if (submission.kind === "refused") {
      await this.#void(sent);
      const { error, why } = submission;
      return { ...noted, recovery: this.#failures.refused(error, why, monotonic()) };
    }
    this.#checkpoints.spent.submissions += 1;
    if (submission.kind === "unknown") {
      this.#failures.unknown(submission.error);
      return noted;
    }
    this.#failures.taken();
    try {
      if (submission.kind === "taken") {
        const { jobId, notBefore } = submission;
        book.put(key, { ...job, step: "open", jobId, notBefore });
        await receipts?.write(type.setting, [[key, { ...job, step: "open", jobId, notBefore }]]);
      } else {
        const sealed =
          receipts && seal(receipts.salt, sent.item, JSON.stringify(submission.answer.value["response"]));
        const ended = Date.parse(submission.answer.cursor ?? "");
        await receipts?.write(type.setting, [[key, { ...job, step: "answered", ended, cost: 0 }]], sealed);
      }
    } catch (error) {
      this.#failures.end(error);
    }
    return noted;
  }

  async #void({ key, at, takeBack }: Sent): Promise<void> {
    takeBack();
    this.#underWay.delete(key);
    const { receipts, type } = this.#context;
    await receipts?.void(type.setting, key, at).catch((error: unknown) => this.#failures.end(error));
  }

  async #recover(sent: Sent, code: string, recovery: Recovery | undefined): Promise<void> {
    const { key, place } = sent;
    switch (recovery?.kind) {
      case "again":
        this.#queue.unshift(sent);
        if (recovery.failures > 0) await this.#context.backOff(recovery.failures);
        break;
      case "refuse":
        await this.#refuse(key, place, code);
        break;
      case "doubt":
        this.#doubted.push({ key, place, code });
        await this.#mark(key, "doubted", code);
        break;
      case "end":
      case undefined:
        break;
    }
  }

  /** The service took another item, so the form of our requests is right. */
  async #refuseDoubted(): Promise<void> {
    for (const { key, place, code } of this.#doubted.splice(0)) await this.#refuse(key, place, code);
  }

  async #refuse(key: string, place: string, code: string): Promise<void> {
    this.refused.push({ place, code });
    await this.#mark(key, "refused", code);
  }

  async #mark(key: string, step: "refused" | "doubted", code: string): Promise<void> {
    const { book, now, receipts, type } = this.#context;
    const before = book.get(key);
    if (before?.step === "unknown") return;
    if (book.finished.dayOf(key) !== undefined) {
      // What is known of the earlier answer is worth more: only the next refresh is put off.
      if (step === "refused") book.finish(key, this.#today());
      return;
    }
    const job = before ?? newJob(now(), dayOf(now()), []);
    const marked = { ...job, at: now(), step, code };
    book.put(key, marked);
    await receipts?.write(type.setting, [[key, marked]]).catch((error: unknown) => this.#failures.end(error));
  }

  #room(): number {
    return Math.min(this.#mayBuy(), this.#places());
  }

  /** How many items the caps let go. */
  #mayBuy(): number {
    const { book, type, mostSubmissions } = this.#context;
    if (this.#failures.ended) return 0;
    const charged = book.charged(this.#today());
    return Math.min(roomFor(type.caps, charged, book.estimate), mostSubmissions - charged.sync.submitted);
  }

  /** How many more jobs may be in flight. */
  #places(): number {
    const { book, type } = this.#context;
    if (type.setting !== "companyLookup") return Number.POSITIVE_INFINITY;
    const now = this.#context.now();
    const waitsLong = ({ notBefore }: Job): boolean => (notBefore ?? 0) - now > LONG_WAIT_MS;
    if (!this.#collector.hasAnswered) {
      const open = [...book.ofThisRun.values()].filter((job) => job.step === "open" && !waitsLong(job));
      const silent = open.filter(({ at }) => now - at >= SILENT_MS).length;
      return Math.min(MOST_BEFORE_ANSWER, 1 + silent) - open.length - this.#underWay.size;
    }
    let held = this.#underWay.size;
    for (const [, job] of book.jobs()) {
      const { step, at, ended } = job;
      if (step === "open" && ended === null && !waitsLong(job) && now - at <= LONG_WAIT_MS) held += 1;
    }
    return OPEN_AT_ONCE - held;
  }

  #today(): Day {
    return this.#context.book.dayToCharge(dayOf(this.#context.now()));
  }
}
