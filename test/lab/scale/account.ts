import type { StreamApi } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import { addDays, type Day, daysBetween, startOf } from "../../../src/time.ts";
import { apiWith } from "../../support/run-rules.ts";

/** How the people of an account are spread over its days. */
const DAYS = { "ten years": 3650, "last 30 days": 30, "one day": 1, "re-checked monthly": 30 };

export type Spread = keyof typeof DAYS;

export const SPREADS = Object.keys(DAYS) as Spread[];

const TODAY = "2026-11-21" as Day;
const DAY_SECONDS = 86_400;

/**
 * An account at the level of counts: no row exists, only how many there are of each day. People who are re-checked leave
 * the oldest day for today while the simulated clock runs.
 */
export class Account {
  readonly #people: number;
  readonly #days: number;
  readonly #oldest: Day;
  readonly #leavePerSecond: number;
  /** Simulated seconds since the start of the load. */
  seconds = 0;
  requests = 0;

  constructor(people: number, spread: Spread) {
    this.#people = people;
    this.#days = DAYS[spread];
    // The newest of these days is three days ago, so that all of them are closed.
    this.#oldest = addDays(TODAY, -this.#days - 2);
    this.#leavePerSecond = spread === "re-checked monthly" ? people / (30 * DAY_SECONDS) : 0;
  }

  /** How many people a window holds now. */
  rows(window: Window): number {
    if (window.kind === "undated") return 0;
    const left = Math.min(this.#people, this.seconds * this.#leavePerSecond);
    const from = window.kind === "all" ? this.#oldest : window.from;
    const upTo = window.kind === "closed" ? this.#before(addDays(window.to, 1)) : this.#people;
    const isOpen = window.kind !== "closed";
    return Math.round(Math.max(0, upTo - Math.max(this.#before(from), left)) + (isOpen ? left : 0));
  }

  /** The day of the person at a place of the list, newest first. */
  dayAt(place: number): Day {
    const older = Math.max(0, this.#people - place);
    return addDays(this.#oldest, Math.min(this.#days - 1, Math.floor((older * this.#days) / this.#people)));
  }

  #before(day: Day): number {
    const days = Math.min(
      this.#days,
      Math.max(0, day > this.#oldest ? daysBetween(this.#oldest, day) - 1 : 0),
    );
    return (this.#people * days) / this.#days;
  }
}

/** What the planner asks, answered by an account. Each question is a request and takes 0.1 s. */
export function accountApi(account: Account): StreamApi {
  const asked = (): number => {
    account.requests += 1;
    account.seconds += 0.1;
    return startOf(TODAY) + account.seconds * 1000;
  };
  return apiWith({
    count: async (window) => {
      const at = asked();
      return { rows: account.rows(window), undated: 0, known: true, asked: at, answered: at };
    },
    rowAt: async (window, place) => {
      asked();
      const total = account.rows(window);
      const cursor = `${account.dayAt(place)}T12:00:00Z`;
      return { row: place > total ? undefined : { raw: "" as never, key: '"1"', cursor }, total };
    },
    now: () => startOf(TODAY) + account.seconds * 1000,
    monotonic: () => account.seconds * 1000,
  });
}
