import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  describe as describeWindow,
  halves,
  splitAtYesterday,
  type Window,
} from "../../../src/streams/window.ts";
import { addDays, BEGINNING, type Day, daysBetween } from "../../../src/time.ts";

const YESTERDAY = "2026-03-19" as Day;
const day = (offset: number): Day => addDays(YESTERDAY, offset);

/** How often each day is covered. */
const coverage = (windows: readonly Window[], from: Day, to: Day): number[] =>
  Array.from({ length: daysBetween(from, to) }, (_, nth) => addDays(from, nth)).map(
    (at) =>
      windows.filter(
        (window) => "from" in window && window.from <= at && (window.kind === "open" || window.to >= at),
      ).length,
  );

const RANGE = fc
  .record({
    from: fc.integer({ min: -400, max: 3 }),
    length: fc.integer({ min: 0, max: 300 }),
    open: fc.boolean(),
    undated: fc.boolean(),
  })
  .map(({ from, length, open, undated }): Window & { from: Day } =>
    open || from + length >= 0
      ? { kind: "open", from: day(from), undated }
      : { kind: "closed", from: day(from), to: day(from + length) },
  );

const endOf = (window: Window): Day => (window.kind === "closed" ? window.to : day(2));

describe("halves() and splitAtYesterday()", () => {
  const halvesOf = (window: Window): readonly Window[] => halves(window, YESTERDAY) ?? [];

  it("give parts that together cover each day once, none of them open before yesterday ends", () => {
    fc.assert(
      fc.property(RANGE, (window) => {
        for (const parts of [halvesOf(window), splitAtYesterday(window, YESTERDAY) ?? []]) {
          if (parts.length === 0) continue;
          expect(new Set(coverage(parts, window.from, endOf(window)))).toEqual(new Set([1]));
          const kinds = parts.map(({ kind }) => kind);
          const undated = window.kind === "open" && window.undated;
          expect(kinds.filter((kind) => kind === "undated")).toHaveLength(undated ? 1 : 0);
          for (const part of parts) if (part.kind === "closed") expect(part.to < YESTERDAY).toBe(true);
        }
      }),
    );
  });

  it("keep the other filters of a window", () => {
    const filters = { source: "crm", isUser: false };
    expect(halves({ kind: "closed", from: day(-9), to: day(-3), ...filters }, YESTERDAY)).toEqual([
      { kind: "closed", from: day(-9), to: day(-6), ...filters },
      { kind: "closed", from: day(-5), to: day(-3), ...filters },
    ]);
  });

  it("end at single days and at yesterday", () => {
    expect(halves({ kind: "closed", from: day(-3), to: day(-3) }, YESTERDAY)).toBeUndefined();
    expect(halves({ kind: "open", from: YESTERDAY, undated: false }, YESTERDAY)).toBeUndefined();
    expect(halves({ kind: "undated" }, YESTERDAY)).toBeUndefined();
    expect(splitAtYesterday({ kind: "closed", from: day(-9), to: day(-3) }, YESTERDAY)).toBeUndefined();
    expect(halves({ kind: "open", from: day(-1), undated: true }, YESTERDAY)).toEqual([
      { kind: "closed", from: day(-1), to: day(-1) },
      { kind: "undated" },
      { kind: "open", from: YESTERDAY, undated: false },
    ]);
  });

  it("halve any range to single days in a bounded number of steps", () => {
    let window: Window | undefined = { kind: "open", from: BEGINNING, undated: true };
    let steps = 0;
    for (; window !== undefined; steps++) window = halves(window, YESTERDAY)?.at(-1);
    expect(steps).toBeLessThan(24);
  });
});

it.each<[Window, string]>([
  [{ kind: "closed", from: day(-9), to: day(-3) }, "2026-03-10 to 2026-03-16"],
  [{ kind: "closed", from: day(-9), to: day(-9) }, "2026-03-10"],
  [{ kind: "closed", from: day(-9), to: day(-9), source: "crm" }, "2026-03-10 (source crm)"],
  [{ kind: "closed", from: day(-9), to: day(-9), isUser: false }, "2026-03-10 (is_user false)"],
  [
    { kind: "closed", from: day(-9), to: day(-8), isUser: true, source: "crm" },
    "2026-03-10 to 2026-03-11 (is_user true, source crm)",
  ],
  [{ kind: "open", from: day(-9), undated: false }, "2026-03-10 up to now"],
  [{ kind: "open", from: BEGINNING, undated: true }, "all rows up to now"],
  [{ kind: "undated" }, "rows without a date"],
  [{ kind: "all" }, "all rows"],
])("the window %j is called %j", (window, text) => {
  expect(describeWindow(window)).toBe(text);
});
