import type { Healing } from "./job-family.ts";

/** Failures in a row are no accident: an outage must not make an unknown of every item. */
const FAILURES_IN_A_ROW = 3;
const HEALING_TRIES = 5;
const LONGEST_LIMITED = 1_800_000;

/** What has gone wrong with the submissions of a run. The first failure is the stream's. */
export class Setbacks {
  /** Why the stream has failed. */
  failure: Error | undefined;
  /** Whether nothing more is to be submitted. */
  ended = false;
  #inARow = 0;
  #healing = 0;
  #limitedSince: number | undefined;

  /** The service has taken one: it is well. */
  taken(): void {
    this.#inARow = 0;
    this.#healing = 0;
    this.#limitedSince = undefined;
  }

  /** Ends the submissions; what is in flight is still waited for. */
  end(error: unknown): void {
    this.ended = true;
    this.failure ??= error instanceof Error ? error : new Error(String(error));
  }

  /** One may have been taken or not. */
  unknown(error: Error): void {
    this.#inARow += 1;
    if (this.#inARow >= FAILURES_IN_A_ROW) this.end(error);
  }

  /** One was not taken. Returns after how many failures to back off, if that is what helps. */
  refused(error: Error, heals: Healing, monotonic: number): number | undefined {
    switch (heals) {
      case "limit":
        this.#limitedSince ??= monotonic;
        if (monotonic - this.#limitedSince > LONGEST_LIMITED) this.end(error);
        return undefined;
      case "time":
        this.#healing += 1;
        if (this.#healing < HEALING_TRIES) return this.#healing;
        this.end(error);
        return undefined;
      case "other-item":
        this.failure ??= error;
        this.unknown(error);
        return undefined;
      case "is-answer":
        return undefined;
      case "operator":
        this.end(error);
        return undefined;
    }
  }
}
