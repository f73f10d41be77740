import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, type Day, daysBetween } from "../../../src/base/time.ts";
import { expectedBy } from "../../../src/reconcile/compare.ts";
import type { Span } from "../../../src/sync/coverage.ts";
import { NEW_STATE } from "../../../src/sync/state.ts";
import { csvOf, ids, type Row } from "../../support/reconcile.ts";
import { runs } from "../../support/runs.ts";
import { compared, listOf, NOW, type Shown, UNDATED } from "./compared.ts";

describe("a comparison key by key", () => {
  it.each([
    [5, 2, 2, 0],
    [5, 3, 3, 1],
    [200, 100, 100, 0],
    [202, 101, 101, 1],
    [12_000, 120, 120, 0],
    [12_000, 121, 121, 1],
  ])(
    "a table of %i keys, %i of them not shown, names who is gone only up to half, a hundred or 1 %%",
    async (size, lacking, gone, unanswered) => {
      const keys = Array.from({ length: size }, (_, nth) => `k${nth}`);
      const shown = keys.slice(lacking).map((id) => ({ id }));
      const report = await compared(listOf(keys), () => shown, { form: UNDATED });
      expect([report.gone, report.unanswered.length]).toEqual([gone, unanswered]);
      expect(report.lists["gone.csv"]).toBe(unanswered > 0 ? "none" : listOf(keys.slice(0, lacking)));
    },
  );

  it("a row that has lost its date is later in the table", async () => {
    const table = "id,discoveredAt\na,2024-03-01T10:00:00Z\n";
    const found = await compared(table, () => [{ id: "a", discoveredAt: null }]);
    expect(found).toMatchObject({ stale: 0, later: 1, lost: 0, gone: 0, new: 0 });
  });

  it("names as gone only keys that two reads of everyone did not show, if the last read was complete", async () => {
    const table = listOf(["a", "b", "c", "d"]);
    const rows = (...ids: readonly string[]) => ids.map((id) => ({ id, discoveredAt: null }));
    const count = (total: number) => async () => ({ rows: total, asked: NOW });
    const second = await compared(table, (_, nth) => (nth === 0 ? rows("a", "b") : rows("c")));
    expect(second).toMatchObject({ gone: 1, reads: 2, rows_read: 3, unanswered: [] });
    const short = await compared(table, () => rows("a", "b", "b"), { count: count(3) });
    expect(short).toMatchObject({ reads: 4, unanswered: [expect.stringContaining("counts 1 row more")] });
    expect(short.lists["gone.csv"]).toBe("none");
    const rest = await compared(table, (_, nth) => rows("a", "b", ...(nth < 2 ? [] : ["c"])), {
      count: count(3),
    });
    expect(rest).toMatchObject({ gone: 1, reads: 3, unanswered: [] });
    expect(await compared(table, () => rows("a", "b", "c", "d"))).toMatchObject({ gone: 0, reads: 1 });
  });

  it("does not use a row that may be newer than the count to prove the count", async () => {
    const newcomer = { id: "new", discoveredAt: new Date(NOW).toISOString() };
    const reads = [
      ["a", "b"],
      ["a", "b"],
      ["a", "b", "c"],
    ].map((ids) => ids.map((id) => ({ id })));
    const shown: Shown = (_, nth) => [...(reads[nth] ?? []), ...(nth === 0 ? [] : [newcomer])];
    const found = await compared(listOf(["a", "b", "c", "d"]), shown, {
      count: async () => ({ rows: 3, asked: NOW }),
    });
    expect(found).toMatchObject({ gone: 1, lost: 1, reads: 3 });
    expect(found.lists["gone.csv"]).toBe(listOf(["d"]));
  });

  it("compares a read with the counts of the reads before it, too", async () => {
    const rows = [3, 0, 0, 0];
    const count = async () => ({ rows: rows.shift() ?? 0, asked: NOW });
    const shown: Shown = (_, nth) => (nth === 0 ? [{ id: "a" }, { id: "b" }] : []);
    const found = await compared(listOf(["a", "b", "c"]), shown, { count });
    expect(found).toMatchObject({ reads: 4, unanswered: [expect.stringContaining("counts 3 rows more")] });
    expect(found.lists["gone.csv"]).toBe("none");
  });
});

const FIRST = "2024-03-01" as Day;
const DAYS = 12;
const dayAt = (nth: number): Day => addDays(FIRST, nth);
const maybe = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { freq: 4 });
const moment = maybe(
  fc
    .record({ day: fc.nat(DAYS - 1), hour: fc.nat(3) })
    .map(({ day, hour }) => `${dayAt(day)}T0${hour}:00:00Z`),
);
const people = fc.uniqueArray(
  fc.record({
    id: fc.nat(30).map((nth) => `p${nth}`),
    discoveredAt: moment,
    /** What the table says of it; undefined: nothing. */
    held: fc.option(fc.oneof({ weight: 3, arbitrary: fc.constant("same" as const) }, moment), {
      nil: undefined,
    }),
    isShown: fc.boolean(),
    isSuppressed: fc.integer({ min: 0, max: 9 }).map((of) => of === 0),
  }),
  { selector: ({ id }) => id, maxLength: 25 },
);
const spans = fc.array(fc.constantFrom("read", "read", "read", "missing", "again", "never"), {
  minLength: DAYS,
  maxLength: DAYS,
});

it("each row is lost, stale, later, new or suppressed, and each key that is not shown is gone", async () => {
  await fc.assert(
    fc.asyncProperty(
      people,
      maybe(spans),
      maybe(fc.nat(DAYS - 1)),
      maybe(fc.nat(DAYS - 1)),
      moment,
      async (all, known, start, end, newest) => {
        const [startDate, endDate] = [start, end].map((nth) => (nth === null ? null : dayAt(nth)));
        if (startDate && endDate && startDate > endDate) return;
        const days = (known ?? []).flatMap((status, nth) => {
          const [from, to] = [dayAt(nth), dayAt(nth)];
          if (status === "never") return [];
          return [{ from, to, rows: 1, status: (status === "read" ? "proven" : status) as Span["status"] }];
        });
        const state = known === null ? undefined : { ...NEW_STATE, days, discoveredAt: newest };
        const table = all.flatMap(({ id, discoveredAt, held }): Row[] =>
          held === undefined ? [] : [{ id, discoveredAt: held === "same" ? discoveredAt : held }],
        );
        const shown = all.filter(({ isShown }) => isShown);
        const suppressed = new Set(all.filter((one) => one.isSuppressed).map(({ id }) => id));
        const heldOf = (id: string): Row | undefined => table.find((row) => row.id === id);
        if (shown.length + table.length > 0 && !shown.some(({ id }) => heldOf(id))) return;

        const isExpected = (at: string | null): boolean => {
          if (at === null) return state === undefined && startDate === null && endDate === null;
          const day = at.slice(0, 10);
          if (known === null) return (startDate ?? "") <= day && (endDate ?? "9") >= day;
          if (newest === null || at > newest) return false;
          const nth = daysBetween(FIRST, day as Day) - 1;
          return (
            ["read", "again"].includes(known[nth] ?? "") || nth > known.findLastIndex((of) => of !== "never")
          );
        };
        const wanted = { lost: [] as string[], stale: [] as string[], later: 0, new: 0 };
        for (const { id, discoveredAt: at } of shown) {
          const held = heldOf(id);
          if (suppressed.has(id) || (held !== undefined && held.discoveredAt === at)) continue;
          if (!isExpected(at)) wanted.new += 1;
          else if (held === undefined) wanted.lost.push(id);
          else if (at === null || (held.discoveredAt ?? "") > at) wanted.later += 1;
          else wanted.stale.push(id);
        }
        const newestOf = (rows: readonly Row[]): string =>
          rows.reduce((newest, { discoveredAt: at }) => (at !== null && at > newest ? at : newest), "");
        const [newestShown, newestInTable] = [newestOf(shown), newestOf(table)];
        const unshown = table.filter(({ id }) => !suppressed.has(id) && !shown.some((one) => one.id === id));
        const gone = unshown.filter(({ discoveredAt: at }) =>
          newestInTable <= newestShown ? true : at !== null && at <= newestShown,
        );
        wanted.later += unshown.length - gone.length;
        const expectedDays: Record<string, object> = {};
        for (const day of [
          "none",
          ...(known ?? []),
          ...Array.from({ length: DAYS }, (_, nth) => dayAt(nth)),
        ]) {
          const on = (rows: readonly Row[]): number =>
            rows.filter(({ discoveredAt }) => (discoveredAt?.slice(0, 10) ?? "none") === day).length;
          const of = (names: readonly string[]): number => on(all.filter(({ id }) => names.includes(id)));
          const difference = { lost: of(wanted.lost), stale: of(wanted.stale), gone: on(gone) };
          if (Object.values(difference).some((rows) => rows > 0)) expectedDays[day] = difference;
        }

        const found = await compared(
          csvOf(table),
          (_, nth) => (nth === 0 ? shown.map(({ id, discoveredAt }) => ({ id, discoveredAt })) : []),
          {
            isExpected: expectedBy(state, startDate ?? null, endDate ?? null),
            mostGone: 100,
            isSuppressed: ({ id }) => suppressed.has(String(id)),
          },
        );
        const { lost, stale, later, new: isNew, rows_read, table_rows } = found;
        expect({ lost, stale, later, new: isNew, rows_read, table_rows, gone: found.gone }).toEqual({
          ...{ lost: wanted.lost.length, stale: wanted.stale.length, later: wanted.later, new: wanted.new },
          ...{ rows_read: shown.length, table_rows: table.length, gone: gone.length },
        });
        expect(found.days).toEqual(expectedDays);
        expect(Object.keys(found.days)).toEqual(Object.keys(expectedDays).toSorted());
        const lines = (found.lists["lost.jsonl"] ?? "").split("\n").slice(0, -1);
        expect(ids(lines.map((line) => JSON.parse(line) as Row))).toEqual(
          [...wanted.lost, ...wanted.stale].sort(),
        );
        const named = table.map(({ id }) => id);
        expect(found.lists["gone.csv"]).toBe(listOf(gone.map(({ id }) => id)));
        expect(found.lists["suppressed.csv"]).toBe(listOf(named.filter((id) => suppressed.has(id))));
        expect(found).toMatchObject({
          suppressed: named.filter((id) => suppressed.has(id)).length,
        });
      },
    ),
    { numRuns: runs(25, 5_000) },
  );
});
