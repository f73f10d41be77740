import { BodyError } from "../base/errors.ts";
import type { Day } from "../base/time.ts";
import type { DayRange, DayStatus } from "./coverage.ts";
import type { WindowFacts } from "./event.ts";
import type { NewestKeys } from "./newest-keys.ts";
import type { Count, Service } from "./service.ts";
import type { Tally } from "./tally.ts";
import { describe, type Window } from "./window.ts";
import type { WindowSize } from "./window-size.ts";

const MOST_MISSING_IN_A_ROW = 2;
/** And of days that fall short alike: a service that counts what is nowhere must not become years of holes either. */
const MOST_ALIKE_IN_A_ROW = 30;

/** What holds for every window of a run. */
export type RunRules = {
  readonly api: Service;
  /** By the run's first count, and the same for all of the run. */
  readonly yesterday: Day;
  /** False: any clean pass closes a window. */
  readonly verifyCounts: boolean;
  /** Whether the stream has an export, or only a list; and whether it has a list. */
  readonly isExported: boolean;
  readonly isListed: boolean;
  /** Epoch ms; rows with a later cursor are not emitted. */
  readonly until: number;
  /** Epoch ms; rows with a later cursor are not the stream's newest. */
  readonly latest: number;
  /** Digests of the people without a date that were delivered before. */
  readonly undatedSeen: ReadonlySet<string>;
  /** Takes in every key that is shown. */
  readonly newestKeys: NewestKeys;
  /** Ms after which an export that shows nothing new is given up. */
  readonly idleMs: number;
  /** Days that are read once for what they give. */
  readonly ignoredDays: ReadonlySet<Day>;
  /** What becomes of a row without its key: `reject` makes its pass unclean. */
  readonly onMissingKey: "reject" | "pass" | "drop";
  readonly windowSize: WindowSize;
  /** Takes in what windows take; undefined: nobody wants to know. */
  readonly tally?: Tally;
};

/** A window to read. `count`: its own, if it was counted; it is taken again if it is too old. */
export type Planned = {
  readonly window: Window;
  /** Which status of its days the window may clear; null: it is read for the first time, or once more. */
  readonly clears: DayStatus | null;
  /** The days that it stands for, if some before it were counted empty. */
  readonly days?: DayRange;
  readonly count?: Count | undefined;
  /** For people without a date: `count` says how many there are, and those of `undatedSeen` were delivered before. */
  readonly isKnown?: boolean;
};

/** How a window, or a part of one that was split, ended. */
export type WindowOutcome = {
  readonly window: Window;
  /**
   * `proven`: complete. `again`: people left while it was read, and all who stayed may have been shown.
   * `missing`: not to be proven in this run. `ignored`: read once for what it gave.
   */
  readonly kind: "proven" | "ignored" | DayStatus;
  /** The newest cursor that was emitted and can be the stream's, as it was spelt. */
  readonly newest?: string | undefined;
  /** How many rows each day held; undefined: unknown. */
  readonly rowsByDay?: ReadonlyMap<Day, number> | undefined;
  /** How many of them were held back. */
  readonly suppressedByDay?: ReadonlyMap<Day, number> | undefined;
  /** How many people without a date there are, if the window brought them. */
  readonly undatedRows?: number | undefined;
  /** Digests of them; undefined: unknown, or too many. */
  readonly undatedSeen?: readonly string[] | undefined;
  /** What it took, if somebody wants to know. */
  readonly facts?: WindowFacts;
  /** Why it is missing. */
  readonly cause?: unknown;
  /** Every pass, by pages too, showed as many rows and every count said as many: of people who were erased, not of an outage. */
  readonly isAlike?: boolean;
};

/** The outcomes of a window, oldest first: one, or one for each part that it was split into. Empty: it held nothing. */
export type WindowResult = readonly WindowOutcome[];

/** How an attempt at a window ended: with an outcome, in parts that are to be read in its place, or with nothing. */
export type Attempt =
  | WindowOutcome
  /** `isContradicted`: more rows were shown than counted, so no part is skipped for a count of 0. */
  | { readonly kind: "split"; readonly parts: readonly Window[]; readonly isContradicted?: boolean }
  | FailedAttempt;

/** `count`: taken since, if one was. `numbers`: what a clean pass showed and the counts around it said. */
export type FailedAttempt = {
  readonly kind: "failed";
  readonly cause: unknown;
  readonly count?: Count;
  readonly numbers?: string | undefined;
};

/**
 * The missing days at the end of a result, which may go on with the next.
 * @throws BodyError for three missing days in a row that do not fall short alike: an outage must not become years of holes
 */
export function missingInARow(result: WindowResult): WindowResult {
  let row: WindowOutcome[] = [];
  for (const outcome of result) {
    if (outcome.kind === "missing") row.push(outcome);
    else if (outcome.kind !== "ignored") row = [];
    const odd = row.filter(({ isAlike }) => isAlike !== true).length;
    if (odd <= MOST_MISSING_IN_A_ROW && row.length <= MOST_ALIKE_IN_A_ROW) continue;
    const days = row.map(({ window }) => describe(window)).join(", ");
    throw new BodyError(
      `Cannot read ${days}: ${row.length} days in a row could not be proven complete, so the service seems to be unwell. ` +
        'The state stays before them. Run again later. If it can never serve them, name them in "ignore_missing_days"',
      { cause: outcome.cause },
    );
  }
  return row;
}
