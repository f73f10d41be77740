import fc from "fast-check";
import { expect, it } from "vitest";
import { ConfigError } from "../../../src/errors.ts";
import { csvCell } from "../../../src/files/csv.ts";
import { type TableRow, tableRows, unitOf } from "../../../src/reconcile/table-file.ts";
import { file } from "../../support/cli.ts";
import { runs } from "../../support/runs.ts";

const FORM = { key: "id", cursor: "discoveredAt", zone: undefined };

async function rowsOf(text: string, form: Partial<Parameters<typeof tableRows>[1]> = {}) {
  const rows: TableRow[] = [];
  for await (const some of tableRows(await file("table", text), { ...FORM, ...form })) rows.push(...some);
  return rows;
}

/** Ways to write 2024-07-15T08:09:10.123Z, what of it is left, and how many ms each tells apart. */
const SPELLINGS = [
  ["2024-07-15T08:09:10.123Z", "2024-07-15T08:09:10.123Z", 1],
  ["2024-07-15T08:09:10.123456Z", "2024-07-15T08:09:10.123Z", 1],
  ["2024-07-15 08:09:10,12+00", "2024-07-15T08:09:10.120Z", 10],
  ["2024-07-15t10:09:10.1+02:00", "2024-07-15T08:09:10.100Z", 100],
  ["2024-07-15T08:09:10Z", "2024-07-15T08:09:10.000Z", 1_000],
  ["2024-07-15 10:09 +0200", "2024-07-15T08:09:00.000Z", 60_000],
  ["1721030950", "2024-07-15T08:09:10.000Z", 1_000],
  ["1721030950.123", "2024-07-15T08:09:10.123Z", 1],
  ["1721030950123", "2024-07-15T08:09:10.123Z", 1],
  ["1721030950123456", "2024-07-15T08:09:10.123Z", 1],
] as const;

it.each(SPELLINGS)("a table's date %s is %s, told apart to %i ms", async (spelt, iso, unit) => {
  const moment = { at: Date.parse(iso), unit };
  expect(await rowsOf(`id,discoveredAt\na,"${spelt}"\n`)).toEqual([{ key: "a", moment }]);
});

it("a table loses the byte order mark that it begins with, and no other", async () => {
  const [at, unit] = [Date.parse("2024-07-15T08:09:10Z"), 1_000];
  const line = '{"id":"\uFEFFa","discoveredAt":"2024-07-15T08:09:10Z"}\n';
  const row = { key: "\uFEFFa", moment: { at, unit } };
  expect([await rowsOf(line), await rowsOf(`\uFEFF${line}`)]).toEqual([[row], [row]]);
});

it.each([
  ["2024-07-15", "Europe/Berlin", "2024-07-14T22:00:00.000Z", 86_400_000],
  ["2024-07-15 10:09", "+02:00", "2024-07-15T08:09:00.000Z", 60_000],
  ["2024-07-15 10:09:10", "+0200", "2024-07-15T08:09:10.000Z", 1_000],
  ["2024-07-15 10:09:10", "+2", "2024-07-15T08:09:10.000Z", 1_000],
  ["2024-07-15 03:39:10.5", "-4:30", "2024-07-15T08:09:10.500Z", 100],
  ["2024-07-15 08:09:10.123", "utc", "2024-07-15T08:09:10.123Z", 1],
  ["2024-07-15T08:09:10.123", "Z", "2024-07-15T08:09:10.123Z", 1],
  ["2024-07-15 13:54:10", "Asia/Kathmandu", "2024-07-15T08:09:10.000Z", 1_000],
  // Two hours before clocks go forward in Berlin, and right after; the night when they go back.
  ["2024-03-31 01:30:00", "Europe/Berlin", "2024-03-31T00:30:00.000Z", 1_000],
  ["2024-03-31 03:30:00", "Europe/Berlin", "2024-03-31T01:30:00.000Z", 1_000],
  ["2024-10-27 01:30:00", "Europe/Berlin", "2024-10-26T23:30:00.000Z", 1_000],
  ["2024-10-27 03:30:00", "Europe/Berlin", "2024-10-27T02:30:00.000Z", 1_000],
  ["2024-07-15T08:09:10Z", "Europe/Berlin", "2024-07-15T08:09:10.000Z", 1_000],
])("a table's date %s in the zone %s is %s, told apart to %i ms", async (spelt, zone, iso, unit) => {
  const moment = { at: Date.parse(iso), unit };
  expect(await rowsOf(`id,discoveredAt\na,${spelt}\n`, { zone })).toEqual([{ key: "a", moment }]);
});

it("null in a table is no date, as any loader spells it", async () => {
  const nulls = ["", " ", "NULL", "None", "\\N", "NaT"];
  const rows = await rowsOf(`id,discoveredAt\n${nulls.map((spelt) => `a,${spelt}\n`).join("")}`);
  expect(rows.map(({ moment }) => moment)).toEqual(nulls.map(() => ({ at: Number.NaN, unit: 1 })));
});

const text = fc.string({ unit: fc.constantFrom(..."ab,;\t\"'\n ä") });
const cells = fc.record({ key: text.filter((key) => key.trim() !== ""), note: text });

it("a table's key is read as it was written, among columns of any order and text", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(cells, { minLength: 1, maxLength: 30 }),
      fc.shuffledSubarray(["ID", "Discovered_At", "note"], { minLength: 3 }),
      fc.constantFrom("\n", "\r\n"),
      fc.boolean(),
      async (rows, columns, end, isJson) => {
        const cellOf = (row: { key: string; note: string }, column: string): string =>
          column === "ID" ? row.key : column === "note" ? row.note : "2024-07-15T08:09:10Z";
        const lines = rows.map((row) =>
          isJson
            ? JSON.stringify(Object.fromEntries(columns.map((column) => [column, cellOf(row, column)])))
            : columns.map((column) => csvCell(cellOf(row, column))).join(","),
        );
        const all = isJson ? lines : [columns.join(","), ...lines];
        const found = await rowsOf(all.join(end));
        expect(found.map(({ key }) => key)).toEqual(rows.map(({ key }) => key));
        expect(found.every(({ moment }) => moment.at === Date.parse("2024-07-15T08:09:10Z"))).toBe(true);
      },
    ),
    { numRuns: runs(100, 2_000) },
  );
});

it.each([
  ["id,discoveredAt\na,2024-07-15T08:09:10Z\n,2024-07-15T08:09:10Z\n", "line 3 has no key"],
  ["id,discoveredAt\na,soon\n", 'line 2 has the date "soon", which no rule can read'],
  ["id,discoveredAt\na,2024-07-15 08:09:10\n", "has no offset. Say what it means with --timezone"],
  ['id,discoveredAt\n"a,b\n', "line 2 ends within quotes"],
  [`id,discoveredAt\na,${"somebody@mail.example"}\n`, "line 2 has a date, which no rule can read"],
])("a table that cannot be used is refused with its line: %j", async (table, said) => {
  await expect(rowsOf(table)).rejects.toThrow(said);
});

it("a key with a line break keeps the count of lines, and a table without a date needs none", async () => {
  const table = 'id,x\n"a\nb",soon\nc,soon\n';
  expect((await rowsOf(table, { cursor: null })).map(({ key }) => key)).toEqual(["a\nb", "c"]);
});

it.each<[table: string, keys: readonly string[], dates: readonly (string | null)[]]>([
  ["id,discoveredAt\na,2024-07-15T08:09:10Z\n", ["a"], ["2024-07-15T08:09:10Z"]],
  ["Discovered-At;note;ID\n2024-07-15T08:09:10Z;x;a", ["a"], ["2024-07-15T08:09:10Z"]],
  ["key,at,id\na,,b\n", ["a"], [null]],
  ["id,at\na,2024-07-15T08:09:10Z\n", ["a"], ["2024-07-15T08:09:10Z"]],
  ["id2,discoveredAt2,id,discoveredAt\na,x,b,\n", ["b"], [null]],
  ["id,id,discoveredAt\na,b,\n", ["a"], [null]],
  ["id\na\nb\n", ["a", "b"], [null, null]],
  ["id,discoveredAt\n\n  \na\n", ["a"], [null]],
  ["\ufeffid,discoveredAt\n\ufeffa,\n", ["\ufeffa"], [null]],
  ['id,discoveredAt\n"a\n\nb",\n', ["a\n\nb"], [null]],
  ['id,note\na,"x\n{y"\nb,\n', ["a", "b"], ["x", "x"]],
  [
    '{"id":"a","discoveredAt":null}\n{"discoveredAt":"2024-07-15T08:09:10Z","id":7}\n',
    ["a", "7"],
    [null, "2024-07-15T08:09:10Z"],
  ],
  ['{"x":"a","y":1721030950}\n', ["a"], ["2024-07-15T08:09:10Z"]],
  ['{"note":"\\"","id":"a","discoveredAt":null}\n', ["a"], [null]],
  [
    '{"note":"7","id":"a","discoveredAt":"2024-07-15T08:09:10Z"}\n{"note":"7","id":"b"}\n',
    ["a", "b"],
    ["2024-07-15T08:09:10Z", null],
  ],
  ["note,id,discoveredAt\n{x},a,\n{},b,\ny,c,\n", ["a", "b", "c"], [null, null, null]],
  ['id,discoveredAt\n{a-1},\n"{""a"":2}",\n', ["{a-1}", '{"a":2}'], [null, null]],
  ["", [], []],
  ["id,discoveredAt\n", [], []],
])("of %j the keys are %j, of %j", async (table, keys, dates) => {
  const isUndated = dates.includes("x");
  const rows = await rowsOf(table, isUndated ? { cursor: null } : {});
  expect(rows.map(({ key }) => key)).toEqual(keys);
  const at = dates.map((date) => (date === null || isUndated ? Number.NaN : Date.parse(date)));
  expect(rows.map(({ moment }) => moment.at)).toEqual(at);
});

const SAY_ZONE = "has no offset. Say what it means with --timezone, such as UTC, +02:00 or Europe/Berlin";

it.each([
  ["id,discoveredAt\n\na,\n,\n", {}, "line 4 has no key"],
  ['{"id":null,"discoveredAt":null}', {}, "line 1 has no key"],
  ['{"id":"a"}\n{}', {}, "line 2 has no key"],
  ['{"id":"a","discoveredAt":null}\n{"x":"b","discoveredAt":null}', {}, "line 2 has no key"],
  ["id,discoveredAt\na,2024-07-15\n", {}, `line 2 has the date "2024-07-15", which ${SAY_ZONE}`],
  [
    "id,discoveredAt\na, 2024-07-15T08:09 \n",
    {},
    `line 2 has the date "2024-07-15T08:09", which ${SAY_ZONE}`,
  ],
  ["id,discoveredAt\na,2024-07-15t08:09:10.5\n", {}, `which ${SAY_ZONE}`],
  ["id,discoveredAt\na,20240715\n", {}, 'line 2 has the date "20240715", which no rule can read'],
  [`id,discoveredAt\na,${"x".repeat(40)}\n`, {}, `has the date "${"x".repeat(40)}", which no rule can read`],
  [`id,discoveredAt\na,${"x".repeat(41)}\n`, {}, "line 2 has a date, which no rule can read"],
  ["id,discoveredAt\na,x@y\n", {}, "line 2 has a date, which no rule can read"],
  ['id,discoveredAt\na,\n"b\nc\n', {}, "line 4 ends within quotes"],
  ['{"id":"a","discoveredAt":"2024-07-15"}', {}, 'line 1 has the date "2024-07-15"'],
  ['{"id":"a"\n', {}, "line 1 is no JSON object"],
  ['{"id":"a"}\n\n{"id":"b', {}, "line 3 is no JSON object"],
  ['{"id":"a"}\n[1]', {}, "line 2 is no JSON object"],
  [
    "",
    { zone: "Mars/Phobos" },
    'Cannot use --timezone "Mars/Phobos": no such zone. Say what it means with --timezone',
  ],
  ["", { zone: "+2:0" }, "no such zone"],
  ["", { zone: "+" }, "no such zone"],
  ["", { zone: "xZ" }, "no such zone"],
])("refuses the table %j of the form %j: %s", async (table, form, said) => {
  await expect(rowsOf(table, form)).rejects.toThrow(ConfigError);
  await expect(rowsOf(table, form)).rejects.toThrow(said);
});

it("names the table that it cannot read, and the one whose line it cannot use", async () => {
  const read = async (path: string): Promise<void> => {
    for await (const _ of tableRows(path, FORM));
  };
  await expect(read("/no/such.csv")).rejects.toThrow(
    'Cannot read the table "/no/such.csv": there is no such file or folder',
  );
  const path = await file("table", "id,discoveredAt\n,\n");
  await expect(read(path)).rejects.toThrow(`Cannot use the table "${path}": line 2 has no key`);
});

it.each([
  ["GMT", "2024-07-15T08:09:10Z"],
  ["Etc/GMT-3", "2024-07-15T05:09:10Z"],
  ["+00:30", "2024-07-15T07:39:10Z"],
  ["-10:15", "2024-07-15T18:24:10Z"],
  ["+1030", "2024-07-14T21:39:10Z"],
  ["-3", "2024-07-15T11:09:10Z"],
  ["America/St_Johns", "2024-07-15T10:39:10Z"],
])("a date without an offset in the zone %s is %s, and one with an offset stays", async (zone, iso) => {
  const rows = await rowsOf(
    "id,discoveredAt\na,2024-07-15 08:09:10\nb,2024-07-15 08:09:10+00\nc,1721030950\n",
    { zone },
  );
  const own = Date.parse("2024-07-15T08:09:10Z");
  expect(rows.map(({ moment }) => moment.at)).toEqual([Date.parse(iso), own, own]);
});

it.each([
  ["2024-07-15", 86_400_000],
  ["2024-07-15T08:09", 60_000],
  ["2024-07-15 08:09+02:00", 60_000],
  ["2024-07-15t08:09:10", 1_000],
  ["2024-07-15T08:09:10.1", 100],
  ["2024-07-15T08:09:10,12", 10],
  ["2024-07-15T08:09:10.123", 1],
  ["2024-07-15T08:09:10.1234", 1],
  ["99999999999", 1_000],
  ["100000000000", 1],
  ["-100000000000", 1],
  ["1721030950.5", 100],
  ["x2024-07-15", 1_000],
])("unitOf() says how many ms %s tells apart: %i", (text, unit) => {
  expect(unitOf(text)).toBe(unit);
});
