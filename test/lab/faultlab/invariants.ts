import type { Sandbox } from "../../../sandbox/server.ts";
import type { Config } from "../../../src/config/config.ts";
import type { StreamState } from "../../../src/sync/event.ts";
import type { Delivered, Outcome } from "./read-once.ts";

const DAY_MS = 86_400_000;

type State = {
  /** Absent in the state of a stream that is read as one body. */
  readonly days?: readonly { readonly from: string; readonly to: string; readonly status: string }[];
  readonly undated: object | null;
};

/** The runs of one connection, whose state goes from each to the next, and which promises they broke. */
export class Pipeline {
  readonly violations: string[] = [];
  state: StreamState | null = null;
  /** The versions of rows that have come, in any run. */
  readonly #delivered = new Set<string>();
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

  /** Rows that are served and have not come as they are. */
  lacking(served = this.#served()): readonly Delivered[] {
    return served.filter((row) => !this.#delivered.has(versionOf(row)));
  }

  /** @param name stands before each promise that the run breaks */
  async run<Ran extends Outcome>(read: (state: StreamState | null) => Promise<Ran>, name = ""): Promise<Ran> {
    const before = this.#served();
    const asked = this.#sandbox.requests.length;
    const outcome = await read(this.state);
    const { records, checkpoints, complete } = outcome;
    const now = new Set(this.#served().map(versionOf));
    const still = before.filter((row) => now.has(versionOf(row)));
    // Later runs look for newcomers without a date once in a UTC day.
    const bringsUndated = this.#counts && (this.state?.["undated"] ?? null) === null;
    let taken = 0;
    for (const { state, after } of checkpoints) {
      this.#take(records.slice(taken, after));
      taken = after;
      const ahead = this.lacking(still.filter((row) => covers(state, row, bringsUndated)));
      this.#refuse(ahead, `${name}the state ${String(state["discoveredAt"])} is ahead of`);
    }
    this.#take(records.slice(taken));
    const repeated = records.length - new Set(records.map((one) => `${versionOf(one)} ${one.content}`)).size;
    if (repeated > 0) this.violations.push(`${name}${repeated} records came twice in a run`);
    // A run's yesterday stays that of its first count, however many midnights it crosses.
    const yesterday = Math.floor((this.#sandbox.requests[asked]?.at ?? 0) / DAY_MS - 1) * DAY_MS;
    const due = still.filter((row) => isDue(checkpoints.at(-1)?.state, row, yesterday, bringsUndated));
    if (complete) this.#refuse(this.lacking(due), `${name}complete without`);
    this.state = checkpoints.at(-1)?.state ?? this.state;
    return outcome;
  }

  #take(records: readonly Delivered[]): void {
    for (const record of records) this.#delivered.add(versionOf(record));
  }

  #refuse(rows: readonly Delivered[], what: string): void {
    const [first] = rows;
    if (first !== undefined) this.violations.push(`${what} ${rows.length} rows, as ${versionOf(first)}`);
  }
}

const versionOf = ({ id, discoveredAt }: Delivered): string => `${id} ${discoveredAt}`;

/** Whether a state claims a row: its day is proven. Rows without a date are claimed by the run that brings them all. */
function covers(saved: StreamState, { discoveredAt }: Delivered, bringsUndated: boolean): boolean {
  const state = saved as unknown as State;
  if (state.days === undefined) return true;
  // Without a cursor the next run reads people without a date, whatever their number.
  if (discoveredAt === null) return bringsUndated && state.undated !== null && saved["discoveredAt"] !== null;
  const span = spanAt(state, discoveredAt);
  return span?.status === "proven";
}

/**
 * Whether a complete run must have brought a row: of a day before yesterday, save days that its state lists as missing or
 * to be checked again, and without a date if it brings those.
 */
function isDue(
  saved: StreamState | undefined,
  { discoveredAt }: Delivered,
  yesterday: number,
  bringsUndated: boolean,
): boolean {
  if (discoveredAt === null) return bringsUndated;
  const span = spanAt((saved ?? {}) as unknown as State, discoveredAt);
  return Date.parse(discoveredAt) < yesterday && (span === undefined || span.status === "proven");
}

function spanAt({ days = [] }: State, discoveredAt: string): NonNullable<State["days"]>[number] | undefined {
  const day = discoveredAt.slice(0, 10);
  return days.find(({ from, to }) => from <= day && day <= to);
}

/** The people that a filter by user leaves. */
export const filtered = <Person extends { readonly sources: readonly string[] }>(
  people: readonly Person[],
  isUser: Config["isUser"],
): readonly Person[] =>
  isUser === "all" ? people : people.filter(({ sources }) => sources.length > 0 === (isUser === "true"));
