import type { Sandbox } from "../../../sandbox/server.ts";
import type { Config } from "../../../src/config/config.ts";
import type { StreamState } from "../../../src/streams/event.ts";
import { type Delivered, Hung, type Outcome } from "./read-once.ts";

const DAY_MS = 86_400_000;

type State = {
  /** Absent in the state of a stream that is read as one body. */
  readonly days?: readonly (readonly [from: string, to: string, rows: number | null, status?: string])[];
  readonly undated: object | null;
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

/** The first of the rows, for a message. */
export const nameOf = ([row]: readonly Delivered[]): string => (row === undefined ? "none" : versionOf(row));

const versionOf = ({ id, discoveredAt }: Delivered): string => `${id} ${discoveredAt}`;

/** Records that a run emitted more than once. */
function repeatedIn({ records }: Outcome): number {
  return records.length - new Set(records.map((one) => `${versionOf(one)} ${one.content}`)).size;
}

/** Who was served before a run and still stands where they were after it. */
function stayed(before: readonly Delivered[], after: readonly Delivered[]): Delivered[] {
  const now = new Set(after.map(versionOf));
  return before.filter((person) => now.has(versionOf(person)));
}

/** Whether a run from a state must bring every row without a date: later runs look for newcomers once in a UTC day. */
const isPending = (state: StreamState | null): boolean => (state?.["undated"] ?? null) === null;

/** What is wrong with the checkpoints of a run: rows that they cover and that had not gone out. */
export function aheadOfDelivery(
  outcome: Outcome,
  earlier: Destination,
  still: readonly Delivered[],
  bringsUndated: boolean,
): string[] {
  return outcome.checkpoints.flatMap(({ state, after }) => {
    const sent = new Set(outcome.records.slice(0, after).map(versionOf));
    const lost = still.filter(
      (person) =>
        covers(state, person, bringsUndated) && !sent.has(versionOf(person)) && !earlier.has(person),
    );
    return lost.length === 0
      ? []
      : [`state ${String(state["discoveredAt"])} is ahead of ${lost.length} rows, as ${nameOf(lost)}`];
  });
}

/** Whether a state claims a row: its day is proven. Rows without a date are claimed by the run that brings them all. */
function covers(savedState: StreamState, { discoveredAt }: Delivered, bringsUndated: boolean): boolean {
  const state = savedState as unknown as State;
  if (state.days === undefined) return true;
  if (discoveredAt === null) return bringsUndated && state.undated !== null;
  const held = spanAt(state, discoveredAt);
  return held !== undefined && held[3] === undefined;
}

function spanAt({ days = [] }: State, discoveredAt: string): NonNullable<State["days"]>[number] | undefined {
  const day = discoveredAt.slice(0, 10);
  return days.find(([from, to]) => from <= day && day <= to);
}

/**
 * What a complete run should have brought and did not: rows of days before yesterday, save days that its state lists
 * as missing or to be checked again, and rows without a date if it brings them. `now`: of its first request.
 */
function lackedByComplete(
  destination: Destination,
  { checkpoints }: Outcome,
  still: readonly Delivered[],
  { now, bringsUndated }: { readonly now: number; readonly bringsUndated: boolean },
): Delivered[] {
  const yesterday = startOfDay(now) - DAY_MS;
  const state = (checkpoints.at(-1)?.state ?? {}) as unknown as State;
  return destination
    .lacks(still)
    .filter(({ discoveredAt }) =>
      discoveredAt === null
        ? bringsUndated
        : Date.parse(discoveredAt) < yesterday && spanAt(state, discoveredAt)?.[3] === undefined,
    );
}

const startOfDay = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS;

/** The runs of one connection, whose state goes from each to the next, and which promises they broke. */
export class Pipeline {
  readonly destination = new Destination();
  readonly violations: string[] = [];
  /** How many records came twice in a run. */
  repeated = 0;
  /** Who stayed where they were during the last run. */
  still: readonly Delivered[] = [];
  state: StreamState | null = null;
  readonly #sandbox: Sandbox;
  readonly #served: () => readonly Delivered[];
  readonly #counts: boolean;

  /**
   * @param served what a reader is to have by now
   * @param counts whether a run that is to bring everyone without a date can: who leaves a filter between two counts hides
   * somebody until the counts of the next day
   */
  constructor(sandbox: Sandbox, served: () => readonly Delivered[], counts = true) {
    this.#sandbox = sandbox;
    this.#served = served;
    this.#counts = counts;
  }

  /** Rows that are served and have not come. */
  lacking(): readonly Delivered[] {
    return this.destination.lacks(this.#served());
  }

  /** @param name stands before each promise that the run breaks */
  async run(read: (state: StreamState | null) => Promise<Outcome>, name = ""): Promise<Outcome> {
    const violate = (what: string): void => void this.violations.push(`${name}${what}`);
    const before = this.#served();
    const asked = this.#sandbox.requests.length;
    const outcome = await read(this.state);
    this.still = stayed(before, this.#served());
    const bringsUndated = this.#counts && isPending(this.state);
    aheadOfDelivery(outcome, this.destination, this.still, bringsUndated).forEach(violate);
    this.destination.take(outcome.records);
    const repeated = repeatedIn(outcome);
    this.repeated += repeated;
    if (repeated > 0) violate(`${repeated} records came twice in a run`);
    // A run's yesterday stays that of its first count, however many midnights it crosses.
    const now = this.#sandbox.requests[asked]?.at ?? 0;
    const lacked = lackedByComplete(this.destination, outcome, this.still, { now, bringsUndated });
    if (outcome.complete && lacked.length > 0)
      violate(`complete although ${lacked.length} rows are lacking, as ${nameOf(lacked)}`);
    if (outcome.error instanceof Hung) violate(outcome.error.message);
    this.state = outcome.checkpoints.at(-1)?.state ?? this.state;
    return outcome;
  }
}

/** The people that a filter by user leaves. */
export const filtered = <Person extends { readonly sources: readonly string[] }>(
  people: readonly Person[],
  isUser: Config["isUser"],
): readonly Person[] =>
  isUser === "all" ? people : people.filter(({ sources }) => sources.length > 0 === (isUser === "true"));
