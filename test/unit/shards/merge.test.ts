import { describe, expect, it } from "vitest";
import { type ShardState, unite } from "../../../src/shards/merge.ts";
import type { Span } from "../../../src/sync/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/sync/state.ts";

type State = Partial<DatedState>;

const span = (from: string, to: string, rows: number | null, ...status: "again"[]): Span =>
  [from, to, rows, ...status] as unknown as Span;
const CLOSED = { plan: "p", discoveredAt: "2026-01-31T10:00:00Z", asked: "2026-03-05T08:00:00.000Z" };
const JANUARY: State = { ...CLOSED, days: [span("0001-01-01", "2026-01-31", 10)] };
const FEBRUARY: State = { ...CLOSED, days: [span("2026-02-01", "2026-02-28", 20)] };
const OPEN: State = {
  ...{ plan: "p", discoveredAt: "2026-03-05T06:00:00Z", asked: "2026-03-05T07:00:00.000Z" },
  ...{ days: [span("2026-03-01", "2026-03-03", 3)], undated: { rows: 2, seen: null } },
};
const daysOf = (...states: State[]): State => ({ days: states.flatMap(({ days = [] }) => days) });
const filtered = (source_slug: string): State => ({ filters: { source_slug, is_user: "all" } });
const partsOf = (states: readonly State[]): readonly ShardState[] =>
  states.map((state, nth) => ({ name: `part ${nth}`, state: { ...NEW_STATE, ...state } }));

describe("the state of all shards", () => {
  const UNDATED = { undated: { rows: 2, seen: null }, asked: "2026-03-05T07:00:00.000Z", checked: null };
  const LATER = { ...OPEN, discoveredAt: "2026-03-06T00:00:00Z" };
  const UNASKED = { ...JANUARY, asked: null };
  const OVERLAP = { ...JANUARY, days: [span("2026-01-30", "2026-01-31", 4, "again")] };
  const BOTH = { days: [span("0001-01-01", "2026-01-31", null)] };
  const REFRESH = { ...JANUARY, full_refresh: { generation_id: 1, sync_id: 1, done: true } };
  const from = (moment: string | null): State => ({ discoveredAt: moment, asked: moment });
  const seeing = (state: State, ...sources: string[]): State => ({ ...state, sources });

  it.each<[what: string, states: readonly State[], expected: State]>([
    ["has all days", [JANUARY, FEBRUARY, OPEN], { ...daysOf(JANUARY, FEBRUARY, OPEN), ...UNDATED }],
    ["still has to read the undated without an open shard", [JANUARY, FEBRUARY], { undated: null }],
    ["goes on from the earliest asking", [JANUARY, LATER, FEBRUARY], from(UNDATED.asked)],
    ["goes on from the cursor of who does not say", [OPEN, FEBRUARY, UNASKED], from(CLOSED.discoveredAt)],
    [
      "reads all again where neither is said",
      [OPEN, { ...UNASKED, discoveredAt: null }, FEBRUARY],
      from(null),
    ],
    ["does not know how many rows overlapping days hold", [JANUARY, OVERLAP], BOTH],
    ["has what all could read", [seeing(JANUARY, "a", "b"), seeing(FEBRUARY, "b")], { sources: ["b"] }],
    ["is no full refresh", [REFRESH], { full_refresh: null }],
  ])("%s", (_what, states, expected) => {
    expect(unite("people", partsOf(states), false)).toMatchObject(expected);
    expect(unite("people", partsOf(states.toReversed()), false)).toMatchObject(expected);
  });

  it.each<[what: string, one: State, two: State, why: string]>([
    ["another plan", {}, { plan: "f" }, "part 0 and part 1 are of different plans"],
    ["another service", { service: "s" }, { service: "t" }, "of different services"],
    ["another filter", filtered("a"), filtered("b"), "of different filters"],
    ["the days behind a lost shard", {}, OPEN, "none of them holds 2026-02-01 to 2026-02-28."],
    ["a day too few", {}, { days: [span("2026-02-02", "2026-02-28", 1)] }, "none of them holds 2026-02-01."],
  ])("refuses a shard of %s", (_what, one, two, why) => {
    const parts = partsOf([
      { ...JANUARY, ...one },
      { ...FEBRUARY, ...two },
    ]);
    expect(() => unite("people", parts, false)).toThrow(why);
  });

  it("leaves days that none holds to the next run, if it may", () => {
    expect(unite("people", partsOf([OPEN, JANUARY]), true)).toMatchObject(daysOf(JANUARY, OPEN));
  });
});
