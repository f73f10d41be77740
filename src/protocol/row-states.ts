import type { Event } from "../streams/event.ts";
import { BESIDES, PART_OF_ROWS, TIMES } from "../streams/state-volume.ts";

/**
 * Spreads the states of streams of rows over their rows, where each state also holds jobs and may be large. A checkpoint
 * that is left out is said by the next state.
 */
export class RowStates {
  readonly #share: number;
  #expected = 0;
  #seen = 0;
  #written = 0;

  /** @param streams how many streams of rows there are */
  constructor(streams: number) {
    this.#share = PART_OF_ROWS / streams;
  }

  note(event: Event): void {
    if (event.kind === "open") {
      this.#expected = 0;
      this.#seen = 0;
      this.#written = 0;
    }
    if (event.kind === "estimate") this.#expected = event.rows;
    if (event.kind === "records") this.#seen += event.lines.length;
  }

  /** Whether a state of about so many bytes may be said. One more is kept back for the end. */
  lets(size: number): boolean {
    const progress = this.#seen < this.#expected ? this.#seen / this.#expected : 1;
    return this.#written + 2 * size <= this.#share * (TIMES * size + BESIDES) * progress;
  }

  wrote(size: number): void {
    this.#written += size;
  }
}
