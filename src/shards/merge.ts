import { ConfigError } from "../errors.ts";
import type { DatedState } from "../state/dated.ts";
import { type Day, endOf } from "../time.ts";
import type { ShardPlan } from "./plan-file.ts";

/** A state that was handed in, and where it came from. */
export type ShardState = { readonly name: string; readonly state: DatedState };

/**
 * Makes one state of the states of all shards of a plan. It continues as the state of one run would.
 * Throws ConfigError, naming them, for shards that are absent, unfinished, given twice, of another plan, or that ended
 * after the open shard had begun: people who moved in between would be in neither.
 */
export function mergeShards(plan: ShardPlan, states: readonly ShardState[]): DatedState {
  const byShard = toShards(plan, states);
  const ordered = plan.lines.map(({ shard }) => byShard.get(shard));
  const missing = plan.lines.filter(({ shard }) => !byShard.has(shard)).map(({ shard }) => shard);
  if (missing.length > 0) throw refused(plan, `there is no state of shard ${missing.join(", ")}`);
  const all = ordered.filter((found) => found !== undefined);
  const unfinished = all.filter(({ state }) => state.shard?.done !== true);
  if (unfinished.length > 0) {
    throw refused(
      plan,
      `${namesOf(unfinished)} did not finish. Run ${unfinished.length === 1 ? "it" : "them"} again`,
    );
  }
  const [first] = all;
  const last = all.at(-1);
  const lastLine = plan.lines.at(-1);
  if (first === undefined || last === undefined || lastLine === undefined)
    throw refused(plan, "it has no shards");
  if (lastLine.to === null) refuseLateShards(plan, all.slice(0, -1), last);
  return {
    ...last.state,
    discoveredAt: lastLine.to === null ? last.state.discoveredAt : endOf(lastLine.to),
    missing_days: days(all.flatMap(({ state }) => state.missing_days)),
    recheck: all.flatMap(({ state }) => state.recheck).toSorted(byFirstDay),
    from: first.state.from,
    gap: null,
    full_refresh: null,
    shard: null,
  };
}

function toShards(plan: ShardPlan, states: readonly ShardState[]): ReadonlyMap<number, ShardState> {
  const byShard = new Map<number, ShardState>();
  for (const given of states) {
    const { shard } = given.state;
    if (shard === null) throw refused(plan, `${given.name} is not the state of a shard`);
    if (shard.plan !== plan.digest) throw refused(plan, `${given.name} belongs to another plan`);
    const known = byShard.get(shard.index);
    if (known !== undefined) {
      throw refused(
        plan,
        `${known.name} and ${given.name} are both states of shard ${shard.index}. Keep one of them`,
      );
    }
    if (plan.lines[shard.index] === undefined)
      throw refused(plan, `${given.name} is of shard ${shard.index}`);
    byShard.set(shard.index, given);
  }
  return byShard;
}

/** Whoever leaves a closed day after the open shard has read today, and before the closed shard reads that day, is lost. */
function refuseLateShards(plan: ShardPlan, closed: readonly ShardState[], open: ShardState): void {
  const asked = Date.parse(open.state.shard?.asked ?? "");
  const late = closed.filter(({ state }) => !(Date.parse(state.shard?.ended ?? "") <= asked));
  if (late.length === 0) return;
  throw refused(
    plan,
    `${namesOf(late)} ended after the open shard had begun. Run the open shard again, then merge`,
  );
}

const namesOf = (states: readonly ShardState[]): string =>
  states.map(({ name, state }) => `shard ${state.shard?.index} (${name})`).join(", ");

const days = (list: readonly Day[]): readonly Day[] => [...new Set(list)].sort();

const byFirstDay = (a: readonly [Day, Day], b: readonly [Day, Day]): number => (a[0] < b[0] ? -1 : 1);

const refused = ({ stream }: ShardPlan, why: string): ConfigError =>
  new ConfigError(`Cannot merge the states of "${stream}": ${why}`);
