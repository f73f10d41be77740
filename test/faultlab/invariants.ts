import type { StreamState } from "../../src/sync/event.ts";
import type { Delivered, Outcome } from "./lab.ts";

const DAY_MS = 86_400_000;

type State = {
  readonly discoveredAt: string | null;
  /** Absent in the state of a stream that is read as one body. */
  readonly missing_days?: readonly string[];
  readonly undated: "pending" | "done";
};

/** All runs of one pipeline so far, as its destination sees them. */
export class Destination {
  /** The newest delivered version of each person. */
  readonly people = new Map<string, Delivered>();
  readonly #versions = new Set<string>();

  take(records: readonly Delivered[]): void {
    for (const record of records) {
      this.#versions.add(versionOf(record));
      const known = this.people.get(record.id);
      if (known === undefined || (record.discoveredAt ?? "") >= (known.discoveredAt ?? "")) {
        this.people.set(record.id, record);
      }
    }
  }

  has(record: Delivered): boolean {
    return this.#versions.has(versionOf(record));
  }

  /** Rows that the service serves and that have not arrived as they are. */
  lacks(served: readonly Delivered[]): Delivered[] {
    return served.filter((person) => !this.has(person));
  }
}

const versionOf = ({ id, discoveredAt }: Delivered): string => `${id} ${discoveredAt}`;

/** Records that a run emitted more than once. */
export function repeatedIn({ records }: Outcome): number {
  return records.length - new Set(records.map((one) => `${versionOf(one)} ${one.content}`)).size;
}

/** Who was served before a run and still stands where they were after it. */
export function stayed(before: readonly Delivered[], after: readonly Delivered[]): Delivered[] {
  const now = new Set(after.map(versionOf));
  return before.filter((person) => now.has(versionOf(person)));
}

/** What is wrong with the checkpoints of a run: rows that they cover and that had not gone out. */
export function aheadOfDelivery(
  outcome: Outcome,
  earlier: Destination,
  still: readonly Delivered[],
): string[] {
  return outcome.checkpoints.flatMap(({ state, after }) => {
    const sent = new Set(outcome.records.slice(0, after).map(versionOf));
    const lost = still.filter(
      (person) => covers(state, person) && !sent.has(versionOf(person)) && !earlier.has(person),
    );
    return lost.length === 0
      ? []
      : [`state ${String(state["discoveredAt"])} is ahead of ${lost.length} rows`];
  });
}

/** Days before the day before the cursor are final; those are what a state claims beyond doubt. */
function covers(blob: StreamState, { discoveredAt }: Delivered): boolean {
  const state = blob as unknown as State;
  if (state.missing_days === undefined) return true;
  if (discoveredAt === null) return state.undated === "done";
  if (state.discoveredAt === null || state.missing_days.includes(discoveredAt.slice(0, 10))) return false;
  return Date.parse(discoveredAt) < startOfDay(Date.parse(state.discoveredAt)) - DAY_MS;
}

/** What a green run must have brought: every row of a day before yesterday, and every row without a date. */
export function lackedByGreen(
  destination: Destination,
  still: readonly Delivered[],
  now: number,
): Delivered[] {
  const yesterday = startOfDay(now) - DAY_MS;
  return destination
    .lacks(still)
    .filter(({ discoveredAt }) => discoveredAt === null || Date.parse(discoveredAt) < yesterday);
}

const startOfDay = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS;
