import fc from "fast-check";
import { expect, it } from "vitest";
import { HELD, KeyTable, MOVED, type Moment, NAMED, SHOWN } from "../../../src/reconcile/key-table.ts";
import { dayOf } from "../../../src/time.ts";
import { runs } from "../../support/runs.ts";

const MARKS = [0, 1, 2, MOVED, HELD, NAMED];
const instants = fc.constantFrom(Number.NaN, -1, 0, 1_000, 86_399_999, 86_400_000, 1_700_000_000_000);
const step = fc.record({
  key: fc.oneof(fc.nat(40).map(String), fc.string({ unit: "grapheme", maxLength: 300 })),
  moment: fc.option(fc.record({ at: instants, unit: fc.constantFrom(1, 1_000, 86_400_000) })),
  marks: fc.constantFrom(...MARKS),
});

it("a table of keys holds each key once, with its newest moment and all marks, however many there are", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.constantFrom(0, 900, 3_000), (steps, others) => {
      const table = new KeyTable();
      const model = new Map<string, Moment & { marks: number }>();
      const put = (key: string, moment: Moment): void => {
        table.put(key, moment);
        const held = model.get(key);
        const isNewer = held === undefined || moment.at > held.at || Number.isNaN(held.at);
        if (isNewer && !(held !== undefined && Number.isNaN(moment.at)))
          model.set(key, { ...moment, marks: held?.marks ?? 0 });
      };
      for (const [nth, { key, moment, marks }] of steps.entries()) {
        if (moment !== null) put(key, moment);
        else {
          const held = model.get(key);
          if (held !== undefined) held.marks |= marks;
          expect(table.mark(key, marks)).toEqual(held);
        }
        // Many others in the middle, so that the table has to grow.
        if (nth === 100)
          for (let other = 0; other < others; other++) put(`other-${other}`, { at: other * 1e8, unit: 1 });
      }
      expect(table.size).toBe(model.size);
      for (const [key, held] of model) expect(table.mark(key), key).toEqual(held);
      expect(table.mark("nobody's key")).toBeUndefined();
      expect(table.newest).toBe(
        [...model.values()].reduce((newest, { at }) => (at > newest ? at : newest), Number.NEGATIVE_INFINITY),
      );
      const isAsked = (marks: number): boolean => (marks & SHOWN) === 0;
      const days = new Map<string, number>();
      for (const { at, marks } of model.values()) {
        const day = Number.isNaN(at) ? "none" : dayOf(at);
        if (isAsked(marks)) days.set(day, (days.get(day) ?? 0) + 1);
      }
      expect(table.byDay(isAsked)).toEqual(days);
    }),
    { numRuns: runs(60, 1_000) },
  );
});

it.each(["a", "\u00e9", "\u20ac", "\ud83d\ude00"])(
  "keys of many %s that differ at their end alone are different",
  (sign) => {
    const table = new KeyTable();
    const lengths = [1, 43, 84, 85, 86, 127, 128, 129, 255, 256, 257, 1_000, 90, 5];
    for (const length of lengths)
      for (const end of ["a", "b"]) table.put(`${sign.repeat(length)}${end}`, { at: length, unit: 1 });
    expect(table.size).toBe(2 * lengths.length);
    for (const length of lengths) {
      expect(table.mark(`${sign.repeat(length)}a`)).toEqual({ at: length, unit: 1, marks: 0 });
      expect(table.mark(`${sign.repeat(length)}c`)).toBeUndefined();
    }
  },
);
