import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { csvOf, dayOf, ghost, ids, OLD, type Row, reconcile, synced } from "../support/reconcile.ts";
import { tempDir } from "../support/temp-dir.ts";

const SMALL: SandboxOptions = { people: 60, undated: 2, days: 30 };
const datedOf = (rows: readonly Row[]): Row[] => rows.filter(({ discoveredAt }) => discoveredAt !== null);

/** Brings what a state file lacks. */
async function sync(config: string, state: string): Promise<Row[]> {
  const words = ["read", "--stream", "people", "--format", "jsonl"];
  const { code, stdout } = await run(CONNECTOR, [...words, "--config", config, "--state-file", state]);
  expect(code).toBe(0);
  return linesOf(stdout).map((line) => JSON.parse(line));
}

describe("reconcile names", () => {
  it("what a table lost, what it has in an older form, and who is gone, in files for their owner only", async () => {
    const { config, all } = await synced(SMALL);
    const dated = datedOf(all);
    const undated = all.filter(({ discoveredAt }) => discoveredAt === null).slice(0, 1);
    const [lost, stale] = [dated.slice(10, 13), dated.slice(40, 42)];
    const kept = all.filter((row) => ![...lost, ...stale, ...undated].includes(row));
    const aged = stale.map(({ id }) => ({ id, discoveredAt: OLD }));
    const table = [...kept, ...aged, ghost(1), ghost(1, "2019-01-01")];
    const full = await reconcile(config, table, ["--timezone", "UTC"]);
    expect([full.code, ids(full.lost), full.gone], full.stderr).toEqual([
      ...[1, ids([...lost, ...stale, ...undated]), ["erased-1"]],
    ]);
    expect(full.lost[0]).toMatchObject({ lastName: expect.anything() });
    expect(full.report).toMatchObject({ lost: 4, stale: 2, gone: 1, days: { none: { lost: 1 } } });
    for (const name of ["lost.jsonl", "gone.csv", "suppressed.csv", "report.json"])
      expect(statSync(join(full.folder, name)).mode & 0o777, name).toBe(0o600);
  });

  it("no one where the table has everyone, and has no day read again", async () => {
    const { config, state, all } = await synced(SMALL);
    const before = JSON.parse(readFileSync(state, "utf8"));
    for (const more of [["--recheck", state], ["--state", state, "--timezone", "UTC"], []]) {
      const { code, lost, gone, report, stderr } = await reconcile(config, all, more);
      expect([code, lost, gone], stderr).toEqual([0, [], []]);
      expect(report).toMatchObject({ lost: 0, stale: 0, later: 0, new: 0, suppressed: 0 });
    }
    expect(JSON.parse(readFileSync(state, "utf8"))).toEqual(before);
  });

  it("companies that the table lacks or has too often", async () => {
    const { sandbox, config } = await sandboxWith({ people: 10, companies: 30, companiesDated: false });
    const domains = sandbox.companies().map((company) => `${(company as { domain: string }).domain}\n`);
    const table = await file("companies.csv", `domain\n${domains.slice(1).join("")}gone.example\n`);
    const found = await reconcile(config, table, ["--stream", "companies"]);
    expect([found.code, found.lost.length, found.gone], found.stderr).toEqual([1, 1, ["gone.example"]]);
  });

  it("the same from a pipe, and leaves nothing of it behind", async () => {
    const { config, all } = await synced(SMALL);
    const [input, TMPDIR] = [csvOf([...all.slice(1), ghost(1)]), await tempDir()];
    const piped = await reconcile(config, "-", [], { input, env: { TMPDIR } });
    expect([piped.code, ids(piped.lost), piped.gone], piped.stderr).toEqual([
      ...[1, ids(all.slice(0, 1)), ["erased-1"]],
    ]);
    expect(readdirSync(TMPDIR)).toEqual([]);
  });
});

describe("a table", () => {
  /** @param cells of a row, the nth of the table */
  const made = (
    rows: readonly Row[],
    cells: (row: Row, nth: number) => readonly unknown[],
    separator = ",",
    end = "\n",
  ) => rows.map((row, nth) => cells(row, nth).join(separator) + end).join("");
  const zoned = (zone: string) => (row: Row) => [
    row.id,
    `${row.discoveredAt}`.replace("T", " ").replace("Z", zone),
  ];
  const pair = zoned("Z");
  /** A table with a column more. @param company of the nth row */
  const withCompany = (rows: readonly Row[], company: (nth: number) => string, separator = ",") =>
    `${["id", "company", "discoveredAt"].join(separator)}\n` +
    made(rows, (row, nth) => [row.id, company(nth), row.discoveredAt], separator);

  it("is read with any separator, with a header or without, and with UTC by its name", async () => {
    const { config, all } = await synced({ people: 40, undated: 0, days: 10 });
    const tables: Readonly<Record<string, string | Buffer>> = {
      "without a header": made(all, zoned("+00")),
      "without a header, by tabs": made(all, pair, "\t"),
      "without a header, in quotes": made(all, (row) => pair(row).map((cell) => `"${cell}"`)),
      "without a header, by semicolons, with commas": made(
        all,
        (row) => [...pair(row), "Software, Data"],
        ";",
      ),
      "tabs with commas in cells": withCompany(all, () => "Software, Data,", "\t"),
      "semicolons with commas in cells": withCompany(all, () => "Software, Data", ";"),
      "commas with semicolons in cells": withCompany(all, () => "Smith; Jones|x"),
      "commas with inches": withCompany(all, () => '24" Inc'),
      bars: withCompany(all, () => "a,b", "|"),
      "tabs with a lone quote in two cells": withCompany(all, (nth) => (nth % 9 ? "x" : '"x'), "\t"),
      "a date column before, cells that end in commas":
        "id\tcompany\tcreatedAt\tdiscoveredAt\n" +
        made(all, (row, nth) => [row.id, nth % 3 ? "A" : "A,", OLD, row.discoveredAt], "\t"),
      "a name with a comma and a line break": `"Company,\nname",id,discoveredAt\n${made(all, (row) => ["x", ...pair(row)])}`,
      "spaces before quotes": `"id", "discoveredAt"\n${made(all, (row) => pair(row).map((cell) => `"${cell}"`), ", ")}`,
      "names of flattened objects": `people.id,people.discoveredAt\n${made(all, pair)}`,
      "line breaks of an old Mac": `id,discoveredAt\r${made(all, pair, ",", "\r")}`,
      "line breaks of Windows, the key last": `discoveredAt,id\r\n${made(all, (row) => [...pair(row)].reverse(), ",", "\r\n")}`,
      "gzip, by any name": gzipSync(csvOf(all)),
    };
    for (const [name, table] of Object.entries(tables)) {
      const { code, report, stderr } = await reconcile(config, await file("table", table));
      const { table_rows, lost, stale } = report ?? {};
      expect([name, code, table_rows, lost, stale], stderr).toEqual([name, 0, 40, 0, 0]);
    }
  });

  it("is refused as what it is", async () => {
    const { config, all } = await synced({ people: 40, undated: 0, days: 10 });
    const csv = csvOf(all);
    const refused: Readonly<Record<string, string | Buffer>> = {
      "it is empty": "\n",
      "the table has no row": csvOf([]),
      "another salt": made(all, (row, nth) => [`other-${nth}`, row.discoveredAt]),
      "one JSON array": JSON.stringify(all, null, 2),
      "JSON over several lines": JSON.stringify({ data: all }, null, 2),
      "drawn for a terminal": ` id | discoveredat\n----+-----\n${made(all, pair, " | ")}(40 rows)\n`,
      "a zip archive": Buffer.from("PK\u0003\u0004"),
      "HTML or XML": "<!DOCTYPE html>",
      "line 1 is not UTF-8": Buffer.from(csv, "utf16le"),
      "line 42 has 1 cell, and the first line 2": `${csv}(40 rows)\n`,
      "line 2 has 4 cells, and the first line 3": withCompany(all, () => "Smith, Jones"),
      "line 2 has a cell with an open quote": withCompany(all, () => '"Acme \\"X\\", Inc"'),
      "line 11 has a cell with an open quote": withCompany(all, (nth) => (nth === 9 ? '"x' : "x")),
      "keys of the table have spaces": made(all, (row) => [`${row.id}   `, row.discoveredAt]),
      'does not name "id" and "discoveredAt"': made(all, (row) => [row.id, "Ann", row.discoveredAt]),
      "its gzip data is damaged or cut": gzipSync(csv).subarray(0, 100),
      "its first line does not name": all.map(({ id }) => `INSERT INTO people VALUES ('${id}');\n`).join(""),
      "is not a date such as": `id,discoveredAt\n${made(all, zoned(" Europe/Paris"))}`,
    };
    for (const [why, table] of Object.entries(refused)) {
      const { code, gone, stderr } = await reconcile(config, await file("table", table));
      expect([code, gone, stderr]).toEqual([2, [], expect.stringContaining(why)]);
    }
  });
});

describe("reconcile never names a person of the service as gone", () => {
  it.each([
    ["totals that are too low", ["count=-2"]],
    ["totals that are too high", ["count=2"]],
    ["totals that are capped", ["cap=20"]],
    ["no totals", ["null-total"]],
    ["exports that leave people out", ["omit=2"]],
    ["exports and lists that leave people out", ["omit=2:lists=too"]],
    ["a replica that is behind", ["lag=400000"]],
    ["lists in another order each time", ["random-order=100000000", "end"]],
    ["filters that do nothing", ["filters-ignored"]],
    ["streams that end early", ["end"]],
    ["exports that fail", ["status=500:of=rows"]],
    ["exports in which people have no key", ["no-key=2:times=always"]],
    ["exports and lists in which people have no key", ["keyless=2"]],
    ["people who move all the time", ["move=2:times=100000", "drain=2:every=10"]],
    ["people who lose their date all the time", ["undate=1:times=100000"]],
  ])("behind %s", async (_, faults) => {
    const { sandbox, config, all } = await synced({ people: 40, days: 10, undated: 1 });
    sandbox.fault(...faults);
    const clock = hurriedClock(500);
    const { code, gone, stderr } = await reconcile(config, [...all, ghost(1)], [], { clock });
    expect(gone, stderr).toEqual(code === 2 ? [] : ["erased-1"]);
  });

  it.each([{ is_user: "true" }, { source_slug: "harborline-crm" }])(
    "behind the filter %j, because it reads everyone",
    async (filter) => {
      const { sandbox, all } = await synced({ people: 100 });
      const found = await reconcile(await configFor(sandbox, filter), [...all, ghost(1)]);
      expect([found.code, found.gone], found.stderr).toEqual([0, ["erased-1"]]);
    },
  );

  it("where more keys are gone than the user expects", async () => {
    const { config, all } = await synced({ people: 20, days: 5 });
    const table = [...all, ...Array.from({ length: 101 }, (_, nth) => ghost(nth))];
    const { code, gone, stderr } = await reconcile(config, table);
    expect([code, gone, stderr]).toEqual([2, [], expect.stringContaining("--yes-gone 101")]);
    expect((await reconcile(config, table, ["--yes-gone", "101"])).gone).toHaveLength(101);
  });

  it("where days are ignored that cannot be read", async () => {
    const { sandbox, all } = await synced(SMALL);
    const day = dayOf(datedOf(all)[30] as Row);
    const ignoring = await configFor(sandbox, { ignore_missing_days: [day] });
    sandbox.fault(`omit=1:lists=too:from=${day}:to=${day}`, "status=500:of=rows:times=100000");
    const clock = hurriedClock(500);
    expect(await reconcile(ignoring, all, [], { clock })).toMatchObject({ code: 2, gone: [] });
  });

  it("and leaves no file when it breaks off", async () => {
    const { sandbox, config, all } = await synced({ people: 2_500 }, { max_window_rows: 1_000 });
    sandbox.fault("status=401:path=/people/stream:skip=2");
    const { code, stderr, folder } = await reconcile(config, all.slice(-1));
    expect([code, stderr.includes("API key"), readdirSync(folder)], stderr).toEqual([2, true, []]);
  });
});

describe("reconcile obeys the config", () => {
  it("names no suppressed person as lost or gone, and drops fields", async () => {
    const { sandbox, all } = await synced(SMALL);
    const [byId, byEmail, lost] = all.slice(10, 13) as [Row, Row & { email?: string }, Row];
    const suppress_file = await file("suppress.txt", `${byId.id}\n${byEmail.email ?? ""}\n`);
    const config = await configFor(sandbox, { suppress_file, drop_fields: ["people.email"] });
    const table = all.filter((row) => row !== lost);
    const found = await reconcile(config, table);
    expect([found.code, ids(found.lost), found.gone], found.stderr).toEqual([1, [lost.id], []]);
    expect(found.suppressed).toEqual(ids(byEmail.email ? [byId, byEmail] : [byId]));
    expect(found.lost[0]).not.toHaveProperty("email");
    const without = all.filter((row) => ![byId, byEmail].includes(row));
    const nobody = { code: 0, lost: [], gone: [], suppressed: [] };
    expect(await reconcile(config, without)).toMatchObject(nobody);
  });

  it("compares hashed keys", async () => {
    const { sandbox } = await synced(SMALL);
    const salt = { hash_fields: ["people.id"], hash_salt: "a long salt of this test" };
    const config = await configFor(sandbox, salt);
    const hashed = await sync(config, join(await tempDir(), "state.json"));
    const found = await reconcile(config, [...hashed.slice(1), ghost(1)]);
    expect([found.code, ids(found.lost), found.gone], found.stderr).toEqual([
      ...[1, ids(hashed.slice(0, 1)), ["erased-1"]],
    ]);
  });
});

describe("reconcile --recheck", () => {
  it("makes the next sync read the lost rows, and changes nothing else in the state", async () => {
    const { config, state, all } = await synced({ people: 60, undated: 2, days: 30 });
    const dated = datedOf(all);
    const undated = all.find(({ discoveredAt }) => discoveredAt === null) as Row;
    const [lost, stale] = [[dated[15], undated] as Row[], dated[40] as Row];
    const table = all
      .filter((row) => !lost.includes(row))
      .map((row) => (row === stale ? { ...row, discoveredAt: OLD } : row));
    const people = { ...JSON.parse(readFileSync(state, "utf8")).bookmarks.people, other: 1 };
    writeFileSync(state, JSON.stringify({ kept: 1, bookmarks: { "crm/people": people, sources: {} } }));
    const found = await reconcile(config, table, ["--recheck", state]);
    const marked = JSON.parse(readFileSync(state, "utf8"));
    expect(JSON.parse(found.stdout.split("\n").slice(1).join("\n")), found.stderr).toEqual(marked);
    const { discoveredAt } = people;
    const same = { "crm/people": { discoveredAt, other: 1 }, sources: {} };
    expect(marked).toMatchObject({ kept: 1, bookmarks: same });
    expect(ids(await sync(config, state))).toEqual(expect.arrayContaining(ids([...lost, stale])));
    expect((await sync(config, state)).length).toBeLessThan(60);
  });

  it("counts rows dated before 1970 as rows without a date, and reads them again", async () => {
    const { sandbox, config } = await sandboxWith({ people: 20 });
    sandbox.fault("redate=1969-07-20:people=3");
    const state = join(await tempDir(), "state.json");
    const all = await sync(config, state);
    const [lost, stale] = all.filter((row) => dayOf(row) < "1970") as [Row, Row];
    const table = all.filter((row) => row !== lost);
    const aged = table.map((row) => (row === stale ? { ...row, discoveredAt: null } : row));
    const found = await reconcile(config, aged, ["--recheck", state]);
    expect([found.code, ids(found.lost)], found.stderr).toEqual([1, ids([lost, stale])]);
    expect(found.report).toMatchObject({ days: { none: { lost: 1, stale: 1, gone: 0 } }, gone: 0 });
    expect(ids(await sync(config, state))).toEqual(expect.arrayContaining(ids([lost, stale])));
  });
});

describe("reconcile refuses", () => {
  it("what it could not answer, before it asks for a row", async () => {
    const { sandbox, config, state, all } = await synced({ people: 10, undated: 0 });
    const unproven = await configFor(sandbox, { verify_counts: false });
    const filtered = await configFor(sandbox, { is_user: "true" });
    const naive = await file("naive.csv", csvOf(all).replaceAll("Z\n", "\n"));
    const none = await file("none.json", { bookmarks: { sources: {} } });
    const dayless = await file("dayless.json", { bookmarks: { people: { version: 4, full_refresh: null } } });
    const before = sandbox.requests.filter(({ path }) => path.includes("/stream")).length;
    for (const [which, table, words, why] of [
      [unproven, all, [], 'set "verify_counts" to true'],
      [config, naive, [], "--timezone"],
      [config, "no-such-file.csv", [], "Cannot read the table"],
      [config, all, ["--state", none], 'does not have the stream "people"'],
      [config, all, ["--state", dayless], 'does not have the stream "people"'],
      [config, all, ["--recheck", none], 'does not have the stream "people"'],
      [filtered, all, ["--state", state], "is_user"],
    ] as const) {
      const refused = await reconcile(which, table, words);
      expect([refused.code, refused.report, refused.gone]).toEqual([2, null, []]);
      expect(refused.stderr).toContain(why);
    }
    expect(sandbox.requests.filter(({ path }) => path.includes("/stream"))).toHaveLength(before);
  });
});
