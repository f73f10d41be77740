import { describe, expect, it } from "vitest";
import { addDays, BEGINNING, type Day } from "../../../src/base/time.ts";
import type { Span, Status } from "../../../src/sync/coverage.ts";
import { type ReadSettings, whatToRead } from "../../../src/sync/range.ts";
import { NEW_STATE, type RowState } from "../../../src/sync/state.ts";

const TODAY = "2026-03-20" as Day;
const day = (text: string): Day => text as Day;
const march = (number: number): Day => day(`2026-03-${String(number).padStart(2, "0")}`);

const DEFAULTS: ReadSettings = {
  ...{ startDate: null, endDate: null, lookbackWindowDays: 1, rereadDays: 0 },
  ...{ maxWindowRows: 100, numWorkers: 1, verifyCounts: true, ignoreMissingDays: [] },
};
const span = (from: Day, to: Day, status: Status = "proven"): Span => ({ from, to, status, rows: 1 });
const state = (days: readonly Span[], more: Partial<RowState> = {}): RowState => ({
  ...{
    ...NEW_STATE,
    days,
    undated: { rows: 0 },
    checked: TODAY,
    key: "a",
    discoveredAt: "2026-03-19T10:00:00Z",
  },
  ...more,
});
const READ = [span(BEGINNING, march(17))];

const next = (saved: RowState, settings: Partial<ReadSettings> = {}, key = "a") =>
  whatToRead(saved, { ...DEFAULTS, ...settings }, TODAY, key);

describe("whatToRead()", () => {
  const nothing = {
    ...{ missing: [], again: [], holes: [], reread: [] },
    ...{ undated: undefined, daily: false, isNewKey: false },
  };
  const usual = { ...nothing, window: { from: march(18), until: "now" }, closed: [[march(18), march(18)]] };

  it("reads everything without a state, and the lookback after one", () => {
    expect(next(NEW_STATE)).toEqual({
      ...{ ...nothing, undated: { known: null }, daily: true },
      ...{ window: { from: BEGINNING, until: "now" }, closed: [[BEGINNING, march(18)]] },
    });
    expect(next(state(READ))).toEqual(usual);
  });

  it.each<[string, RowState, Partial<ReadSettings>, object]>([
    [
      "a cursor from today",
      state(READ, { discoveredAt: "2026-03-20T01:00:00Z" }),
      {},
      { window: { from: march(19), until: "now" }, closed: [], holes: [[march(18), march(18)]] },
    ],
    [
      "a cursor ahead of the clock",
      state(READ, { discoveredAt: "2999-01-01T00:00:00Z" }),
      {},
      { window: { from: march(19), until: "now" }, closed: [], holes: [[march(18), march(18)]] },
    ],
    [
      "a missing day in the window",
      state([span(BEGINNING, march(16)), span(march(17), march(17), "missing")]),
      { lookbackWindowDays: 2 },
      { window: { from: march(17), until: "now" }, closed: [[march(17), march(18)]] },
    ],
    [
      "a cursor without days",
      state([], { undated: { rows: 2_000 } }),
      {},
      { holes: [[BEGINNING, march(17)]], undated: { known: null } },
    ],
    ["an end before the window", state(READ), { endDate: march(10) }, { window: undefined, closed: [] }],
    [
      "an end in the window",
      state([]),
      { endDate: march(18), startDate: march(1) },
      { window: { from: march(18), until: march(18) }, holes: [[march(1), march(17)]] },
    ],
    ["an end today", state(READ), { endDate: TODAY }, {}],
    [
      "an ignored hole",
      state([span(BEGINNING, march(3)), span(march(7), march(17))]),
      { ignoreMissingDays: [march(5)] },
      {
        holes: [
          [march(4), march(4)],
          [march(6), march(6)],
        ],
      },
    ],
    ["an ignored day of the window", state(READ), { ignoreMissingDays: [march(18)] }, { closed: [] }],
    [
      "a new day",
      state(READ, { checked: march(19), undated: { rows: 3 } }),
      {},
      { daily: true, undated: { known: 3 } },
    ],
    [
      "a null cursor",
      state(READ, { discoveredAt: null }),
      {},
      {
        window: { from: BEGINNING, until: "now" },
        closed: [[BEGINNING, march(18)]],
        undated: { known: null },
      },
    ],
    [
      "days without a row",
      state([{ ...span(BEGINNING, march(17)), rows: 0 }], { discoveredAt: null, undated: { rows: 2_000 } }),
      {},
      {
        window: { from: BEGINNING, until: "now" },
        closed: [[BEGINNING, march(18)]],
        undated: { known: 2_000 },
      },
    ],
  ])("after %s", (_, saved, settings, plan) => {
    expect(next(saved, settings)).toEqual({ ...usual, ...plan });
  });

  it("counts all days under another key, and reads people without a date again", () => {
    expect(next(state(READ), {}, "b")).toEqual({ ...usual, isNewKey: true, undated: { known: null } });
    expect(next(state(READ, { key: null }), {}, "b")).toEqual(usual);
  });

  it("reads no people without a date between dates", () => {
    const unread = state(READ, { undated: null });
    expect(next(unread).undated).toEqual({ known: null });
    for (const dates of [{ startDate: march(1) }, { endDate: addDays(TODAY, 9) }])
      expect(next(unread, dates).undated).toBeUndefined();
  });
});
