import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addDays,
  cursorToUtc,
  type Day,
  dayOf,
  daysBetween,
  instant,
  isDay,
  parseDay,
  startOf,
} from "../../../src/base/time.ts";

const MS = fc.integer({ min: Date.parse("0001-01-02"), max: Date.parse("9999-12-30T23:59:59.999Z") });
const OFFSETS = fc.integer({ min: -14 * 60, max: 14 * 60 });

/** A moment as it is written at a distance from UTC, in minutes. */
function written(ms: number, minutes: number, colon = ":"): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  const offset = `${two(Math.abs(minutes) / 60)}${colon}${two(Math.abs(minutes) % 60)}`;
  return new Date(ms + minutes * 60_000).toISOString().replace("Z", `${minutes < 0 ? "-" : "+"}${offset}`);
}

describe("a day", () => {
  it("is one of the calendar, from 0001 to 9999", () => {
    expect(["2024-02-29", "0001-01-01", "9999-12-31"].filter(isDay)).toHaveLength(3);
    const others = ["2025-02-29", "2026-2-1", "0000-01-01", "2026-13-01", "2026-01-32", "2026-01-02Z", ""];
    expect([...others, " 2026-01-02", "2026/01/02"].filter(isDay)).toEqual([]);
  });

  it("is the UTC day of any moment in any zone, and begins at midnight UTC", () => {
    fc.assert(
      fc.property(MS, OFFSETS, (ms, minutes) => {
        const day = new Date(ms).toISOString().slice(0, 10) as Day;
        expect([parseDay(written(ms, minutes)), dayOf(ms)]).toEqual([day, day]);
        expect(startOf(day)).toBe(Date.parse(day));
      }),
    );
  });

  it.each([
    ["2026-01-02T03:04", "2026-01-02"],
    ["2026-01-02 23:59:59.9+0000", "2026-01-02"],
    ["2026-01-02T23:00-02", "2026-01-03"],
    ["2026-02-30T00:00:00Z", null],
    ["2026-01-02T25:00:00Z", null],
    ["yesterday", null],
  ])("is, for %j, %j", (text, day) => {
    expect(parseDay(text)).toBe(day);
  });

  it("is counted over the ends of months, and never leaves the years that there are", () => {
    const [february, march] = ["2024-02-28", "2024-03-01"] as Day[] as [Day, Day];
    expect([addDays(february, 2), addDays(march, -1), daysBetween(february, march)]).toEqual([
      ...[march, "2024-02-29"],
      3,
    ]);
    expect([addDays("0001-01-01" as Day, -5), daysBetween(march, march)]).toEqual(["0001-01-01", 1]);
  });
});

describe("a cursor", () => {
  it("is the same moment at every distance from UTC, with every fraction", () => {
    fc.assert(
      fc.property(MS, OFFSETS, fc.stringMatching(/^\d{0,6}$/), (ms, minutes, digits) => {
        for (const colon of [":", ""]) expect(instant(written(ms, minutes, colon))).toBe(ms);
        expect(instant(new Date(ms).toISOString().replace("Z", `${digits}Z`))).toBe(ms);
        expect(cursorToUtc(written(ms, minutes))).toBe(new Date(ms).toISOString());
      }),
    );
  });

  it("with one damaged character is read by the rules of its form with an offset", () => {
    const usual = ["2026-03-20T10:11:12Z", "2026-03-20T10:11:12.345Z"];
    for (const text of usual)
      for (let at = 0; at < text.length - 1; at++)
        for (const sign of ["", ..."0369-:.TZ x"])
          for (const rest of [at, at + 1]) {
            const damaged = text.slice(0, at) + sign + text.slice(rest);
            expect(instant(damaged), damaged).toBe(instant(damaged.replace(/Z$/, "+00:00")));
          }
  });

  it.each([
    ["2026-03-20", "2026-03-20T00:00:00.000Z"],
    ["2026-03-20 10:11:12 +01:00", "2026-03-20T09:11:12.000Z"],
    ["2026-03-20T10:11:12,5-0230", "2026-03-20T12:41:12.500Z"],
    ["2016-12-31T18:59:60-05:00", "2016-12-31T23:59:59.999Z"],
    ["2026-03-20T09:00:00.123456Z", "2026-03-20T09:00:00.123456Z"],
    ...[" UTC", " GMT", " Etc/UTC", "Z[UTC]", "+00:00[UTC]", "[Etc/UTC]", " +0000 UTC"].map(
      (zone): [string, string] => [`2026-03-20 10:11:12.345${zone}`, "2026-03-20T10:11:12.345Z"],
    ),
    ["1711111111", "2024-03-22T12:38:31.000Z"],
    ["1711111111.5", "2024-03-22T12:38:31.500Z"],
    ["1711111111123", "2024-03-22T12:38:31.123Z"],
    ["1711111111123456789", "2024-03-22T12:38:31.123Z"],
    ["-86400", "1969-12-31T00:00:00.000Z"],
  ])("%s is %s in UTC", (text, utc) => {
    expect(cursorToUtc(text)).toBe(utc);
  });

  it("is no moment where the calendar or the clock does not have it", () => {
    const dates = [
      "",
      ..."garbage 2026-13-01 2023-02-29T00:00:00.000Z 0000-01-01T00:00:00Z 10000-01-01".split(" "),
    ];
    const times =
      "T25:00:00Z T10:60:00Z T10:11:99Z T10:11:12.Z T10 T10:11:12+24:00 T10:11:12ZZ T10:11:12[Europe/Paris] T10:11:12+02:00[UTC]".split(
        " ",
      );
    const numbers = ["1e9", "+1711111111", "1711111111 ", "12345678", "-99999999999", "99999999999999999999"];
    for (const text of [...dates, ...times.map((time) => `2026-03-20${time}`), ...numbers])
      expect(instant(text), text).toBeNaN();
  });
});
