import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/base/errors.ts";
import { csvCell } from "../../../src/output/files/csv.ts";
import { runs } from "../../support/runs.ts";
import { compared, DATED, listOf, UNDATED } from "./compared.ts";

const DATE = "2024-07-15T08:09:10Z";
const SAME = { lost: 0, stale: 0, later: 0, new: 0, gone: 0 };

/** Expects that a table has these keys, with these dates, and no others. */
async function expectRows(
  table: string,
  keys: readonly string[],
  dates: readonly (string | null)[] = keys.map(() => DATE),
): Promise<void> {
  const rows = keys.map((id, nth) => ({ id, discoveredAt: dates[nth] ?? null }));
  expect(await compared(table, () => rows)).toMatchObject({ ...SAME, table_rows: keys.length });
}

describe("a table's dates", () => {
  it.each([
    ["2024-07-15T08:09:10.123Z", undefined, "2024-07-15T08:09:10.123Z", 1],
    ["2024-07-15 08:09:10,12+00", undefined, "2024-07-15T08:09:10.120Z", 10],
    ["2024-07-15t10:09:10.1+02:00", undefined, "2024-07-15T08:09:10.100Z", 100],
    ["2024-07-15T08:09:10Z", undefined, "2024-07-15T08:09:10.000Z", 1_000],
    ["2024-07-15 10:09 +0200", undefined, "2024-07-15T08:09:00.000Z", 60_000],
    ["1721030950.123", undefined, "2024-07-15T08:09:10.123Z", 1],
    ["1721030950123", undefined, "2024-07-15T08:09:10.123Z", 1],
    ["2024-07-15", "Europe/Berlin", "2024-07-14T22:00:00.000Z", 86_400_000],
    ["2024-07-15 10:09", "+02:00", "2024-07-15T08:09:00.000Z", 60_000],
    ["2024-07-15 10:09:10", "+2", "2024-07-15T08:09:10.000Z", 1_000],
    ["2024-07-15 03:39:10.5", "-4:30", "2024-07-15T08:09:10.500Z", 100],
    ["2024-07-15T08:09:10.123", "utc", "2024-07-15T08:09:10.123Z", 1],
    ["2024-07-15 13:54:10", "Asia/Kathmandu", "2024-07-15T08:09:10.000Z", 1_000],
    ["2024-03-31 01:30:00", "Europe/Berlin", "2024-03-31T00:30:00.000Z", 1_000],
    ["2024-10-27 03:30:00", "Europe/Berlin", "2024-10-27T02:30:00.000Z", 1_000],
    ["2024-07-15T08:09:10Z", "Europe/Berlin", "2024-07-15T08:09:10.000Z", 1_000],
  ])("%s in the zone %s is %s, and stale once the row has moved by %i ms", async (spelt, zone, iso, unit) => {
    const staleAt = async (ms: number): Promise<number> => {
      const discoveredAt = new Date(Date.parse(iso) + ms).toISOString();
      const form = { ...DATED, zone };
      const table = `id,discoveredAt\na,"${spelt}"\n`;
      const { stale, later } = await compared(table, () => [{ id: "a", discoveredAt }], { form });
      expect(later).toBe(0);
      return stale;
    };
    expect([await staleAt(0), await staleAt(unit - 1), await staleAt(unit)]).toEqual([0, 0, 1]);
  });

  it("are null in the spelling of any loader", async () => {
    const nulls = ["", " ", "NULL", "None", "\\N", "NaT"];
    const keys = nulls.map((_, nth) => `a${nth}`);
    const lines = nulls.map((spelt, nth) => `a${nth},${spelt}\n`);
    await expectRows(`id,discoveredAt\n${lines.join("")}`, keys, Array(6).fill(null));
  });
});

describe("a table's columns and lines", () => {
  it.each<[table: string, keys: readonly string[], dates?: readonly (string | null)[]]>([
    [`Discovered-At;note;ID\n${DATE};x;a`, ["a"]],
    ["key,at,x\na,,b\n", ["a"], [null]],
    ["id2,discoveredAt2,id,discoveredAt\na,x,b,\n", ["b"], [null]],
    ["id\na\nb\n", ["a", "b"], [null, null]],
    ["\ufeffid,discoveredAt\n\n  \na,\n", ["a"], [null]],
    ['id,discoveredAt\n"a\n\nb",\n', ["a\n\nb"], [null]],
    [`{"id":"a","discoveredAt":null}\n{"discoveredAt":"${DATE}","id":7}\n`, ["a", "7"], [null, DATE]],
    ['{"x":"a","y":1721030950}\n', ["a"]],
    [`{"note":"7","id":"a","discoveredAt":"${DATE}"}\n{"note":"7","id":"b"}\n`, ["a", "b"], [DATE, null]],
    ['id,discoveredAt\n{a-1},\n"{""a"":2}",\n', ["{a-1}", '{"a":2}'], [null, null]],
    ["id,discoveredAt\n", []],
    [
      '{"a":0.12345678901234567,"b":[-12345678901234567,{"c":1e1234567890123456 }],"id":12345678901234567,"discoveredAt":null}\n' +
        '{"d":"\\\\\\",12345678901234567,","id":12345678901234568 ,"e":12345678901234567.5}\n',
      ["12345678901234567", "12345678901234568"],
      [null, null],
    ],
  ])("%j holds the keys %j", expectRows);

  it("keep keys as they were written, in any order of columns", async () => {
    const text = fc.string({ unit: fc.constantFrom(..."ab,;\t\"'\n ä") });
    const cells = fc.record({ key: text.filter((key) => key.trim() !== ""), note: text });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(cells, { minLength: 1, maxLength: 20, selector: ({ key }) => key }),
        fc.shuffledSubarray(["ID", "Discovered_At", "note"], { minLength: 3 }),
        fc.constantFrom("\n", "\r\n"),
        fc.constantFrom(",", ";"),
        fc.boolean(),
        async (rows, columns, end, separator, isJson) => {
          const valuesOf = ({ key, note }: { key: string; note: string }): string[] =>
            columns.map((column) => (column === "ID" ? key : column === "note" ? note : DATE));
          const lines = rows.map((row) =>
            isJson
              ? JSON.stringify(Object.fromEntries(valuesOf(row).map((value, nth) => [columns[nth], value])))
              : valuesOf(row).map(csvCell).join(separator),
          );
          await expectRows(
            (isJson ? lines : [columns.join(separator), ...lines]).join(end),
            rows.map(({ key }) => key),
          );
        },
      ),
      { numRuns: runs(6, 2_000) },
    );
  });

  it.each([
    [`id,discoveredAt\na,${DATE}\n,${DATE}\n`, "line 3 has no key"],
    ['{"id":"a"}\n{}', 'line 2 does not name "id" and "discoveredAt"'],
    ["id,discoveredAt\na,soon\n", 'line 2 has the date "soon", which is not a date such as'],
    ["id,discoveredAt\na,2024-07-15\n", 'line 2 has the date "2024-07-15", which has no offset'],
    ["id,discoveredAt\na,x@y\n", "line 2 has a date, which is not a date such as"],
    ['id,discoveredAt\na,\n"b\nc\n', "line 3 has a cell with an open quote"],
    ['{"id":"a"}\n\n{"id":"b', "line 3 is not a JSON object"],
  ])("are refused by the number of the line: %j", async (table, why) => {
    const refused = compared(table, () => []);
    await expect(refused).rejects.toThrow(ConfigError);
    await expect(refused).rejects.toThrow(why);
  });

  it.each(["Mars/Phobos", "+2:0", "+", "xZ"])("are refused under the unknown zone %s", async (zone) => {
    await expect(compared("id\n", () => [], { form: { ...DATED, zone } })).rejects.toThrow("no such zone");
  });
});

it.each(["a", "\u00e9", "\u20ac", "\ud83d\ude00"])(
  "keys of many %s that differ at their end alone are different, among thousands of others",
  async (sign) => {
    const lengths = [1, 43, 84, 85, 86, 127, 128, 129, 255, 256, 257, 1_000, 90, 5];
    const others = Array.from({ length: 3_000 }, (_, nth) => `other-${nth}`);
    const [held, gone] = ["a", "b"].map((end) => lengths.map((length) => `${sign.repeat(length)}${end}`));
    const lost = lengths.map((length) => `${sign.repeat(length)}c`);
    const shown = [...others, ...(held ?? []), ...lost].map((id) => ({ id }));
    const table = listOf([...(held ?? []), ...others, ...(gone ?? [])]);
    const found = await compared(table, () => shown, { form: UNDATED });
    expect(found).toMatchObject({ lost: lost.length, gone: lengths.length, table_rows: 3_028 });
    expect(found.lists["gone.csv"]).toBe(listOf(gone ?? []));
  },
);
