import { ConfigError } from "../errors.ts";
import { compact, type DayRange, uncovered, union } from "../streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../streams/dated-state.ts";
import { instant } from "../time.ts";

/** A state of one stream, and where it came from. */
export type ShardState = { readonly name: string; readonly state: DatedState };

/**
 * One state that knows what all parts know together; their order does not matter. Whoever left a day before it was read is
 * in what is read from the earliest `asked` on, so that moment is the cursor. Throws ConfigError for parts of different
 * plans, services or filters, and for days between the parts that none holds, unless `isPartial`.
 */
export function unite(stream: string, parts: readonly ShardState[], isPartial: boolean): DatedState {
  for (const key of ["plan", "service", "filters"] as const) refuseDifferent(stream, key, parts);
  const states = parts.map(({ state }) => state);
  const days = union(states.map((state) => state.days));
  const [first, last] = [days[0], days.at(-1)];
  const unread = first === undefined || last === undefined ? [] : uncovered(days, [first[0], last[1]]);
  if (unread.length > 0 && !isPartial) throw notRead(stream, unread);
  const newest = inTime(states.flatMap(({ discoveredAt }) => discoveredAt ?? [])).at(-1);
  const begun = states.filter(({ asked, days: held }) => asked !== null || held.length > 0);
  const moments = begun.flatMap(({ asked, discoveredAt }) => asked ?? discoveredAt ?? []);
  const asked = moments.length < begun.length ? null : (inTime(moments)[0] ?? null);
  const open = states
    .filter(({ undated }) => undated !== null)
    .toSorted(byAsked)
    .at(-1);
  const sources = states.map((state) => state.sources ?? []);
  return {
    ...NEW_STATE,
    discoveredAt: newest === undefined || asked === null ? null : (inTime([newest, asked])[0] ?? null),
    days: compact(days),
    asked,
    plan: states[0]?.plan ?? null,
    service: states.find(({ service }) => service !== null)?.service ?? null,
    filters: states.find(({ filters }) => filters !== null)?.filters ?? null,
    ...{ undated: open?.undated ?? null, witness: open?.witness ?? null },
    sources: states.some((state) => state.sources === null)
      ? null
      : (sources[0] ?? []).filter((slug) => sources.every((slugs) => slugs.includes(slug))),
  };
}

const inTime = (moments: readonly string[]): readonly string[] =>
  moments.toSorted((a, b) => instant(a) - instant(b));

const byAsked = (a: DatedState, b: DatedState): number =>
  JSON.stringify([a.asked, a.undated]) < JSON.stringify([b.asked, b.undated]) ? -1 : 1;

/** A service or filters that a part does not know match any. */
function refuseDifferent(
  stream: string,
  key: "plan" | "service" | "filters",
  parts: readonly ShardState[],
): void {
  const known = parts.filter(({ state }) => key === "plan" || state[key] !== null);
  const [first] = known;
  const other = known.find(({ state }) => JSON.stringify(state[key]) !== JSON.stringify(first?.state[key]));
  if (first === undefined || other === undefined) return;
  const what = { plan: "plans", service: "services", filters: "filters" }[key];
  throw new ConfigError(
    `Cannot merge the states of "${stream}": ${first.name} and ${other.name} are of different ${what}`,
  );
}

function notRead(stream: string, unread: readonly DayRange[]): ConfigError {
  const days = unread.map(([from, to]) => (from === to ? from : `${from} to ${to}`)).join(", ");
  return new ConfigError(
    `Cannot merge the states of "${stream}": none of them holds ${days}. Read the shards of these days to their end and ` +
      "merge again, or add --partial: the next run reads these days",
  );
}
