import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, type Ended, file, run } from "../support/cli.ts";
import { configFor } from "../support/configs.ts";
import { CountingService } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { doneIn } from "../support/job-stage.ts";
import { dayOf, ids, people, type Row, reconcile } from "../support/reconcile.ts";
import { tempDir } from "../support/temp-dir.ts";

const SMALL = { people: 60, undated: 2, companies: 5, sources: 3 };

async function read(sandbox: Sandbox, folder: string, ...more: readonly string[]): Promise<Ended> {
  return await run(CONNECTOR, ["read", "--config", await configFor(sandbox), "--output", folder, ...more]);
}

/** Every file below a folder, by its path, save the state and what is hidden. */
function filesIn(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.jsonl/.test(name),
  );
  return new Map(
    names.toSorted().map((name) => {
      const bytes = readFileSync(join(folder, name));
      return [name, (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8")];
    }),
  );
}

const rowsIn = (text: string | undefined): number => (text ?? "").split("\n").length - 1;

describe("read --output", () => {
  it("makes the folder, a file for each stream, and later adds files with what is new", async () => {
    await using sandbox = await startSandbox(SMALL);
    const folder = join(await tempDir(), "contacts");
    const first = await read(sandbox, folder);
    expect({ code: first.code, stdout: first.stdout }).toEqual({ code: 0, stdout: "" });
    expect(first.stderr).toMatch(/complete, 62 rows in 1 new file\b/);
    expect(first.stderr).toMatch(/Run complete: 70 rows in 3 new files, \d+ kB, in .*contacts\/\. All days /);
    const files = filesIn(folder);
    expect([...files.keys()]).toEqual([
      expect.stringMatching(/^companies\/\d{8}T\d{6}Z-000000001-companies-all\.jsonl$/),
      expect.stringMatching(/^people\/\d{8}T\d{6}Z-000000001-people-all\.jsonl$/),
      expect.stringMatching(/^sources\/full-000000001\/\d{8}T\d{6}Z-000000002-sources-all\.jsonl$/),
    ]);
    expect([...files.values()].map(rowsIn)).toEqual([5, 62, 3]);
    sandbox.arrive(4);
    expect(await read(sandbox, folder)).toMatchObject({ code: 0 });
    const later = filesIn(folder);
    for (const [name, text] of files) expect(later.get(name)).toBe(text);
    const people = [...later].filter(([name]) => name.startsWith("people/"));
    expect(people).toHaveLength(2);
    expect(people[1]?.[0]).toMatch(/-000000002-people-\d{4}-\d\d-\d\d_now\.jsonl$/);
    expect(rowsIn(people[1]?.[1])).toBe(4);
    const wholes = [...later].filter(([name]) => name.startsWith("sources/full-"));
    expect(wholes.map(([, text]) => rowsIn(text))).toEqual([3]);
  });

  it.each([
    { more: ["--compress", "gzip"], people: 60 },
    { more: [], people: 2_000 },
  ])("writes no file where nothing is new, and again what was taken away or asked for: %o", async (given) => {
    const { more, people } = given;
    await using sandbox = await startSandbox({ ...SMALL, people, days: 5 });
    const folder = await tempDir();
    const readMore = (...words: readonly string[]): Promise<Ended> =>
      read(sandbox, folder, ...words, ...more);
    /** The streams of the files that a read adds. */
    const added = async (...words: readonly string[]): Promise<readonly (string | undefined)[]> => {
      const before = filesIn(folder);
      await readMore(...words);
      const names = [...filesIn(folder).keys()].filter((name) => !before.has(name));
      return names.map((name) => name.split("/")[0]);
    };
    expect((await readMore()).code).toBe(0);
    const first = filesIn(folder);
    expect((await readMore()).stderr).toMatch(/Run complete: nothing new\. All days /);
    expect(filesIn(folder)).toEqual(first);
    sandbox.arrive(1);
    expect(await added()).toEqual(["people"]);
    for (const name of filesIn(folder).keys()) if (!name.startsWith("companies/")) rmSync(join(folder, name));
    expect(await added()).toEqual(["people", "sources"]);
    expect(await added("--full-refresh", "--stream", "sources")).toEqual(["sources"]);
    // What is older than a full refresh may be removed, and not everyone reads the refresh.
    expect(await added("--full-refresh", "--stream", "people")).toEqual(["people"]);
    expect(await added()).toEqual(["people"]);
    expect(await added()).toEqual([]);
  });

  it("warns once of older files when settings of privacy come later", async () => {
    await using sandbox = await startSandbox(SMALL);
    const folder = await tempDir();
    const suppress_file = await file("suppressed.txt", "nobody@x.example\n");
    const warned: boolean[] = [];
    for (const settings of [{}, { drop_fields: ["email"] }, { suppress_file }]) {
      const config = await configFor(sandbox, settings);
      for (const _run of [1, 2]) {
        const { stderr } = await run(CONNECTOR, ["read", "--config", config, "--output", folder]);
        warned.push(/privacy settings have changed.*privacy\.md#settings-that-come-later/.test(stderr));
      }
    }
    expect(warned).toEqual([false, false, true, false, true, false]);
  });

  it("writes each row of a day once, however often the day is read, and compresses files if it should", async () => {
    await using sandbox = await startSandbox({ ...SMALL, people: 2_000, days: 4 });
    const folder = await tempDir();
    for (let hour = 0; hour < 5; hour += 1) {
      expect((await read(sandbox, folder, "--stream", "people", "--compress", "gzip")).code).toBe(0);
      sandbox.arrive(3);
    }
    const files = filesIn(folder);
    expect([...files.keys()].filter((name) => !name.endsWith(".jsonl.gz"))).toEqual([]);
    const ids = [...files.values()].flatMap(linesOf).map((line) => JSON.parse(line).id);
    expect([ids.length, new Set(ids).size]).toEqual([2_014, 2_014]);
  });

  it("delivers what a table has lost once reconcile has marked it, whatever the older files have", async () => {
    await using sandbox = await startSandbox({ ...SMALL, people: 300, days: 20 });
    const [folder, config] = [await tempDir(), await configFor(sandbox)];
    const readPeople = (): Promise<Ended> => read(sandbox, folder, "--stream", "people");
    await readPeople();
    const all = people(sandbox).toSorted((a, b) =>
      (a.discoveredAt ?? "").localeCompare(b.discoveredAt ?? ""),
    );
    const lost = [0, 2, 150, 298, 301].map((nth) => all[nth] as Row);
    const table = all.filter((row) => !lost.includes(row));
    const words = ["--recheck", join(folder, "state.json")];
    expect((await reconcile(config, table, words)).report).toMatchObject({ lost: 5 });
    const before = filesIn(folder);
    await readPeople();
    const added = [...filesIn(folder)].filter(([name]) => !before.has(name));
    expect(ids(added.flatMap(([, text]) => linesOf(text)).map((line) => JSON.parse(line)))).toEqual(
      expect.arrayContaining(ids(lost)),
    );
    const after = filesIn(folder);
    await readPeople();
    expect(filesIn(folder)).toEqual(after);
  });

  it("writes days that could not be proven again completely, and all rows of a full refresh", async () => {
    await using sandbox = await startSandbox({ ...SMALL, people: 400, days: 40 });
    sandbox.fault("drain=1:every=40:times=2");
    const [folder, summary] = [await tempDir(), join(await tempDir(), "summary.json")];
    /** The rows that a read adds. */
    const added = async (...words: readonly string[]): Promise<readonly Row[]> => {
      const before = filesIn(folder);
      await read(sandbox, folder, "--stream", "people", "--summary", summary, ...words);
      const files = [...filesIn(folder)].filter(([name]) => !before.has(name));
      return files.flatMap(([, text]) => linesOf(text)).map((line) => JSON.parse(line));
    };
    await added();
    const { recheck } = JSON.parse(readFileSync(summary, "utf8")).streams[0];
    // The window of the next run may have the day before yesterday, and writes what the files lack.
    const newest = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10);
    const isUnproven = (row: Row): boolean =>
      dayOf(row) < newest &&
      recheck.some(([first, last]: string[]) => `${first}` <= dayOf(row) && dayOf(row) <= `${last}`);
    const unproven = people(sandbox).filter(isUnproven);
    expect(unproven.length).toBeGreaterThan(10);
    expect(ids((await added()).filter(isUnproven))).toEqual(ids(unproven));
    expect(await added()).toEqual([]);
    expect(ids(await added("--full-refresh"))).toEqual(ids(people(sandbox)));
  });

  it("says when an export is cut, and at the end whether every row is proven", async () => {
    await using sandbox = await startSandbox({ ...SMALL, people: 400, days: 40 });
    const folder = await tempDir();
    const summary = join(folder, "summary.json");
    const config = await configFor(sandbox);
    const ignoring = await configFor(sandbox, { ignore_missing_days: ["2020-01-01"] });
    let args = ["read", "--config", config, "--output", join(folder, "contacts"), "--summary", summary];
    const ended = async (...faults: readonly string[]) => {
      sandbox.fault(...faults);
      const { code, stderr } = await run(CONNECTOR, args, { clock: hurriedClock() });
      const { streams } = JSON.parse(readFileSync(summary, "utf8"));
      const cut = streams.reduce((sum: number, one: { cut_exports: number }) => sum + one.cut_exports, 0);
      return { code, stderr, cut };
    };
    const first = await ended("end:times=3:path=people/stream");
    expect([first.code, first.cut]).toEqual([0, 3]);
    expect(first.stderr).toMatch(
      /Z INFO people, all rows up to now: \d+ of 402 rows arrived; reading again\n/,
    );
    expect(first.stderr).toContain(". 3 exports were cut and read again; every row is proven. ");
    const quiet = await ended();
    expect([quiet.code, quiet.cut, quiet.stderr.includes("again;")]).toEqual([0, 0, false]);
    rmSync(join(folder, "contacts"), { recursive: true });
    const failed = await ended("status=500:times=1:path=people/stream");
    expect([failed.code, failed.cut]).toEqual([0, 0]);
    expect(failed.stderr).toContain(". 1 export failed and was read again; every row is proven. ");
    args = ["read", "--config", config, "--output", join(folder, "uncounted"), "--summary", summary];
    const uncounted = await ended("no-company-list", "garbage:times=1:path=people/stream");
    expect(uncounted.stderr).toMatch(/people, .*: the answer failed after 402 rows; reading again\n/);
    expect(uncounted.stderr).toContain(". 1 export failed and was read again; not every row is proven. ");
    args = ["read", "--config", ignoring, "--output", join(folder, "ignoring"), "--summary", summary];
    const other = await ended("end:times=3:path=people/stream");
    expect(other.stderr).toMatch(
      /\d exports? w.* cut and read again; every row outside ignore_missing_days is proven\. /,
    );
    args = ["read", "--config", config, "--output", join(folder, "lost"), "--summary", summary];
    const lost = await ended("omit=1:lists=too:times=always");
    expect([lost.code, lost.cut > 0]).toEqual([1, true]);
    expect(lost.stderr).toMatch(/\d+ exports were cut and read again; not every row is proven\. /);
  });

  const lookups = (url: string, receipts: string): Promise<string> =>
    file("config.json", {
      ...{ base_url: url, api_key: "k", requests_per_minute: 6000, receipts_file: receipts },
      external_api: { api_url: url, api_key: "k" },
      company_lookup: { domains: Array.from({ length: 12 }, (_, n) => `d${n}.example`) },
    });

  it("writes the answers of jobs into one file, and reports the end of the stream once", async () => {
    await using service = await CountingService.start();
    const [folder, summary] = [await tempDir(), join(await tempDir(), "summary.json")];
    const config = await lookups(service.url, join(await tempDir(), "receipts.jsonl"));
    const args = ["read", "--config", config, "--stream", "company_lookups", "--output", folder];
    const { code, stderr } = await run(CONNECTOR, [...args, "--summary", summary], { clock: hurriedClock() });
    expect(code).toBe(0);
    const { streams } = JSON.parse(readFileSync(summary, "utf8"));
    expect(streams).toMatchObject([{ stream: "company_lookups", rows: 12, windows: [] }]);
    const files = [...filesIn(folder).values()].map(rowsIn);
    expect(files.reduce((sum, rows) => sum + rows, 0)).toBe(12);
    // A commit at the end, and one a minute before it.
    expect(files.length).toBeLessThanOrEqual(1 + Math.ceil(streams[0].seconds / 60));
    expect(streams[0].files).toBe(files.length);
    expect(stderr).not.toContain("window");
    const told = stderr.match(/12 (rows|answered|submitted)/g);
    expect(told).toEqual(["12 answered", "12 submitted", "12 rows", "12 rows", "12 submitted"]);
    expect(stderr).toMatch(/Z INFO company_lookups: 12 answered, 12 submitted/);
    expect(stderr).toMatch(/complete, 12 rows in \d new files?, \d+ requests/);
  });

  it("saves what it is about to buy before it buys it where no receipts are kept", async () => {
    await using service = await CountingService.start();
    const [folder, unsaved] = [await tempDir(), [] as number[]];
    const known = (): number => {
      const path = join(folder, "state.json");
      if (!existsSync(path)) return 0;
      const saved = JSON.parse(readFileSync(path, "utf8")).bookmarks.company_lookups;
      return saved.items.length + doneIn(saved);
    };
    service.behaviour = {
      refuse: () => {
        if (known() <= service.bought.length) unsaved.push(service.bought.length);
        return undefined;
      },
    };
    const config = await lookups(service.url, "");
    const args = ["read", "--config", config, "--stream", "company_lookups", "--output", folder];
    expect(await run(CONNECTOR, args, { clock: hurriedClock() })).toMatchObject({ code: 0 });
    expect([service.bought.length, unsaved]).toEqual([10, []]);
    expect([...filesIn(folder).values()].map(rowsIn).reduce((sum, rows) => sum + rows, 0)).toBe(10);
  });

  it("continues from --state in a folder without a state, and refuses it in one that has its own", async () => {
    await using sandbox = await startSandbox(SMALL);
    const [first, second] = [await tempDir(), await tempDir()];
    await read(sandbox, first, "--stream", "people");
    const state = join(first, "state.json");
    expect(await read(sandbox, second, "--stream", "people", "--state", state)).toMatchObject({ code: 0 });
    expect([...filesIn(second).values()].reduce((sum, text) => sum + rowsIn(text), 0)).toBeLessThan(30);
    const before = [readFileSync(state, "utf8"), filesIn(first)];
    const refused = await read(sandbox, first, "--stream", "people", "--state", state);
    expect(refused.code).toBe(2);
    expect(refused.stdout + refused.stderr).toContain("the folder has its own state");
    expect([readFileSync(state, "utf8"), filesIn(first)]).toEqual(before);
  });

  it("writes a sample only into a new folder, and no run continues there", async () => {
    await using sandbox = await startSandbox(SMALL);
    const [folder, used] = [await tempDir(), await tempDir()];
    expect(await read(sandbox, folder, "--limit", "5")).toMatchObject({ code: 0 });
    expect([...filesIn(folder).values()].map(rowsIn)).toEqual([5, 5, 3]);
    const next = await read(sandbox, folder);
    expect([next.code, next.stderr]).toEqual([2, expect.stringContaining("it has a sample of read --limit")]);
    await read(sandbox, used, "--stream", "sources");
    const refused = await read(sandbox, used, "--limit", "5");
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("Cannot write a sample")]);
  });

  it("says that the folder above is not there", async () => {
    await using sandbox = await startSandbox(SMALL);
    const ended = await read(sandbox, join(await tempDir(), "not", "there"));
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringMatching(/Cannot .*not.*there/) });
    expect(await read(sandbox, await file("a-file", "x"))).toMatchObject({ code: 2 });
  });
});
