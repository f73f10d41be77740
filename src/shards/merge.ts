import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../base/errors.ts";
import { daysBetween, instant } from "../base/time.ts";
import { type Coverage, joined, type Span, uncovered } from "../sync/coverage.ts";
import { NEW_STATE, type RowState } from "../sync/state.ts";

/** A state of one stream, and the name of its file or folder. */
export type NamedState = { readonly name: string; readonly state: RowState };

/**
 * Joins several states. The new `asked` is the earliest `asked`, because rows that moved after it must be read again.
 * @throws ConfigError for different services or filters, and for days that no state contains, unless `isPartial`
 */
export function mergeStates(stream: string, parts: readonly NamedState[], isPartial: boolean): RowState {
  const refuse = (why: string): never => {
    throw new ConfigError(`Cannot merge the states of "${stream}": ${why}`);
  };
  const common = <Key extends "service" | "filters">(key: Key): RowState[Key] | null => {
    const known = parts.filter(({ state }) => state[key] !== null);
    const [first] = known;
    const other = known.find(({ state }) => !isDeepStrictEqual(state[key], first?.state[key]));
    if (first !== undefined && other !== undefined)
      refuse(`${first.name} and ${other.name} are of different ${key === "service" ? "services" : key}`);
    return first?.state[key] ?? null;
  };
  const states = parts.map(({ state }) => state);
  const days = union(states.map((state) => state.days));
  const [first, last] = [days[0], days.at(-1)];
  const unread = first === undefined || last === undefined ? [] : uncovered(days, [first.from, last.to]);
  if (unread.length > 0 && !isPartial) {
    const names = unread.map(([from, to]) => (from === to ? from : `${from} to ${to}`)).join(", ");
    refuse(
      `no state contains ${names}. Read the shards of these days and merge again, or add --partial: the next run reads ` +
        "these days",
    );
  }
  const begun = states.filter((state) => state.asked !== null || state.days.length > 0);
  const asked = earliest(begun.map((state) => state.asked ?? state.discoveredAt));
  const newest = inTime(states.flatMap(({ discoveredAt }) => discoveredAt ?? [])).at(-1) ?? null;
  const [some = null, ...others] = states.map(({ sources }) => sources);
  const sources = others.reduce((all, own) => all && own && all.filter((slug) => own.includes(slug)), some);
  return {
    ...NEW_STATE,
    ...{ service: common("service"), filters: common("filters") },
    // Shards may be read with several keys of one organization. The next run checks that its key belongs to the organization.
    key: states.flatMap(({ key }) => key ?? []).sort()[0] ?? null,
    undated: states.flatMap(({ undated }) => undated ?? []).sort((a, b) => a.rows - b.rows)[0] ?? null,
    ...{ days, asked, sources, discoveredAt: earliest([newest, asked]) },
  };
}

const inTime = (moments: readonly string[]): readonly string[] =>
  moments.toSorted((a, b) => instant(a) - instant(b));

/** The earliest moment; null if any moment is unknown, or there are no moments. */
const earliest = (moments: readonly (string | null)[]): string | null =>
  moments.includes(null) ? null : (inTime(moments.map(String))[0] ?? null);

/** Joins the days of several states. If two spans overlap, the better span remains and the other span is dropped whole. */
export function union(parts: readonly Coverage[]): Coverage {
  const spans = parts.flat().toSorted(byRank);
  const kept: Span[] = [];
  for (const span of spans)
    if (kept.every(({ from, to }) => to < span.from || from > span.to)) kept.push(span);
  return joined(kept.sort((a, b) => (a.from < b.from ? -1 : 1)));
}

/** Compares spans: proven spans first, then longer spans, then an order that does not depend on the order of the states. */
function byRank(a: Span, b: Span): number {
  const rank = ({ status }: Span): number => ["proven", "reread", "again", "missing"].indexOf(status);
  const length = ({ from, to }: Span): number => daysBetween(from, to);
  // The lower number of rows is better. A number that is too low causes another read, but a higher number hides rows.
  return rank(a) - rank(b) || length(b) - length(a) || a.from.localeCompare(b.from) || a.rows - b.rows;
}
