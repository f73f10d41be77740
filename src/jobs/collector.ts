import { ConfigError } from "../errors.ts";
import { type Event, recordsOf } from "../streams/event.ts";
import { dayOf } from "../time.ts";
import { Agenda } from "./agenda.ts";
import type { Job } from "./job.ts";
import type { JobCheckpoints } from "./job-checkpoints.ts";
import type { JobContext } from "./job-context.ts";
import type { Answer, Asked } from "./job-type.ts";
import {
  dueAt,
  FAILED_TIMES,
  firstPolls,
  isSlow,
  nextPolls,
  OUT_OF_CREDITS,
  type Polls,
} from "./schedule.ts";
import type { SubmitFailures } from "./submit-failures.ts";

/** How often a job that brings nothing is asked for in one run. */
const ODD_ASKS = 3;
/** So many requests in a row without any answer are an outage. */
const SILENT_IN_A_ROW = 3;
/** So many jobs in a row that bring nothing, and none that was answered: the rest is left to the next run. */
const ODD_IN_A_ROW = 50;
const DENIED = 3;
/** A job that brings nothing for so long (ms) is no news. */
const NEWS_FOR = 7 * 86_400_000;
/** Answers that are kept for the setting's other stream. */
const MOST_ANSWERS_KEPT = 2_000;

type Trouble = {
  readonly error: Error;
  readonly code: string;
  readonly denied: boolean;
  readonly names: boolean;
};

/** Asks for the results of jobs, and delivers them. A job that brings nothing never blocks another. */
export class Collector {
  answered = 0;
  /** Whether a job of this run was answered. */
  hasAnswered = false;
  readonly #context: JobContext;
  readonly #checkpoints: JobCheckpoints;
  readonly #failures: SubmitFailures;
  readonly #agenda = new Agenda();
  readonly #polls = new Map<string, Polls>();
  readonly #oddAsks = new Map<string, number>();
  /** Jobs that brought nothing of use in this run, and jobs that were answered properly. */
  readonly #troubles = new Map<string, Trouble>();
  readonly #proper = new Set<string>();
  #silentInARow = 0;
  #oddInARow = 0;
  #ended: Error | undefined;
  #hasEnded = false;

  constructor(context: JobContext, checkpoints: JobCheckpoints, failures: SubmitFailures) {
    this.#context = context;
    this.#checkpoints = checkpoints;
    this.#failures = failures;
  }

  /** When the next job is due; undefined if none is in this run. */
  get next(): number | undefined {
    return this.#hasEnded ? undefined : this.#agenda.next;
  }

  /** How many jobs bring nothing, by the code that was answered. */
  get troubles(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { code } of this.#troubles.values()) counts.set(code, (counts.get(code) ?? 0) + 1);
    return counts;
  }

  /** Takes in the jobs that are owed to this stream. Those that were not asked for the longest come first. */
  schedule(): void {
    const { book, stream, type, isSecond, asked: askedBefore } = this.#context;
    if (type.polling === null) return;
    const now = this.#context.now();
    for (const [key, job] of book.jobs()) {
      const { jobId, asked } = job;
      if (jobId === null || !job.owed.includes(stream)) continue;
      // The stream before this one has asked just now, and there was no answer.
      if (isSecond && askedBefore.has(jobId) && job.ended === null) continue;
      const due = dueAt(job);
      if (due <= now) this.#agenda.add(key, asked ?? 0);
      else if (!isSecond) this.#agenda.add(key, due);
    }
  }

  /** A job was submitted in this run. */
  add(key: string, notBefore: number | null): void {
    const { polling } = this.#context.type;
    if (polling !== null) this.#plan(key, firstPolls(notBefore, polling, this.#context.now()));
  }

  /** Asks for the job that is due first; undefined if none is. */
  ask(): Promise<{ readonly key: string; readonly asked: Asked }> | undefined {
    const { book, type, answers, now } = this.#context;
    if (this.#hasEnded) return undefined;
    const key = this.#agenda.take(now());
    const jobId = key === undefined ? null : (book.get(key)?.jobId ?? null);
    if (key === undefined || jobId === null) return undefined;
    const kept = answers.get(jobId);
    if (kept !== undefined) return Promise.resolve({ key, asked: { kind: "answered", answer: kept } });
    this.#context.asked.add(jobId);
    return type.ask(jobId).then((asked) => ({ key, asked }));
  }

  /** Takes in what asking brought. */
  async *take(key: string, asked: Asked): AsyncGenerator<Event> {
    const { book, now } = this.#context;
    const job = book.get(key);
    if (job === undefined) return;
    book.put(key, { ...job, asked: now(), notBefore: null });
    if (asked.kind !== "silent") this.#silentInARow = 0;
    switch (asked.kind) {
      case "pending":
        this.#pending(key, job, asked.notBefore);
        break;
      case "answered":
        this.#isProper(key);
        yield* this.deliver(key, asked.answer);
        break;
      case "odd":
      case "denied":
        this.#odd(key, job, asked);
        break;
      case "silent":
        this.#silentInARow += 1;
        this.#troubles.set(key, { error: asked.error, code: "no answer", denied: false, names: false });
        if (this.#silentInARow >= SILENT_IN_A_ROW) this.end(asked.error);
        break;
    }
  }

  /** Delivers an answer and settles its job. What was paid is on the disk before the records leave. */
  async *deliver(key: string, answer: Answer): AsyncGenerator<Event> {
    const { book, stream, type, receipts, answers, streams, now, toLines } = this.#context;
    const before = book.get(key);
    if (before === undefined) return;
    const job = this.#settled(before, answer);
    if (before.ended === null) {
      book.charge(key, before, answer.cost);
      this.#checkpoints.spent.credits += answer.cost;
      if (book.ofThisRun.has(key)) this.hasAnswered = true;
      if (book.ofThisRun.has(key) && OUT_OF_CREDITS.has(answer.code ?? "")) this.#failures.outOfCredits();
      try {
        // What is answered at once was written with its response.
        if (type.polling !== null)
          await receipts?.write(type.setting, [
            [key, { ...job, step: answer.failed ? "failed" : "answered" }],
          ]);
      } catch (error) {
        this.#failures.end(error);
      }
    }
    if (streams.length > 1 && job.jobId !== null && answers.size < MOST_ANSWERS_KEPT)
      answers.set(job.jobId, answer);
    yield* recordsOf(stream, toLines(type.records(stream, before, answer)), now());
    this.answered += 1;
    this.#checkpoints.advance(answer.cursor);
    if (job.step === "answered" && job.owed.length === 0) book.finish(key, dayOf(job.ended ?? now()));
    else book.put(key, job);
    yield* this.#checkpoints.afterAnswer();
  }

  /** An answer was delivered that needed no request. */
  settle(key: string, job: Job): void {
    const { book, stream, now } = this.#context;
    const owed = job.owed.filter((name) => name !== stream);
    if (owed.length === 0) book.finish(key, dayOf(job.ended ?? now()));
    else book.put(key, { ...job, owed });
  }

  /** Nothing more is asked for in this run. */
  end(error: Error): void {
    this.#hasEnded = true;
    this.#ended ??= error;
  }

  /**
   * Moves the schedule of jobs that brought nothing, if another job was answered properly: an address that is wrong
   * answers 404 to everything.
   */
  async conclude(): Promise<void> {
    const { book, type, receipts } = this.#context;
    const moved: [string, Job][] = [];
    for (const [key, { code }] of this.#troubles) {
      const job = book.get(key);
      if (job === undefined || job.step === "failed") continue;
      const others = this.#proper.size - (this.#proper.has(key) ? 1 : 0);
      const next = { ...job, code, misses: job.misses + (others > 0 ? 1 : 0) };
      book.put(key, next);
      moved.push([key, next]);
    }
    await receipts?.write(type.setting, moved).catch((error: unknown) => this.#failures.end(error));
  }

  /** Why the stream fails; undefined if jobs that bring nothing are the jobs' own fault. */
  failure(): Error | undefined {
    if (this.#ended !== undefined) return this.#ended;
    if (this.#proper.size > 0) return undefined;
    const troubles = [...this.#troubles];
    const denied = troubles.filter(([, trouble]) => trouble.denied);
    if (denied.length >= DENIED) return accessDenied(denied.length, denied[0]?.[1].error);
    const news = troubles.find(([key, { names, denied: isDenied }]) => {
      const at = this.#context.book.get(key)?.at ?? 0;
      return !names && !isDenied && this.#context.now() - at < NEWS_FOR;
    });
    return news?.[1].error;
  }

  #pending(key: string, job: Job, notBefore: number | null): void {
    const { book, now, type } = this.#context;
    this.#isProper(key);
    if (isSlow(job, now()) && notBefore === null) {
      this.#troubles.set(key, {
        error: new Error("still processing"),
        code: "processing",
        denied: false,
        names: true,
      });
      return;
    }
    const misses = 0;
    book.put(key, { ...job, asked: now(), notBefore, misses, code: null });
    if (type.polling !== null)
      this.#plan(key, nextPolls(this.#polls.get(key), notBefore, type.polling, now()));
  }

  #odd(key: string, job: Job, asked: Extract<Asked, { kind: "odd" | "denied" }>): void {
    const { type, now, book } = this.#context;
    const { error, code } = asked;
    const names = asked.kind === "odd" && asked.names;
    this.#troubles.set(key, { error, code, denied: asked.kind === "denied", names });
    book.put(key, { ...job, asked: now(), code });
    const asks = (this.#oddAsks.get(key) ?? 0) + 1;
    this.#oddAsks.set(key, asks);
    this.#oddInARow += 1;
    if (this.#oddInARow >= ODD_IN_A_ROW && this.#proper.size === 0) this.end(error);
    if (asked.kind === "odd" && asked.heals && asks < ODD_ASKS && type.polling !== null)
      this.#plan(key, nextPolls(this.#polls.get(key), null, type.polling, now()));
  }

  #isProper(key: string): void {
    this.#proper.add(key);
    this.#troubles.delete(key);
    this.#oddInARow = 0;
  }

  #plan(key: string, polls: Polls): void {
    this.#polls.set(key, polls);
    if (polls.next !== null) this.#agenda.add(key, polls.next);
  }

  /** What an answer makes of a job. A failure is another try, but not one for which credits were lacking. */
  #settled(job: Job, { failed, code, cost, sources }: Answer): Job {
    const { stream, now } = this.#context;
    const known = job.ended !== null;
    const isTry = failed && !known && !OUT_OF_CREDITS.has(code ?? "");
    const tries = job.tries + (isTry ? 1 : 0);
    const isFinal = !failed || (tries > FAILED_TIMES && !OUT_OF_CREDITS.has(code ?? ""));
    return {
      ...job,
      step: isFinal ? "answered" : "failed",
      tries,
      code,
      cost: job.cost ?? cost,
      ended: job.ended ?? now(),
      notBefore: null,
      misses: 0,
      sources: [...new Set([...job.sources, ...sources])],
      owed: isFinal ? job.owed.filter((name) => name !== stream) : [],
    };
  }
}

const accessDenied = (count: number, cause: Error | undefined): ConfigError =>
  new ConfigError(
    `Cannot collect results: this key may not read ${count === 1 ? "the one job that was" : `any of the ${count} jobs that were`} asked for. Use the key that ` +
      "submitted them. Nothing is lost: they are asked for again",
    { cause },
  );
