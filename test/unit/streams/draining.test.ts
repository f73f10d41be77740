import { describe, expect, it } from "vitest";
import type { RawLine } from "../../../src/streams/event.ts";
import type { Batch, Count, Row, StreamApi } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import { addDays, type Day, startOf } from "../../../src/time.ts";
import { dice } from "../../support/dice.ts";
import { runStream } from "../../support/sync-run.ts";

const NOW = Date.parse("2026-03-20T10:00:00Z");
const DAY_MS = 86_400_000;
const REQUEST_MS = 100;
const BATCH = 1_000;

type Account = {
  readonly people: number;
  readonly days: number;
  /** People that are checked again each second, and who they are. */
  readonly rate: number;
  readonly order: "oldest" | "random";
  /** Rows that all exports together show in a second. */
  readonly speed: number;
};

/** A large account whose people are checked again, and so leave their day for today, while it is read. */
class DrainingService {
  now = NOW;
  requests = 0;
  rowsShown = 0;
  /** When each person was checked last; the oldest first when the account was made. */
  readonly #at: Float64Array;
  readonly #account: Account;
  readonly #roll = dice(1);
  #moved = 0;

  constructor(account: Account) {
    const { people, days } = account;
    this.#account = account;
    const first = NOW - days * DAY_MS;
    this.#at = Float64Array.from({ length: people }, (_, nth) =>
      Math.floor(first + (nth / people) * (days * DAY_MS - 60_000)),
    );
  }

  /** The row of each person as it stands. */
  *rows(): Generator<Row> {
    for (const [id, at] of this.#at.entries()) yield rowOf(id, at);
  }

  api(): StreamApi {
    const refuse = (): never => {
      throw new Error("Not asked of this service");
    };
    return {
      count: async (window) => this.#count(window),
      stream: (window) => this.#stream(window),
      rowAt: async (window, place) => this.#rowAt(window, place),
      ...{ hasRows: refuse, page: refuse, sources: async () => undefined },
      backOff: async (failures) => this.#pass(failures * 1_000),
      now: () => this.now,
      monotonic: () => this.now,
      notify: () => {},
    };
  }

  /** Time passes, and whoever is due is checked again. */
  #pass(ms: number): void {
    this.now += ms;
    const { people, rate, order } = this.#account;
    const due = Math.floor(((this.now - NOW) / 1000) * rate);
    for (; this.#moved < due; this.#moved++) {
      this.#at[order === "oldest" ? this.#moved % people : this.#roll(people)] = this.now;
    }
  }

  #idsIn(window: Window): number[] {
    const [from, to] = boundsOf(window);
    const ids: number[] = [];
    for (let id = 0; id < this.#at.length; id++) if (this.#isIn(id, from, to)) ids.push(id);
    return ids;
  }

  #isIn(id: number, from: number, to: number): boolean {
    const at = this.#at[id] ?? 0;
    return at >= from && at < to;
  }

  #count(window: Window): Count {
    this.requests += 1;
    const sent = this.now;
    this.#pass(REQUEST_MS);
    const rows = this.#idsIn(window).length;
    return { rows, undated: 0, known: true, asked: sent - 1_000, answered: this.now + 1_000 };
  }

  #rowAt(window: Window, place: number): { row: Row | undefined; total: number } {
    this.requests += 1;
    this.#pass(REQUEST_MS);
    const newestFirst = this.#idsIn(window).sort((a, b) => (this.#at[b] ?? 0) - (this.#at[a] ?? 0));
    const id = newestFirst[place - 1];
    return { row: id === undefined ? undefined : rowOf(id, this.#at[id] ?? 0), total: newestFirst.length };
  }

  /** Like a cursor over an index: who has moved on is not shown where they were. */
  async *#stream(window: Window): AsyncGenerator<Batch> {
    this.requests += 1;
    this.#pass(REQUEST_MS);
    const [from, to] = boundsOf(window);
    const ids = this.#idsIn(window);
    for (let at = 0; at < ids.length; at += BATCH) {
      const here = ids.slice(at, at + BATCH).filter((id) => this.#isIn(id, from, to));
      this.rowsShown += here.length;
      yield { rows: here.map((id) => rowOf(id, this.#at[id] ?? 0)) };
      this.#pass((BATCH / this.#account.speed) * 1000);
    }
  }
}

function boundsOf(window: Window): readonly [from: number, to: number] {
  const from = "from" in window ? startOf(window.from as Day) : Number.NEGATIVE_INFINITY;
  return [from, window.kind === "closed" ? startOf(addDays(window.to, 1)) : Number.POSITIVE_INFINITY];
}

function rowOf(id: number, at: number): Row {
  const cursor = new Date(at).toISOString();
  return { raw: `{"id":${id},"discoveredAt":"${cursor}"}` as RawLine, key: String(id), cursor };
}

const ACCOUNTS: readonly (readonly [string, Account])[] = [
  [
    "600,000 people, of whom 24 a second are checked again at random",
    { people: 600_000, days: 3_650, rate: 24, order: "random", speed: 50_000 },
  ],
  [
    "300,000 people of 30 days, of whom 100 a second are checked again, the oldest first",
    { people: 300_000, days: 30, rate: 100, order: "oldest", speed: 30_000 },
  ],
];

describe("a first sync of a large account that drains", () => {
  it.each(ACCOUNTS)("reads at most 1.2 times the rows of %s", async (_, account) => {
    const service = new DrainingService(account);
    const { lines, state, complete, error, missing, again } = await runStream(service.api());
    expect({ complete, error }).toEqual({ complete: true, error: undefined });
    expect(missing).toEqual([]);
    expect(state?.undated).toEqual({ rows: 0, seen: [] });
    expect(service.rowsShown / account.people).toBeLessThanOrEqual(1.2);
    expect(service.requests).toBeLessThan(60);
    const delivered = new Set(lines);
    const isToBeChecked = (day: string): boolean =>
      again.some(([first, last]) => first <= day && day <= last);
    for (const { raw, cursor } of service.rows()) {
      const day = (cursor ?? "").slice(0, 10);
      if (day < "2026-03-19" && !isToBeChecked(day) && !delivered.has(raw)) expect(raw).toBe("delivered");
    }
  });
});
