import { expect, it } from "vitest";
import { BodyError } from "../../../src/errors.ts";
import { closedWindow } from "../../../src/streams/window.ts";
import { missingInARow, type WindowOutcome } from "../../../src/streams/window-result.ts";
import { addDays, type Day } from "../../../src/time.ts";

/** The outcomes of days: p proven, i ignored, a again, m missing, s missing and short alike. */
const outcomes = (letters: string): WindowOutcome[] =>
  [...letters].map((letter, nth) => {
    const day = addDays("2026-01-01" as Day, nth);
    const kind = ({ p: "proven", i: "ignored", a: "again" } as const)[letter] ?? "missing";
    return {
      window: closedWindow(day, day),
      kind,
      cause: `cause ${nth}`,
      ...(letter === "s" && { isAlike: true }),
    };
  });

it.each([
  ["", []],
  ["p", []],
  ["mm", [0, 1]],
  ["mmp", []],
  ["mmam", [3]],
  ["mim", [0, 2]],
  ["mips", [3]],
  ["mmpmm", [3, 4]],
  ["msmss", [0, 1, 2, 3, 4]],
  ["s".repeat(30), Array.from({ length: 30 }, (_, nth) => nth)],
  [`${"s".repeat(30)}p${"s".repeat(9)}`, Array.from({ length: 9 }, (_, nth) => 31 + nth)],
])("of the days %j those in a row are missing that may go on: %j", (letters, left) => {
  const all = outcomes(letters);
  expect(missingInARow(all)).toEqual(left.map((nth) => all[nth]));
});

it.each([
  ["mmm", "2026-01-01, 2026-01-02, 2026-01-03: 3 days in a row"],
  ["pmimsm", "2026-01-02, 2026-01-04, 2026-01-05, 2026-01-06: 4 days in a row"],
  ["s".repeat(31), "2026-01-30, 2026-01-31: 31 days in a row"],
])("of the days %j so many are missing that the service seems to be unwell", (letters, text) => {
  const last = letters.length - 1;
  let error: unknown;
  try {
    missingInARow(outcomes(letters));
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(BodyError);
  expect(error).toMatchObject({ message: expect.stringContaining(text), cause: `cause ${last}` });
});
