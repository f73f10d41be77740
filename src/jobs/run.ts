import type { Event } from "../streams/event.ts";
import { recordsOf } from "../streams/event.ts";
import { Collector } from "./collector.ts";
import { verified } from "./email-verifications.ts";
import type { Candidate } from "./inputs.ts";
import { JobCheckpoints } from "./job-checkpoints.ts";
import type { JobContext } from "./job-context.ts";
import type { Asked } from "./job-type.ts";
import { finalReport, openingReport, progressReport } from "./report.ts";
import { unseal } from "./seal.ts";
import { SubmitFailures } from "./submit-failures.ts";
import { type Noted, Submitter } from "./submitter.ts";

const ASKS_AT_ONCE = 3;
const PROGRESS_MS = 30_000;
/** How far (ms) the service's clock may be off this machine's: a day of caps must be a day. */
const MOST_SKEW_MS = 26 * 3_600_000;

/** What came of something that was begun. */
type Outcome =
  | { readonly kind: "turn" }
  | { readonly kind: "posted"; readonly noted: Noted }
  | { readonly kind: "asked"; readonly key: string; readonly asked: Asked }
  | { readonly kind: "found"; readonly candidates: readonly Candidate[] | undefined }
  | { readonly kind: "time" }
  | { readonly kind: "threw"; readonly error: unknown };

/**
 * Works on the items of one stream: asks for what earlier runs submitted, submits what is new, waits for answers, and
 * leaves the rest to the next run. Before each submission the receipts and a checkpoint say that it may leave, so a run
 * that dies at any moment leaves no trace, a job to collect, or an unknown, which nobody submits again unasked.
 */
export async function* readJobs(context: JobContext): AsyncGenerator<Event> {
  yield* new JobRun(context).events();
}

class JobRun {
  readonly #context: JobContext;
  readonly #checkpoints: JobCheckpoints;
  readonly #failures = new SubmitFailures();
  readonly #collector: Collector;
  readonly #submitter: Submitter;
  readonly #running = new Map<Promise<Outcome>, Outcome["kind"]>();
  #source: AsyncGenerator<readonly Candidate[]> | undefined;
  #waited = 0;
  #lastProgress: number;
  #redelivered = 0;

  constructor(context: JobContext) {
    this.#context = context;
    this.#checkpoints = new JobCheckpoints(context);
    this.#collector = new Collector(context, this.#checkpoints, this.#failures);
    this.#submitter = new Submitter(context, this.#checkpoints, this.#failures, this.#collector);
    this.#lastProgress = context.monotonic();
  }

  async *events(): AsyncGenerator<Event> {
    const { inputs, blocked, isSecond, isFullRefresh, stream } = this.#context;
    this.#collector.schedule();
    const candidates = isSecond ? [] : await inputs.configured();
    const buys = !isSecond && !isFullRefresh;
    if (buys) this.#submitter.add(candidates);
    if (buys) this.#source = inputs.others();
    if (this.#collector.next !== undefined || candidates.length > 0) await this.#context.ready();
    if (blocked !== undefined) this.#failures.end(blocked);
    if (buys) yield* openingReport(this.#context, candidates.length);
    yield* this.#deliverSealed();
    try {
      yield* this.#work();
    } finally {
      await this.#drain();
    }
    yield* this.#conclude();
    const failure = this.#failures.failure ?? this.#collector.failure() ?? inputs.failure;
    if (failure !== undefined) throw failure;
    yield { kind: "close", stream, complete: !isFullRefresh || this.#isAllDelivered() };
  }

  async *#work(): AsyncGenerator<Event> {
    for (;;) {
      this.#start();
      const outcome = await this.#next();
      if (outcome === undefined) return;
      yield* this.#checkClock();
      yield* this.#take(outcome);
      yield* this.#checkpoints.signOfLife();
      yield* this.#progress();
    }
  }

  /** A clock that is days off would make nothing of caps by day. It may also be set while the run goes on. */
  *#checkClock(): Generator<Event> {
    const skew = this.#context.skew();
    if (Math.abs(skew) <= MOST_SKEW_MS || this.#failures.ended) return;
    this.#failures.ended = true;
    const hours = Math.round(Math.abs(skew) / 3_600_000);
    const text =
      `${this.#context.stream}: the service's clock is ${hours} hours ${skew > 0 ? "ahead of" : "behind"} this machine's, so ` +
      "nothing is submitted, because caps by day would not hold. Correct this machine's clock, or tell the service's owner";
    yield { kind: "log", level: "warn", text };
  }

  /** Begins all that may be begun now. */
  #start(): void {
    const { turn, ready } = this.#context;
    if (this.#isOver()) return;
    while (this.#count("asked") < ASKS_AT_ONCE) {
      const asked = this.#collector.ask();
      if (asked === undefined) break;
      this.#begin(
        "asked",
        asked.then(({ key, asked: brought }) => ({ kind: "asked", key, asked: brought })),
      );
    }
    if (this.#source !== undefined && this.#count("found") === 0 && this.#submitter.lacksItems)
      this.#begin("found", this.#find(this.#source));
    while (this.#submitter.mayPost(this.#count("posted")) > 0 && this.#submitter.hasBatch) this.#post(turn());
    const mayPost = this.#submitter.mayPost(this.#count("posted")) > 0;
    const mayFree = this.#collector.next !== undefined || this.#count("asked") + this.#count("posted") > 0;
    if (mayPost && this.#count("turn") === 0 && this.#submitter.mayIntend(mayFree))
      this.#begin(
        "turn",
        ready()
          .then(turn)
          .then(() => ({ kind: "turn" })),
      );
  }

  /** Lets the next item of the batch go in its turn. */
  #post(turn: Promise<void>): void {
    const noted = this.#submitter.post(turn);
    if (noted !== undefined)
      this.#begin(
        "posted",
        noted.then((what) => ({ kind: "posted", noted: what })),
      );
  }

  async #find(source: AsyncGenerator<readonly Candidate[]>): Promise<Outcome> {
    const { done, value } = await source.next();
    return { kind: "found", candidates: done === true ? undefined : value };
  }

  #begin(kind: Outcome["kind"], work: Promise<Outcome>): void {
    this.#running.set(
      work.catch((error: unknown): Outcome => ({ kind: "threw", error })),
      kind,
    );
  }

  /** What is over first; undefined if nothing is left to be done in this run. */
  async #next(): Promise<Outcome | undefined> {
    const isAsking = [...this.#running.values()].some((kind) => kind !== "found");
    const waking = new AbortController();
    const timer = isAsking ? undefined : this.#timer(waking.signal);
    const all = [...this.#running.keys(), ...(timer === undefined ? [] : [timer])];
    if (all.length === 0) return undefined;
    const { promise, outcome } = await Promise.race(
      all.map(async (running) => ({ promise: running, outcome: await running })),
    );
    waking.abort();
    this.#running.delete(promise);
    return outcome;
  }

  /** Waits until a job is due, or progress is to be told; undefined if there is nothing to wait for. */
  #timer(waking: AbortSignal): Promise<Outcome> | undefined {
    const { now, monotonic, sleep, type, endsAt, isSecond } = this.#context;
    const { next } = this.#collector;
    if (next === undefined || isSecond || this.#isOver()) return undefined;
    const began = monotonic();
    const left = Math.min(type.maxWait - this.#waited, endsAt - began);
    if (next - now() > left) return undefined;
    const woken = (): Outcome => {
      this.#waited += Math.max(1, monotonic() - began);
      return { kind: "time" };
    };
    return sleep(Math.max(1, Math.min(next - now(), PROGRESS_MS)), waking).then(woken, (error: unknown) =>
      waking.aborted ? woken() : { kind: "threw", error },
    );
  }

  #isOver(): boolean {
    const { signal, monotonic, endsAt } = this.#context;
    return signal.aborted || monotonic() >= endsAt;
  }

  #count(kind: Outcome["kind"]): number {
    let count = 0;
    for (const running of this.#running.values()) if (running === kind) count += 1;
    return count;
  }

  async *#take(outcome: Outcome): AsyncGenerator<Event> {
    switch (outcome.kind) {
      case "turn":
        yield* this.#submitter.intend();
        this.#post(Promise.resolve());
        return;
      case "posted":
        yield* this.#submitter.take(outcome.noted);
        return;
      case "asked":
        yield* this.#collector.take(outcome.key, outcome.asked);
        return;
      case "found":
        if (outcome.candidates === undefined) this.#source = undefined;
        else this.#submitter.add(outcome.candidates);
        yield* this.#deliverSealed();
        return;
      case "threw":
        this.#fail(outcome.error);
        return;
      case "time":
        return;
    }
  }

  #fail(error: unknown): void {
    this.#failures.end(error);
    this.#collector.end(error instanceof Error ? error : new Error(String(error)));
  }

  /** Delivers responses that the receipts kept, now that their e-mails are known. */
  *#deliverSealed(): Generator<Event> {
    const { inputs, book, sealed, receipts, stream, toLines, now } = this.#context;
    for (const [key, email] of inputs.owed) {
      inputs.owed.delete(key);
      const job = book.get(key);
      const text = unseal(receipts?.salt ?? "", email, sealed.get(key) ?? "");
      if (job === undefined || text === undefined) continue;
      const answer = verified(email, job.ended ?? job.at, JSON.parse(text));
      yield* recordsOf(stream, toLines([answer.value]), now());
      this.#checkpoints.advance(answer.cursor);
      this.#redelivered += 1;
      this.#collector.settle(key, job);
    }
  }

  /** Whatever ended the run: submissions that are under way say what was paid for. */
  async #drain(): Promise<void> {
    await this.#submitter.withdraw();
    const posts = [...this.#running].filter(([, kind]) => kind === "posted");
    await Promise.all(posts.map(([promise]) => promise));
    await this.#source?.return(undefined).catch(() => undefined);
  }

  *#progress(): Generator<Event> {
    const { monotonic } = this.#context;
    if (monotonic() - this.#lastProgress < PROGRESS_MS) return;
    this.#lastProgress = monotonic();
    yield progressReport(this.#context, this.#collector.next);
  }

  /** Whether all that was ever bought was delivered by this full refresh. */
  #isAllDelivered(): boolean {
    const { book, stream, unrecoverable } = this.#context;
    if (unrecoverable > 0) return false;
    for (const [, { step, owed }] of book.jobs())
      if ((step === "open" || step === "answered") && owed.includes(stream)) return false;
    return true;
  }

  async *#conclude(): AsyncGenerator<Event> {
    const { inputs } = this.#context;
    await this.#collector.conclude();
    if (!this.#context.isSecond) inputs.moveCursors();
    yield* finalReport(this.#context, {
      answered: this.#collector.answered + this.#redelivered,
      submitted: this.#checkpoints.spent.submissions,
      refused: this.#submitter.refused,
      troubles: this.#collector.troubles,
      isOutOfCredits: this.#failures.isOutOfCredits,
    });
    yield* this.#checkpoints.conclude();
  }
}
