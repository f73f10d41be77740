import { Destination } from "../test/lab/faultlab/invariants.ts";
import type { DeliveredRow, Output } from "./output.ts";

/** How a process ended: its exit code, or what ended it. */
export type Exit = number | "stopped";

/** What is said of a run in a situation. The first five are the same whenever the storm is played. */
export type Verdict = {
  /**
   * Rows that a destination that merges by key does not hold as the service has them: after the run, of those that did not
   * change while it lasted; and after the next run, of all.
   */
  readonly lost: number;
  readonly lostForGood: number;
  /** Rows that the run wrote again although they had not changed. */
  readonly twice: number;
  readonly exit: Exit;
  /** Whether the exit code or a message that a run without a fault does not write says that something went wrong. */
  readonly told: boolean;
  /** Whether the contestant met the fault at all. */
  readonly met: boolean;
  readonly notes: readonly string[];
  readonly requests: number;
  readonly seconds: number;
};

/** In a word. */
export type Outcome =
  | "complete"
  | "told, then complete"
  | "complete, a false alarm"
  | "late"
  | "told, lost"
  | "LOST";

/** What a verdict comes to, from best to worst. */
export const OUTCOMES: readonly (readonly [Outcome, string])[] = [
  ["complete", "every row is there after the run, and the run ended with 0"],
  ["complete, a false alarm", "every row is there, and the run ended with another exit code"],
  ["told, then complete", "rows are missing after the run, somebody is told, and the next run brings them"],
  ["late", "rows are missing after the run, nobody is told, and the next run happens to bring them"],
  ["told, lost", "rows are missing after the next run too; somebody was told"],
  ["LOST", "rows are missing after the next run too, and nobody was told"],
];

export function outcomeOf({ lost, lostForGood, told, exit }: Verdict): Outcome {
  if (lostForGood > 0) return told ? "told, lost" : "LOST";
  if (lost > 0) return told ? "told, then complete" : "late";
  return exit === 0 ? "complete" : "complete, a false alarm";
}

/** What the destination of one connection holds, and what it lacks. */
export class Warehouse {
  readonly #destination = new Destination();
  readonly #ids = new Set<string>();

  take({ rows }: Output): void {
    this.#destination.take(rows);
    for (const { id } of rows) this.#ids.add(id);
  }

  /** How many of the rows that are served are not there as they are. */
  lacks(served: readonly DeliveredRow[]): number {
    return this.#destination.lacks(served).length;
  }

  /** How many rows the service does not have. */
  strangers(served: readonly DeliveredRow[]): number {
    const known = new Set(served.map(({ id }) => id));
    return [...this.#ids].filter((id) => !known.has(id)).length;
  }
}

/** How many rows came again without a change. */
export const repeatedIn = ({ rows }: Output): number =>
  rows.length - new Set(rows.map(({ id, discoveredAt }) => `${id} ${discoveredAt}`)).size;

/** What a complaint says, without numbers and times that differ from run to run. */
const gist = (complaint: string): string => complaint.replace(/[0-9a-f]{8,}|\d+/gi, "#");

/** What a contestant complains about when nothing is wrong. */
export const noiseOf = ({ complaints }: Output): ReadonlySet<string> => new Set(complaints.map(gist));

export function isTold(exit: Exit, { complaints }: Output, noise: ReadonlySet<string>): boolean {
  return exit !== 0 || complaints.some((complaint) => !noise.has(gist(complaint)));
}
