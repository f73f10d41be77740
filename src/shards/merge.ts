import { ConfigError } from "../errors.ts";
import { uncovered, union } from "../streams/coverage.ts";
import type { DatedState } from "../streams/dated-state.ts";
import { addDays, BEGINNING, instant } from "../time.ts";
import type { ShardPlan } from "./plan-file.ts";

/** A state that was handed in, and where it came from. */
export type ShardState = { readonly name: string; readonly state: DatedState };

/**
 * Makes one state of the states of all shards of a plan: the union of their days. Its cursor is the earliest moment at which
 * one of them was asked for, because whoever left a day that was read later is found from that moment on.
 * Throws ConfigError, naming them, for states of another plan and for days that no state holds.
 */
export function mergeShards(plan: ShardPlan, states: readonly ShardState[]): DatedState {
  const other = states.find(({ state }) => state.plan !== plan.digest);
  if (other !== undefined) throw refused(plan, `${other.name} is not the state of a shard of this plan`);
  const days = union(states.map(({ state }) => state.days));
  const [first, last] = [plan.lines[0], plan.lines.at(-1)];
  const open = states.find(({ state }) => state.undated !== null);
  const newest = latest(
    states.flatMap(({ state }) => state.discoveredAt ?? []),
    -1,
  );
  if (first === undefined || last === undefined || states.length === 0)
    throw refused(plan, "there are no states");
  const to = last.to ?? plan.lines.at(-2)?.to ?? addDays(BEGINNING, -1);
  const holes = uncovered(days, [first.from ?? BEGINNING, to]);
  if (holes.length > 0) {
    throw refused(plan, `no state holds ${holes.map(([from, until]) => `${from} to ${until}`).join(", ")}`);
  }
  const asked = latest(
    states.flatMap(({ state }) => state.asked ?? state.discoveredAt ?? []),
    1,
  );
  const cursor = [newest, asked].filter((moment) => moment !== null);
  return {
    ...(open ?? (states[0] as ShardState)).state,
    ...{ days, asked, discoveredAt: latest(cursor, 1), undated: open?.state.undated ?? null, checked: null },
    ...{ plan: null, full_refresh: null },
  };
}

/** The first of some moments (1), or the last (-1). */
const latest = (moments: readonly string[], sign: 1 | -1): string | null =>
  moments.toSorted((a, b) => sign * (instant(a) - instant(b)))[0] ?? null;

const refused = ({ stream }: ShardPlan, why: string): ConfigError =>
  new ConfigError(`Cannot merge the states of "${stream}": ${why}`);
