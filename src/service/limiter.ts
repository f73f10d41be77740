import type { Clock } from "./clock.ts";

/** The service measures a minute at its end, jitter included. */
export const SPAN_MS = 61_000;
const BURST = 15;
/** A start that comes later than this after its turn may meet the turns of others. */
const MOST_LATE_MS = 500;

/** Starts requests of one API key: never more than `perMinute` in any 61 seconds, a small burst first, then evenly. */
export class Limiter {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #interval: number;
  readonly #burst: number;
  readonly #shared: ((ahead: number) => Promise<number>) | undefined;
  readonly #starts: number[] = [];
  #even = Number.NEGATIVE_INFINITY;
  #blockedUntil = Number.NEGATIVE_INFINITY;
  #queue: Promise<void> = Promise.resolve();

  /**
   * @param shared says in how many ms a start is this run's turn, not before `ahead` ms, where several runs share the key
   * @param burst how many may start at once
   */
  constructor(
    perMinute: number,
    clock: Clock,
    shared?: (ahead: number) => Promise<number>,
    burst: number = BURST,
  ) {
    this.#perMinute = perMinute;
    this.#burst = Math.min(burst, perMinute);
    this.#interval = SPAN_MS / perMinute;
    this.#clock = clock;
    this.#shared = shared;
  }

  /** Resolves when the caller's request may start, first come first served. */
  take(signal?: AbortSignal): Promise<void> {
    const turn = this.#queue.then(() => this.#start(signal));
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  /** Lets nothing start for the next `ms`. */
  block(ms: number): void {
    this.#blockedUntil = Math.max(this.#blockedUntil, this.#clock.monotonic() + ms);
  }

  async #start(signal: AbortSignal | undefined): Promise<void> {
    let late = 0;
    do {
      for (let wait = this.#wait(); wait > 0; wait = this.#wait()) await this.#clock.sleep(wait, signal);
      const turn = Math.ceil((await this.#shared?.(Math.min(late, SPAN_MS))) ?? 0);
      late = turn > 0 ? (await this.#sleep(turn, signal)) - turn : -turn;
      // A turn that came while all were blocked, that was slept through or had passed before it was known is lost.
    } while (this.#wait() > 0 || late > MOST_LATE_MS);
    const now = this.#clock.monotonic();
    this.#even = Math.max(this.#even, now) + this.#interval;
    this.#starts.push(now);
    if (this.#starts.length > this.#perMinute) this.#starts.shift();
  }

  /** Resolves to the ms that it took. */
  async #sleep(ms: number, signal: AbortSignal | undefined): Promise<number> {
    const begun = this.#clock.monotonic();
    await this.#clock.sleep(ms, signal);
    return this.#clock.monotonic() - begun;
  }

  #wait(): number {
    const oldest =
      this.#starts.length < this.#perMinute ? Number.NEGATIVE_INFINITY : (this.#starts[0] ?? 0) + SPAN_MS;
    const even = this.#even - (this.#burst - 1) * this.#interval;
    const own = this.#shared === undefined ? Math.max(oldest, even) : Number.NEGATIVE_INFINITY;
    return Math.ceil(Math.max(own, this.#blockedUntil) - this.#clock.monotonic());
  }
}
