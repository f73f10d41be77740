import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, type Day } from "../../../src/base/time.ts";
import { mergeStates, type NamedState, union } from "../../../src/shards/merge.ts";
import { type Coverage, put, type Span, type Status } from "../../../src/sync/coverage.ts";
import { NEW_STATE, type RowState } from "../../../src/sync/state.ts";

type State = Partial<RowState>;

const span = (from: string, to: string, rows: number, status: Span["status"] = "proven"): Span =>
  ({ from, to, status, rows }) as Span;
const CLOSED = { discoveredAt: "2026-01-31T10:00:00Z", asked: "2026-03-05T08:00:00.000Z" };
const JANUARY: State = { ...CLOSED, days: [span("1970-01-02", "2026-01-31", 10)] };
const FEBRUARY: State = { ...CLOSED, days: [span("2026-02-01", "2026-02-28", 20)] };
const OPEN: State = {
  ...{ discoveredAt: "2026-03-05T06:00:00Z", asked: "2026-03-05T07:00:00.000Z" },
  ...{ days: [span("2026-03-01", "2026-03-03", 3)], checked: "2026-03-05" as never, undated: { rows: 2 } },
};
const daysOf = (...states: State[]): State => ({ days: states.flatMap(({ days = [] }) => days) });
const filtered = (source_slug: string): State => ({ filters: { source_slug, is_user: "all" } });
const partsOf = (states: readonly State[]): readonly NamedState[] =>
  states.map((state, nth) => ({ name: `part ${nth}`, state: { ...NEW_STATE, ...state } }));

describe("the state of all shards", () => {
  const LATER = { ...OPEN, discoveredAt: "2026-03-06T00:00:00Z" };
  const UNASKED = { ...JANUARY, asked: null };
  const AGAIN = { ...JANUARY, days: [span("2026-01-30", "2026-01-31", 0, "again")] };
  const REFRESH = { ...JANUARY, full_refresh: { generation_id: 1, sync_id: 1, done: true } };
  const from = (moment: string | null): State => ({ discoveredAt: moment, asked: moment });
  const seeing = (state: State, ...sources: string[]): State => ({ ...state, sources });
  const keyed = (state: State, key: string): State => ({ ...state, key });

  it.each<[what: string, states: readonly State[], expected: State]>([
    [
      "has all days, is not checked, and has read people without a date",
      [JANUARY, FEBRUARY, OPEN],
      { ...daysOf(JANUARY, FEBRUARY, OPEN), undated: { rows: 2 }, checked: null },
    ],
    ["continues from the earliest first count", [JANUARY, LATER, FEBRUARY], from(OPEN.asked ?? "")],
    [
      "continues from the cursor of a state without a first count",
      [OPEN, FEBRUARY, UNASKED],
      from(CLOSED.discoveredAt),
    ],
    [
      "reads all again where neither is known",
      [OPEN, { ...UNASKED, discoveredAt: null }, FEBRUARY],
      from(null),
    ],
    ["believes the proven one of two spans that overlap", [JANUARY, AGAIN], daysOf(JANUARY)],
    [
      "has the sources that all could read",
      [seeing(JANUARY, "a", "b"), seeing(FEBRUARY, "b")],
      { sources: ["b"] },
    ],
    ["has the first of several keys", [keyed(JANUARY, "k2"), keyed(FEBRUARY, "k1")], { key: "k1" }],
    ["is no full refresh", [REFRESH], { full_refresh: null }],
  ])("%s", (_what, states, expected) => {
    expect(mergeStates("people", partsOf(states), false)).toMatchObject(expected);
    expect(mergeStates("people", partsOf(states.toReversed()), false)).toMatchObject(expected);
  });

  it.each<[what: string, one: State, two: State, why: string]>([
    ["another service", { service: "s" }, { service: "t" }, "of different services"],
    ["another filter", filtered("a"), filtered("b"), "of different filters"],
    ["the days behind a lost shard", {}, OPEN, "no state contains 2026-02-01 to 2026-02-28."],
    ["a day too few", {}, { days: [span("2026-02-02", "2026-02-28", 1)] }, "no state contains 2026-02-01."],
  ])("refuses a shard of %s", (_what, one, two, why) => {
    const parts = partsOf([
      { ...JANUARY, ...one },
      { ...FEBRUARY, ...two },
    ]);
    expect(() => mergeStates("people", parts, false)).toThrow(why);
  });

  it("leaves days that none contains to the next run, if it may", () => {
    expect(mergeStates("people", partsOf([OPEN, JANUARY]), true)).toMatchObject(daysOf(JANUARY, OPEN));
  });
});

describe("union()", () => {
  const at = (number: number): Day => addDays("2026-01-01" as Day, number);
  const reading = fc.record({
    from: fc.nat({ max: 200 }),
    length: fc.nat({ max: 60 }),
    status: fc.constantFrom<Status[]>("proven", "proven", "proven", "again", "missing"),
    rows: fc.array(fc.tuple(fc.nat({ max: 260 }), fc.integer({ min: 1, max: 9 })), { maxLength: 20 }),
  });
  const days = fc.array(reading, { maxLength: 4 }).map((readings) =>
    readings.reduce<Coverage>((all, { from, length, status, rows }) => {
      const byDay = new Map(rows.map(([day, count]) => [at(day), count]));
      return put(all, [at(from), at(from + length)], status, byDay);
    }, []),
  );

  it("does not depend on the order of the states, and cuts no span", () => {
    fc.assert(
      fc.property(fc.array(days, { maxLength: 4 }), (parts) => {
        const all = union(parts);
        expect(union(parts.toReversed())).toEqual(all);
        for (const [nth, { from }] of all.entries()) expect(from > (all[nth - 1]?.to ?? "")).toBe(true);
        if (parts.flat().length <= 24) for (const span of all) expect(parts.flat()).toContainEqual(span);
      }),
    );
  });
});
