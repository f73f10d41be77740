import type { Sandbox } from "../../../sandbox/server.ts";
import type { Config } from "../../../src/config/config.ts";
import type { StreamState } from "../../../src/streams/event.ts";
import {
  aheadOfDelivery,
  Destination,
  isPending,
  lackedByComplete,
  nameOf,
  repeatedIn,
  stayed,
} from "./invariants.ts";
import { type Delivered, Hung, type Outcome } from "./read-once.ts";

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
