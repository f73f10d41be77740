/** A state that need not be written now is preceded by this many times the last one's writing time without one. */
const TIMES_WITHOUT_STATE = 20;

/** Keeps the writing of states, which may be large, to a twentieth of a run's time. Moments are ms that only grow. */
export class StateShare {
  #began = 0;
  #ended = 0;

  /** When the last state was written. */
  get writtenAt(): number {
    return this.#ended;
  }

  /** How long the run goes on without a state. */
  get pauseMs(): number {
    return TIMES_WITHOUT_STATE * (this.#ended - this.#began);
  }

  begin(now: number): void {
    this.#began = now;
    this.#ended = now;
  }

  end(now: number): void {
    this.#ended = now;
  }

  isDue(now: number): boolean {
    return now - this.#ended >= this.pauseMs;
  }
}
