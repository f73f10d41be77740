import { BodyError, DataError } from "../errors.ts";
import type { Lines } from "./event.ts";
import { judge, Pass, type Verdict } from "./evidence.ts";
import { LEDGER_LIMIT, Ledger } from "./ledger.ts";
import type { Count, Ports } from "./ports.ts";
import {
  closedReading,
  endsStream,
  joinReadings,
  lostReading,
  lostTooMany,
  NOTHING_READ,
  type Planned,
  type Reading,
  type Run,
} from "./reading.ts";
import { readUndated } from "./undated.ts";
import { walk } from "./walk.ts";
import { type Day, describe, halves, splitAtYesterday, type Window } from "./window.ts";

/** A count older than this (ms) is taken again before a window is read or skipped. */
const COUNT_LIFETIME = 60_000;

type Tactic = "stream" | "halves" | "pages" | "give up";

/** The ladder: what to do with a window after so many passes that were not clean or not proven. */
export function tactic(splits: boolean, failures: number): Tactic {
  if (failures < 2) return "stream";
  if (splits) return "halves";
  if (failures < 5) return "stream";
  return failures === 5 ? "pages" : "give up";
}

/**
 * Reads one window until it is proven, halved or given up, and emits no row twice. Only what is wrong with a body's
 * content leads up the ladder; every other error ends the stream.
 * `trustZero`: false where totals have shown less than there is, so that a half is read even if its count says 0.
 * `failed`: attempts that have failed on the very same rows.
 */
export async function* readWindow(
  planned: Planned,
  run: Run,
  ledger?: Ledger,
  trustZero = true,
  failed = 0,
): AsyncGenerator<Lines, Reading> {
  const { window } = planned;
  if (window.kind === "undated") return yield* readUndated(run, ledger);
  const count = await freshCount(planned, run.ports);
  if (trustZero && window.kind === "closed" && count.known && count.rows === 0) return NOTHING_READ;
  const seen = ledger ?? new Ledger(count.rows + count.undated);
  try {
    return yield* climb({ window, count }, run, seen, trustZero, failed);
  } finally {
    if (ledger === undefined) seen.free();
  }
}

/** The ladder's driver. */
async function* climb(
  { window, count: counted }: { readonly window: Window; readonly count: Count },
  run: Run,
  seen: Ledger,
  trustZero: boolean,
  failed: number,
): AsyncGenerator<Lines, Reading> {
  const parts = halves(window, run.yesterday);
  let count = counted;
  let last: Failed = { kind: "failed", cause: undefined };
  for (let failures = failed; ; failures++) {
    const next = tactic(parts !== undefined, failures);
    if (next === "halves") return yield* readParts(parts ?? [], run, seen, trustZero, failures);
    if (next === "give up" || (next === "pages" && !run.listed)) return lost(window, last.cause);
    if (failures > failed) {
      await run.ports.rest(failures);
      if (run.verify) count = await run.ports.count(window);
    }
    const tried = yield* survive(
      next === "pages" ? tryPages(window, run, seen, last.clean) : tryStream(window, run, seen, count, parts),
    );
    if (tried.kind === "closed") return closedReading(tried.newest);
    if (tried.kind === "split") return yield* readParts(tried.parts, run, seen, trustZero && tried.trustZero);
    last = tried;
  }
}

/** How one attempt at a window ended. `clean`: the pass, if only its proof is lacking. */
type Failed = { readonly kind: "failed"; readonly cause: unknown; readonly clean?: Pass };
type Tried =
  | { readonly kind: "closed"; readonly newest: string | undefined }
  | { readonly kind: "split"; readonly parts: readonly Window[]; readonly trustZero: boolean }
  | Failed;

/** An attempt of which only what is wrong with a body's content is a failed one; all else ends the stream. */
async function* survive(attempt: AsyncGenerator<Lines, Tried>): AsyncGenerator<Lines, Tried> {
  try {
    return yield* attempt;
  } catch (error) {
    if (error instanceof BodyError) return { kind: "failed", cause: error };
    throw error;
  }
}

async function* tryStream(
  window: Window,
  run: Run,
  seen: Ledger,
  count: Count,
  halved: readonly Window[] | undefined,
): AsyncGenerator<Lines, Tried> {
  const pass = new Pass(window, count, seen, { until: run.until });
  for await (const rows of run.ports.stream(window)) yield pass.admit(rows);
  if (seen.full) noteFull(run.ports, window);
  const verdict = run.verify ? judge(window, run.yesterday, count, pass) : "proven";
  if (verdict === "proven") return { kind: "closed", newest: pass.newest };
  const parts = partsAfter(verdict, window, halved, run.yesterday);
  if (parts !== undefined) return { kind: "split", parts, trustZero: verdict !== "halve" };
  return { kind: "failed", cause: unproven(window, count, pass), clean: pass };
}

async function* tryPages(
  window: Window,
  run: Run,
  seen: Ledger,
  clean: Pass | undefined,
): AsyncGenerator<Lines, Tried> {
  const { proven, newest, cause } = yield* walk(window, run, seen, clean);
  return proven ? { kind: "closed", newest } : { kind: "failed", cause };
}

async function freshCount({ window, count }: Planned, ports: Ports): Promise<Count> {
  return count !== undefined && Math.abs(ports.now() - count.answered) < COUNT_LIFETIME
    ? count
    : await ports.count(window);
}

function partsAfter(
  verdict: Verdict,
  window: Window,
  parts: readonly Window[] | undefined,
  yesterday: Day,
): readonly Window[] | undefined {
  if (verdict === "split") return splitAtYesterday(window, yesterday);
  return verdict === "halve" ? parts : undefined;
}

/** Reads the parts of a window in its place and over its ledger: what the whole has emitted is not emitted again. */
async function* readParts(
  parts: readonly Window[],
  run: Run,
  ledger: Ledger,
  trustZero: boolean,
  failures = 0,
): AsyncGenerator<Lines, Reading> {
  let all = NOTHING_READ;
  for (const [nth, window] of parts.entries()) {
    // While the parts have held nothing, the rest of them is all that failed.
    const failed = nth > 0 && all === NOTHING_READ ? failures : 0;
    const part: Reading = yield* readWindow({ window }, run, ledger, trustZero, failed);
    if (part === NOTHING_READ) continue;
    all = joinReadings(all, part);
    if (endsStream(all)) throw lostTooMany(all);
  }
  return all;
}

function lost(window: Window, cause: unknown): Reading {
  if (window.kind === "closed") return lostReading(window, cause);
  throw new BodyError(
    `Cannot close the window ${describe(window)}: five streams and a walk over its pages did not prove it complete. ` +
      "The state stays before it; run again later",
    { cause },
  );
}

function unproven(window: Window, count: Count, pass: Pass): DataError {
  const shown = window.kind === "closed" ? pass.older : pass.upTo + pass.undated;
  return new DataError(
    `The window ${describe(window)} was counted as ${count.rows + count.undated} rows and showed ${shown}`,
  );
}

function noteFull(ports: Ports, window: Window): void {
  ports.note({
    kind: "log",
    level: "warn",
    text:
      `The window ${describe(window)} holds more than ${LEDGER_LIMIT} rows: beyond them a row that comes twice is passed on twice. ` +
      "Lower max_window_rows, or upsert on the key",
  });
}
