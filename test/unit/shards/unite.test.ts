import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ShardState, unite } from "../../../src/shards/unite.ts";
import { type Span, uncovered } from "../../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import { addDays, type Day } from "../../../src/time.ts";

type State = Partial<DatedState>;

const PLAN = "0123456789abcdef".repeat(2);
const span = (from: string, to: string, rows: number | null, ...status: "again"[]): Span =>
  [from, to, rows, ...status] as unknown as Span;
const filtered = (source_slug: string): State => ({ filters: { source_slug, is_user: "all" } });

/** A closed shard of January, one of February, and the open one from March on. */
const CLOSED = { plan: PLAN, discoveredAt: "2026-01-31T10:00:00Z", asked: "2026-03-05T08:00:00.000Z" };
const JANUARY: State = { ...CLOSED, days: [span("0001-01-01", "2026-01-31", 10)] };
const FEBRUARY: State = { ...CLOSED, days: [span("2026-02-01", "2026-02-28", 20)] };
const OPEN: State = {
  ...{ plan: PLAN, discoveredAt: "2026-03-05T06:00:00Z", asked: "2026-03-05T07:00:00.000Z" },
  ...{ days: [span("2026-03-01", "2026-03-03", 3)], undated: { rows: 2, seen: null } },
  ...{ checked: "2026-03-05" as Day, witness: { keys: ["a"], cursor: "2026-03-01T00:00:00Z", key: "k" } },
};
const daysOf = (...states: State[]): State => ({ days: states.flatMap(({ days = [] }) => days) });

const partsOf = (states: readonly State[]): readonly ShardState[] =>
  states.map((state, nth) => ({ name: `part ${nth}`, state: { ...NEW_STATE, ...state } }));

describe("unite()", () => {
  it.each<[what: string, states: readonly State[], expected: State]>([
    [
      "knows the days of all parts, and whom the open part showed",
      [JANUARY, FEBRUARY, OPEN],
      { ...NEW_STATE, ...OPEN, checked: null, ...daysOf(JANUARY, FEBRUARY, OPEN) },
    ],
    [
      "goes on from the earliest moment that a part was asked",
      [JANUARY, { ...OPEN, discoveredAt: "2026-03-06T00:00:00Z" }, FEBRUARY],
      { discoveredAt: "2026-03-05T07:00:00.000Z" },
    ],
    [
      "goes on from the cursor of a part that does not say when it was asked",
      [OPEN, FEBRUARY, { ...JANUARY, asked: null }],
      { discoveredAt: CLOSED.discoveredAt, asked: CLOSED.discoveredAt },
    ],
    [
      "reads everything again where a part has neither",
      [OPEN, FEBRUARY, { ...JANUARY, asked: null, discoveredAt: null }],
      { discoveredAt: null, asked: null },
    ],
    ["passes over a part that has read nothing", [FEBRUARY, { plan: PLAN }], { asked: CLOSED.asked }],
    ["has no cursor without a row", [{ ...JANUARY, discoveredAt: null }], { discoveredAt: null }],
    ["still has to read the undated", [JANUARY, FEBRUARY], { undated: null, witness: null }],
    [
      "takes proven days for proven, and does not know how many rows overlapping ones hold",
      [JANUARY, { ...JANUARY, days: [span("2026-01-30", "2026-01-31", 4, "again")] }],
      { days: [span("0001-01-01", "2026-01-31", null)] },
    ],
    [
      "has the sources that all parts could read",
      [JANUARY, FEBRUARY].map((state, nth) => ({ ...state, sources: ["a", "b"].slice(nth) })),
      { sources: ["b"] },
    ],
    [
      "is no full refresh",
      [{ ...JANUARY, full_refresh: { generation_id: 1, sync_id: 1, done: true } }],
      { full_refresh: null },
    ],
    [
      "knows the undated of the part that was asked last",
      [{ ...OPEN, asked: "2026-03-05T09:00:00Z", undated: { rows: 5, seen: null } }, OPEN],
      { undated: { rows: 5, seen: null } },
    ],
    ["takes an unknown service for the same", [FEBRUARY, { ...JANUARY, service: "s" }], { service: "s" }],
  ])("%s", (_what, states, expected) => {
    expect(unite("people", partsOf(states), false)).toMatchObject(expected);
  });

  it.each<[what: string, states: readonly [State, State], message: string]>([
    ["parts of two plans", [{}, { plan: "f" }], "part 0 and part 1 are of different plans"],
    ["parts of a plan and of none", [{}, { plan: null }], "are of different plans"],
    ["services", [{ service: "s" }, { service: "t" }], "of different services"],
    ["filters", [filtered("a"), filtered("b")], "of different filters"],
    ["a lost shard", [{}, OPEN], "none of them holds 2026-02-01 to 2026-02-28. Read the shards"],
    [
      "a day that was not read",
      [{}, { days: [span("2026-02-02", "2026-02-28", 1)] }],
      "none of them holds 2026-02-01. Read the shards",
    ],
  ])("refuses %s", (_what, [one, two], message) => {
    const parts = partsOf([
      { ...JANUARY, ...one },
      { ...FEBRUARY, ...two },
    ]);
    expect(() => unite("people", parts, false)).toThrow(message);
  });

  it("leaves days that none holds to the next run, if it may", () => {
    expect(unite("people", partsOf([OPEN, JANUARY]), true)).toMatchObject(daysOf(JANUARY, OPEN));
  });

  it("says the same of parts in any order, and of unions of parts", () => {
    const day = (nth: number): Day => addDays("2026-01-01" as Day, nth);
    const time = fc.nat({ max: 40 }).map((nth) => `${day(nth)}T00:00:00Z`);
    const range = fc
      .tuple(fc.nat({ max: 30 }), fc.nat({ max: 5 }))
      .map(([at, more]) => span(day(at), day(at + more), more));
    const states = fc.record({
      ...{ days: fc.array(range, { maxLength: 1 }), discoveredAt: fc.option(time), asked: time },
      undated: fc.option(fc.constant({ rows: 1, seen: null })),
    });
    fc.assert(
      fc.property(fc.array(states, { minLength: 2, maxLength: 6 }), fc.nat({ max: 5 }), (all, cut) => {
        const parts = partsOf(all);
        const united = unite("people", parts, true);
        expect(unite("people", parts.toReversed(), true)).toEqual(united);
        const halves = [parts.slice(0, cut), parts.slice(cut)].filter(({ length }) => length > 0);
        const twice = unite("people", partsOf(halves.map((some) => unite("people", some, true))), true);
        const year = [day(0), day(365)] as const;
        expect(uncovered(twice.days, year)).toEqual(uncovered(united.days, year));
        expect({ ...twice, days: [] }).toEqual({ ...united, days: [] });
      }),
    );
  });
});
