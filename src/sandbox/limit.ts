import { ServiceError } from "./envelope.ts";

const WINDOW_MS = 60_000;

/** At most so many admitted requests in any minute; 0 means no limit. */
export class RateLimit {
  readonly #perMinute: number;
  #admitted: number[] = [];

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Counts a request, or refuses it with the seconds after which one will be admitted. */
  admit(now: number): void {
    if (this.#perMinute === 0) return;
    this.#admitted = this.#admitted.filter((at) => at > now - WINDOW_MS && at <= now);
    const [oldest] = this.#admitted;
    if (oldest !== undefined && this.#admitted.length >= this.#perMinute) {
      throw tooMany(Math.max(1, Math.ceil((oldest + WINDOW_MS - now) / 1000)));
    }
    this.#admitted.push(now);
  }
}

function tooMany(seconds: number): ServiceError {
  return new ServiceError(
    429,
    "RATE_LIMIT_EXCEEDED",
    "Too many requests: the limit of this key is used up for now",
    {
      "retry-after": String(seconds),
    },
  );
}
