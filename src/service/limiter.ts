import type { Clock } from "../base/clock.ts";

/** The minute of the service's limit, and one second because requests arrive with different delays. */
const SPAN_MS = 61_000;
const BURST = 15;

/** Limits the requests of one API key to `perMinute` in any 61 seconds. After a small burst, requests start at even intervals. */
export class Limiter {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #interval: number;
  readonly #burst: number;
  readonly #starts: number[] = [];
  #even = Number.NEGATIVE_INFINITY;
  #blockedUntil = Number.NEGATIVE_INFINITY;
  #queue: Promise<void> = Promise.resolve();

  /** @param burst the number of requests that may start at once */
  constructor(perMinute: number, clock: Clock, burst: number = BURST) {
    this.#perMinute = perMinute;
    this.#burst = Math.min(burst, perMinute);
    this.#interval = SPAN_MS / perMinute;
    this.#clock = clock;
  }

  /** Waits until the caller's request may start, in the order of the calls. */
  take(signal?: AbortSignal): Promise<void> {
    const turn = this.#queue.then(() => this.#start(signal));
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  /** Delays all starts for the given time. */
  block(ms: number): void {
    this.#blockedUntil = Math.max(this.#blockedUntil, this.#clock.monotonic() + ms);
  }

  async #start(signal: AbortSignal | undefined): Promise<void> {
    for (let wait = this.#wait(); wait > 0; wait = this.#wait()) await this.#clock.sleep(wait, signal);
    const now = this.#clock.monotonic();
    this.#even = Math.max(this.#even, now) + this.#interval;
    this.#starts.push(now);
    if (this.#starts.length > this.#perMinute) this.#starts.shift();
  }

  #wait(): number {
    const oldest =
      this.#starts.length < this.#perMinute ? Number.NEGATIVE_INFINITY : (this.#starts[0] ?? 0) + SPAN_MS;
    const even = this.#even - (this.#burst - 1) * this.#interval;
    return Math.ceil(Math.max(oldest, even, this.#blockedUntil) - this.#clock.monotonic());
  }
}
