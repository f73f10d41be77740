export const DAY_MS = 86_400_000;

/** The first moment of the UTC day that contains `ms`. */
export const startOfDay = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS;

export const iso = (ms: number): string => new Date(ms).toISOString();

/** The service's clock: it starts where it is set and runs on with real time. */
export class Clock {
  #offset: number;

  constructor(start: number) {
    this.#offset = start - Date.now();
  }

  /** Epoch ms. */
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

const TWO = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, "0"));
const THREE = Array.from({ length: 1000 }, (_, value) => String(value).padStart(3, "0"));

/** A formatter of epoch ms as `YYYY-MM-DDTHH:MM:SS.mmmZ`, cheap when neighbouring calls share a day. */
export function timestampWriter(): (ms: number) => string {
  let day = Number.NaN;
  let prefix = "";
  return (ms) => {
    const current = Math.floor(ms / DAY_MS);
    if (current !== day) {
      day = current;
      prefix = iso(ms).slice(0, 11);
    }
    const rest = ms - current * DAY_MS;
    const seconds = Math.floor(rest / 1000);
    const minutes = Math.floor(seconds / 60);
    return `${prefix}${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}.${THREE[rest % 1000]}Z`;
  };
}
