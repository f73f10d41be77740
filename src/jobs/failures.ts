import { ConfigError } from "../base/errors.ts";
import type { Refusal } from "./job-type.ts";

/** Lost answers in a row are an outage, which must not make every item unknown. */
const UNKNOWN_IN_A_ROW = 3;
/** After this many refusals of the form of a request, and none taken, the form must be wrong. */
const FORM_REFUSALS = 3;
const RETRIES = 5;
const MAX_LIMITED_MS = 1_800_000;

/**
 * The step after a submission that the service did not take: submit the item again; refuse it; refuse it as soon as the
 * service takes another one; submit nothing more.
 */
type Recovery = "again" | "refuse" | "doubt" | "end";

/** Counts what goes wrong with the submissions of a run. The first failure is the stream's. */
export class SubmitFailures {
  /** Why the stream fails. */
  failure: Error | undefined;
  /** Whether nothing more is to be submitted. */
  ended = false;
  isOutOfCredits = false;
  /** Whether the service took a submission in this run. */
  hasTaken = false;
  /** How many submissions in a row have to be tried again: how long to wait. */
  retries = 0;
  #unknownInARow = 0;
  #form = 0;
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
    this.failure ??= error instanceof Error ? error : new Error(String(error));
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

  /** One was not taken. `now`: ms that only grow. */
  refused(error: Error, why: Refusal, now: number): Recovery {
    if (why === "is-answer" || (why === "other-item" && this.hasTaken)) return "refuse";
    if (why === "other-item") {
      this.#form += 1;
      if (this.#form >= FORM_REFUSALS) this.end(wrongForm(error));
      return "doubt";
    }
    if (why === "limit") {
      this.#limitedSince ??= now;
      if (now - this.#limitedSince <= MAX_LIMITED_MS) return "again";
    }
    if (why === "time") {
      this.retries += 1;
      if (this.retries < RETRIES) return "again";
    }
    if (why === "credits") this.outOfCredits();
    else this.end(error);
    return "end";
  }
}

const wrongForm = (cause: Error): ConfigError =>
  new ConfigError(
    `${cause.message}. The service refused ${FORM_REFUSALS} submissions and took none, so nothing more was submitted. ` +
      "Check the items, and the address of the service",
    { cause },
  );
