import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { instant } from "../../src/sync/instant.ts";

const MS = fc.integer({ min: Date.parse("1970-01-01"), max: Date.parse("9999-12-31T23:59:59.999Z") });

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
        fc.pre(local.length === 24);
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
  ])("reads %s", (text, ms) => expect(instant(text)).toBe(ms));

  it.each([
    "",
    "garbage",
    "2026-13-01",
    "2026-02-30T00:00:00Z",
    "2023-02-29T00:00:00.000Z",
    "2026-00-10T00:00:00Z",
    "2026-03-20T10:11:12.Z",
    "2026-03-20T10:1x:12.123Z",
    "2026-03-20T25:00:00Z",
    "2026-03-20T10:61:00Z",
    "2026-03-20T10:11:99.000Z",
    "2026-03-20T10:11:12.12xZ",
    "1711111111",
  ])("takes %j for no moment", (text) => expect(instant(text)).toBeNaN());

  it("takes a leap second for the second after it", () => {
    expect(instant("2016-12-31T23:59:60Z")).toBe(Date.UTC(2017, 0, 1));
  });

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
