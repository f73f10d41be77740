import { BodyError } from "../errors.ts";
import type { Lines } from "./event.ts";
import { NOT_COUNTED, Pass } from "./evidence.ts";
import { Ledger } from "./ledger.ts";
import type { Count, Ports, Row } from "./ports.ts";
import { closedReading, NONE_LOST, NOTHING_READ, type Reading, type Run } from "./reading.ts";
import { BEGINNING, type Window } from "./window.ts";

const UNDATED: Window = { kind: "undated" };
const EVERYTHING: Window = { kind: "open", from: BEGINNING, undated: true };
const SWEEPS = 2;
const STREAMS = 3;

/**
 * Reads the rows without a date, which no date filter matches: a handful is fetched from the ends of the unfiltered
 * list (newest first puts them at one end), and only if that does not bring as many as the counts say, from the
 * unfiltered export. What cannot be had, or not be proven, is returned as missing.
 */
export async function* readUndated(run: Run, shared?: Ledger): AsyncGenerator<Lines, Reading> {
  const { ports } = run;
  let count = await ports.count(UNDATED);
  const ledger = shared ?? new Ledger(count.undated);
  if (run.verify && count.known && (await isTooLow(ports, count.rows + count.undated))) {
    return yield* fromUncounted(run, ledger);
  }
  if (count.undated === 0 && count.known) return NOTHING_READ;
  const found = new Pass(UNDATED, count, ledger);
  if (count.known) {
    for (let sweeps = 0; sweeps < SWEEPS; sweeps++) {
      yield* sweep(run, found);
      const before = count;
      count = await ports.count(UNDATED);
      if (found.undated >= Math.max(before.undated, count.undated)) return closedReading();
    }
  }
  return yield* fromExport(run, ledger, count);
}

/** Page by page from each end of the list until a page holds no undated row. */
async function* sweep(run: Run, found: Pass): AsyncGenerator<Lines> {
  const first = await run.ports.page(EVERYTHING, 1);
  const last = Math.ceil((first.total ?? 0) / first.size);
  const front = undatedOf(first.rows);
  yield found.admit(front);
  let reached = 1;
  for (let more = front.length > 0; more && reached < last; ) {
    reached += 1;
    const rows = undatedOf((await run.ports.page(EVERYTHING, reached)).rows);
    yield found.admit(rows);
    more = rows.length > 0;
  }
  for (let number = last; number > reached; number--) {
    const rows = undatedOf((await run.ports.page(EVERYTHING, number)).rows);
    yield found.admit(rows);
    if (rows.length === 0) return;
  }
}

async function* fromExport(run: Run, ledger: Ledger, counted: Count): AsyncGenerator<Lines, Reading> {
  const lacking = new BodyError("Cannot find as many people without a date as the service counts");
  return yield* exportTries(run, lacking, async function* (failures) {
    const count = failures === 0 ? counted : await run.ports.count(UNDATED);
    const pass = new Pass(UNDATED, count, ledger);
    for await (const rows of run.ports.stream(EVERYTHING)) yield pass.admit(undatedOf(rows));
    return !run.verify || pass.undated >= count.undated;
  });
}

/** Tries a few times to read the undated from the export; `attempt` returns whether it has proven them. */
async function* exportTries(
  run: Run,
  unproven: BodyError,
  attempt: (failures: number) => AsyncGenerator<Lines, boolean>,
): AsyncGenerator<Lines, Reading> {
  let cause: unknown = unproven;
  for (let failures = 0; failures < STREAMS; failures++) {
    if (failures > 0) await run.ports.rest(failures);
    try {
      if (yield* attempt(failures)) return closedReading();
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      cause = error;
    }
  }
  return { missing: [UNDATED], cause, closed: false, lost: NONE_LOST };
}

/**
 * Whether the list of everything shows a row past the last that it counts, by one and the same answer. Totals that are
 * capped hide the undated, who are but the difference of two of them.
 */
async function isTooLow(ports: Ports, rows: number): Promise<boolean> {
  const past = await ports.peek(EVERYTHING, rows + 1);
  if (past?.row === undefined || past.total === null || past.total > rows) return false;
  // Lists that know no end turn back there: to their last row, or to their first.
  for (const place of rows === 0 ? [] : [rows, 1]) {
    if ((await ports.peek(EVERYTHING, place))?.row === past.row) return false;
  }
  return true;
}

/**
 * Reads the undated where totals are too low to tell of them: from the unfiltered export, proven when the list holds no
 * row past as many as that showed. Nobody leaves the unfiltered list, so none of its rows can hide behind one that left.
 */
async function* fromUncounted(run: Run, ledger: Ledger): AsyncGenerator<Lines, Reading> {
  const everything = new Ledger();
  const lacking = new BodyError("The list holds more rows than the export shows, and its totals are too low");
  return yield* exportTries(run, lacking, async function* () {
    const all = new Pass(EVERYTHING, NOT_COUNTED, everything);
    const found = new Pass(UNDATED, NOT_COUNTED, ledger);
    for await (const rows of run.ports.stream(EVERYTHING)) {
      all.admit(rows);
      yield found.admit(undatedOf(rows));
    }
    const past = await run.ports.peek(EVERYTHING, all.distinct + 1);
    return !everything.full && past !== undefined && past.row === undefined;
  });
}

function undatedOf(rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ cursor }) => cursor === null);
}
