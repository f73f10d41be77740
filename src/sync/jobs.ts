import type { Event, StreamState } from "./event.ts";
import { JobBook } from "./job-book.ts";
import type { Answer, Family, Saved } from "./job-family.ts";
import { firstPolls, isWanted, type Jobs, type Move, nextMove, nextPolls, type Polls } from "./job-moves.ts";
import { reportJobs, warnOfPurchases } from "./job-report.ts";
import { Setbacks } from "./job-setbacks.ts";

/** A job that is said to be processing for so long is lost. */
const LOST_AFTER = 7 * 86_400_000;
/** Platforms give up on a stream that is silent for long; its last state, said again, is a sign of life. */
const SIGN_OF_LIFE = 180_000;

export type ToState = (jobs: Jobs, cursor: string | null) => StreamState;

/**
 * Has every wanted item answered once. A checkpoint precedes each POST and follows its answer, so that a run that dies
 * at any moment leaves either no trace, a job to collect, or an unknown, which nobody buys again unasked.
 */
export async function* readJobs(family: Family, saved: Saved, toState: ToState): AsyncGenerator<Event> {
  yield* new JobRun(family, saved, toState).events();
}

class JobRun {
  readonly #family: Family;
  readonly #toState: ToState;
  readonly #isFirst: boolean;
  readonly #book: JobBook;
  readonly #setbacks = new Setbacks();
  readonly #polls = new Map<string, Polls>();
  readonly #turned = new Set<string>();
  #wanted: ReadonlyMap<string, string> = new Map();
  #submissions = 0;
  #credits = 0;
  #answers = 0;
  #spent = false;
  #waited = 0;
  #lastSign: number;

  constructor(family: Family, saved: Saved, toState: ToState) {
    this.#family = family;
    this.#toState = toState;
    this.#isFirst = saved.jobs === null;
    this.#book = new JobBook(saved, () => family.now());
    this.#lastSign = family.monotonic();
  }

  async *events(): AsyncGenerator<Event> {
    if (this.#asksTheTime()) await this.#family.ready();
    yield* this.#collectEarlier();
    yield* this.#loadItems();
    for (let move = this.#nextMove(); move.kind !== "park"; move = this.#nextMove()) {
      yield* this.#signOfLife();
      if (move.kind === "submit") yield* this.#submit(move.key);
      else if (move.kind === "collect") yield* this.#collect(move.key);
      else await this.#wait(move.until);
    }
    const done = { answered: this.#answers, submitted: this.#submissions, credits: this.#credits };
    yield* reportJobs(this.#family, this.#book.jobs, [...this.#wanted.keys()], done);
    yield this.#checkpoint();
    if (this.#setbacks.failure !== undefined) throw this.#setbacks.failure;
    yield { kind: "close", stream: this.#family.stream, complete: true };
  }

  /** This machine's clock must neither buy again nor ask too early. */
  #asksTheTime(): boolean {
    const jobs = [...this.#book.jobs.values()];
    const isTimed = this.#family.rules.refreshAfter !== null && jobs.length > 0;
    return isTimed || jobs.some(({ step, notBefore }) => step === "submitted" && notBefore !== null);
  }

  /** What earlier runs have paid for comes before all else. */
  async *#collectEarlier(): AsyncGenerator<Event> {
    for (let move = this.#nextMove(); move.kind === "collect"; move = this.#nextMove()) {
      if (this.#polls.has(move.key)) return;
      yield* this.#signOfLife();
      yield* this.#collect(move.key);
    }
  }

  async *#loadItems(): AsyncGenerator<Event> {
    const { rules, now } = this.#family;
    const moment = now();
    const isSettled = (key: string): boolean => !isWanted(this.#book.jobs.get(key), rules, moment);
    try {
      this.#wanted = await this.#family.items(isSettled);
    } catch (error) {
      this.#setbacks.end(error);
    }
    const count = [...this.#wanted.keys()].filter((key) => !isSettled(key)).length;
    if (this.#isFirst && count > 0) yield warnOfPurchases(this.#family, count);
  }

  #nextMove(): Move {
    const run = {
      submissions: this.#submissions,
      credits: this.#credits,
      stopped: this.#spent || this.#setbacks.ended,
      waited: this.#waited,
      polls: this.#polls,
      turned: this.#turned,
    };
    const { rules, now } = this.#family;
    return nextMove([...this.#wanted.keys()], this.#book.jobs, run, rules, now());
  }

  async *#submit(key: string): AsyncGenerator<Event> {
    const { turn, submit, rules, now } = this.#family;
    const item = this.#wanted.get(key);
    if (item === undefined) throw new Error("Cannot submit an item: nobody wants it");
    await turn();
    const takeBack = this.#book.intend(key);
    yield this.#checkpoint();
    const submission = await submit(item);
    switch (submission.kind) {
      case "submitted":
        this.#taken();
        this.#book.submitted(key, submission.jobId, submission.notBefore);
        this.#polls.set(key, firstPolls(submission.notBefore, rules, now()));
        break;
      case "answered":
        this.#taken();
        yield* this.#answer(key, submission.answer);
        return;
      case "unknown":
        this.#submissions += 1;
        this.#turned.add(key);
        this.#setbacks.unknown(submission.error);
        break;
      case "refused":
        takeBack();
        if (submission.heals === "is-answer") this.#book.settled(key);
        if (submission.heals === "other-item") this.#turned.add(key);
        yield this.#checkpoint();
        await this.#recover(
          this.#setbacks.refused(submission.error, submission.heals, this.#family.monotonic()),
        );
        return;
    }
    yield this.#checkpoint();
  }

  #taken(): void {
    this.#submissions += 1;
    this.#setbacks.taken();
  }

  async #recover(failures: number | undefined): Promise<void> {
    if (failures !== undefined) await this.#family.rest(failures);
  }

  async *#collect(key: string): AsyncGenerator<Event> {
    const { now, monotonic, collect, rules, canBeLost } = this.#family;
    const job = this.#book.jobs.get(key);
    if (job === undefined || job.jobId === null) throw new Error("Cannot collect a job: it has no id");
    const polls = this.#polls.get(key);
    const began = monotonic();
    const found = await collect(job.jobId);
    if (polls !== undefined) this.#waited += monotonic() - began;
    const isLost = found.kind === "pending" && found.processing && canBeLost && now() - job.at >= LOST_AFTER;
    if (found.kind === "pending" && !isLost) {
      const { notBefore } = found;
      this.#book.pending(key, job, notBefore);
      this.#polls.set(key, nextPolls(polls, notBefore, rules, now()));
      return;
    }
    this.#polls.delete(key);
    if (found.kind === "answered") {
      yield* this.#answer(key, found.answer);
      return;
    }
    if (found.kind === "odd") {
      this.#setbacks.failure ??= found.error;
      this.#polls.set(key, { next: null, pause: 0, until: 0 });
      return;
    }
    if (found.kind === "denied") this.#book.denied(key, job);
    else this.#book.lost(key, job);
    yield this.#checkpoint();
  }

  async *#answer(key: string, answer: Answer): AsyncGenerator<Event> {
    const { stream, now } = this.#family;
    this.#book.answered(key, answer);
    this.#turned.add(key);
    this.#answers += 1;
    this.#credits += answer.credits;
    // An answer to an earlier run's job says nothing about today's credits.
    this.#spent ||= answer.spent && this.#submissions > 0;
    if (answer.lines.length > 0) yield { kind: "records", stream, lines: answer.lines, at: now() };
    yield this.#checkpoint();
  }

  /** In pieces, each short enough for a sign of life. */
  async #wait(until: number): Promise<void> {
    const { now, monotonic, sleep, rules } = this.#family;
    const began = monotonic();
    const left = Math.min(until - now(), rules.maxWait - this.#waited);
    await sleep(Math.max(1, Math.min(left, SIGN_OF_LIFE)));
    this.#waited += Math.max(1, monotonic() - began);
  }

  *#signOfLife(): Generator<Event> {
    if (this.#family.monotonic() - this.#lastSign >= SIGN_OF_LIFE) yield this.#checkpoint();
  }

  #checkpoint(): Event {
    const { stream, monotonic } = this.#family;
    this.#lastSign = monotonic();
    return { kind: "checkpoint", stream, state: this.#toState(this.#book.jobs, this.#book.cursor) };
  }
}
