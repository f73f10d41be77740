import type { Answer, Saved } from "./job-family.ts";
import type { Job, Jobs } from "./job-moves.ts";

const MOST_TRIES = 3;
const MOST_RESENT = 1;

/** What is known of every item: the only place where an item comes to another step. */
export class JobBook {
  readonly #jobs: Map<string, Job>;
  readonly #now: () => number;
  #cursor: string | null;

  constructor(saved: Saved, now: () => number) {
    this.#jobs = new Map(saved.jobs);
    this.#cursor = saved.cursor;
    this.#now = now;
  }

  get jobs(): Jobs {
    return this.#jobs;
  }

  /** The newest moment that an answer had. */
  get cursor(): string | null {
    return this.#cursor;
  }

  /** A POST is about to leave. Returns what takes that back, for one that the service has not taken. */
  intend(key: string): () => void {
    const before = this.#jobs.get(key);
    this.#step(key, "submitting", null);
    return () => {
      if (before === undefined) this.#jobs.delete(key);
      else this.#jobs.set(key, before);
    };
  }

  submitted(key: string, jobId: string, notBefore: number | null): void {
    this.#step(key, "submitted", jobId, notBefore);
  }

  /** There is no answer yet. */
  pending(key: string, job: Job, notBefore: number | null): void {
    this.#jobs.set(key, { ...job, notBefore });
  }

  /** An answer of which a part failed is worth another try, a few times in all. */
  answered(key: string, { again, cursor }: Answer): void {
    const { tries = 0, jobId = null } = this.#jobs.get(key) ?? {};
    const isFinal = !again || tries + 1 >= MOST_TRIES;
    const counted = { tries: isFinal ? 0 : tries + 1, resent: 0 };
    this.#jobs.set(key, {
      ...counted,
      step: isFinal ? "done" : "again",
      at: this.#now(),
      jobId,
      notBefore: null,
    });
    this.#cursor = later(this.#cursor, cursor);
  }

  /** The refusal of an item is its answer. */
  settled(key: string): void {
    this.#step(key, "done", null);
  }

  denied(key: string, { jobId }: Job): void {
    this.#step(key, "denied", jobId);
  }

  /** Lost once, it is submitted anew; lost twice, it is given up. */
  lost(key: string, job: Job): void {
    const isFinal = job.resent >= MOST_RESENT;
    const resent = isFinal ? job.resent : job.resent + 1;
    this.#jobs.set(key, {
      ...job,
      step: isFinal ? "lost" : "again",
      at: this.#now(),
      notBefore: null,
      resent,
    });
  }

  #step(key: string, step: Job["step"], jobId: string | null, notBefore: number | null = null): void {
    const { tries = 0, resent = 0, step: before } = this.#jobs.get(key) ?? {};
    // What was given up and is asked for again begins anew.
    const counts = before === "lost" ? { tries: 0, resent: 0 } : { tries, resent };
    this.#jobs.set(key, { ...counts, step, at: this.#now(), jobId, notBefore });
  }
}

function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
}
