import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareInstants, isDay, parseDay, parseInstant, toUtc } from "../src/timestamp.ts";

const moments = fc.date({
  min: new Date("0001-01-01"),
  max: new Date("9999-12-31T23:59:59Z"),
  noInvalidDate: true,
});

describe("isDay()", () => {
  it.each(["2024-02-29", "0001-01-01", "9999-12-31"])("takes %s", (day) => {
    expect(isDay(day)).toBe(true);
  });

  it.each(["2025-02-29", "2026-2-1", "0000-01-01", "2026-00-01", "2026-01-32", "2026-01-02Z", ""])(
    "refuses %j",
    (text) => {
      expect(isDay(text)).toBe(false);
    },
  );
});

describe("parseDay()", () => {
  it("gives the UTC day of any moment, in any zone", () => {
    fc.assert(
      fc.property(moments, fc.integer({ min: -14, max: 14 }), (moment, offset) => {
        const local = new Date(moment.getTime() + offset * 3_600_000).toISOString();
        fc.pre(/^\d{4}/.test(local) && !local.startsWith("0000"));
        const zone = `${offset < 0 ? "-" : "+"}${String(Math.abs(offset)).padStart(2, "0")}:00`;
        expect(parseDay(local.replace("Z", zone))).toBe(moment.toISOString().slice(0, 10));
      }),
    );
  });

  it.each([
    ["2026-01-02T03:04", "2026-01-02"],
    ["2026-01-02 23:59:59.9+0000", "2026-01-02"],
    ["2026-01-02t23:00z", "2026-01-02"],
    ["2026-01-02T23:00-02", "2026-01-03"],
  ])("takes %s", (text, day) => {
    expect(parseDay(text)).toBe(day);
  });

  it.each(["2026-02-30T00:00:00Z", "2026-01-02T25:00:00Z", "2026-01-02T", "yesterday", ""])(
    "refuses %j",
    (text) => {
      expect(parseDay(text)).toBeNull();
    },
  );
});

describe("parseInstant()", () => {
  it.each([
    "2026-01-02",
    "2026-01-02 03:04:05Z",
    "2026-01-02T03:04:05",
    "2026-01-02T03:04Z",
    "2026-01-02t03:04:05z",
    "2026-02-30T03:04:05Z",
    "2026-01-02T24:00:00Z",
    "2026-01-02T23:59:60Z",
    "2026-01-02T03:04:05+24:00",
    "2026-01-02T03:04:05.Z",
    "9999-12-31T23:59:59-01:00",
    "0001-01-01T00:00:00+01:00",
    "",
  ])("refuses %j", (text) => {
    expect(parseInstant(text)).toBeNull();
  });

  it("says the same moment again in UTC", () => {
    fc.assert(
      fc.property(moments, (moment) => {
        const instant = parseInstant(moment.toISOString());
        expect(instant === null ? null : Date.parse(toUtc(instant))).toBe(moment.getTime());
      }),
    );
    expect(toUtc(parseInstant("2026-01-02T03:04:05.1234567890+02:00") ?? { seconds: 0, fraction: "" })).toBe(
      "2026-01-02T01:04:05.123456789Z",
    );
  });
});

describe("compareInstants()", () => {
  const compare = (a: string, b: string): number => {
    const [left, right] = [parseInstant(a), parseInstant(b)];
    if (left === null || right === null) throw new Error("no instants");
    return Math.sign(compareInstants(left, right));
  };

  it.each([
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z", 0],
    ["2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00", 0],
    ["2026-01-02T03:04:05.0001Z", "2026-01-02T03:04:05.00011Z", -1],
    ["2026-01-02T03:04:05.9Z", "2026-01-02T03:04:05.10Z", 1],
    ["2026-01-02T03:04:05.999999999Z", "2026-01-02T03:04:06Z", -1],
    ["2026-01-02T09:00:00+09:00", "2026-01-02T01:00:00+02:00", 1],
  ])("%s against %s is %i", (a, b, sign) => {
    expect(compare(a, b)).toBe(sign);
    expect(compare(b, a)).toBe(sign === 0 ? 0 : -sign);
  });
});
