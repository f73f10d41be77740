import { addDays, BEGINNING, type Day, dayOf, instant, startOf } from "../base/time.ts";
import { type Coverage, isProven, withoutDays } from "./coverage.ts";
import { checkDaily } from "./daily-check.ts";
import { type Counted, WindowSize } from "./plan.ts";
import { type ReadPlan, readsAll, whatToRead } from "./range.ts";
import type { RowStream } from "./read-stream.ts";
import { type Count, NOT_COUNTED, type Service, warn } from "./service.ts";
import type { RowState } from "./state.ts";
import { closedWindow, type DatedWindow } from "./window.ts";

/** The ways in which the service offers the rows of a stream. */
export type Source = {
  /** Whether rows have dates, so that they can be read in windows of days. */
  readonly isDated: boolean;
  readonly isExported: boolean;
  readonly isListed: boolean;
  /** `reject`: a row without its key fails the attempt. */
  readonly onMissingKey: "reject" | "pass" | "drop";
};

/** The rules for every window of a run. */
export type RunRules = Source & {
  readonly service: Service;
  /** The day before the run's first count. It does not change during the run. */
  readonly yesterday: Day;
  /** False: an export that ends properly proves its window. */
  readonly verifyCounts: boolean;
  /** Rows with a later cursor (epoch ms) are not emitted. */
  readonly until: number;
  /** Rows with a later cursor (epoch ms) do not move the stream's cursor. */
  readonly latest: number;
  readonly windowSize: WindowSize;
};

/** The run's first count with its window, and the decisions about a stream before its first row. */
export type Prepared = Counted & {
  readonly state: RowState;
  /** Undefined: the stream has no days. */
  readonly plan: ReadPlan | undefined;
  readonly rules: RunRules;
};

/** Counts the window, makes the daily check, and plans the reading of a stream. Reads no row. */
export async function prepare(run: RowStream): Promise<Prepared> {
  const { source, settings, key } = run;
  if (!source.isDated) return await prepareAll(run);
  const { window, count } = await countFirst(run);
  const today = dayOf(count.asked);
  const saved = currentState(run, count);
  const plan = whatToRead(saved, settings, today, key);
  const isDue = plan.daily || plan.isNewKey;
  const checked = isDue ? await checkDaily(saved, plan, run, today) : saved;
  // The spans that this run reads again are removed, because the run may end before it reads their days.
  const days = checked.days.filter((span) => !isProven(span) || !readsAll(plan, span));
  const state = { ...checked, days, key, ...(plan.isNewKey && { undated: null }) };
  const next = whatToRead(state, settings, today);
  return {
    ...{ state, window, count, rules: rulesOf(run, count.asked) },
    plan: { ...next, undated: next.undated ?? plan.undated },
  };
}

async function prepareAll(run: RowStream): Promise<Prepared> {
  const { source, service, settings, state } = run;
  const window = { kind: "all" } as const;
  const isCounted = settings.verifyCounts && source.isListed && source.isExported;
  const count = isCounted ? await service.count(window) : NOT_COUNTED;
  return { state, window, count, plan: undefined, rules: rulesOf(run, Number.POSITIVE_INFINITY) };
}

/** Counts the window that follows from the state and today. If the answer has a later day, counts the window of that day. */
async function countFirst({ state, settings, service, key }: RowStream): Promise<Counted> {
  const windowOn = (today: Day): DatedWindow => {
    const { window, undated } = whatToRead(state, settings, today, key);
    const { from, until } = window ?? { from: settings.endDate ?? today, until: settings.endDate ?? today };
    if (until !== "now") return closedWindow(from, until);
    return { kind: "open", from, undated: undated !== undefined && from === BEGINNING };
  };
  const first = windowOn(dayOf(service.now()));
  const count = await service.count(first);
  const window = windowOn(dayOf(count.asked));
  const isSame = window.from === first.from && window.kind === first.kind;
  return { window, count: isSame ? count : await service.count(window) };
}

/** The state without spans that reach yesterday, without a cursor ahead of the service's clock, and without ignored days. */
function currentState({ stream, state, settings, service }: RowStream, { asked, answered }: Count): RowState {
  const { discoveredAt } = state;
  const days = currentDays(state.days, addDays(dayOf(asked), -1), settings.ignoreMissingDays);
  const now = new Date(asked).toISOString();
  if (discoveredAt === null || instant(discoveredAt) <= answered) return { ...state, days, asked: now };
  const text = `the state's newest row is of ${discoveredAt}, which is later than the service's clock`;
  warn(service, `"${stream}" is read from yesterday on: ${text}`);
  return { ...state, days, asked: now, discoveredAt: now };
}

function currentDays(days: Coverage, yesterday: Day, ignored: readonly Day[]): Coverage {
  return days.flatMap((span): Coverage => {
    if (span.to >= yesterday) return [];
    if (isProven(span)) return [span];
    return withoutDays([[span.from, span.to]], ignored).map(([from, to]) => ({ ...span, from, to }));
  });
}

function rulesOf({ source, service, settings }: RowStream, asked: number): RunRules {
  const { endDate, verifyCounts, maxWindowRows } = settings;
  return {
    ...{ ...source, service },
    verifyCounts: verifyCounts && source.isListed,
    yesterday: Number.isFinite(asked) ? addDays(dayOf(asked), -1) : BEGINNING,
    until: endDate === null ? Number.POSITIVE_INFINITY : startOf(addDays(endDate, 1)) - 1,
    latest: asked,
    windowSize: new WindowSize(maxWindowRows),
  };
}
