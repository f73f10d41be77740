import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  addDays,
  compareInstants,
  cursorToUtc,
  type Day,
  dayOf,
  daysBetween,
  earlier,
  endOf,
  instant,
  isDay,
  later,
  parseDay,
  parseInstant,
  startOf,
  toUtc,
} from "../../src/time.ts";

const moments = fc.date({
  min: new Date("0001-01-01"),
  max: new Date("9999-12-31T23:59:59Z"),
  noInvalidDate: true,
});

describe("isDay()", () => {
  it.each([
    [true, ["2024-02-29", "0001-01-01", "9999-12-31"]],
    [false, ["2025-02-29", "2026-2-1", "0000-01-01", "2026-00-01", "2026-01-32", "2026-01-02Z", ""]],
    [false, ["02026-01-02", "2026-01-020", " 2026-01-02", "2026-01-2 ", "2026-13-01", "2026/01/02"]],
  ])("is %s of %j", (is, days) => {
    expect(days.map(isDay)).toEqual(days.map(() => is));
  });
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
    ["2026-02-30T00:00:00Z", null],
    ["2026-01-02T25:00:00Z", null],
    ["2026-01-02T", null],
    ["yesterday", null],
    ["", null],
  ])("takes %j for %j", (text, day) => {
    expect(parseDay(text)).toBe(day);
  });
});

describe("parseInstant()", () => {
  it.each([
    ..."2026-01-02 2026-01-02T03:04:05 2026-01-02T03:04Z 2026-01-02t03:04:05z 2026-02-30T03:04:05Z".split(
      " ",
    ),
    ..."2026-01-02T24:00:00Z 2026-01-02T23:59:60Z 2026-01-02T03:04:05+24:00 2026-01-02T03:04:05.Z".split(" "),
    ...["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "2026-01-02 03:04:05Z", ""],
    ...["2026-01-02T03:04:05Z2", "2026-01-02T03:04:05+00:000", "12026-01-02T03:04:05Z"],
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
    return left === null || right === null ? Number.NaN : Math.sign(compareInstants(left, right));
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

const MS = fc.integer({ min: Date.parse("0001-01-01"), max: Date.parse("9999-12-31T23:59:59.999Z") });

describe("instant()", () => {
  it("reads what toISOString() writes", () => {
    fc.assert(
      fc.property(MS, (ms) => {
        expect(instant(new Date(ms).toISOString())).toBe(ms);
      }),
    );
  });

  it("cuts finer fractions and takes coarser ones", () => {
    fc.assert(
      fc.property(MS, fc.stringMatching(/^\d{1,9}$/), (ms, digits) => {
        const text = `${new Date(ms).toISOString().slice(0, 19)}.${digits}Z`;
        const base = Math.floor(ms / 1000) * 1000;
        expect(instant(text)).toBe(base + Number(digits.slice(0, 3).padEnd(3, "0")));
      }),
    );
  });

  it("reads every offset as UTC", () => {
    fc.assert(
      fc.property(MS, fc.integer({ min: -14 * 60, max: 14 * 60 }), (ms, minutes) => {
        const local = new Date(ms + minutes * 60_000).toISOString();
        fc.pre(local.length === 24 && !local.startsWith("0000"));
        const sign = minutes < 0 ? "-" : "+";
        const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
        const two = (value: number): string => String(value).padStart(2, "0");
        for (const colon of [":", ""]) {
          expect(instant(`${local.slice(0, 23)}${sign}${two(hours)}${colon}${two(rest)}`)).toBe(ms);
        }
      }),
    );
  });

  it.each([
    ["2026-03-20", Date.UTC(2026, 2, 20)],
    ["2026-03-20T10:11", Date.UTC(2026, 2, 20, 10, 11)],
    ["2026-03-20 10:11:12", Date.UTC(2026, 2, 20, 10, 11, 12)],
    ["2026-03-20t10:11:12z", Date.UTC(2026, 2, 20, 10, 11, 12)],
    ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
    ["2026-03-20T10:11:12+00", Date.UTC(2026, 2, 20, 10, 11, 12)],
    ["2026-03-20T10:11:12,5-0230", Date.UTC(2026, 2, 20, 12, 41, 12, 500)],
    ["2026-03-20 10:11:12 +01:00", Date.UTC(2026, 2, 20, 9, 11, 12)],
    ["0001-01-01T00:00:00Z", -62_135_596_800_000],
    ["1711111111", 1_711_111_111_000],
    ["1711111111.5", 1_711_111_111_500],
    ["1711111111123", 1_711_111_111_123],
    ["1711111111123456", 1_711_111_111_123],
    ["1711111111123456789", 1_711_111_111_123],
    ["99999999999", 99_999_999_999_000],
    ["100000000000", 100_000_000_000],
    ["99999999999999", 99_999_999_999_999],
    ["100000000000000", 100_000_000_000],
    ["100000000000000000", 100_000_000_000],
    ["0", 0],
    ["-86400", -86_400_000],
    ["-62135596800", -62_135_596_800_000],
    ["253402300799.999", 253_402_300_799],
    ["1711111111.0005", 1_711_111_111_000],
    ["-1.5", -1_500],
    ["-1711111111123", -1_711_111_111_123],
    ["1711111111123999", 1_711_111_111_123],
    ["1711111111123.9", 1_711_111_111_123],
    ["60000000000000000", 60_000_000_000_000],
    ["20260320000", 20_260_320_000_000],
    ["2026032", 2_026_032_000],
    ["9999-12-31T23:59:59.999Z", 253_402_300_799_999],
    ["9999-12-31T22:59:59.999-01:00", 253_402_300_799_999],
    ["0001-01-01T01:00:00+01:00", -62_135_596_800_000],
    ["2026-03-20T10:11:12+23:59", Date.UTC(2026, 2, 19, 10, 12, 12)],
    ["2026-03-20T10:11:12-0001", Date.UTC(2026, 2, 20, 10, 12, 12)],
    ["2026-03-20T10:11:12 -00:30", Date.UTC(2026, 2, 20, 10, 41, 12)],
    ["2026-03-20T10:11:12.1", Date.UTC(2026, 2, 20, 10, 11, 12, 100)],
    ["2026-03-20T10:11:12.12Z", Date.UTC(2026, 2, 20, 10, 11, 12, 120)],
    ["2026-03-20T10:11Z", Date.UTC(2026, 2, 20, 10, 11)],
    ["2026-03-20T10:11+01", Date.UTC(2026, 2, 20, 9, 11)],
    ["2026-03-20T10:11:12  Z", Date.UTC(2026, 2, 20, 10, 11, 12)],
  ])("reads %s", (text, ms) => expect(instant(text)).toBe(ms));

  it.each([
    ..."garbage 2026-13-01 2026-02-30T00:00:00Z 2023-02-29T00:00:00.000Z 2026-00-10T00:00:00Z".split(" "),
    ..."2026-03-20T10:11:12.Z 2026-03-20T10:1x:12.123Z 2026-03-20T25:00:00Z 2026-03-20T10:61:00Z".split(" "),
    ..."2026-03-20T10:11:99.000Z 2026-03-20T10:11:12.12xZ 20260320 0000-01-01T00:00:00Z".split(" "),
    ..."0001-01-01T00:00:00+01:00 9999-12-31T23:59:59-01:00 2026-03-20T10:11:12+24:00".split(" "),
    ..."2026-03-20T10:11:12+00:60 2026-03-20T10:11:12-24:00 2026-03-20T10 2026-03-20T10:11:12+1:00".split(
      " ",
    ),
    ..."x2026-03-20 2026-03-20x 2026-03-20Z 2026-03-20T10:11:12.+01:00 2026-03-20T10:11:12ZZ".split(" "),
    ..."20260320.5 1711111111. .5 +1711111111 --1 1711111111x x1711111111 -20260320 12345678 123456789012x".split(
      " ",
    ),
    ..."-99999999999 -62135596801 10000-01-01".split(" "),
    ..."2026-03-20T24:00:00Z 2026-03-20T10:60:00Z 2026-03-20T10:11:61Z 2026-03-20T10:11:1Z".split(" "),
    ...["99999999999999999999", "1e9", "", " ", "1711111111 "],
  ])("takes %j for no moment", (text) => expect(instant(text)).toBeNaN());

  it("reads the same moment from an epoch number of any unit", () => {
    const since1980 = fc.integer({ min: Date.UTC(1980, 0, 1), max: Date.UTC(2100, 0, 1) });
    fc.assert(
      fc.property(since1980, (ms) => {
        for (const text of [String(ms / 1_000), String(ms), `${ms}000`]) expect(instant(text)).toBe(ms);
      }),
      { numRuns: 1_000 },
    );
  });

  it.each(["23:59:60Z", "23:59:60.000Z", "23:59:60.987Z", "23:59:60.5Z", "18:59:60-05:00"])(
    "takes the leap second %s for the last millisecond of its day",
    (time) => expect(instant(`2016-12-31T${time}`)).toBe(Date.UTC(2017, 0, 1) - 1),
  );

  it("never throws and never depends on what it read before", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/))),
        (texts) => {
          const alone = texts.map((text) => {
            instant("2000-01-01T00:00:00Z");
            return instant(text);
          });
          expect(texts.map(instant)).toEqual(alone);
        },
      ),
    );
  });
});

/** A usual cursor, and another spelling of the same moment, which is read with a regular expression. */
const USUAL = ["2026-03-20T10:11:12Z", "2026-03-20T10:11:12.345Z", "2026-03-20T10:11:12.3456789Z"];
const otherwise = (text: string): string => text.replace(/Z$/, "+00:00");

describe("instant() of the usual spelling", () => {
  it("reads each damage to it as it reads the same damage to another spelling", () => {
    const signs = [..."0123456789-:.,+TtZz /;AX\u0660"];
    for (const text of USUAL) {
      for (let at = 0; at < text.length - 1; at++) {
        const [before, after] = [text.slice(0, at), text.slice(at + 1)];
        const damaged = ["", ...signs].flatMap((sign) => [
          `${before}${sign}${after}`,
          `${before}${sign}${text.slice(at)}`,
        ]);
        for (const one of damaged) expect(instant(one), one).toBe(instant(otherwise(one)));
      }
      for (const sign of signs.filter((one) => !/[Zz]/.test(one)))
        expect(instant(text.slice(0, -1) + sign), sign).toBe(
          instant(`${text.slice(0, -1)}${sign}`.trimEnd()),
        );
    }
  });

  it("reads each hour, minute and second that there is, and no other, and every two digits of a fraction", () => {
    const two = (value: number): string => String(value).padStart(2, "0");
    for (let value = 0; value < 100; value++) {
      const texts = [
        ...[`${two(value)}:11:12`, `10:${two(value)}:12`, `10:11:${two(value)}`].map(
          (time) => `2026-03-20T${time}Z`,
        ),
        ...[`${two(value)}0`, `0${two(value)}`, `9${two(value)}9`].map(
          (digits) => `2026-03-20T23:59:60.${digits}Z`,
        ),
        `2026-03-${two(value)}T00:00:00Z`,
        `2024-${two(value)}-29T00:00:00Z`,
        `20${two(value)}-02-29T00:00:00Z`,
        `${two(value)}00-02-28T00:00:00Z`,
      ];
      for (const text of texts) expect(instant(text), text).toBe(instant(otherwise(text)));
    }
  });

  it("needs no regular expression where a cursor of the same day was read before", () => {
    const exec = vi.spyOn(RegExp.prototype, "exec");
    onTestFinished(() => exec.mockRestore());
    const asked = (texts: readonly string[]): number => {
      exec.mockClear();
      for (const text of texts) instant(text);
      return exec.mock.calls.length;
    };
    const times = ["00:00:00", "10:11:12", "19:09:59", "23:59:60", "09:50:00"].flatMap((time) =>
      ["", ".000", ".345", ".999", ".3456", ".3456789", ".345678901234"].map((digits) => `${time}${digits}Z`),
    );
    for (const day of ["0001-01-01", "1999-12-31", "2024-02-29", "2026-03-20", "9999-10-09"]) {
      expect(asked([`${day}T12:00:00Z`]), day).toBe(1);
      for (const time of times) expect(asked([`${day}T${time}`]), `${day} ${time}`).toBe(0);
    }
    const mixed = ["2026-03-20", "2026-03-21"].map((day) => `${day}T12:00:00Z`);
    expect(asked([...mixed, ...mixed])).toBe(4);
  });
});

describe("cursorToUtc()", () => {
  it.each([
    ["2026-03-20T09:00:00.123456Z", "2026-03-20T09:00:00.123456Z"],
    ["2026-03-20T10:00:00+02:00", "2026-03-20T08:00:00.000Z"],
    ["2026-03-20 09:00:00", "2026-03-20T09:00:00.000Z"],
    ["2026-03-19T23:59:60Z", "2026-03-19T23:59:59.999Z"],
    ["1711111111", "2024-03-22T12:38:31.000Z"],
    ["2026-03-20T09:00:00+00:00", "2026-03-20T09:00:00.000Z"],
    ["2026-03-20T09:00:00z", "2026-03-20T09:00:00.000Z"],
  ])("writes %s as %s", (cursor, utc) => expect(cursorToUtc(cursor)).toBe(utc));
});

describe("days", () => {
  it("begin and end at midnight UTC, and are told apart by their texts", () => {
    const [day, next] = ["2026-03-29", "2026-03-30"] as Day[] as [Day, Day];
    expect(startOf(day)).toBe(Date.UTC(2026, 2, 29));
    expect(endOf(day)).toBe("2026-03-29T23:59:59.999Z");
    expect([startOf(day), startOf(next) - 1, startOf(next)].map(dayOf)).toEqual([day, day, next]);
    expect(Date.parse(endOf(day)) + 1).toBe(startOf(next));
    expect([earlier(day, next), earlier(next, day), later(day, next), later(next, day)]).toEqual([
      ...[day, day],
      ...[next, next],
    ]);
  });
});

describe("addDays() and daysBetween()", () => {
  it("never leave the years that there are", () => {
    expect(addDays("0001-01-01" as Day, -5)).toBe("0001-01-01");
    expect(addDays("2024-02-28" as Day, 2)).toBe("2024-03-01");
    expect(addDays("2024-03-01" as Day, -1)).toBe("2024-02-29");
    expect(daysBetween("2024-02-28" as Day, "2024-03-01" as Day)).toBe(3);
    expect(daysBetween("2024-02-28" as Day, "2024-02-27" as Day)).toBe(0);
  });
});

it("instant() takes no text for a day, whatever comes first", async () => {
  vi.resetModules();
  const fresh = await import("../../src/time.ts");
  expect(["nonexxxxxxT10:00:00Z", "1970-01-01T10:00:00Z"].map(fresh.instant)).toEqual([
    Number.NaN,
    10 * 3_600_000,
  ]);
});
