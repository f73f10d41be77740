import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compare, type Question } from "../../../src/reconcile/reconcile.ts";
import { type Report, Results } from "../../../src/reconcile/results.ts";
import { type Coverage, spanOf } from "../../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import type { Event, RawLine } from "../../../src/streams/event.ts";
import { addDays, type Day, dayOf, daysBetween } from "../../../src/time.ts";
import { file } from "../../support/cli.ts";
import { csvOf, ids, type Row } from "../../support/reconcile.ts";
import { runs } from "../../support/runs.ts";
import { tempDir } from "../../support/temp-dir.ts";

const NOW = Date.parse("2024-03-20T12:00:00Z");
const DATED: Question["form"] = { key: "id", cursor: "discoveredAt", zone: undefined };
const UNDATED: Question["form"] = { ...DATED, cursor: null };

/** What the service shows when it is read, look by look; the last for ever. */
type Shown = (look: Parameters<Question["read"]>[0], nth: number) => readonly unknown[];

type Found = Report & { readonly lists: Readonly<Record<string, string>>; readonly looks: number };

/** Compares a table with what a service shows, in a folder of results. */
async function compared(table: string, shown: Shown, asked: Partial<Question> = {}): Promise<Found> {
  const folder = await tempDir();
  const results = await Results.open(folder);
  let looks = 0;
  const report = await compare({
    ...{ stream: "things", table: await file("keys.csv", table), state: undefined, form: DATED },
    ...{ mode: "full", mostGone: undefined, startDate: null, endDate: null, isFiltered: false },
    ...{ api: { now: () => NOW, count: () => Promise.reject(new Error("Not asked for")) } },
    ...{ emit: async () => {}, requests: () => 1, results, isSuppressed: () => false },
    ...{ keyOf: (key) => key, leave: (line) => line },
    read: async function* (look): AsyncGenerator<Event> {
      const lines = shown(look, looks++).map((row) => JSON.stringify(row) as RawLine);
      yield { kind: "records", stream: "things", at: 0, lines };
      yield { kind: "close", stream: "things", complete: true };
    },
    ...asked,
  });
  const names = [
    "lost.jsonl",
    "suppressed.csv",
    "unclear.csv",
    ...(report.gone === null ? [] : ["gone.csv"]),
  ];
  const texts = names.map((name) => [name, textOf(join(folder, name))]);
  return { ...report, lists: Object.fromEntries(texts), looks };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "none";
  }
}

const listOf = (keys: readonly string[]): string => ["id", ...keys, ""].join("\n");

describe("compare()", () => {
  it("calls a key unclear that the service shows as a number and as a text, and no other", async () => {
    const shown = [{ id: 1 }, { id: "1" }, { id: 2 }, { id: 2 }, { id: "3" }];
    const report = await compared("id\n1\n2\n3\n4\n", () => shown, { form: UNDATED });
    expect(report).toMatchObject({ unclear: 1, gone: 1, lost: 0, suppressed: 0, rows_read: 5 });
    expect(report.lists).toMatchObject({ "unclear.csv": listOf(["1"]), "gone.csv": listOf(["4"]) });
  });

  it.each([
    [200, 100, 100, 0],
    [200, 101, 101, 1],
    [20_000, 200, 200, 0],
    [20_000, 201, 201, 1],
  ])(
    "of %i keys %i may not be gone unless the user says so, above a hundred or 1 %%",
    async (size, lacking, gone, unanswered) => {
      const keys = Array.from({ length: size }, (_, nth) => `k${nth}`);
      const shown = keys.slice(lacking).map((id) => ({ id }));
      const report = await compared(listOf(keys), () => shown, { form: UNDATED });
      expect([report.gone, report.unanswered.length]).toEqual([gone, unanswered]);
      expect(report.lists["gone.csv"]).toBe(unanswered > 0 ? "none" : listOf(keys.slice(0, lacking)));
    },
  );

  it.each([
    ["2024-03-01T10:00:00.123Z", "2024-03-01T10:00:00.123Z", "same"],
    ["2024-03-01T10:00:00.123Z", "2024-03-01T10:00:00.122Z", "stale"],
    ["2024-03-01T10:00:00.123Z", "2024-03-01T10:00:00.124Z", "later"],
    ["2024-03-01T10:00:00.999Z", "2024-03-01T10:00:00Z", "same"],
    ["2024-03-01T10:00:01Z", "2024-03-01T10:00:00Z", "stale"],
    ["2024-03-01T10:00:59Z", "2024-03-01T10:00Z", "same"],
    ["2024-03-01T10:01:00Z", "2024-03-01T10:00Z", "stale"],
    ["2024-03-01T10:00:00.700Z", "1709287200", "same"],
    ["2024-03-01T10:00:01.000Z", "1709287200", "stale"],
    ["2024-03-01T10:00:00Z", "2024-03-01T10:00:00.900Z", "same"],
    ["2024-03-01T10:00:00Z", "", "stale"],
    [null, "2024-03-01T10:00:00Z", "later"],
    [null, "", "same"],
  ])("a row of %s that a table has at %j is the %s", async (discoveredAt, held, standing) => {
    const report = await compared(`id,discoveredAt\na,${held}\n`, () => [{ id: "a", discoveredAt }]);
    const { stale, later } = report;
    expect([stale, later]).toEqual([Number(standing === "stale"), Number(standing === "later")]);
    expect(report).toMatchObject({ lost: 0, gone: 0, new: 0 });
  });

  it("says why nobody can know who is gone while people still move after each look", async () => {
    const table = csvOf(Array.from({ length: 20 }, (_, nth) => ({ id: `p${nth}`, discoveredAt: null })));
    const one: Shown = (_, nth) => [{ id: `p${nth}`, discoveredAt: null }];
    await expect(compared(table, one)).rejects.toThrow("people still move between 8 looks");
    // They come to rest just in time, and the last look says so.
    const rest = await compared(table, (look, nth) => (nth < 8 ? one(look, nth) : []));
    expect(rest).toMatchObject({ gone: 12, looks: 9 });
  });

  it("looks among everybody at once under a filter, and once only where rows have no date", async () => {
    const table = listOf(["a", "b", "c"]);
    const shown: Shown = ({ everyone = false }) => (everyone ? [{ id: "a" }, { id: "b" }] : [{ id: "a" }]);
    const found = await compared(table, shown, { form: UNDATED, isFiltered: true });
    expect(found).toMatchObject({ gone: 1, looks: 2, rows_read: 3, lost: 0 });
    expect(await compared(table, shown, { form: UNDATED })).toMatchObject({ gone: 2, looks: 1 });
    const all = listOf(["a"]);
    expect(await compared(all, shown, { form: UNDATED, isFiltered: true })).toMatchObject({ looks: 1 });
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

it("compare() calls each row of the service, and each key of the table, what it is", async () => {
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
          const range = [dayAt(nth), dayAt(nth)] as const;
          if (status === "never") return [];
          return [status === "read" ? spanOf(range, 1) : spanOf(range, null, status as "again")];
        });
        const state = known === null ? undefined : { ...NEW_STATE, days, discoveredAt: newest };
        const table = all.flatMap(({ id, discoveredAt, held }): Row[] =>
          held === undefined ? [] : [{ id, discoveredAt: held === "same" ? discoveredAt : held }],
        );
        const shown = all.filter(({ isShown }) => isShown);
        const suppressed = new Set(all.filter((one) => one.isSuppressed).map(({ id }) => id));
        const heldOf = (id: string): Row | undefined => table.find((row) => row.id === id);
        if (shown.length > 0 && !shown.some(({ id }) => heldOf(id))) return;

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
        const gone = table.filter(({ id }) => !suppressed.has(id) && !shown.some((one) => one.id === id));
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
            ...{ state, startDate: startDate ?? null, endDate: endDate ?? null },
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
          unclear: 0,
          suppressed: named.filter((id) => suppressed.has(id)).length,
        });
      },
    ),
    { numRuns: runs(300, 5_000) },
  );
});

it("compare() by counts names each lost row of a table that lacks some, and reads little more than their days", async () => {
  const account = fc.array(fc.record({ day: fc.nat(199), hour: fc.nat(3) }), {
    minLength: 60,
    maxLength: 400,
  });
  await fc.assert(
    fc.asyncProperty(
      account,
      fc.array(fc.nat(399), { maxLength: 4 }),
      fc.boolean(),
      async (all, picks, isAged) => {
        // The table may end days before the comparison.
        const last = addDays(dayOf(NOW), isAged ? -9 : 0);
        const rows = all.map(({ day, hour }, nth) => ({
          id: `p${nth}`,
          discoveredAt: `${addDays(last, day - 199)}T0${hour}:00:00Z`,
        }));
        rows.push({ id: "newest", discoveredAt: `${last}T04:00:00Z` });
        const lost = new Set(picks.filter((nth) => nth < all.length).map((nth) => `p${nth}`));
        const table = rows.filter(({ id }) => !lost.has(id));
        let requests = 0;
        const within = (from?: string, to?: string): Row[] => {
          requests += 1;
          return rows.filter(
            ({ discoveredAt: at }) => at.slice(0, 10) >= (from ?? "") && at.slice(0, 10) <= (to ?? "9"),
          );
        };
        const found = await compared(csvOf(table), ({ from, to }) => within(from, to), {
          mode: "counts",
          requests: () => requests,
          api: {
            now: () => NOW,
            count: async (window) => ({
              rows: window.kind === "closed" ? within(window.from, window.to).length : rows.length,
              ...{ undated: 0, known: true, asked: NOW, answered: NOW },
            }),
          },
        });
        const lines = (found.lists["lost.jsonl"] ?? "").split("\n").slice(0, -1);
        expect(ids(lines.map((line) => JSON.parse(line) as Row))).toEqual([...lost].sort());
        expect(found).toMatchObject({
          lost: lost.size,
          stale: 0,
          gone: null,
          unanswered: [],
          not_looked_at: [],
        });
        expect(found.rows_read).toBeGreaterThan(0);
        expect(found.rows_read).toBeLessThan(rows.length / 4 + 12 * (lost.size + 3));
        expect(requests).toBeLessThan(80 + 20 * lost.size);
      },
    ),
    { numRuns: runs(100, 2_000) },
  );
});

/** A table, a service, and what is asked of them beside that. */
type Situation = {
  readonly table: readonly (readonly [id: string, discoveredAt?: string])[];
  readonly rows: readonly object[];
  readonly asked?: Partial<Question>;
  /** What a look among everybody shows, look by look. */
  readonly moved?: readonly (readonly object[])[];
  /** The days of the state that each look ends with. */
  readonly days?: readonly Coverage[];
  readonly suppressed?: readonly string[];
  /** How the first look ends. */
  readonly end?: object;
};

const at = (day: number, hour = 0): string => `2024-03-${String(day).padStart(2, "0")}T0${hour}:00:00Z`;
const persons = (...days: readonly (number | null)[]): object[] =>
  days.map((day, nth) => ({ id: `p${nth}`, discoveredAt: day === null ? null : at(day) }));
const held = (...days: readonly (number | null)[]): [string, string?][] =>
  days.map((day, nth) => (day === null ? [`p${nth}`] : [`p${nth}`, at(day)]));
const until = (day: number, more: object = {}): DatedState => ({
  ...NEW_STATE,
  discoveredAt: at(day),
  ...more,
});
const spanTo = (day: number): Coverage => [spanOf([FIRST, dayOf(Date.parse(at(day)))], null)];
const byCounts: Partial<Question> = { mode: "counts" };

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "key by key, nothing anywhere": { table: [], rows: [] },
  "key by key, a table and no service": { table: held(1, 2), rows: [] },
  "key by key, rows of every standing": {
    table: [["p0", at(1)], ["p1", at(2)], ["p2", at(9)], ["p3"], ["p5", at(3)], ["gone", at(4)], ["gone2"]],
    rows: [
      ...persons(1, 3, 3, null, 5),
      { id: "p5", discoveredAt: null },
      { id: "p6" },
      { name: "no key" },
      { id: null },
    ],
  },
  "key by key, up to the newest row of a state": {
    table: [
      ["p0", at(1)],
      ["p3", at(1)],
    ],
    rows: persons(1, 2, 6, 7, null),
    asked: { state: until(6, { days: spanTo(5), undated: { rows: 0, seen: null } }) },
  },
  "key by key, with people without a date whom the state does not know": {
    table: held(1),
    rows: persons(1, null),
    asked: { state: until(6, { days: spanTo(5), undated: { rows: 0, seen: ["another"] } }) },
  },
  "key by key, between two dates": {
    table: held(2),
    rows: persons(2, 1, 3, 4, null),
    asked: { startDate: "2024-03-02" as Day, endDate: "2024-03-03" as Day },
  },
  "key by key, from a date on": {
    table: held(2),
    rows: persons(2, 1, 3, null),
    asked: { startDate: "2024-03-02" as Day },
  },
  "key by key, up to a date": {
    table: held(2),
    rows: persons(2, 1, 3, null),
    asked: { endDate: "2024-03-02" as Day },
  },
  "key by key, under a filter that hides somebody": {
    table: held(1, 2, 3),
    rows: persons(1, 2),
    asked: { isFiltered: true },
    moved: [persons(1, 2, 3)],
  },
  "key by key, under a filter behind which somebody is gone": {
    table: held(1, 2, 3, 4),
    rows: persons(1, 2),
    asked: { isFiltered: true },
    moved: [persons(1, 2, 3), []],
  },
  "key by key, with days that people left while they were read": {
    table: held(1, 2, 3, 4),
    rows: persons(1),
    days: [
      [spanOf([dayAt(0), dayAt(1)], 2, "again"), spanOf([dayAt(2), dayAt(9)], 3)],
      [spanOf([dayAt(0), dayAt(9)], 2, "again")],
      [spanOf([dayAt(0), dayAt(9)], 2)],
    ],
    moved: [[], [{ id: "p1", discoveredAt: at(9) }], []],
  },
  "key by key, with keys that are numbers, and texts of the same digits": {
    table: [["1"], ["2"], ["3"]],
    rows: [{ id: 1 }, { id: "1" }, { id: 2 }],
  },
  "key by key, with suppressed people": {
    table: [
      ["p0", at(1)],
      ["p1", at(2)],
      ["p2", at(3)],
      ["p9", at(3)],
    ],
    rows: [...persons(1, 5, 5, 4, null)],
    suppressed: ["p1", "p3", "p9"],
  },
  "key by key, with keys and rows that leave in other words": {
    table: [
      ["#p0", at(1)],
      ["#p1", at(1)],
      ["#p2", at(1)],
    ],
    rows: persons(1, 2, 1, 3),
    asked: { keyOf: (key) => `#${key}`, leave: (line) => line.replace(/"id":"/, '"id":"#') },
  },
  "key by key, of rows without dates": {
    table: [["a"], ["b,c"]],
    rows: [{ id: "a", discoveredAt: at(1) }, { id: "d" }],
    asked: { form: UNDATED },
  },
  "key by key, of a key that the table has twice": {
    table: [["p0", at(1)], ["p0", at(2)], ["x"], ["x"]],
    rows: persons(2),
  },
  "key by key, with more gone than may be": {
    table: held(1, 2, 3),
    rows: persons(1),
    asked: { mostGone: 1 },
  },
  "key by key, with as many gone as may be": {
    table: held(1, 2, 3),
    rows: persons(1),
    asked: { mostGone: 2 },
  },
  "key by key, with dates in other words": {
    table: held(1, 1, 1),
    rows: [
      { id: "p0", discoveredAt: Date.parse(at(1)) },
      { id: "p1", discoveredAt: ["x"] },
      { id: "p2", discoveredAt: "soon" },
    ],
  },
  "of another table, key by key": { table: held(1, 2), rows: [{ id: "x", discoveredAt: at(1) }] },
  "of another table, by counts": {
    table: held(1, 2),
    rows: [
      { id: "x", discoveredAt: at(1) },
      { id: "y", discoveredAt: at(2) },
    ],
    asked: byCounts,
  },
  "with days that cannot be proven": { table: held(1), rows: persons(1), end: { complete: false } },
  "with days that cannot be proven, for a reason": {
    table: held(1),
    rows: persons(1),
    end: { complete: false, error: new Error("The service says 7 and shows 6") },
  },
  "with a read that says nothing of its end": { table: held(1), rows: persons(1), end: { kind: "open" } },
  "by counts, nothing anywhere": { table: [], rows: [], asked: byCounts },
  "by counts, a table without dates": { table: held(null, null), rows: persons(null, 1), asked: byCounts },
  "by counts, rows of every standing": {
    table: [
      ["p0", at(1)],
      ["p1", at(2)],
      ["p3", at(4)],
      ["p5", at(8)],
      ["p6", at(9)],
      ["gone", at(4)],
    ],
    rows: persons(1, 2, 3, 9, 5, 6, 9, 10, null),
    asked: byCounts,
  },
  "by counts, with people who have moved to the days that are read": {
    table: held(1, 2, 3, 4, 5, 9),
    rows: persons(9, 2, 3, 9, 5, 9),
    asked: byCounts,
  },
  "by counts, with suppressed people": {
    table: held(1, 2, 3, 9),
    rows: persons(1, 2, 3, 9),
    asked: byCounts,
    suppressed: ["p1"],
  },
  "by counts, with a state": {
    table: held(1, 2, 3),
    rows: persons(1, 2, 3, 3, 5, 7),
    asked: { ...byCounts, state: until(6, { days: spanTo(4) }) },
  },
  "by counts, with a state that has shown no row": {
    table: held(1),
    rows: persons(1, 2),
    asked: { ...byCounts, state: { ...NEW_STATE, days: spanTo(4) } },
  },
  "by counts, from a date on": {
    table: held(3, 9),
    rows: persons(3, 9, 2, 4),
    asked: { ...byCounts, startDate: "2024-03-03" as Day },
  },
  "by counts, up to a date": {
    table: held(3, 9),
    rows: persons(3, 9, 2, 4),
    asked: { ...byCounts, endDate: "2024-03-03" as Day },
  },
  "by counts, with no request left to look": {
    table: held(3, 4, 9),
    rows: persons(3, 4, 9, 2, 4),
    asked: { ...byCounts, requests: () => 300 },
  },
  "by counts, with a few requests left": {
    table: held(3, 4, 5, 6, 9),
    rows: persons(3, 4, 5, 6, 9, 3, 4, 5, 6),
    asked: { ...byCounts, requests: () => 295 },
  },
  "by counts, of days on which nobody is left": {
    table: held(1, 1, 2, 9),
    rows: [{ id: "x", discoveredAt: at(20) }],
    asked: byCounts,
  },
};

it("comparisons say what golden/comparisons.txt says", async () => {
  const parts: string[] = [];
  for (const [name, situation] of Object.entries(SITUATIONS)) {
    const {
      table,
      rows,
      asked = {},
      moved = [],
      days = [],
      suppressed = [],
      end = { complete: true },
    } = situation;
    const did: string[] = [];
    const dayIn = (row: object): string => String((row as Row).discoveredAt ?? "").slice(0, 10);
    const isWithin = (row: object, from = "", to = "9"): boolean => dayIn(row) >= from && dayIn(row) <= to;
    let looks = 0;
    let others = 0;
    const read: Question["read"] = async function* (look): AsyncGenerator<Event> {
      const { from, to, everyone, state } = look;
      const known = state?.days.map((span) => span.slice(0, 2).join(" to ")).join(", ");
      did.push(
        `read${from === undefined ? "" : ` from ${from}`}${to === undefined ? "" : ` to ${to}`}` +
          `${everyone ? " among everybody" : ""}${state === undefined ? "" : ` but ${known}, ${state.undated} ${state.checked}`}`,
      );
      const shown = everyone ? (moved[others++] ?? []) : rows.filter((row) => isWithin(row, from, to));
      yield { kind: "open", stream: "things" };
      const lines = shown.map((row) => JSON.stringify(row) as RawLine);
      yield { kind: "records", stream: "things", at: 0, lines };
      const covered = days[looks];
      if (covered !== undefined) yield { kind: "checkpoint", stream: "things", state: { days: covered } };
      yield { kind: "close", stream: "things", ...(looks++ === 0 ? end : { complete: true }) } as Event;
    };
    const count: Question["api"]["count"] = async (window) => {
      const [from, to] = window.kind === "closed" ? [window.from, window.to] : [];
      did.push(`count ${from} to ${to}`);
      const found = rows.filter((row) => isWithin(row, from, to)).length;
      return { rows: found, undated: 0, known: true, asked: NOW, answered: NOW };
    };
    const emitted: string[] = [];
    const text = `id,discoveredAt\n${table.map(([id, date = ""]) => `${id.includes(",") ? `"${id}"` : id},${date}\n`).join("")}`;
    const said = await compared(text, () => [], {
      ...{ read, emit: async ({ kind }) => void emitted.push(kind), api: { now: () => NOW, count } },
      isSuppressed: ({ id }) => suppressed.includes(String(id)),
      ...asked,
    }).then(
      ({ lists, looks: _, ...report }) => [
        JSON.stringify(report),
        ...Object.entries(lists).map((list) => JSON.stringify(list)),
      ],
      (error: Error) => [`${error.name}: ${error.message}`],
    );
    parts.push([`# ${name}`, ...did, `told of ${emitted.join(", ")}`, ...said, ""].join("\n"));
  }
  await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/comparisons.txt");
});
