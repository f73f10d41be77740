import { describe, expect, it } from "vitest";
import { type Caps, type Charged, estimateOf, monthOf, passedCaps, roomFor } from "../../src/jobs/caps.ts";
import type { Day } from "../../src/time.ts";

const NONE = Number.POSITIVE_INFINITY;
const OPEN_CAPS: Caps = {
  submissions: { sync: NONE, day: NONE },
  credits: { sync: NONE, day: NONE, month: NONE },
};
const NOTHING: Charged = { submitted: 0, credits: 0, open: 0 };
const all = (charged: Partial<Charged>) => {
  const each = { ...NOTHING, ...charged };
  return { sync: each, day: each, month: each };
};

const PERIODS = ["sync", "day", "month"] as const;
const creditCap = (period: (typeof PERIODS)[number], cap: number): Caps => ({
  ...OPEN_CAPS,
  credits: { ...OPEN_CAPS.credits, [period]: cap },
});

describe("roomFor()", () => {
  it("is without end where there is no cap", () => {
    expect(roomFor(OPEN_CAPS, all({ submitted: 9, credits: 9, open: 9 }), 10)).toBe(NONE);
  });

  it.each(["sync", "day"] as const)("leaves what is not submitted of the cap by %s", (period) => {
    const caps = { ...OPEN_CAPS, submissions: { ...OPEN_CAPS.submissions, [period]: 5 } };
    expect(roomFor(caps, all({ submitted: 2 }), 10)).toBe(3);
    expect(roomFor(caps, all({ submitted: 7 }), 10)).toBe(0);
  });

  it.each(PERIODS)("counts open jobs of a %s with what one may cost", (period) => {
    const caps = creditCap(period, 100);
    expect(roomFor(caps, all({}), 10)).toBe(10);
    expect(roomFor(caps, all({ credits: 35 }), 10)).toBe(6);
    expect(roomFor(caps, all({ credits: 35, open: 2 }), 10)).toBe(4);
    expect(roomFor(caps, all({ credits: 35, open: 7 }), 10)).toBe(0);
    const elsewhere = { ...all({}), [period]: { ...NOTHING, credits: 100 } };
    expect(roomFor(caps, elsewhere, 10)).toBe(0);
  });

  it.each(PERIODS)(
    "lets one go in a new %s however dear it may be, alone, and none under a cap of 0",
    (period) => {
      expect(roomFor(creditCap(period, 3), all({}), 50)).toBe(1);
      expect(roomFor(creditCap(period, 3), all({ open: 1 }), 50)).toBe(0);
      expect(roomFor(creditCap(period, 3), all({ credits: 1 }), 50)).toBe(0);
      expect(roomFor(creditCap(period, 0), all({}), 1)).toBe(0);
    },
  );
});

describe("estimateOf()", () => {
  it("is ten before any answer, then the dearest of the last, and never less than one", () => {
    expect(estimateOf([])).toBe(10);
    expect(estimateOf([3, 40, 2])).toBe(40);
    expect(estimateOf([0, 0])).toBe(1);
  });
});

describe("passedCaps()", () => {
  it("names each cap that was passed, with its numbers", () => {
    const caps: Caps = { ...OPEN_CAPS, credits: { sync: 10, day: 20, month: 30 } };
    expect(passedCaps(caps, all({ credits: 10 }))).toEqual([]);
    expect(passedCaps(caps, all({ credits: 25 }))).toEqual([
      "a sync may use 10 credits, and 25 were used",
      "a day may use 20 credits, and 25 were used",
    ]);
    expect(passedCaps(caps, { ...all({}), month: { ...NOTHING, credits: 31 } })).toEqual([
      "a month may use 30 credits, and 31 were used",
    ]);
  });
});

describe("monthOf()", () => {
  it("is the same for the days of one month of one year", () => {
    expect(monthOf("2026-03-31" as Day)).toBe(monthOf("2026-03-01" as Day));
    expect(monthOf("2026-03-31" as Day)).not.toBe(monthOf("2025-03-31" as Day));
  });
});
