import type { Count, Ports } from "./ports.ts";
import type { Planned, Run } from "./reading.ts";
import { addDays, type Day, dayOf, earlier, halves, startOf, type Window } from "./window.ts";

/** Window length (days) where the service does not count. */
const STEP = 31;

/** A window and how many rows it has at most: its own count, or its parent's less its elder sibling's. */
type Sized = Planned & {
  readonly rows: number;
  /** Its halves, if it is to be split. */
  readonly parts: readonly Window[] | undefined;
  /** The count of the older half, once it is asked for. */
  counting?: Promise<Count>;
};

/**
 * Splits a counted range by rows, lazily and oldest first; a split costs one request. A closed window that holds nothing
 * is skipped, the open one never. Once it is split, no window brings the rows without a date.
 * @param width counts to ask for at once, from the second window on: those that any plan will need
 */
export async function* planWindows(
  range: { readonly window: Window; readonly count: Count },
  maxRows: number,
  { ports, yesterday }: Run,
  width = 1,
): AsyncGenerator<Planned> {
  const sized = (window: Window, rows: number, count?: Count): Sized => {
    return { window, rows, count, parts: rows > maxRows ? halves(window, yesterday) : undefined };
  };
  const todo: Sized[] = [sized(range.window, range.count.rows, range.count)];
  let ahead = 0;
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const older = next.parts?.at(0);
    const newer = next.parts?.at(-1);
    startCount(next, ports);
    if (older !== undefined && newer !== undefined && next.counting !== undefined) {
      for (const later of todo.slice(Math.max(0, todo.length - ahead))) startCount(later, ports);
      const count = await next.counting;
      todo.push(sized(newer, Math.max(0, next.rows - count.rows)));
      todo.push(sized(older, count.rows, count));
    } else if (next.count === undefined || next.count.rows > 0 || next.window.kind !== "closed") {
      yield { window: next.window, count: next.count };
      ahead = width - 1;
    }
  }
}

/** Asks, once, for the count of the older half of a node that is to be split. */
function startCount(node: Sized, ports: Ports): void {
  const older = node.parts?.at(0);
  if (older === undefined || node.counting !== undefined) return;
  node.counting = ports.count(older);
  // A plan may end before it comes to this.
  node.counting.catch(() => undefined);
}

/** Plans a range whose rows the service does not count: from the oldest day that holds any, by fixed steps. */
export async function* planSteps(range: Window, { ports, yesterday }: Run): AsyncGenerator<Planned> {
  if (range.kind !== "closed" && range.kind !== "open") return;
  const end = range.kind === "closed" ? range.to : addDays(yesterday, -1);
  const oldest = await oldestDay(range.from, end, ports);
  for (let from = oldest; from <= end; from = addDays(from, STEP)) {
    yield { window: { kind: "closed", from, to: earlier(addDays(from, STEP - 1), end) } };
  }
  const from = range.from > end ? range.from : addDays(end, 1);
  if (range.kind === "open") yield { window: { kind: "open", from, undated: false } };
}

/** The first day that holds a row, or the day after `to`. */
async function oldestDay(from: Day, to: Day, ports: Ports): Promise<Day> {
  let low = from;
  let high = addDays(to, 1);
  while (low < high) {
    const middle = dayOf((startOf(low) + startOf(high)) / 2);
    if (await ports.holdsAny({ kind: "closed", from, to: middle })) high = middle;
    else low = addDays(middle, 1);
  }
  return low;
}
