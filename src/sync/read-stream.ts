import { plural } from "../base/text.ts";
import { addDays, BEGINNING, type Day, dayOf, instant, startOf } from "../base/time.ts";
import { Checkpoints } from "./checkpoints.ts";
import { type Coverage, isProven, uncovered, withoutDays } from "./coverage.ts";
import { checkDaily } from "./daily-check.ts";
import { type Event, recordsOf } from "./event.ts";
import type { RunRules } from "./outcome.ts";
import { parallel } from "./parallel.ts";
import { type Counted, type PlanContext, type Planned, planWindows } from "./plan.ts";
import { type ReadPlan, type ReadSettings, readsAll, whatToRead } from "./range.ts";
import { readWindow } from "./read-window.ts";
import { type Count, NOT_COUNTED, type Service } from "./service.ts";
import type { RowState } from "./state.ts";
import { closedWindow, type DatedWindow, spanName } from "./window.ts";
import { WindowSize } from "./window-size.ts";

/** How the rows of a stream are read: in windows of days or all at once, by an export, by a list. */
export type Source = Pick<RunRules, "isExported" | "isListed" | "onMissingKey"> & {
  readonly isDated: boolean;
};

/** One stream to read. */
export type RowStream = {
  readonly stream: string;
  readonly source: Source;
  readonly service: Service;
  readonly state: RowState;
  readonly settings: ReadSettings;
  /** Digest of the API key's id. */
  readonly key: string;
  /** Monotonic ms after which no further window begins; undefined: never. */
  readonly endsAt?: number | undefined;
};

/** The decisions about a stream before its first row. */
export type Prepared = {
  readonly state: RowState;
  /** The run's first count. */
  readonly count: Count;
  /** The plan, and the counted window; undefined: the stream has no days. */
  readonly dated: { readonly plan: ReadPlan; readonly window: DatedWindow } | undefined;
  readonly rules: RunRules;
  readonly warnings: readonly string[];
};

/** Reads one stream: decides what to read, reads windows at once, and yields a checkpoint after each. */
export async function* readRows(run: RowStream): AsyncGenerator<Event> {
  const { stream, service, settings } = run;
  const prepared = await prepare(run);
  const { state, dated, count, rules, warnings } = prepared;
  for (const text of warnings) yield { kind: "log", level: "warn", text };
  if (count.known) yield { kind: "estimate", stream, rows: count.rows + count.undated };
  const days = dated && { yesterday: rules.yesterday, missing: dated.plan.missing };
  const checkpoints = new Checkpoints(stream, state, days);
  const limit = new TimeLimit(run);
  const steps = parallel(windowsOf(prepared, rules), settings.numWorkers, {
    isAlone: ({ window }) => window.kind !== "closed",
    begins: (planned) => limit.allows(planned),
    read: (planned) => readWindow(planned, rules),
  });
  for await (const step of steps) {
    const { index, item } = step;
    if (step.kind === "end") yield* checkpoints.end(index);
    else if (step.part.kind === "outcome") yield* checkpoints.add(index, step.part.outcome);
    else {
      const isReread = item.isReread && state.full_refresh === null;
      const place = { window: index, span: spanName(item.window), isReread };
      yield* recordsOf(stream, step.part.batch, service.now(), place);
    }
  }
  yield* checkpoints.close(limit.isUp);
}

/** The windows of a run, in order. A stream without days is one window. */
export async function* windowsOf(
  { dated, count }: Pick<Prepared, "dated" | "count">,
  context: PlanContext,
): AsyncGenerator<Planned> {
  if (dated === undefined) yield { window: { kind: "all" }, isRetry: false, isReread: false, count };
  else yield* planWindows(dated.plan, { window: dated.window, count }, context);
}

/** Counts the window, checks what earlier runs proved, and decides what is read. Reads no row. */
export async function prepare(run: RowStream): Promise<Prepared> {
  const { stream, source, service, settings, key, state: saved } = run;
  if (!source.isDated) return await prepareAll(run);
  const { window, count } = await countFirst(run);
  const { asked, answered } = count;
  const today = dayOf(asked);
  const yesterday = addDays(today, -1);
  const warnings: string[] = [];
  let state: RowState = {
    ...saved,
    days: currentDays(saved.days, yesterday, settings.ignoreMissingDays),
    asked: new Date(asked).toISOString(),
  };
  if (saved.discoveredAt !== null && instant(saved.discoveredAt) > answered) {
    warnings.push(
      `The state of "${stream}" says ${saved.discoveredAt}, which is later than the service's clock: it is read from yesterday on`,
    );
    state = { ...state, discoveredAt: state.asked };
  }
  const plan = whatToRead(state, settings, today, key);
  if (plan.daily || plan.isNewKey) {
    const checked = await checkDaily(state, plan, { stream, service, today, key });
    if (plan.isNewKey)
      warnings.push(
        `The API key of "${stream}" is another one than before, of the same organization by its numbers`,
      );
    const [failure] = checked.failures;
    if (failure !== undefined) {
      const failed = plural(checked.failures.length, "request");
      warnings.push(
        `The daily check of "${stream}" is not complete: ${failed} failed, the first with "${failure}". The next run tries again`,
      );
    }
    state = checked.state;
  }
  // The run may end before it has read the days of its window, and other settings may follow.
  const days = state.days.filter((span) => !isProven(span) || !readsAll(plan, span));
  state = { ...state, days, key, ...(plan.isNewKey && { undated: null }) };
  const { daily, isNewKey, undated } = plan;
  return {
    ...{ state, count, warnings, rules: rulesOf(run, asked) },
    dated: { window, plan: { ...whatToRead(state, settings, today), daily, isNewKey, undated } },
  };
}

async function prepareAll(run: RowStream): Promise<Prepared> {
  const { source, service, settings, state } = run;
  const isCounted = settings.verifyCounts && source.isListed && source.isExported;
  const count = isCounted ? await service.count({ kind: "all" }) : NOT_COUNTED;
  const rules = { ...rulesOf(run, Number.POSITIVE_INFINITY), yesterday: BEGINNING };
  return { state, count, dated: undefined, rules, warnings: [] };
}

/** Counts the window that the state and the day name. The answer says what day it is, so the window may be another one. */
async function countFirst({ state, settings, service, key }: RowStream): Promise<Counted> {
  const windowOn = (today: Day): DatedWindow => {
    const { window, undated } = whatToRead(state, settings, today, key);
    if (window === undefined) return closedWindow(settings.endDate ?? today, settings.endDate ?? today);
    if (window.until !== "now") return closedWindow(window.from, window.until);
    return { kind: "open", from: window.from, undated: undated !== undefined && window.from === BEGINNING };
  };
  const first = windowOn(dayOf(service.now()));
  const count = await service.count(first);
  const window = windowOn(dayOf(count.asked));
  const isSame = window.from === first.from && window.kind === first.kind;
  return { window, count: isSame ? count : await service.count(window) };
}

/** No span reaches yesterday, and nothing is kept about ignored days. */
function currentDays(days: Coverage, yesterday: Day, ignored: readonly Day[]): Coverage {
  return days.flatMap((span): Coverage => {
    if (span.to >= yesterday) return [];
    if (isProven(span)) return [span];
    return withoutDays([[span.from, span.to]], ignored).map(([from, to]) => ({ ...span, from, to }));
  });
}

function rulesOf({ source, service, settings }: RowStream, asked: number): RunRules {
  const { isExported, isListed, onMissingKey } = source;
  const { endDate, verifyCounts, maxWindowRows } = settings;
  return {
    ...{ service, isExported, isListed, onMissingKey },
    verifyCounts: verifyCounts && isListed,
    yesterday: Number.isFinite(asked) ? addDays(dayOf(asked), -1) : BEGINNING,
    until: endDate === null ? Number.POSITIVE_INFINITY : startOf(addDays(endDate, 1)) - 1,
    latest: asked,
    windowSize: new WindowSize(maxWindowRows),
  };
}

/** Ends a run between two windows, once it has read days that the state did not cover. Otherwise a long lookback would never end. */
class TimeLimit {
  isUp = false;
  readonly #run: RowStream;
  #isFurther = false;

  constructor(run: RowStream) {
    this.#run = run;
  }

  allows({ window, count, isRetry }: Planned): boolean {
    const { service, endsAt = Number.POSITIVE_INFINITY, state } = this.#run;
    this.isUp = this.#isFurther && service.monotonic() >= endsAt;
    const hasRows = count?.known !== true || count.rows > 0;
    const isNew =
      hasRows && window.kind === "closed" && uncovered(state.days, [window.from, window.to]).length > 0;
    this.#isFurther ||= isNew || isRetry || window.kind === "open";
    return !this.isUp;
  }
}
