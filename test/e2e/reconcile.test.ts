import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { runProgram } from "../../src/main.ts";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { configFor } from "../support/configs.ts";
import { csvOf, dayOf, ghost, OLD, type Row, reconcile, synced } from "../support/reconcile.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

const DAY = "2026-01-01T00:00:00Z";

async function shownAt(words: readonly string[]): Promise<readonly [number, readonly string[]]> {
  const stdout = new Terminal();
  const parse = async () => (await import("../../src/cli.ts")).parseCommand;
  const code = await runProgram(parse, words, testProcess({ stdout }));
  return [code, stdout.text.split("\n")];
}

describe("reconcile", () => {
  it("says in words at a terminal what differs, with each day, and exits with 1 only for what is lost or stale", async () => {
    const { config, state, all } = await synced({ people: 60, undated: 2 });
    const dated = all.filter(({ discoveredAt }) => discoveredAt !== null);
    const [lost, stale] = [dated[5] as Row, dated[40] as Row];
    const kept = all.filter((row) => row !== lost && row !== stale);
    const table = await file("keys.csv", csvOf([...kept, { id: stale.id, discoveredAt: OLD }, ghost(1)]));
    const words = ["reconcile", "--config", config, "--table", table];
    const [code, [head, counts, ...days]] = await shownAt([...words, "--full"]);
    expect([code, head, counts]).toEqual([
      ...[1, "people: 62 keys in the table"],
      "  lost 1, stale 1, gone 1, newer in the table 0, unclear 0, suppressed 0",
    ]);
    expect(days.filter((line) => /lost|^$/.test(line)).sort()).toEqual(
      [
        `  ${dayOf(lost)}: lost 1, stale 0, gone 0`,
        `  ${dayOf(stale)}: lost 0, stale 1, gone 0`,
        `  ${OLD.slice(0, 10)}: lost 0, stale 0, gone 1`,
        "",
      ].sort(),
    );
    const [, [, byCounts]] = await shownAt([...words, "--state", state]);
    expect(byCounts).toContain("gone not looked for (--full does)");
    const only = await file("keys.csv", csvOf([...all, ghost(1)]));
    const [gone, [, none]] = await shownAt([...words.slice(0, -1), only, "--full"]);
    expect([gone, none]).toEqual([0, expect.stringContaining("lost 0, stale 0, gone 1,")]);
  });

  it("says what a comparison by counts may take, and only of such a one", async () => {
    const { config, state, all } = await synced({ people: 10, undated: 0 });
    const saying = "by counts: at most 300 requests, about ";
    expect((await reconcile(config, all, ["--state", state])).stderr).toContain(saying);
    expect((await reconcile(config, all, ["--full"])).stderr).not.toContain("by counts");
  });

  it("has no answer when a signal ends it, and speaks of no state", async () => {
    const { config, all } = await synced({ people: 10, undated: 0 });
    const table = await file("keys.csv", csvOf(all));
    const [stdout, stderr] = [new Terminal(), new Terminal()];
    const signal = AbortSignal.abort(new Error("Interrupted by SIGTERM"));
    const parse = async () => (await import("../../src/cli.ts")).parseCommand;
    const words = ["reconcile", "--config", config, "--table", table, "--full"];
    const ending = runProgram(parse, words, testProcess({ stdout, stderr, signal }));
    await expect(ending).rejects.toThrow("Interrupted by SIGTERM");
    const said = /ERROR {4}Interrupted by SIGTERM: there is no answer\. Run again\n(?!.*state)/;
    expect([stdout.text, stderr.text]).toEqual(["", expect.stringMatching(said)]);
  });

  it("marks in a state file the days that are to be read again, and leaves all else as it is", async () => {
    const { config, state, all } = await synced({ people: 60, undated: 2 });
    const dated = all.filter(({ discoveredAt }) => discoveredAt !== null);
    const lost = dated[5] as Row;
    const undated = all.find(({ discoveredAt }) => discoveredAt === null);
    const before = JSON.parse(readFileSync(state, "utf8"));
    const days = [["1970-01-02", "2026-12-31", 3]];
    Object.assign(before.bookmarks, { companies: { version: 2, discoveredAt: DAY, days, undated: null } });
    before.bookmarks.people.sync_windows = [{ id: "x" }];
    const text = JSON.stringify({ kept: 1, ...before });
    const again = async (table: readonly Row[], ...more: readonly string[]) => {
      writeFileSync(state, text);
      const found = await reconcile(config, table, [...more, "--recheck", state]);
      const after = JSON.parse(readFileSync(state, "utf8"));
      expect(JSON.parse(found.stdout.split("\n").slice(1).join("\n"))).toEqual(after);
      return after;
    };
    const after = await again(
      all.filter((row) => row !== lost),
      "--full",
    );
    const { people, companies } = after.bookmarks;
    expect([after.kept, companies, people.sync_windows]).toEqual([
      ...[1, before.bookmarks.companies, before.bookmarks.people.sync_windows],
    ]);
    const marked = people.days.filter(([, , , status]: string[]) => status === "again");
    expect(marked).toEqual([[dayOf(lost), dayOf(lost), null, "again"]]);
    expect(people.undated).toEqual(before.bookmarks.people.undated);
    const without = await again(
      all.filter((row) => row !== undated),
      "--full",
    );
    expect(without.bookmarks.people).toMatchObject({ undated: null, days: before.bookmarks.people.days });
    expect(await again(all, "--full")).toEqual(JSON.parse(text));
    for (const states of [{}, { sources: { version: 2 } }, { people: null }]) {
      const other = await file("state.json", { bookmarks: states });
      const refused = await reconcile(config, all.slice(1), ["--full", "--recheck", other]);
      expect([refused.code, refused.stderr]).toEqual([
        2,
        expect.stringContaining(`Cannot use the state file \\"${other}\\": it holds nothing of \\"people\\"`),
      ]);
      expect(JSON.parse(readFileSync(other, "utf8"))).toEqual({ bookmarks: states });
    }
  });

  it("refuses what it could not answer, before it asks for a row", async () => {
    const { sandbox, config, all } = await synced({ people: 10, undated: 0 });
    const unproven = await configFor(sandbox, { verify_counts: false });
    const of = async (people: unknown) => await file("state.json", { bookmarks: { people } });
    const filters = { source_slug: null, is_user: "true" };
    const days = [["1970-01-02", "2026-01-01", 10]];
    const people = { version: 2, discoveredAt: DAY, days, undated: null, filters };
    const [none, saved] = [await file("state.json", { bookmarks: { sources: {} } }), await of(people)];
    for (const [which, words, why] of [
      [unproven, [], 'Cannot compare without proof: set \\"verify_counts\\" to true'],
      [
        config,
        ["--stream", "sources"],
        'Cannot compare \\"sources\\" by counts: its rows have no date. Add --full',
      ],
      [config, ["--state", none], `Cannot use the state \\"${none}\\": it holds nothing of \\"people\\"`],
      [config, ["--state", saved], `Cannot use the state \\"${saved}\\": `],
    ] as const) {
      const refused = await reconcile(which, all, words);
      expect([words, refused.code, refused.report]).toEqual([words, 2, null]);
      expect(refused.stderr).toContain(why);
    }
  });

  it.each([
    [["--stream", "nobody", "--table", "t"], "--stream must be people, companies or sources, not"],
    [["--stream", "company_lookups", "--table", "t"], "--stream must be people, companies or sources, not"],
    [[], "--table is missing: name a file with key and cursor of every row. --sql prints the query for it"],
  ])("says of %j what is wrong with it", async (words, why) => {
    const ended = await run(CONNECTOR, ["reconcile", ...words]);
    expect(ended).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(why) });
  });

  it.each([
    [[], /SELECT "id".*"discoveredAt" FROM people\b/s],
    [["--table", "crm.contacts"], /FROM crm\.contacts\b/],
    [["--stream", "companies"], /FROM companies\b/],
    [["--stream", "sources"], /"slug".* FROM sources\b/s],
  ])("prints the query that makes the table, with %j", async (words, text) => {
    const ended = await run(CONNECTOR, ["reconcile", "--sql", "duckdb", ...words]);
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(text), stderr: "" });
  });
});
