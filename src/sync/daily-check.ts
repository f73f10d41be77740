import { ConfigError, ConnectorError, TransientError } from "../base/errors.ts";
import { plural, shown } from "../base/text.ts";
import { addDays, BEGINNING, type Day, dayOf, daysBetween, instant } from "../base/time.ts";
import { type Coverage, isProven, type Span } from "./coverage.ts";
import { believedSpans, type DaySettings, type ReadPlan } from "./range.ts";
import type { RowStream } from "./read-stream.ts";
import { warn } from "./service.ts";
import type { RowState } from "./state.ts";
import { closedWindow } from "./window.ts";

/** One check counts at most this number of new sources. The check of the first list counts all sources. */
const MAX_NEW_SOURCES = 10;
/** Two keys of one organization may differ by this share of the rows, and always by `LEAST_SLACK` rows. */
const SLACK = 0.01;
const LEAST_SLACK = 3;
/** With a new key, a state of up to `TINY` rows is read again. Up to `SMALL` rows are read again if a span differs. */
const SMALL = 20_000;
const TINY = 100;

/**
 * Finds rows that arrived late in proven days, and sources that the key could not read before.
 * A failed request changes no span, because the next run checks again. A refused source waits for the next day.
 * @returns the state without the days that must be read again. Spans that `withTurn` marks have the status `reread`
 * @throws ConfigError for a key of another organization; for a new key also the error of a count
 */
export async function checkDaily(
  saved: RowState,
  plan: ReadPlan,
  run: RowStream,
  today: Day,
): Promise<RowState> {
  const { service, stream } = run;
  const failures: ConnectorError[] = [];
  const ask = async <Value>(request: () => Promise<Value>): Promise<Value | undefined> =>
    await request().catch((error: unknown) => {
      if (!(error instanceof ConnectorError)) throw error;
      failures.push(error);
      return undefined;
    });
  const count: CountSpan = async ({ from, to }, source) =>
    (await ask(() => service.count({ ...closedWindow(from, to), ...source }, true)))?.rows;
  const days = plan.isNewKey ? await checkKey(saved, run) : await checkSpans(saved.days, plan, count);
  const areCounted = failures.length === 0;
  let state = { ...saved, days };
  const listed = saved.filters?.source_slug ? undefined : await ask(() => service.sources());
  if (listed !== undefined) state = await checkSources(state, listed, plan, count, today);
  const isChecked = areCounted && !failures.some((error) => error instanceof TransientError);
  const [failure] = failures;
  if (failure !== undefined) {
    const failed = plural(failures.length, "request");
    const next = isChecked ? "The check of the next day" : "The next run";
    const text = `The daily check of "${stream}" is not complete: ${failed} failed, the first with "${failure.message}". ${next} tries again`;
    warn(service, text);
  }
  return { ...withTurn(state, plan, run.settings, today), checked: isChecked ? today : saved.checked };
}

/** Counts the rows of a span, or the rows of one source in the span; undefined if the request failed. */
type CountSpan = (
  span: Pick<Span, "from" | "to">,
  source?: { source: string },
) => Promise<number | undefined>;

/** Removes a span if the service counts more rows than were proven. If the service counts fewer, the span gets this count. */
async function checkSpans(days: Coverage, plan: ReadPlan, count: CountSpan): Promise<Coverage> {
  const believed = new Set(believedSpans(days, plan));
  const checked: Span[] = [];
  for (const span of days) {
    const rows = believed.has(span) ? ((await count(span)) ?? span.rows) : span.rows;
    if (rows <= span.rows) checked.push({ ...span, rows });
  }
  return checked;
}

/**
 * Compares counts to find out whether a new API key belongs to the same organization, because organizations must not mix.
 * Rows that disappeared from proven days must be in the newest days. A person who is checked again moves to the newest days.
 * @throws ConfigError for a key of another organization, or if a count fails
 */
async function checkKey(saved: RowState, { stream, service }: RowStream): Promise<Coverage> {
  const proven = saved.days.filter(isProven);
  const counts = new Map<Span, number>();
  for (const span of proven) counts.set(span, (await service.count(closedWindow(span.from, span.to))).rows);
  const sumOf = (differenceOf: (span: Span, rows: number) => number): number =>
    proven.reduce((sum, span) => sum + Math.max(0, differenceOf(span, counts.get(span) ?? span.rows)), 0);
  const total = sumOf(({ rows }) => rows);
  const grown = sumOf(({ rows }, now) => now - rows);
  const gone = sumOf(({ rows }, now) => rows - now);
  const slack = Math.max(LEAST_SLACK, total * SLACK);
  const different = proven.filter((span) => counts.get(span) !== span.rows);
  const { discoveredAt } = saved;
  const from = discoveredAt === null ? BEGINNING : dayOf(instant(discoveredAt));
  const recent = gone > slack ? (await service.count({ kind: "open", from, undated: false })).rows : 0;
  if (grown > slack || gone > slack + recent)
    throw new ConfigError(
      `Cannot use the state of "${stream}": the API key is another one, and its numbers are those of another organization ` +
        `(in ${different.length} of ${plural(proven.length, "range")} of days; ${shown(total)} rows were read). Use a state ` +
        'of its own for each organization. If it is the same organization, set "key" to null in the state',
    );
  warn(
    service,
    `"${stream}" has another API key than before. By its numbers, the key is of the same organization`,
  );
  const isReadAgain = total <= TINY || (total <= SMALL && different.length > 0);
  const again = new Set(isReadAgain ? proven : different);
  return saved.days.filter((span) => !again.has(span));
}

/**
 * Removes the spans that contain rows of a new source, because the key could not read these rows before.
 * The count of a span may be unchanged, because other rows may have disappeared. A source that cannot be counted stays new.
 */
async function checkSources(
  state: RowState,
  listed: readonly string[],
  plan: ReadPlan,
  count: CountSpan,
  today: Day,
): Promise<RowState> {
  const fresh = listed.filter((slug) => state.sources?.includes(slug) !== true);
  const isFirst = state.sources === null;
  const turn = (daysBetween(BEGINNING, today) * MAX_NEW_SOURCES) % Math.max(1, fresh.length);
  const inTurn = isFirst ? fresh : [...fresh.slice(turn), ...fresh.slice(0, turn)];
  const most = isFirst ? fresh.length : MAX_NEW_SOURCES;
  const unread = new Set(inTurn.slice(most));
  let { days } = state;
  for (const source of inTurn.slice(0, most)) {
    const believed = believedSpans(days, plan);
    const range = { from: believed[0]?.from ?? BEGINNING, to: believed.at(-1)?.to ?? today };
    const rows = await count(range, { source });
    if (rows === undefined) unread.add(source);
    else if (rows > 0) {
      const affected = new Set<Span>();
      for (const span of believed) if ((await count(span, { source })) !== 0) affected.add(span);
      days = days.filter((span) => !affected.has(span));
    }
  }
  return { ...state, days, sources: listed.filter((slug) => !unread.has(slug)) };
}

/**
 * Marks the proven spans that the run must read again. The span with the oldest reading is first.
 * Each day reads one share of the rows (rows / `rereadDays`), so that no reading becomes older than `rereadDays`.
 * A run reads at most two shares for each day since the last check, but at least one span.
 */
export function withTurn(state: RowState, plan: ReadPlan, { rereadDays }: DaySettings, today: Day): RowState {
  if (rereadDays === 0 || state.full_refresh !== null || !plan.daily) return state;
  const read = addDays(today, -1);
  const ageOf = (one: { readonly read?: Day }): number => daysBetween(one.read ?? read, today) - 1;
  const days = state.days.map((span) => (isProven(span) ? { read, ...span } : span));
  const spans = believedSpans(days, plan).toSorted((a, b) => ageOf(b) - ageOf(a));
  const share = rowsOf(spans) / rereadDays;
  const late = spans.map((span, nth) => rowsOf(spans.slice(0, nth)) - share * (rereadDays - ageOf(span)));
  const [due, most] = [Math.max(...late), 2 * share * ageOf({ read: state.checked ?? read })];
  const taken = new Set<Span>();
  for (const span of spans) {
    const rows = rowsOf([...taken]);
    const isDue = rows < due || ageOf(span) >= rereadDays;
    if (!isDue || (rows > 0 && rows + span.rows > most)) break;
    taken.add(span);
  }
  return {
    ...state,
    days: days.map((span) => (taken.has(span) ? { ...span, status: "reread", rows: 0 } : span)),
    undated: state.undated && ageOf(state.undated) < rereadDays ? { read, ...state.undated } : null,
  };
}

const rowsOf = (spans: readonly Span[]): number => spans.reduce((sum, { rows }) => sum + rows, 0);
