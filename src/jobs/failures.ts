import type { RetryWhen } from "../service/error-table.ts";

/** Lost answers in a row are an outage, which must not make every item unknown. */
const UNKNOWN_IN_A_ROW = 3;
const RETRIES = 5;
const MAX_LIMITED_MS = 1_800_000;

/** Counts what goes wrong with the submissions of a run. The first failure is the stream's. */
export class SubmitFailures {
  /** Why the stream fails. */
  failure: unknown;
  /** Whether nothing more is to be submitted. */
  ended = false;
  isOutOfCredits = false;
  /** Whether the service took a submission in this run. */
  hasTaken = false;
  /** How many submissions in a row have to be tried again: how long to wait. */
  retries = 0;
  #unknownInARow = 0;
  #limitedSince: number | undefined;

  /** Whether only one submission may be under way: none was answered yet, or the last answer was lost. */
  get isProbing(): boolean {
    return !this.hasTaken || this.#unknownInARow > 0;
  }

  taken(): void {
    this.hasTaken = true;
    this.#unknownInARow = 0;
    this.retries = 0;
    this.#limitedSince = undefined;
  }

  /** Ends the submissions; what is out is still collected. */
  end(error: unknown): void {
    this.ended = true;
    this.failure ??= error;
  }

  /** The account has run dry, which is no failure of the stream. */
  outOfCredits(): void {
    this.isOutOfCredits = true;
    this.ended = true;
  }

  /** One may have been taken or not. */
  unknown(error: Error): void {
    this.#unknownInARow += 1;
    if (this.#unknownInARow >= UNKNOWN_IN_A_ROW) this.end(error);
  }

  /** Whether an item that was not taken is to be submitted again in this run. @param now ms that only grow */
  mayRetry(why: RetryWhen, now: number): boolean {
    this.#limitedSince ??= now;
    if (why === "limit") return now - this.#limitedSince <= MAX_LIMITED_MS;
    this.retries += 1;
    return why === "time" && this.retries < RETRIES;
  }
}
