import type { Event, Lines, StreamState } from "./event.ts";
import {
  firstPolls,
  isWanted,
  type Job,
  type Jobs,
  laterPolls,
  nextMove,
  type Polls,
  type Rules,
} from "./job-moves.ts";

const DAY = 86_400_000;
/** A job that is said to be processing for so long is lost. */
const LOST_AFTER = 7 * DAY;
const MOST_TRIES = 3;
const MOST_RESENT = 1;
/** Failures in a row are no accident: an outage must not make an unknown of every item. */
const FAILURES_IN_A_ROW = 3;
const HEALING_TRIES = 5;
const LONGEST_LIMITED = 1_800_000;
/** Platforms give up on a stream that is silent for long; its last state, said again, is a sign of life. */
const SIGN_OF_LIFE = 180_000;

/** What became of a POST, which is never repeated here. */
export type Submission =
  | { readonly kind: "submitted"; readonly jobId: string; readonly notBefore: number | null }
  /** It was answered at once. */
  | { readonly kind: "answered"; readonly answer: Answer }
  /** It may have reached the service. */
  | { readonly kind: "unknown"; readonly error: Error }
  /** The service has not taken it. */
  | { readonly kind: "refused"; readonly error: Error; readonly heals: Healing };

/**
 * Who heals a refusal: the rate limit, time, another item, nobody because it is the answer for the item, or the operator.
 */
export type Healing = "limit" | "time" | "other-item" | "is-answer" | "operator";

export type Answer = {
  readonly lines: Lines;
  /** The newest moment by which the records are ordered; null if they have none. */
  readonly cursor: string | null;
  readonly credits: number;
  /** Whether a part of it failed, so that another try may bring more. */
  readonly again: boolean;
  /** Whether the service says that nothing more can be bought. */
  readonly spent: boolean;
};

export type Collected =
  | { readonly kind: "pending"; readonly processing: boolean; readonly notBefore: number | null }
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "gone" }
  | { readonly kind: "denied" }
  /** The service's answer to this one job makes no sense. */
  | { readonly kind: "odd"; readonly error: Error };

/** One kind of job, and the world that it is done in. */
export type Family = {
  readonly stream: string;
  readonly rules: Rules;
  /** The setting's name, for people. */
  readonly setting: string;
  /** Whether a job that stays in process for a week is lost. */
  readonly canBeLost: boolean;
  /** The items to have, by their digests, in order. */
  items(hasSettled: (key: string) => boolean): Promise<ReadonlyMap<string, string>>;
  submit(item: string): Promise<Submission>;
  collect(jobId: string): Promise<Collected>;
  /** Resolves when the service's clock is known. */
  ready(): Promise<void>;
  /** Resolves when a request may start. */
  turn(): Promise<void>;
  /** Backs off after so many failures. */
  rest(failures: number): Promise<void>;
  sleep(ms: number): Promise<void>;
  /** Epoch ms by the service's clock. */
  now(): number;
  /** Ms that only grow. */
  monotonic(): number;
};

/** What a run begins with; `jobs` null: there was no state at all. */
export type Saved = { readonly jobs: Jobs | null; readonly cursor: string | null };

/**
 * Has every wanted item answered once. A checkpoint precedes each POST and follows its answer, so that a run that dies
 * at any moment leaves either no trace, a job to collect, or an unknown, which nobody buys again unasked.
 */
export async function* readJobs(
  family: Family,
  saved: Saved,
  toState: (jobs: Jobs, cursor: string | null) => StreamState,
): AsyncGenerator<Event> {
  yield* new JobRun(family, saved, toState).events();
}

class JobRun {
  readonly #family: Family;
  readonly #toState: (jobs: Jobs, cursor: string | null) => StreamState;
  readonly #isFirst: boolean;
  readonly #jobs: Map<string, Job>;
  readonly #polls = new Map<string, Polls>();
  readonly #turned = new Set<string>();
  #cursor: string | null;
  #wanted: ReadonlyMap<string, string> = new Map();
  #submissions = 0;
  #credits = 0;
  #collected = 0;
  #waited = 0;
  #stopped = false;
  #failure: Error | undefined;
  #failuresInARow = 0;
  #healing = 0;
  #limitedSince: number | undefined;
  #lastSign: number;

  constructor(family: Family, saved: Saved, toState: (jobs: Jobs, cursor: string | null) => StreamState) {
    this.#family = family;
    this.#toState = toState;
    this.#isFirst = saved.jobs === null;
    this.#jobs = new Map(saved.jobs);
    this.#cursor = saved.cursor;
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
    yield* this.#report();
    yield this.#checkpoint();
    if (this.#failure !== undefined) throw this.#failure;
    yield { kind: "close", stream: this.#family.stream, complete: true };
  }

  *#signOfLife(): Generator<Event> {
    if (this.#family.monotonic() - this.#lastSign >= SIGN_OF_LIFE) yield this.#checkpoint();
  }

  /** This machine's clock must neither buy again nor ask too early. */
  #asksTheTime(): boolean {
    const isTimed = this.#family.rules.refreshAfter !== null && this.#jobs.size > 0;
    return (
      isTimed ||
      [...this.#jobs.values()].some(({ step, notBefore }) => step === "submitted" && notBefore !== null)
    );
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
    const { rules, setting } = this.#family;
    const now = this.#family.now();
    const isSettled = (key: string): boolean => !isWanted(this.#jobs.get(key), rules, now);
    try {
      this.#wanted = await this.#family.items(isSettled);
    } catch (error) {
      this.#fail(error);
    }
    const count = [...this.#wanted.keys()].filter((key) => !isSettled(key)).length;
    if (!this.#isFirst || count === 0) return;
    const most = Math.min(count, rules.mostSubmissions);
    const credits = Number.isFinite(rules.mostCredits) ? ` and ${rules.mostCredits} credits` : "";
    yield this.#warning(
      `there is no state, so nothing is known of what was submitted before: up to ${most} of ${count} items of "${setting}" ` +
        `will be submitted (at most ${rules.mostSubmissions} submissions${credits} a sync)`,
    );
  }

  #nextMove(): ReturnType<typeof nextMove> {
    const run = {
      submissions: this.#submissions,
      credits: this.#credits,
      stopped: this.#stopped,
      waited: this.#waited,
      polls: this.#polls,
      turned: this.#turned,
    };
    return nextMove([...this.#wanted.keys()], this.#jobs, run, this.#family.rules, this.#family.now());
  }

  async *#submit(key: string): AsyncGenerator<Event> {
    const item = this.#wanted.get(key);
    if (item === undefined) throw new Error("Cannot submit an item: nobody wants it");
    await this.#family.turn();
    const before = this.#jobs.get(key);
    this.#set(key, { step: "submitting", jobId: null, notBefore: null });
    yield this.#checkpoint();
    const submission = await this.#family.submit(item);
    switch (submission.kind) {
      case "submitted":
        this.#taken();
        this.#set(key, { step: "submitted", jobId: submission.jobId, notBefore: submission.notBefore });
        this.#polls.set(key, firstPolls(submission.notBefore, this.#family.rules, this.#family.now()));
        break;
      case "answered":
        this.#taken();
        yield* this.#answer(key, submission.answer);
        return;
      case "unknown":
        this.#submissions += 1;
        this.#turned.add(key);
        this.#failed(submission.error);
        break;
      case "refused":
        if (before === undefined) this.#jobs.delete(key);
        else this.#jobs.set(key, before);
        await this.#refused(key, submission.error, submission.heals);
    }
    yield this.#checkpoint();
  }

  #taken(): void {
    this.#submissions += 1;
    this.#failuresInARow = 0;
    this.#healing = 0;
    this.#limitedSince = undefined;
  }

  async #refused(key: string, error: Error, heals: Healing): Promise<void> {
    const { monotonic, rest } = this.#family;
    switch (heals) {
      case "limit":
        this.#limitedSince ??= monotonic();
        if (monotonic() - this.#limitedSince > LONGEST_LIMITED) this.#fail(error);
        return;
      case "time":
        this.#healing += 1;
        if (this.#healing >= HEALING_TRIES) this.#fail(error);
        else await rest(this.#healing);
        return;
      case "other-item":
        this.#turned.add(key);
        this.#failed(error);
        this.#failure ??= error;
        return;
      case "is-answer":
        this.#set(key, { step: "done", jobId: null, notBefore: null });
        return;
      case "operator":
        this.#fail(error);
    }
  }

  #failed(error: Error): void {
    this.#failuresInARow += 1;
    if (this.#failuresInARow >= FAILURES_IN_A_ROW) this.#fail(error);
  }

  /** Ends the submissions; what is in flight is still waited for, and the first failure is the stream's. */
  #fail(error: unknown): void {
    this.#stopped = true;
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
  }

  async *#collect(key: string): AsyncGenerator<Event> {
    const job = this.#jobs.get(key);
    if (job?.jobId == null) throw new Error("Cannot collect a job: it has no id");
    const { now, monotonic, rules, canBeLost } = this.#family;
    const polls = this.#polls.get(key);
    const began = monotonic();
    const found = await this.#family.collect(job.jobId);
    if (polls !== undefined) this.#waited += monotonic() - began;
    switch (found.kind) {
      case "pending": {
        const { processing, notBefore } = found;
        if (canBeLost && processing && now() - job.at >= LOST_AFTER) break;
        this.#jobs.set(key, { ...job, notBefore });
        this.#polls.set(
          key,
          polls === undefined
            ? firstPolls(notBefore, rules, now())
            : laterPolls(polls, notBefore, rules, now()),
        );
        return;
      }
      case "answered":
        yield* this.#answer(key, found.answer);
        return;
      case "denied":
        this.#set(key, { step: "denied", jobId: job.jobId, notBefore: null });
        yield this.#checkpoint();
        return;
      case "odd":
        this.#failure ??= found.error;
        this.#polls.set(key, { next: null, pause: 0, until: 0 });
        return;
      case "gone":
        break;
    }
    this.#lose(key, job);
    yield this.#checkpoint();
  }

  /** Lost once, it is submitted anew; lost twice, it is given up. */
  #lose(key: string, job: Job): void {
    const isFinal = job.resent >= MOST_RESENT;
    this.#polls.delete(key);
    this.#jobs.set(key, {
      ...job,
      step: isFinal ? "lost" : "again",
      at: this.#family.now(),
      notBefore: null,
      resent: isFinal ? job.resent : job.resent + 1,
    });
  }

  async *#answer(key: string, answer: Answer): AsyncGenerator<Event> {
    const { stream, now } = this.#family;
    const job = this.#jobs.get(key);
    const tries = answer.again ? (job?.tries ?? 0) + 1 : 0;
    this.#polls.delete(key);
    this.#turned.add(key);
    this.#collected += 1;
    this.#credits += answer.credits;
    // An answer to an earlier run's job says nothing about today's credits.
    if (answer.spent && this.#submissions > 0) this.#stopped = true;
    this.#cursor = later(this.#cursor, answer.cursor);
    const step = answer.again && tries < MOST_TRIES ? "again" : "done";
    const settled = { step, at: now(), jobId: job?.jobId ?? null, notBefore: null, resent: 0 } as const;
    this.#jobs.set(key, { ...settled, tries: step === "done" ? 0 : tries });
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

  #set(key: string, change: Pick<Job, "step" | "jobId" | "notBefore">): void {
    const { tries = 0, resent = 0, step } = this.#jobs.get(key) ?? {};
    const carried = step === "done" || step === "lost" ? { tries: 0, resent: 0 } : { tries, resent };
    this.#jobs.set(key, { ...carried, ...change, at: this.#family.now() });
  }

  #checkpoint(): Event {
    this.#lastSign = this.#family.monotonic();
    return {
      kind: "checkpoint",
      stream: this.#family.stream,
      state: this.#toState(this.#jobs, this.#cursor),
    };
  }

  *#report(): Generator<Event> {
    const { rules, setting, stream, now } = this.#family;
    const jobs = [...this.#jobs.values()];
    const count = (step: Job["step"]): number => jobs.filter((job) => job.step === step).length;
    const credits = Number.isFinite(rules.mostCredits)
      ? `, ${this.#credits} credits used of ${rules.mostCredits} a sync`
      : "";
    const next = jobs
      .flatMap(({ step, notBefore }) => (step === "submitted" && notBefore !== null ? [notBefore] : []))
      .filter((at) => at > now());
    const until = next.length === 0 ? "" : `, the first answer is due at ${iso(Math.min(...next))}`;
    const waiting = [...this.#wanted.keys()].filter((key) => isWanted(this.#jobs.get(key), rules, now()));
    yield {
      kind: "log",
      level: "info",
      text:
        `${stream}: ${this.#collected} answered, ${this.#submissions} submitted${credits}; ${count("submitted")} parked until ` +
        `the next sync${until}; ${waiting.length} still to be submitted by later syncs`,
    };
    const unknown = count("submitting");
    if (unknown > 0) {
      yield this.#warning(
        `the answer to ${unknown} submissions was lost, so they may or may not have been charged. They are not repeated ` +
          `on their own: set ${setting}.retry_unknown to true to submit them again`,
      );
    }
    const lost = count("lost") + count("denied");
    if (lost > 0)
      yield this.#warning(`the service does not hand out ${lost} jobs that it took; they are given up`);
  }

  #warning(text: string): Event {
    return { kind: "log", level: "warn", text: `${this.#family.stream}: ${text}` };
  }
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** Both in UTC as the service writes it, so that text compares as time does. */
function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
}
