import { BodyError } from "../errors.ts";
import { readWindow } from "./attempt.ts";
import type { Event, StreamState } from "./event.ts";
import { type Bounds, Frontier, type Progress, type Role } from "./frontier.ts";
import { instant } from "./instant.ts";
import { parallel } from "./parallel.ts";
import { planSteps, planWindows } from "./plan.ts";
import type { Count, Ports } from "./ports.ts";
import { NOTHING_READ, type Planned, type Reading, type Run } from "./reading.ts";
import {
  addDays,
  BEGINNING,
  type DatedWindow,
  type Day,
  dayOf,
  describe,
  earlier,
  endOf,
  later,
  startOf,
  type Window,
} from "./window.ts";

const UNDATED: Window = { kind: "undated" };

/** What the operator asked for. */
export type Limits = {
  readonly startDate: Day | null;
  readonly endDate: Day | null;
  readonly lookbackDays: number;
  readonly maxRows: number;
  readonly concurrency: number;
  readonly verify: boolean;
  readonly ignoredDays: readonly Day[];
  /** Epoch ms by the service's clock after which no further window begins; undefined is never. */
  readonly deadline: number | undefined;
};

/** A stream that has a state to go on from, or none. */
export type Dated = {
  readonly stream: string;
  readonly resume: Progress | null;
  readonly limits: Limits;
  readonly ports: Ports;
  /** Dresses progress as the state that is written. `done`: the stream is whole. */
  readonly toState: (progress: Progress, done: boolean) => StreamState;
  /** Whether the state of a whole stream says that it is done. */
  readonly saysDone: boolean;
};

type Item = Planned & { readonly role: Role };
type Range = { readonly window: DatedWindow; readonly count: Count };
/**
 * Days before the state's first. `whole`: with the range they leave none out. `openEnd`: where the range must begin,
 * because days between them and the state's first are not closed yet.
 */
type Gap = {
  readonly window: Extract<Window, { kind: "closed" }>;
  readonly whole: boolean;
  readonly openEnd: Day | undefined;
};

/** Reads a dated stream: its windows, and the checkpoints between them. */
export async function* readDated(dated: Dated): AsyncGenerator<Event> {
  const { stream, resume, limits, ports, toState } = dated;
  const before = progressBefore(resume, limits);
  const plan = await planStream(before, limits, ports);
  if (resume !== null && isAhead(resume, plan.count)) {
    yield* readAhead(dated, resume, before);
    return;
  }
  if (plan.count.known) yield { kind: "estimate", stream, rows: plan.count.rows + plan.count.undated };
  const frontier = new Frontier(before, plan);
  const clock = new Deadline(limits.deadline, ports);
  const steps = parallel(
    plan.items(),
    limits.concurrency,
    ({ window }: Item) => window.kind !== "closed",
    (item: Item) => readWindow(item, plan.run),
    (item: Item) => clock.lets(item),
  );
  let written: Progress | undefined;
  for await (const step of steps) {
    if (step.kind === "part") {
      if (step.part.length > 0) yield { kind: "records", stream, lines: step.part, at: ports.now() };
      continue;
    }
    const progress = frontier.close(step.index, step.item.role, step.item.window, step.result);
    if (progress === undefined) continue;
    written = progress;
    yield { kind: "checkpoint", stream, state: toState(progress, false) };
  }
  const last = clock.struck ? frontier.progress : frontier.finish(plan.reached, plan.gapWhole);
  const close = closeOf(stream, last, frontier.reading);
  const done = dated.saysDone && close.complete;
  if (last !== written || done) yield { kind: "checkpoint", stream, state: toState(last, done) };
  yield close;
}

const isAhead = ({ discoveredAt }: Progress, { answered }: Count): boolean =>
  discoveredAt !== null && instant(discoveredAt) > answered;

/**
 * A cursor in the future leaves nothing to read, and the state as it is. A full refresh that is not done cannot be
 * called whole by that, so it begins anew.
 */
async function* readAhead(dated: Dated, resume: Progress, before: Progress): AsyncGenerator<Event> {
  const { stream, ports, toState, saysDone } = dated;
  ports.note({
    kind: "log",
    level: "warn",
    text: inTheFuture(stream, String(resume.discoveredAt), saysDone),
  });
  if (saysDone) {
    yield* readDated({ ...dated, resume: null });
    return;
  }
  yield { kind: "checkpoint", stream, state: toState(resume, false) };
  yield closeOf(stream, before, NOTHING_READ);
}

/** What an incoming state means under the limits of this run. Days that they leave out count as covered no longer. */
function progressBefore(resume: Progress | null, { startDate, ignoredDays }: Limits): Progress {
  const undated = startDate === null ? "pending" : "done";
  if (resume === null) return { discoveredAt: null, missing: [], from: startDate, undated, gap: null };
  const missing = resume.missing.filter((day) => !ignoredDays.includes(day));
  const before = {
    ...resume,
    missing,
    undated: startDate === null && resume.from !== null ? undated : resume.undated,
  };
  const { discoveredAt } = resume;
  const leavesOut =
    discoveredAt === null || (startDate !== null && startDate >= dayOf(instant(discoveredAt)));
  return leavesOut ? { ...before, from: startDate, gap: null } : before;
}

/** All that is decided before the first row: today, the range, its gap, and the order of the windows. */
type StreamPlan = Bounds & {
  readonly run: Run;
  /** The count of the whole range, the run's first. */
  readonly count: Count;
  /** The end of a range that has one. */
  readonly reached: string | undefined;
  readonly gapWhole: boolean;
  readonly items: () => AsyncGenerator<Item>;
};

async function planStream(before: Progress, limits: Limits, ports: Ports): Promise<StreamPlan> {
  const { startDate, endDate } = limits;
  const wantsUndated = startDate === null && endDate === null && before.undated === "pending";
  const wanted = rangeStart(before, limits);
  const first = firstWindow(wanted, endDate, wantsUndated && before.discoveredAt === null);
  const count = await ports.count(first);
  const yesterday = addDays(dayOf(count.asked), -1);
  const run: Run = {
    ports,
    yesterday,
    verify: limits.verify,
    listed: true,
    until: endDate === null ? Number.POSITIVE_INFINITY : startOf(addDays(endDate, 1)) - 1,
    shortWalks: 0,
  };
  const gap = gapOf(before, limits, yesterday);
  const from = gap?.openEnd ?? wanted;
  const range = await settledRange({ window: first, count }, from, limits, run);
  const asked = new Date(count.asked).toISOString();
  return {
    run,
    count: range?.count ?? count,
    start: before.from === null || startDate === null ? null : earlier(before.from, startDate),
    rangeFrom: from,
    latest: endDate !== null && endOf(endDate) < asked ? endOf(endDate) : asked,
    ignored: new Set(limits.ignoredDays),
    reached: range?.window.kind === "closed" ? endOf(range.window.to) : undefined,
    gapWhole: gap === undefined || gap.whole,
    items: () => inOrder(before, gap, range, wantsUndated, limits, run),
  };
}

/** Where an incremental read begins again: its cursor less the lookback, but not before what is asked for or covered. */
function rangeStart({ discoveredAt, from }: Progress, { startDate, lookbackDays }: Limits): Day {
  const first = startDate ?? BEGINNING;
  if (discoveredAt === null) return first;
  return later(later(first, from ?? first), addDays(dayOf(instant(discoveredAt)), -lookbackDays));
}

function firstWindow(from: Day, endDate: Day | null, undated: boolean): DatedWindow {
  if (endDate === null) return { kind: "open", from, undated };
  return { kind: "closed", from: earlier(from, endDate), to: endDate };
}

/** Counts the range anew where the first count was of another one; undefined if nothing lies before `end_date`. */
async function settledRange(
  first: Range,
  from: Day,
  { endDate }: Limits,
  run: Run,
): Promise<Range | undefined> {
  if (endDate !== null && from > endDate) return undefined;
  const open = endDate === null || endDate >= run.yesterday;
  if (first.window.from === from && (first.window.kind === "open") === open) return first;
  const window: DatedWindow = open
    ? { kind: "open", from, undated: false }
    : { kind: "closed", from, to: endDate ?? run.yesterday };
  return { window, count: await run.ports.count(window) };
}

/** The days between an earlier start than the state knows and the state's first day, less those already read. */
function gapOf({ from, gap }: Progress, { startDate, endDate }: Limits, yesterday: Day): Gap | undefined {
  const start = startDate ?? BEGINNING;
  if (from === null || start >= from) return undefined;
  const first = gap !== null && gap.from === startDate ? addDays(gap.to, 1) : start;
  const last = earlier(addDays(from, -1), addDays(yesterday, -1));
  const to = endDate === null ? last : earlier(last, endDate);
  const next = addDays(to, 1);
  const whole = to === last;
  return {
    window: { kind: "closed", from: first, to },
    whole,
    openEnd: whole && next < from ? next : undefined,
  };
}

/**
 * The one home of order: days that earlier runs could not close, the gap, closed windows oldest first, rows without a
 * date, the open window. Rows only move towards today, so reading today last lets none fall between two windows.
 */
async function* inOrder(
  before: Progress,
  gap: Gap | undefined,
  range: Range | undefined,
  wantsUndated: boolean,
  limits: Limits,
  run: Run,
): AsyncGenerator<Item> {
  for (const day of before.missing) {
    if (!covers(range, day)) yield { role: "missing", window: { kind: "closed", from: day, to: day } };
  }
  if (gap !== undefined && gap.window.from <= gap.window.to) {
    yield* withRole(
      "gap",
      planRange({ window: gap.window, count: await run.ports.count(gap.window) }, limits, run),
    );
  }
  if (range === undefined) return;
  for await (const planned of planRange(range, limits, run)) {
    const { window } = planned;
    if (wantsUndated && window.kind === "open" && !window.undated)
      yield { role: "range", window: { kind: "undated" } };
    yield { ...planned, role: "range" };
  }
}

/** A day that is read with the range all the same is not read before it. */
function covers(range: Range | undefined, day: Day): boolean {
  if (range === undefined || day < range.window.from) return false;
  return range.window.kind === "open" || day <= range.window.to;
}

function planRange(range: Range, { maxRows, concurrency }: Limits, run: Run): AsyncGenerator<Planned> {
  return range.count.known ? planWindows(range, maxRows, run, concurrency) : planSteps(range.window, run);
}

async function* withRole(role: Role, windows: AsyncIterable<Planned>): AsyncGenerator<Item> {
  for await (const planned of windows) yield { ...planned, role };
}

/** Ends a plan cleanly at the first window end after a moment, but not before the run has come further than missing days. */
class Deadline {
  struck = false;
  #any = false;
  readonly #at: number;
  readonly #ports: Ports;

  constructor(at: number | undefined, ports: Ports) {
    this.#at = at ?? Number.POSITIVE_INFINITY;
    this.#ports = ports;
  }

  /** Whether an item may still begin. */
  lets({ role }: Item): boolean {
    this.struck = this.#any && this.#ports.now() >= this.#at;
    this.#any ||= role !== "missing";
    return !this.struck;
  }
}

type Close = Extract<Event, { kind: "close" }>;

function closeOf(stream: string, { missing }: Progress, { missing: windows, cause }: Reading): Close {
  const undated = windows.some(({ kind }) => kind === "undated");
  if (missing.length === 0 && !undated) return { kind: "close", stream, complete: true };
  const [what, remedy] =
    missing.length > 0
      ? [
          `the day${missing.length > 1 ? "s" : ""} ${missing.join(", ")}`,
          'If the service can never serve a day, name it in "ignore_missing_days"',
        ]
      : [describe(UNDATED), 'If it stays so, "verify_counts": false reads without proof'];
  const error = new BodyError(
    `Cannot prove ${what} of "${stream}" complete. All else was read; the next run reads this first. ${remedy}`,
    { cause },
  );
  return { kind: "close", stream, complete: false, error };
}

function inTheFuture(stream: string, discoveredAt: string, refresh: boolean): string {
  const what = `The state of "${stream}" says ${discoveredAt}, which is later than the service's clock`;
  if (refresh) return `${what}: the full refresh begins anew`;
  return `${what}: nothing is read and the state stays as it is. Reset the stream's state if that is a mistake`;
}
