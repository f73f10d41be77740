import { isDeepStrictEqual } from "node:util";
import type { Event } from "../streams/event.ts";
import { BESIDES } from "../streams/state-volume.ts";
import { dayOf } from "../time.ts";
import type { JobContext } from "./job-context.ts";
import { toJobState } from "./state.ts";
import type { JobBook } from "./store.ts";

/** What cannot be said later may use all of it; what merely saves time a part. */
const PART_FOR_ANSWERS = 0.5;
const BYTES_FINISHED = 16;
const BYTES_JOB = 420;
const BYTES_ELSE = 4_000;
/** Platforms give up on a stream that is silent for long; its state, said again, is a sign of life. */
const SIGN_OF_LIFE_MS = 180_000;

/** Writes a stream's state, often while it is small and seldom when it is large. */
export class JobCheckpoints {
  /** What was bought so far. */
  readonly spent = { submissions: 0, credits: 0 };
  /** How many states submissions still need. */
  reserved = 0;
  readonly #context: JobContext;
  #cursor: string | null;
  #written = 0;
  /** The last checkpoint; undefined while it does not cover every record. */
  #covering: Event | undefined;
  #last: number;

  constructor(context: JobContext) {
    this.#context = context;
    this.#cursor = context.cursor;
    this.#last = context.monotonic();
  }

  /** Records up to this moment were delivered. */
  advance(cursor: string | null): void {
    this.#covering = undefined;
    if (cursor !== null && (this.#cursor === null || cursor > this.#cursor)) this.#cursor = cursor;
  }

  /** The state as it is now. @param announces whether nothing else tells of what is about to be bought */
  write(announces = false): Event {
    this.#written += this.#size();
    this.#last = this.#context.monotonic();
    this.#covering = this.#checkpoint();
    return announces ? { ...this.#covering, announces } : this.#covering;
  }

  /** The last state of the run, unless it was written already: a large one takes its time. */
  *conclude(): Generator<Event> {
    if (!isDeepStrictEqual(this.#checkpoint(), this.#covering)) yield this.write();
  }

  /** The state after an answer, if states are small enough to be written so often. */
  *afterAnswer(announces = false): Generator<Event> {
    const size = this.#size();
    const isCheap = this.#written + size <= this.#allowed() * PART_FOR_ANSWERS;
    if (isCheap && this.#written + size * (this.reserved + 2) <= this.#allowed()) yield this.write(announces);
  }

  /** The state once more during a long wait. */
  *signOfLife(): Generator<Event> {
    if (this.#context.monotonic() - this.#last >= SIGN_OF_LIFE_MS) yield* this.afterAnswer();
  }

  /** How many submissions one state has to cover when so many are left; 0: nothing more may leave in this run. */
  batchOf(left: number): number {
    // The last state is kept back.
    const affordable = Math.floor((this.#allowed() - this.#written) / this.#size()) - 1;
    if (affordable < 1) return this.#written === 0 ? left : 0;
    return Math.ceil((left * (affordable < 200 ? 2 : 1)) / affordable);
  }

  #checkpoint(): Extract<Event, { kind: "checkpoint" }> {
    const { stream, cursorField, book, now } = this.#context;
    const state = toJobState(cursorField, this.#cursor, book.knowledge(dayOf(now())));
    return { kind: "checkpoint", stream, state, spent: { ...this.spent } };
  }

  #size(): number {
    const { book, stateBudget } = this.#context;
    return sizeOf(book) + stateBudget.besides();
  }

  /** The last state may hold every job as finished. */
  #allowed(): number {
    const { book, stateBudget } = this.#context;
    const { share, times, besides } = stateBudget;
    return share * BESIDES + times * (book.size * BYTES_FINISHED + besides());
  }
}

/** About how many bytes of state a book takes. */
export const sizeOf = (book: JobBook): number =>
  BYTES_ELSE + book.jobCount * BYTES_JOB + (book.size - book.jobCount) * BYTES_FINISHED;
