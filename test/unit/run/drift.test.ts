import { expect, it } from "vitest";
import { Drift } from "../../../src/run/drift.ts";
import { NO_FACTS } from "../../../src/streams/event.ts";

const TEXT = { type: "string" };
const fields = (from: number, to: number, rows = 1) =>
  new Map(Array.from({ length: to - from }, (_, nth) => [`f${from + nth}`, { rows, schema: TEXT }] as const));

it("a report of drift says each difference once, with its rows, and nothing where there is none", () => {
  const drift = new Drift();
  expect(drift.add(NO_FACTS)).toBeUndefined();
  expect(drift.report("people")).toEqual([]);
  expect(drift.add({ ...NO_FACTS, newFields: fields(1, 3) })).toEqual({ f1: TEXT, f2: TEXT });
  expect(drift.add({ ...NO_FACTS, newFields: fields(2, 4, 2) })).toEqual({ f3: TEXT });
  expect(drift.add({ ...NO_FACTS, newFields: fields(2, 4) })).toBeUndefined();
  drift.add({ ...NO_FACTS, contradictions: new Map([["age", 2]]), withoutKey: 1, held: 9 });
  drift.add({ ...NO_FACTS, contradictions: new Map([["age", 3]]), unreadable: 2, replaced: 1 });
  drift.add({ ...NO_FACTS, withoutKey: 1, replaced: 2 });
  const isNew = "which is lost where the catalog lacks it";
  expect(drift.report("people")).toEqual([
    `The rows of "people" differ from its schema: new field "f1" in 1 row, ${isNew}; ` +
      `new field "f2" in 4 rows, ${isNew}; new field "f3" in 3 rows, ${isNew}; ` +
      `"age" is not of its declared type in 5 rows; no key in 2 rows; ` +
      "a cursor that no rule can read in 2 rows, which count as rows without a date; " +
      "halves of surrogate pairs replaced by U+FFFD: 3",
  ]);
});

it.each([
  [50, 50, ""],
  [51, 51, "; 1 more field"],
  [999, 999, "; 949 more fields"],
  [1_000, 1_000, "; 950 more fields, and others that are not counted"],
  [1_005, 1_000, "; 950 more fields, and others that are not counted"],
])("of %i new fields a report of drift says 50 and counts the others", (count, known, more) => {
  const drift = new Drift();
  expect(Object.keys(drift.add({ ...NO_FACTS, newFields: fields(0, count) }) ?? {})).toHaveLength(known);
  expect(Object.keys(new Drift().add({ ...NO_FACTS, newFields: fields(7, 10) }) ?? {})).toEqual([
    "f7",
    "f8",
    "f9",
  ]);
  const [text = ""] = drift.report("people");
  expect(text.match(/new field/g)).toHaveLength(50);
  expect(text.slice(text.indexOf('"f49"'))).toBe(
    `"f49" in 1 row, which is lost where the catalog lacks it${more}`,
  );
  // One that is known is counted still.
  expect(drift.add({ ...NO_FACTS, newFields: fields(0, 1) })).toBeUndefined();
  expect(drift.report("people")[0]).toContain('"f0" in 2 rows');
});
