import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../base/errors.ts";
import { instant } from "../base/time.ts";
import { compact, uncovered, union } from "../sync/coverage.ts";
import { type DatedState, NEW_STATE } from "../sync/state.ts";

/** A state of one stream, and where it came from. */
export type ShardState = { readonly name: string; readonly state: DatedState };

/**
 * One state that knows what all parts know together; their order does not matter. Whoever left a day before it was read is
 * in what is read from the earliest `asked` on, so that moment is the cursor. Throws ConfigError for parts of different
 * plans, services or filters, and for days between the parts that none holds, unless `isPartial`.
 */
export function unite(stream: string, parts: readonly ShardState[], isPartial: boolean): DatedState {
  const refuse = (why: string): never => {
    throw new ConfigError(`Cannot merge the states of "${stream}": ${why}`);
  };
  /** A service or filters that a part does not know match any. */
  const common = <Key extends "plan" | "service" | "filters">(key: Key): DatedState[Key] | null => {
    const known = parts.filter(({ state }) => key === "plan" || state[key] !== null);
    const [first] = known;
    const other = known.find(({ state }) => !isDeepStrictEqual(state[key], first?.state[key]));
    if (first !== undefined && other !== undefined)
      refuse(`${first.name} and ${other.name} are of different ${key === "filters" ? key : `${key}s`}`);
    return first?.state[key] ?? null;
  };
  const states = parts.map(({ state }) => state);
  const [plan, service, filters] = [common("plan"), common("service"), common("filters")];
  const days = union(states.map((state) => state.days));
  const [first, last] = [days[0], days.at(-1)];
  const unread = first === undefined || last === undefined ? [] : uncovered(days, [first[0], last[1]]);
  if (unread.length > 0 && !isPartial) {
    const names = unread.map(([from, to]) => (from === to ? from : `${from} to ${to}`)).join(", ");
    refuse(
      `none of them holds ${names}. Read the shards of these days to their end and merge again, or add --partial: ` +
        "the next run reads these days",
    );
  }
  const begun = states.filter((state) => state.asked !== null || state.days.length > 0);
  const asked = earliest(begun.map((state) => state.asked ?? state.discoveredAt));
  const newest = inTime(states.flatMap(({ discoveredAt }) => discoveredAt ?? [])).at(-1) ?? null;
  const [{ undated, witness } = NEW_STATE] = states
    .filter((state) => state.undated !== null)
    .sort(newestFirst);
  const sources = states
    .map((state) => state.sources)
    .reduce((all, own) => all && own && all.filter((slug) => own.includes(slug)), states[0]?.sources ?? null);
  const discoveredAt = earliest([newest, asked]);
  return {
    ...NEW_STATE,
    ...{ plan, service, filters, asked, undated, witness, sources, discoveredAt },
    days: compact(days),
  };
}

const inTime = (moments: readonly string[]): readonly string[] =>
  moments.toSorted((a, b) => instant(a) - instant(b));

/** Null where a moment is not known, or there is none. */
const earliest = (moments: readonly (string | null)[]): string | null =>
  moments.includes(null) ? null : (inTime(moments.map(String))[0] ?? null);

const newestFirst = (a: DatedState, b: DatedState): number =>
  JSON.stringify([a.asked, a.undated]) < JSON.stringify([b.asked, b.undated]) ? 1 : -1;
