import { addDays, DAY_MS, type Day, daysBetween } from "../base/time.ts";
import { type Coverage, covered, type DayRange, put, type Span, spanOf, without } from "./coverage.ts";
import type { Count, Service } from "./service.ts";
import type { DatedState } from "./state.ts";
import { type ClosedWindow, closedWindow } from "./window.ts";

/** More people without a date than this are read again only if there are more of them. */
const MOST_REMEMBERED = 1_000;
/** Ranges that a day's check counts one by one, as long as none of them grew. */
const MOST_COUNTED = 16;

/** Spans that follow one another, each proven and with its number of rows. */
type Stretch = readonly Span[];
type CountDays = (days: DayRange) => Promise<number>;

/** What a check found. `state`: without the days that got rows late. */
export type Found = {
  readonly state: DatedState;
  /** How many people without a date there are, if they are to be read; undefined: they are not. */
  readonly undated?: Count;
  /** The covered days of sources that the key could not read before. */
  readonly granted: readonly ClosedWindow[];
};

/**
 * Looks for what no window shows, in the first run of a UTC day: rows that came late into days that are proven, people
 * without a date, and sources that are new.
 * @param behind the days before those that the run reads anyway; none if they end before they begin
 * @param open the count of what the run reads anyway, taken before
 */
export async function checkDay(
  saved: DatedState,
  behind: DayRange,
  open: Count,
  bringsUndated: boolean,
  api: Service,
): Promise<Found> {
  const today = Math.floor(open.asked / DAY_MS);
  const [first, last] = behind;
  const countDays: CountDays = async (days) => (await api.count(closedWindow(...days))).rows;
  const before = first > last ? 0 : await countDays(behind);
  const all = bringsUndated && saved.undated !== null ? await api.count({ kind: "all" }) : undefined;
  // The first question is answered.
  const known: CountDays = async (days) => (days.join() === behind.join() ? before : await countDays(days));
  const numbers = await numbered(saved.days, behind, countDays);
  const days = await withoutLate(numbers, behind, today, known, countDays);
  const oldest = days.find(([from]) => from <= last);
  const listed = saved.filters?.source_slug ? undefined : await api.sources();
  const { sources } = saved;
  const isNew = (slug: string): boolean =>
    oldest !== undefined && sources !== null && !sources.includes(slug);
  const granted = (listed ?? [])
    .filter(isNew)
    .map((source) => ({ ...closedWindow(oldest?.[0] ?? first, last), source }));
  const state = { ...saved, days, sources: listed?.filter((slug) => !isNew(slug)) ?? sources };
  if (all === undefined || saved.undated === null) return { state, granted };
  const rows = Math.max(0, all.rows - open.rows - before);
  const isRead = rows > 0 && (rows <= MOST_REMEMBERED || rows > saved.undated.rows);
  if (isRead) return { state, granted, undated: { ...all, rows: all.rows - rows, undated: rows } };
  return { state: { ...state, undated: { rows, seen: rows === 0 ? [] : null } }, granted };
}

const isProven = ([, , , status]: Span): boolean => status === undefined;
const rowsOf = ([, , rows]: Span): number => rows ?? 0;
const sumOf = (spans: Stretch): number => spans.reduce((sum, span) => sum + rowsOf(span), 0);
const rangeOf = (spans: Stretch): DayRange => [spans[0]?.[0] as Day, spans.at(-1)?.[1] as Day];

/** Each day another part of a list comes first, none larger than a share: all of a short list within three days. */
const inTurn = <Item>(list: readonly Item[], today: number, share: number): readonly Item[] => {
  const parts = Math.max(3, Math.ceil(list.length / share));
  const turn = Math.floor(((today % parts) * list.length) / parts);
  return [...list.slice(turn), ...list.slice(0, turn)];
};

/** Fills in numbers that nobody knows. A span that reaches into what the run reads is cut there. */
async function numbered(days: Coverage, [first, last]: DayRange, count: CountDays): Promise<Coverage> {
  const next = addDays(last, 1);
  const across = days.find(([from, to]) => from <= last && to >= next);
  let known = across === undefined ? days : put(days, spanOf([next, across[1]], null, across[3]));
  const unknown = known.filter(
    (span) => isProven(span) && span[2] === null && span[0] >= first && span[1] <= last,
  );
  for (const [from, to] of unknown.slice(0, MOST_COUNTED))
    known = put(known, spanOf([from, to], await count([from, to])));
  return known;
}

/**
 * Rows only leave closed days, so a range that holds more than was proven there got rows late: it is taken out, and so read
 * again. Where fewer are left, numbers are lowered as far as the day's counts reach.
 * @param total counts a stretch; `count` counts anew
 */
async function withoutLate(
  days: Coverage,
  [first, last]: DayRange,
  today: number,
  total: CountDays,
  count: CountDays,
): Promise<Coverage> {
  const inside = days.filter(
    (span) => isProven(span) && span[2] !== null && span[0] >= first && span[1] <= last,
  );
  const stretches = covered(inside).map(([from, to]) => inside.filter(([day]) => day >= from && day <= to));
  let known = days;
  for (const stretch of inTurn(stretches, today, MOST_COUNTED).slice(0, MOST_COUNTED)) {
    const sum = sumOf(stretch);
    const rows = await total(rangeOf(stretch));
    if (rows === sum) known = await halved(stretch, known, count);
    else if (rows < sum || (await count(rangeOf(stretch))) > sum)
      known = await recounted(stretch, sum - rows, known, today, count);
  }
  return known;
}

/**
 * Counts spans anew: one that grew is taken out of the days, the number of one that shrank is lowered. If rows have only left,
 * from the oldest span on, as long as that explains it, else in turn. If some came, all: those that left may hide others.
 * @param gone rows that left, less those that came
 */
async function recounted(
  stretch: Stretch,
  gone: number,
  days: Coverage,
  today: number,
  count: CountDays,
): Promise<Coverage> {
  let known = days;
  let left = gone;
  let grew = gone < 0;
  const looked = new Set<Span>();
  const look = async (span: Span): Promise<number> => {
    looked.add(span);
    const range = rangeOf([span]);
    const rows = await count(range);
    if (rows > rowsOf(span)) grew = true;
    known = rows > rowsOf(span) ? without(known, range) : put(known, spanOf(range, rows));
    left -= rowsOf(span) - rows;
    return rows;
  };
  for (const span of stretch) {
    if (grew || looked.size === MOST_COUNTED) break;
    if (rowsOf(span) === 0) continue;
    const rows = await look(span);
    if (left === 0) return known;
    if (rows > 0) break;
  }
  for (const span of inTurn(stretch, today, MOST_COUNTED - 1)) {
    if (!grew && looked.size === MOST_COUNTED) break;
    if (!looked.has(span)) await look(span);
  }
  return known;
}

/** Halves the largest of few spans, so that fewer days are read again when rows come late. */
async function halved(stretch: Stretch, days: Coverage, count: CountDays): Promise<Coverage> {
  const [largest] = stretch.toSorted((a, b) => rowsOf(b) - rowsOf(a));
  if (largest === undefined || stretch.length >= MOST_COUNTED || rowsOf(largest) < 2) return days;
  const [from, to, rows] = largest;
  if (from === to) return days;
  const middle = addDays(from, (daysBetween(from, to) >> 1) - 1);
  const older = await count([from, middle]);
  const parts = [
    spanOf([from, middle], older),
    spanOf([addDays(middle, 1), to], Math.max(0, (rows ?? 0) - older)),
  ];
  return parts.reduce(put, days);
}
