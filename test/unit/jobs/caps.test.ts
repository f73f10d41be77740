import { describe, expect, it } from "vitest";
import { type Caps, type Charged, estimateOf, monthOf, passedCaps, roomFor } from "../../../src/jobs/caps.ts";
import type { Day } from "../../../src/time.ts";

const NONE = Number.POSITIVE_INFINITY;
const NOTHING: Charged = { submitted: 0, credits: 0, open: 0 };
const all = (charged: Partial<Charged>) => {
  const each = { ...NOTHING, ...charged };
  return { sync: each, day: each, month: each };
};
const capsOf = (submissions: Partial<Caps["submissions"]>, credits: Partial<Caps["credits"]> = {}): Caps => ({
  submissions: { sync: NONE, day: NONE, ...submissions },
  credits: { sync: NONE, day: NONE, month: NONE, ...credits },
});

describe("roomFor()", () => {
  it("is without end where there is no cap", () => {
    expect(roomFor(capsOf({}), all({ submitted: 9, credits: 9, open: 9 }), 10)).toBe(NONE);
  });

  it.each(["sync", "day"])("leaves what is not submitted of the cap by %s", (period) => {
    const rooms = [2, 7].map((submitted) => roomFor(capsOf({ [period]: 5 }), all({ submitted }), 10));
    expect(rooms).toEqual([3, 0]);
  });

  it.each(["sync", "day", "month"])("counts credits and open jobs of a %s; one may go alone", (period) => {
    const room = (cap: number, charged: Partial<Charged>, estimate = 10): number =>
      roomFor(capsOf({}, { [period]: cap }), { ...all({}), [period]: { ...NOTHING, ...charged } }, estimate);
    const charges = [
      {},
      { credits: 35 },
      { credits: 35, open: 2 },
      { credits: 35, open: 7 },
      { credits: 100 },
    ];
    expect(charges.map((charged) => room(100, charged))).toEqual([10, 6, 4, 0, 0]);
    // In a new period one may go however dear it may be, and none under a cap of 0.
    expect([{}, { open: 1 }, { credits: 1 }].map((charged) => room(3, charged, 50))).toEqual([1, 0, 0]);
    expect(room(0, {}, 1)).toBe(0);
  });
});

describe("estimateOf()", () => {
  it("is ten before any answer, then the dearest of the last, and never less than one", () => {
    expect([[], [3, 40, 2], [0, 0]].map(estimateOf)).toEqual([10, 40, 1]);
  });
});

describe("passedCaps()", () => {
  it("names each cap that was passed, with its numbers", () => {
    const caps = capsOf({}, { sync: 10, day: 20, month: 30 });
    const told = (period: string, cap: number, used: number): string =>
      `a ${period} may use ${cap} credits, and ${used} were used`;
    expect(passedCaps(caps, all({ credits: 10 }))).toEqual([]);
    expect(passedCaps(caps, all({ credits: 25 }))).toEqual([told("sync", 10, 25), told("day", 20, 25)]);
    const month = { ...all({}), month: { ...NOTHING, credits: 31 } };
    expect(passedCaps(caps, month)).toEqual([told("month", 30, 31)]);
  });
});

describe("monthOf()", () => {
  it("is the same for the days of one month of one year", () => {
    const [last, first, before] = (["2026-03-31", "2026-03-01", "2025-03-31"] as Day[]).map((day) =>
      monthOf(day),
    );
    expect([last === first, last === before]).toEqual([true, false]);
  });
});
