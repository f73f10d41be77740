import { BodyError } from "../base/errors.ts";
import { joined, shown as number, plural } from "../base/text.ts";
import type { Day } from "../base/time.ts";
import type { WindowRecord } from "./event.ts";
import type { Outcome } from "./pass.ts";
import { describe } from "./window.ts";

/** The maximum number of days that an error lists. */
const MAX_LISTED = 10;

export const OWNER = "If it stays, send this to the service's owner";

/** The error of a stream with missing days. @param outcomes the outcomes of the days that this run has read */
export function incompleteDays(
  stream: string,
  days: readonly Day[],
  outcomes: ReadonlyMap<Day, Outcome>,
): BodyError {
  const texts = days.map((day) => {
    const outcome = outcomes.get(day);
    return outcome === undefined ? `${day}: incomplete since an earlier run` : dayText(outcome);
  });
  const read = days.flatMap((day) => outcomes.get(day) ?? []);
  const are = days.length === 1 ? "is" : "are";
  return incomplete(
    `${plural(days.length, "day")} of ${stream} ${are} incomplete. ${listed(texts)}`,
    `All other days are saved. Run again. ${OWNER}. Last resort, loses these rows: "ignore_missing_days"`,
    read,
  );
}

/** The error of a stream whose rows without a date could not be proven. */
export const incompleteUndated = (stream: string, outcome: Outcome): BodyError =>
  incomplete(
    `The rows of ${stream} without a date are incomplete: ${numbersText(outcome.record, outcome.exports)}`,
    `All days are saved. Run again. ${OWNER}. Last resort, reads without proof: "verify_counts": false`,
    [outcome],
  );

/** The error of too many consecutive missing days. The state covers only the days before the missing days. */
export const incompleteRow = (missing: readonly Outcome[]): BodyError =>
  incomplete(
    `${plural(missing.length, "day")} in a row are incomplete, so the service seems to be unwell. ${listed(missing.map(dayText))}`,
    `Nothing after them is saved. Run again later. ${OWNER}. Last resort, loses these rows: "ignore_missing_days"`,
    missing,
  );

function incomplete(what: string, remedy: string, outcomes: readonly Outcome[]): BodyError {
  const cause = outcomes.findLast((outcome) => outcome.cause !== undefined)?.cause;
  const failure = cause === undefined ? "" : ` The last failure: ${cause.message}.`;
  return new BodyError(`${what}.${failure} ${remedy}`, { cause });
}

function listed(texts: readonly string[]): string {
  const more = texts.length - MAX_LISTED;
  return [...texts.slice(0, MAX_LISTED), ...(more > 0 ? [`and ${number(more)} more`] : [])].join("; ");
}

const dayText = ({ window, record, exports }: Outcome): string =>
  `${describe(window)}: ${numbersText(record, exports)}`;

type Numbers = Pick<WindowRecord, "counted" | "shown" | "passes">;

/** "the service counts 1,204 rows and sends 1,198 (3 exports and 3 readings of its pages)" */
export function numbersText({ counted, shown, passes }: Numbers, exports: number): string {
  const rows = counted === null ? "does not count its rows" : `counts ${plural(counted, "row")}`;
  const attempts = [
    exports > 0 && plural(exports, "export"),
    passes > exports && `${plural(passes - exports, "reading")} of its pages`,
  ];
  const made = joined(attempts, " and ");
  return `the service ${rows} and sends ${number(shown)}${made === "" ? "" : ` (${made})`}`;
}
