import type { RetryWhen } from "../service/error-table.ts";

/** This many lost answers in a row are an outage. More submissions would only make more items unknown. */
const UNKNOWN_IN_A_ROW = 3;
const RETRIES = 5;
const MAX_LIMITED_MS = 1_800_000;

/** Counts the problems of a run's submissions. The first failure is the failure of the stream. */
export class SubmitFailures {
  /** Why the stream fails. */
  failure: unknown;
  /** Whether the run submits nothing more. */
  ended = false;
  isOutOfCredits = false;
  /** Whether the service took a submission in this run. */
  hasTaken = false;
  /** The number of submissions in a row that must be repeated. Each makes the next pause longer. */
  retries = 0;
  #unknownInARow = 0;
  #limitedSince: number | undefined;

  /** Whether submissions go one by one: the service has taken none yet, or the last answer was lost. */
  get isProbing(): boolean {
    return !this.hasTaken || this.#unknownInARow > 0;
  }

  taken(): void {
    this.hasTaken = true;
    this.#unknownInARow = 0;
    this.retries = 0;
    this.#limitedSince = undefined;
  }

  /** Ends the submissions. Open jobs are still polled. */
  end(error: unknown): void {
    this.ended = true;
    this.failure ??= error;
  }

  /** Ends the submissions without a failure, because the account has no credits. */
  outOfCredits(): void {
    this.isOutOfCredits = true;
    this.ended = true;
  }

  /** Notes a submission whose answer was lost. */
  unknown(error: Error): void {
    this.#unknownInARow += 1;
    if (this.#unknownInARow >= UNKNOWN_IN_A_ROW) this.end(error);
  }

  /** Whether this run submits an item again that the service did not take. @param now monotonic ms */
  mayRetry(why: RetryWhen, now: number): boolean {
    this.#limitedSince ??= now;
    if (why === "limit") return now - this.#limitedSince <= MAX_LIMITED_MS;
    this.retries += 1;
    return why === "time" && this.retries < RETRIES;
  }
}
