import type { Event } from "../streams/event.ts";
import { dayOf } from "../time.ts";
import type { JobContext } from "./job-context.ts";
import { toJobState } from "./state.ts";
import type { JobBook } from "./store.ts";

/** All state that one run writes: at most so many times the last one, and so many bytes besides. */
const TIMES = 20;
const BESIDES = 8 * 1024 * 1024;
/** What cannot be said later may use all of it; what merely saves time a part. */
const PART_FOR_ANSWERS = 0.5;
const BYTES_FINISHED = 16;
const BYTES_JOB = 420;
const BYTES_ELSE = 4_000;
/** Platforms give up on a stream that is silent for long; its state, said again, is a sign of life. */
const SIGN_OF_LIFE_MS = 180_000;

/** Writes a stream's state, often while it is small and seldom when it is large. */
export class JobCheckpoints {
  readonly #context: JobContext;
  #cursor: string | null;
  #written = 0;
  #last: number;

  constructor(context: JobContext) {
    this.#context = context;
    this.#cursor = context.cursor;
    this.#last = context.monotonic();
  }

  /** Records up to this moment were delivered. */
  advance(cursor: string | null): void {
    if (cursor !== null && (this.#cursor === null || cursor > this.#cursor)) this.#cursor = cursor;
  }

  /** The state as it is now. */
  write(): Event {
    const { stream, cursorField, book, now, monotonic } = this.#context;
    this.#written += sizeOf(book);
    this.#last = monotonic();
    const state = toJobState(cursorField, this.#cursor, book.knowledge(dayOf(now())));
    return { kind: "checkpoint", stream, state };
  }

  /** The state after an answer, if states are small enough to be written so often. */
  *afterAnswer(): Generator<Event> {
    const { book } = this.#context;
    if (this.#written + sizeOf(book) <= this.#allowed() * PART_FOR_ANSWERS) yield this.write();
  }

  /** The state once more during a long wait. */
  *signOfLife(): Generator<Event> {
    if (this.#context.monotonic() - this.#last >= SIGN_OF_LIFE_MS) yield* this.afterAnswer();
  }

  /** How many submissions one state has to cover when so many are left. */
  batchOf(left: number): number {
    const size = sizeOf(this.#context.book);
    // The last state is kept back.
    const affordable = Math.floor((this.#allowed() - this.#written) / size) - 1;
    return affordable < 1 ? left : Math.ceil((left * (affordable < 200 ? 2 : 1)) / affordable);
  }

  #allowed(): number {
    const { book, share } = this.#context;
    return share * (BESIDES + TIMES * book.size * BYTES_FINISHED);
  }
}

const sizeOf = (book: JobBook): number =>
  BYTES_ELSE + book.jobCount * BYTES_JOB + (book.size - book.jobCount) * BYTES_FINISHED;
