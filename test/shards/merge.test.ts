import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeShards, type ShardState } from "../../src/shards/merge.ts";
import { type Cut, type PlanSettings, type ShardPlan, toShardPlan } from "../../src/shards/plan-file.ts";
import { type DatedState, NEW_STATE, type Shard } from "../../src/streams/dated-state.ts";
import { addDays, type Day, endOf } from "../../src/time.ts";

const FIRST = "2020-01-01" as Day;
const SETTINGS: PlanSettings = {
  baseUrl: "https://contacts.example.com/",
  filters: { source_slug: null, is_user: "all" },
  startDate: null,
  endDate: null,
};
const LENGTH = 10;

/** A plan of so many shards of ten days each. `isOpen`: the last one has no end. */
function planOf(count: number, isOpen = true): ShardPlan {
  const cuts = Array.from({ length: count }, (_, shard): Cut => {
    const from = addDays(FIRST, shard * LENGTH);
    const isLast = shard === count - 1;
    return {
      from: shard === 0 ? null : from,
      to: isLast && isOpen ? null : addDays(from, LENGTH - 1),
      rows: 1,
    };
  });
  return toShardPlan("people", cuts, SETTINGS, "2026-11-21T00:00:00.000Z");
}

const moment = (minute: number): string => new Date(Date.UTC(2026, 10, 21, 0, minute)).toISOString();

/** The states of a load that went well: the closed shards end one by one, then the open one begins. */
function statesOf(
  plan: ShardPlan,
  change: (state: DatedState, shard: number) => Partial<DatedState> = () => ({}),
) {
  return plan.lines.map(({ shard, from, to }): ShardState => {
    const isOpen = to === null;
    const state: DatedState = {
      ...NEW_STATE,
      discoveredAt: to === null ? moment(100) : endOf(to),
      from,
      undated: isOpen ? "done" : "pending",
      undated_rows: isOpen ? 7 : 0,
      shard: markOf(plan, shard, isOpen ? 100 : shard),
    };
    return { name: `"shard-${shard}"`, state: { ...state, ...change(state, shard) } };
  });
}

const markOf = (plan: ShardPlan, index: number, minute: number): Shard => ({
  plan: plan.digest,
  index,
  done: true,
  asked: moment(minute),
  ended: moment(minute + 1),
});

const counts = fc.integer({ min: 1, max: 8 });
const daysWithin = fc.array(fc.integer({ min: 0, max: LENGTH - 1 }), { maxLength: 4 });

describe("mergeShards()", () => {
  it("gives the same state for every order of the shards", () => {
    fc.assert(
      fc.property(
        counts.chain((count) =>
          fc.tuple(fc.constant(count), fc.shuffledSubarray([...Array(count).keys()], { minLength: count })),
        ),
        ([count, order]) => {
          const plan = planOf(count);
          const states = statesOf(plan);
          const shuffled = order.flatMap((index) => states[index] ?? []);
          expect(mergeShards(plan, shuffled)).toEqual(mergeShards(plan, states));
        },
      ),
    );
  });

  it("has every missing day and every range to check again, each once, oldest first", () => {
    fc.assert(
      fc.property(counts, fc.array(daysWithin, { minLength: 8, maxLength: 8 }), (count, offsets) => {
        const plan = planOf(count);
        const daysOf = (shard: number): Day[] =>
          (offsets[shard] ?? []).map((offset) => addDays(FIRST, shard * LENGTH + offset));
        const states = statesOf(plan, (_, shard) => ({
          missing_days: [...new Set(daysOf(shard))].sort(),
          recheck: daysOf(shard).map((day) => [day, day] as const),
        }));
        const merged = mergeShards(plan, states.toReversed());
        const all = plan.lines.flatMap(({ shard }) => daysOf(shard));
        expect(merged.missing_days).toEqual([...new Set(all)].sort());
        expect(merged.recheck.map(([first]) => first)).toEqual(all.toSorted());
      }),
    );
  });

  it("continues where the open shard ended, and knows nothing of shards any more", () => {
    const plan = planOf(3);
    expect(mergeShards(plan, statesOf(plan))).toEqual({
      ...NEW_STATE,
      discoveredAt: moment(100),
      undated: "done",
      undated_rows: 7,
    });
  });

  it("ends with the last day of a plan that has no open shard", () => {
    const plan = planOf(3, false);
    const merged = mergeShards(
      plan,
      statesOf(plan, () => ({ discoveredAt: "2020-01-05T00:00:00Z" })),
    );
    expect(merged.discoveredAt).toBe(endOf(addDays(FIRST, 3 * LENGTH - 1)));
  });

  it("refuses a load from which any shard is absent, and names it", () => {
    fc.assert(
      fc.property(counts, fc.nat(), (count, pick) => {
        const plan = planOf(count);
        const absent = pick % count;
        const states = statesOf(plan).filter((_, shard) => shard !== absent);
        expect(() => mergeShards(plan, states)).toThrow(`there is no state of shard ${absent}`);
      }),
    );
  });

  it("refuses a load of which any shard is unfinished, and names it", () => {
    fc.assert(
      fc.property(counts, fc.nat(), (count, pick) => {
        const plan = planOf(count);
        const unfinished = pick % count;
        const states = statesOf(plan, ({ shard }, index) => ({
          shard: shard === null || index !== unfinished ? shard : { ...shard, done: false, ended: null },
        }));
        expect(() => mergeShards(plan, states)).toThrow(
          `shard ${unfinished} ("shard-${unfinished}") did not finish`,
        );
      }),
    );
  });

  it("refuses a closed shard that ended after the open one had begun, by a millisecond too", () => {
    const plan = planOf(3);
    const endedAt = (ended: string | null) =>
      statesOf(plan, ({ shard }, index) => ({
        shard: shard === null || index !== 1 ? shard : { ...shard, ended },
      }));
    expect(() => mergeShards(plan, endedAt(moment(100)))).not.toThrow();
    for (const late of [moment(100).replace(".000Z", ".001Z"), moment(500), null, "yesterday"]) {
      expect(() => mergeShards(plan, endedAt(late))).toThrow(
        'shard 1 ("shard-1") ended after the open shard had begun',
      );
    }
  });

  it("refuses what is of no shard, of another plan, of no line of this plan, or there twice", () => {
    const plan = planOf(2);
    const states = statesOf(plan);
    const extra = (shard: Shard | null): ShardState => ({ name: '"extra"', state: { ...NEW_STATE, shard } });
    const merge = (shard: Shard | null) => () => mergeShards(plan, [...states, extra(shard)]);
    expect(merge(null)).toThrow('"extra" is not the state of a shard');
    expect(merge(markOf(planOf(4), 0, 0))).toThrow('"extra" belongs to another plan');
    expect(merge(markOf(plan, 2, 0))).toThrow('"extra" is of shard 2');
    expect(merge(markOf(plan, 1, 0))).toThrow('"shard-1" and "extra" are both states of shard 1');
  });
});
