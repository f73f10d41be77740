import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../../support/cli.ts";
import { configFor, sandboxWith } from "../../support/configs.ts";
import { hurriedClock } from "../../support/in-process.ts";
import { csvOf, dayOf, ghost, ids, OLD, type Row, reconcile, synced } from "../../support/reconcile.ts";
import { tempDir } from "../../support/temp-dir.ts";

describe("reconcile", () => {
  it("names what a table lost, holds old, and has of people who are gone", async () => {
    const { config, state, all } = await synced({ people: 1_500, days: 90 });
    const dated = all.filter(({ discoveredAt }) => discoveredAt !== null);
    const undated = all.filter(({ discoveredAt }) => discoveredAt === null);
    const [lost, stale] = [dated.slice(100, 103), dated.slice(700, 702)];
    const kept = all.filter((row) => ![...lost, ...stale, undated[0]].includes(row));
    const table = [
      ...kept,
      ...stale.map(({ id }) => ({ id, discoveredAt: OLD })),
      ghost(1),
      ghost(1, "2019-01-01"),
    ];
    const zone = ["--timezone", "UTC"];
    const full = await reconcile(config, table, ["--full", ...zone]);
    expect([full.code, full.stderr]).toEqual([1, expect.not.stringContaining("Cannot")]);
    expect(ids(full.lost)).toEqual(ids([...lost, ...stale, ...undated.slice(0, 1)]));
    expect(full.lost[0]).toMatchObject({ lastName: expect.anything() });
    expect(full.gone).toEqual(["erased-1"]);
    expect(full.report).toMatchObject({ lost: 4, stale: 2, gone: 1, days: { none: { lost: 1 } } });
    expect(full.report.rows_read).toBeLessThan(all.length * 1.2);
    for (const name of ["lost.jsonl", "gone.csv", "suppressed.csv", "unclear.csv", "report.json"])
      expect(statSync(join(full.folder, name)).mode & 0o777, name).toBe(0o600);
    const counts = await reconcile(config, table, ["--state", state, ...zone]);
    expect(counts.code, counts.stderr).toBe(1);
    expect(ids(counts.lost)).toEqual(ids([...lost, ...stale]));
    expect(counts.report).toMatchObject({ gone: null, not_looked_at: [], unanswered: [] });
    expect(counts.report.requests).toBeLessThanOrEqual(300);
    for (const more of [["--full"], ["--state", state]]) {
      const whole = await reconcile(config, all, more);
      expect([whole.code, whole.lost, whole.gone], whole.stderr).toEqual([0, [], []]);
      expect(whole.report).toMatchObject({ lost: 0, stale: 0, later: 0, new: 0, unclear: 0, suppressed: 0 });
    }
  });

  it.each([
    ["totals that are too low", ["count=-2"]],
    ["totals that are too high", ["count=2"]],
    ["totals that are capped", ["cap=100"]],
    ["no totals", ["null-total"]],
    ["exports that leave people out", ["omit=2"]],
    ["exports and lists that leave people out", ["omit=2:lists=too"]],
    ["a replica that is behind", ["lag=400000"]],
    ["filters that do nothing", ["filters-ignored"]],
    ["streams that end early", ["end"]],
    ["exports that fail", ["status=500:of=rows"]],
    ["exports in which people have no key", ["no-key=2:times=always"]],
    ["exports and lists in which people have no key", ["keyless=2"]],
    ["people who move all the time", ["move=2:times=100000", "drain=2:every=10"]],
    ["people who lose their date all the time", ["undate=1:times=100000"]],
  ])("calls nobody alive gone behind %s", async (_, faults) => {
    const { sandbox, config, all } = await synced({ people: 200 });
    sandbox.fault(...faults);
    const clock = hurriedClock(500);
    const { code, gone, stderr } = await reconcile(config, [...all, ghost(1)], ["--full"], { clock });
    expect(gone, stderr).toEqual(code === 2 ? [] : ["erased-1"]);
  });

  it.each([{ is_user: "true" }, { source_slug: "harborline-crm" }])(
    "looks at once among everybody for who is not shown under the filter %j",
    async (filter) => {
      const { sandbox, all } = await synced({ people: 3_000 });
      const config = await configFor(sandbox, filter);
      const found = await reconcile(config, [...all, ghost(1)], ["--full"]);
      expect([found.code, found.gone], found.stderr).toEqual([0, ["erased-1"]]);
      expect(found.report.requests).toBeLessThan(30);
    },
  );

  it("ends with 2 where nobody can know", async () => {
    const { sandbox, config, state, all } = await synced({ people: 300 });
    const day = dayOf(all[200] as Row);
    const naive = await file("naive.csv", csvOf(all).replaceAll("Z\n", "\n"));
    const unproven = await configFor(sandbox, { verify_counts: false });
    const ignoring = await configFor(sandbox, { ignore_missing_days: [day] });
    const filtered = await configFor(sandbox, { is_user: "true" });
    const other = all.map(({ discoveredAt }, nth) => ({ id: `other-${nth}`, discoveredAt }));
    const ghosts = Array.from({ length: 101 }, (_, nth) => ghost(nth));
    const none = await file("none.json", "{}");
    const asked = [
      [config, naive, [], "--timezone"],
      [config, await file("seconds.csv", csvOf(all).replace(/\.\d+Z$/gm, "")), [], "--timezone"],
      [config, all, ["--timezone", "Europe/Nowhere"], "no such zone"],
      [config, all.slice(0, 0), ["--full"], "no key in common"],
      [config, other, ["--full"], "another salt"],
      [config, other, ["--state", state], "another salt"],
      [config, await file("none.csv", `${csvOf(all)},2026-01-01T00:00:00Z\n`), [], "has no key"],
      [config, await file("open.csv", `${csvOf(all)}"erased-1`), [], "ends within quotes"],
      [config, await file("odd.csv", `${csvOf(all)}x,soon\n`), [], "no rule can read"],
      [config, "no-such-file.csv", [], "Cannot read the table"],
      [config, all, ["--state", none], "holds nothing"],
      [config, all, ["--stream", "sources"], "--full"],
      [config, [...all, ...ghosts], ["--full"], "--yes-gone 101"],
      [unproven, all, ["--full"], "verify_counts"],
      [filtered, all, ["--state", state], "is_user"],
    ] as const;
    for (const [which, table, more, said] of asked) {
      const { code, stderr, gone } = await reconcile(which, table, more);
      expect([code, gone], stderr).toEqual([2, []]);
      expect(stderr).toContain(said);
    }
    expect((await reconcile(config, [...all, ...ghosts], ["--full", "--yes-gone", "101"])).gone).toHaveLength(
      101,
    );
    sandbox.fault(`omit=1:lists=too:from=${day}:to=${day}`, "status=500:of=rows:times=100000");
    const clock = hurriedClock(500);
    expect(await reconcile(ignoring, all, ["--full"], { clock })).toMatchObject({ code: 2, gone: [] });
  });

  it("leaves no file when it breaks off", async () => {
    const { sandbox, config, all } = await synced({ people: 4_000 }, { max_window_rows: 1_000 });
    sandbox.fault("status=401:path=/people/stream:skip=2");
    const { code, stderr, folder } = await reconcile(config, all.slice(-1), ["--full"]);
    expect([code, stderr.includes("API key"), readdirSync(folder)], stderr).toEqual([2, true, []]);
  });

  it("names who was checked again, be it a second later, and holds nobody for suppressed who has moved", async () => {
    const { config, state, all } = await synced({ people: 300, days: 30, undated: 0 });
    const newest = all.reduce((a, b) => ((a.discoveredAt ?? "") > (b.discoveredAt ?? "") ? a : b));
    const asOf = (of: Row, ms: number): Row[] =>
      all.map((row) => (row === of ? { ...row, discoveredAt: new Date(ms).toISOString() } : row));
    const [row] = all.filter(({ discoveredAt }) => discoveredAt !== newest.discoveredAt) as [Row];
    const full = await reconcile(config, asOf(row, Date.parse(row.discoveredAt ?? "") - 1_000), ["--full"]);
    expect([full.code, full.report.stale, ids(full.lost)], full.stderr).toEqual([1, 1, [row.id]]);
    const counts = await reconcile(config, asOf(newest, Date.parse(OLD)), ["--state", state]);
    expect(counts.report, counts.stderr).toMatchObject({ lost: 0, suppressed: 0 });
    expect([counts.suppressed, counts.report.stale + counts.report.later]).toEqual([[], 1]);
  });

  it("names thousands of lost rows, each once", async () => {
    const { config, all } = await synced({ people: 3_000 });
    const found = await reconcile(config, all.slice(-1), ["--full"]);
    expect([found.code, ids(found.lost)], found.stderr).toEqual([1, ids(all.slice(0, -1))]);
    expect(found.report.lost).toBe(all.length - 1);
  });

  it("reads what loaders and shells give it", async () => {
    const { config, all } = await synced({ people: 100, days: 400 });
    const [first] = all as [Row];
    const table = all.slice(1);
    const berlin = (at: string | null): string =>
      at === null ? "" : new Date(at).toLocaleString("sv", { timeZone: "Europe/Berlin" });
    const spelt = (of: (row: Row) => string, head = "discovered_at,note,ID"): string =>
      `${head}\r\n${table.map((row) => `${of(row)}\r\n`).join("")}`;
    const short = table.map(
      ({ id, discoveredAt: at }) => `${[id, ...(at === null ? [] : [at])].join(",")}\n`,
    );
    const tables = [
      [`id,discovered_at\n${short.join("")}`, []],
      [spelt(({ id, discoveredAt }) => `${discoveredAt ?? "NULL"},"a ""b"", \n c",${id}`), []],
      [spelt(({ id, discoveredAt }) => `${berlin(discoveredAt)},,${id}`), ["--timezone", "Europe/Berlin"]],
      [spelt(({ id, discoveredAt }) => `${discoveredAt?.slice(0, 10) ?? ""},,${id}`), ["--timezone", "UTC"]],
      [`\uFEFF${spelt(({ id, discoveredAt }) => `${id},${discoveredAt ?? "\\N"}`, "key,at")}`, []],
      [table.map((row) => `${JSON.stringify({ note: 1, ...row })}\n`).join(""), []],
      [
        table
          .map(({ id, discoveredAt: at }) => `${JSON.stringify([at && Date.parse(at), id])}`)
          .map((row) => `{"discoveredAt":${row.slice(1, -1).replace(",", ',"id":')}}\n`)
          .join(""),
        [],
      ],
    ] as const;
    for (const [text, more] of tables) {
      const found = await reconcile(config, await file("table", text), ["--full", ...more]);
      expect([found.code, ids(found.lost), found.gone], text.slice(0, 200) + found.stderr).toEqual([
        1,
        [first.id],
        [],
      ]);
    }
    const [input, TMPDIR] = [csvOf([...table, ghost(1)]), await tempDir()];
    const piped = await reconcile(config, "-", ["--full"], { input, env: { TMPDIR } });
    expect([piped.code, ids(piped.lost), piped.gone], piped.stderr).toEqual([1, [first.id], ["erased-1"]]);
    expect(readdirSync(TMPDIR)).toEqual([]);
  });

  it("keeps suppressed people out, and compares hashed keys", async () => {
    const { sandbox, all } = await synced({ people: 200 });
    const [byId, byEmail, lost] = all.slice(10, 13) as [Row, Row & { email?: string }, Row];
    const suppress_file = await file("suppress.txt", `${byId.id}\n${byEmail.email ?? ""}\n`);
    const config = await configFor(sandbox, { suppress_file, drop_fields: ["people.email"] });
    const found = await reconcile(
      config,
      all.filter((row) => row !== lost),
      ["--full"],
    );
    expect([found.code, ids(found.lost), found.gone], found.stderr).toEqual([1, [lost.id], []]);
    expect(found.suppressed).toEqual(ids(byEmail.email ? [byId, byEmail] : [byId]));
    expect(found.lost[0]).not.toHaveProperty("email");
    const held = await synced({ people: 200 }, { suppress_file });
    const counts = await reconcile(held.config, held.all, ["--state", held.state]);
    expect([counts.code, counts.report.rows_read < 100], counts.stderr).toEqual([0, true]);
    const lacking = held.all.filter((row) => row.id !== lost.id);
    expect(ids((await reconcile(held.config, lacking, ["--state", held.state])).lost)).toEqual([lost.id]);
    const without = all.filter((row) => ![byId, byEmail].includes(row));
    expect(await reconcile(config, without, ["--full"])).toMatchObject({
      code: 0,
      lost: [],
      gone: [],
      suppressed: [],
    });
    const hashing = await configFor(sandbox, {
      hash_fields: ["people.id"],
      hash_salt: "a long salt of this test",
    });
    const read = await run(CONNECTOR, [
      "read",
      "--config",
      hashing,
      "--format",
      "jsonl",
      "--stream",
      "people",
    ]);
    const hashed = read.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Row);
    const again = await reconcile(hashing, [...hashed.slice(1), ghost(1)], ["--full"]);
    expect([again.code, ids(again.lost), again.gone], again.stderr).toEqual([
      1,
      ids(hashed.slice(0, 1)),
      ["erased-1"],
    ]);
  });

  it("marks days so that the next sync brings what was lost", async () => {
    const { config, state, all } = await synced({ people: 300, days: 90 });
    const unread = all.findLast((row) => row.discoveredAt !== null) as Row;
    const lost = [all[150], all[200], all.at(-1), unread] as Row[];
    const stale = all[100] as Row;
    const table = all
      .filter((row) => !lost.includes(row))
      .map((row) => (row === stale ? { ...row, discoveredAt: OLD } : row));
    const waiting = [{ id: "a record that has not left" }];
    const { people: saved } = JSON.parse(readFileSync(state, "utf8")).bookmarks;
    const covered = [dayOf(all[280] as Row), saved.days.at(-1)[1], null];
    const people = { ...saved, days: [covered], sync_windows: waiting };
    writeFileSync(state, JSON.stringify({ bookmarks: { "crm/people": people } }));
    const found = await reconcile(config, table, ["--full", "--recheck", state]);
    const { bookmarks } = JSON.parse(readFileSync(state, "utf8"));
    expect(bookmarks, found.stderr).toEqual({
      "crm/people": expect.objectContaining({ sync_windows: waiting }),
    });
    expect(JSON.parse(found.stdout.split("\n")[1] ?? "").bookmarks).toEqual(bookmarks);
    const { days } = bookmarks["crm/people"];
    expect(days.filter(([from]: [string]) => from <= dayOf(unread))).toEqual([]);
    expect(days.filter((span: unknown[]) => span[3] === "again")).toHaveLength(3);
    const read = [
      "read",
      "--config",
      config,
      "--state-file",
      state,
      "--format",
      "jsonl",
      "--stream",
      "people",
    ];
    const { code, stdout } = await run(CONNECTOR, read);
    expect(code).toBe(0);
    for (const { id } of [...lost, stale]) expect(stdout).toContain(id);
  });

  it.each([["--state"], []])(
    "counts rows of before the first day that a service can be asked for as rows without a date: %j",
    async (...flags) => {
      const { sandbox, config } = await sandboxWith({ people: 100, requestsPerMinute: 0 });
      sandbox.fault("redate=1969-07-20:people=3");
      const state = join(await tempDir(), "state.json");
      const read = ["read", "--config", config, "--state-file", state, "--format", "jsonl"];
      const sync = async (): Promise<Row[]> =>
        (await run(CONNECTOR, [...read, "--stream", "people"])).stdout
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line));
      const all = await sync();
      const old = all.filter((row) => dayOf(row) < "1970");
      const [lost, stale] = old as [Row, Row];
      const table = all.flatMap((row) =>
        row === lost ? [] : [row === stale ? { ...row, discoveredAt: null } : row],
      );
      const more = flags.map((flag) => [flag, state]);
      const found = await reconcile(config, table, ["--full", ...more.flat(), "--recheck", state]);
      expect([found.code, ids(found.lost)], found.stderr).toEqual([1, ids([lost, stale])]);
      expect(found.report).toMatchObject({ days: { none: { lost: 1, stale: 1, gone: 0 } }, gone: 0 });
      expect(ids(await sync())).toEqual(expect.arrayContaining(ids([lost, stale])));
    },
  );

  it("names the days for which 300 requests were not enough", async () => {
    const { config, state, all } = await synced({ people: 8_000, days: 3_650, undated: 0 });
    const lost = all.filter((_, nth) => nth % 80 === 40);
    const found = await reconcile(
      config,
      all.filter((row) => !lost.includes(row)),
      ["--state", state],
    );
    expect([found.code, found.report.requests <= 300], found.stderr).toEqual([2, true]);
    expect(ids(lost)).toEqual(expect.arrayContaining(ids(found.lost)));
    expect(found.lost.length).toBeGreaterThan(10);
    const isNamed = (row: Row): boolean =>
      found.report.not_looked_at.some(
        ({ from, to }: { from: string; to: string }) => from <= dayOf(row) && dayOf(row) <= to,
      );
    expect(lost.filter((row) => !isNamed(row) && !found.lost.some(({ id }) => id === row.id))).toEqual([]);
    const part = await reconcile(
      config,
      all.filter((row) => !lost.slice(0, 5).includes(row)),
      ["--state", state],
    );
    expect([part.code, ids(part.lost)]).toEqual([1, ids(lost.slice(0, 5))]);
    expect(part.report.rows_read).toBeLessThan(all.length / 20);
  });

  it("compares companies and sources key by key", async () => {
    const { sandbox, config } = await sandboxWith({ people: 10, companies: 30, companiesDated: false });
    const domains = sandbox.companies().map((company) => `${(company as { domain: string }).domain}\n`);
    const table = await file("companies.csv", `domain\n${domains.slice(1).join("")}gone.example\n`);
    const found = await reconcile(config, table, ["--full", "--stream", "companies"]);
    expect([found.code, found.lost.length, found.gone], found.stderr).toEqual([1, 1, ["gone.example"]]);
  });

  it.each(["duckdb", "postgres", "bigquery", "snowflake"])("prints the query for %s", async (dialect) => {
    const { code, stdout } = await run(CONNECTOR, ["reconcile", "--sql", dialect, "--table", "crm.people"]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/UTC/)]);
    expect(stdout).toContain("crm.people");
    expect(stdout).toMatch(/SELECT ["`]id["`], [^,]+\(.*["`]discoveredAt["`]/);
  });
});
