export const DAY_MS = 86_400_000;

/** The first moment of the UTC day that holds `ms`. */
export const startOfDay = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS;

/** The service's idea of now: it starts where it is set and runs on with real time. */
export class Clock {
  #offset: number;

  constructor(start: number) {
    this.#offset = start - Date.now();
  }

  now(): number {
    return Date.now() + this.#offset;
  }

  advance(ms: number): void {
    this.#offset += ms;
  }

  /** Jumps to one minute past the next UTC midnight. */
  passMidnight(): void {
    const now = this.now();
    this.advance(startOfDay(now) + DAY_MS + 60_000 - now);
  }
}
