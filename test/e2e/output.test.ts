import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { compactOutput } from "../../src/commands/output-compact.ts";
import { checkManifest } from "../../src/run/manifest.ts";
import { CONNECTOR, type Ended, file, run } from "../support/cli.ts";
import { CountingService } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { doneIn } from "../support/job-types.ts";
import { configFor } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testProcess } from "../support/terminal.ts";

const SMALL = { people: 60, undated: 2, companies: 5, sources: 3, requestsPerMinute: 0 };

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

const STREAM = { stream: "people", name: "y" };
const rowsIn = (text: string | undefined): number => (text ?? "").split("\n").length - 1;

describe("read --output", () => {
  it("makes the folder, a file for each stream, and later adds what is new beside it", async () => {
    await using sandbox = await startSandbox(SMALL);
    const folder = join(await tempDir(), "contacts");
    const first = await read(sandbox, folder);
    expect({ code: first.code, stdout: first.stdout }).toEqual({ code: 0, stdout: "" });
    expect(first.stderr).toMatch(/complete, 62 rows in 1 new file\b/);
    expect(first.stderr).toContain("Run complete: 70 rows of 3 streams");
    const files = filesIn(folder);
    const START = "\\d{8}T\\d{6}Z";
    expect([...files.keys()]).toEqual([
      expect.stringMatching(new RegExp(`^companies/.*${START}-000000001\\.jsonl$`)),
      expect.stringMatching(new RegExp(`^people/${START}-000000001\\.jsonl$`)),
      expect.stringMatching(new RegExp(`^sources/full-000000001/${START}-00000000\\d\\.jsonl$`)),
    ]);
    expect([...files.values()].map(rowsIn)).toEqual([5, 62, 3]);
    sandbox.arrive(4);
    expect(await read(sandbox, folder)).toMatchObject({ code: 0 });
    const later = filesIn(folder);
    for (const [name, text] of files) expect(later.get(name)).toBe(text);
    const people = [...later].filter(([name]) => name.startsWith("people/"));
    expect(people).toHaveLength(2);
    expect(people[1]?.[0]).toMatch(/-000000002\.jsonl$/);
    expect(rowsIn(people[1]?.[1])).toBeGreaterThanOrEqual(4);
    const wholes = [...later].filter(([name]) => name.startsWith("sources/full-"));
    expect(wholes.map(([, text]) => rowsIn(text))).toEqual([3]);
  });

  it.each([
    { more: [] as string[], people: 60 },
    { more: ["--compress", "gzip"], people: 60 },
    { more: [], people: 2_000 },
  ])("writes no file where nothing is new: %o", async ({ more, people }) => {
    await using sandbox = await startSandbox({ ...SMALL, people, days: 5 });
    const folder = await tempDir();
    expect((await read(sandbox, folder, ...more)).code).toBe(0);
    const rows = (): Map<string, string> => filesIn(folder);
    const before = rows();
    const again = await read(sandbox, folder, ...more);
    expect(again.stderr).toMatch(/Run complete: 0 rows of 3 streams/);
    expect(rows()).toEqual(before);
    sandbox.arrive(1);
    await read(sandbox, folder, ...more);
    expect([...rows().keys()].filter((name) => !before.has(name))).toEqual([
      expect.stringMatching(/^people\//),
    ]);
    // What was taken away is written again, and so is what someone asks for.
    const last = rows();
    for (const name of last.keys()) if (!name.startsWith("companies/")) rmSync(join(folder, name));
    await read(sandbox, folder, ...more);
    const added = [...rows().keys()].filter((name) => !last.has(name));
    expect(added.map((name) => name.split("/")[0])).toEqual(["people", "sources"]);
    const full = rows().size;
    for (let run = 1; run < 3; run++) {
      await read(sandbox, folder, "--full-refresh", "--stream", "sources", ...more);
      expect(rows().size).toBe(full + run);
    }
    // What is older than a full refresh may be removed, and not everyone reads the refresh.
    const sizes: number[] = [];
    for (const flags of [["--full-refresh", "--stream", "people"], [], []]) {
      await read(sandbox, folder, ...flags, ...more);
      sizes.push(rows().size - full - 2);
    }
    expect(sizes).toEqual([1, 2, 2]);
  });

  it.each([
    { flags: [], more: [], kept: 14 },
    { flags: ["--newest"], more: ["--compress", "gzip"], kept: 12 },
  ])("is compacted to one file a stream: %o", async ({ flags, more, kept }) => {
    await using sandbox = await startSandbox({ ...SMALL, people: 10, undated: 0 });
    const folder = await tempDir();
    await read(sandbox, folder, ...more);
    sandbox.recheck(2);
    await read(sandbox, folder, ...more);
    sandbox.arrive(2);
    await read(sandbox, folder, ...more);
    const linesOf = (): string[] =>
      [...filesIn(folder)].flatMap(([name, text]) =>
        name.startsWith("people/") ? text.trimEnd().split("\n") : [],
      );
    const before = linesOf();
    const compacted = await run(CONNECTOR, ["output", "compact", ...flags, folder]);
    expect(compacted, compacted.stderr).toMatchObject({ code: 0, stderr: "" });
    expect(compacted.stdout).toMatch(
      new RegExp(`^people: 3 files with ${before.length} rows became .* with ${kept} rows\n$`),
    );
    const after = linesOf();
    expect(after).toHaveLength(kept);
    expect(after.filter((line) => !before.includes(line))).toEqual([]);
    const newest = new Map(after.map((line) => JSON.parse(line)).map((row) => [row.id, row]));
    const served = sandbox.people();
    expect([...newest.keys()].toSorted()).toEqual(served.map(({ id }) => id).toSorted());
    if (flags.length > 0) for (const row of served) expect(newest.get(row.id)).toEqual(row);
    // What is there is known, to the next run as to who merges folders.
    expect((await run(CONNECTOR, ["output", "compact", ...flags, folder])).stdout).toBe("");
    expect((await read(sandbox, folder, ...more)).stderr).toContain("Run complete: 0 rows");
    const { output } = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
    await checkManifest(folder, output.files);
    expect(readdirSync(join(folder, "people"))).toHaveLength(1);
  });

  it("is as it was after a compaction that was interrupted while it wrote", async () => {
    await using sandbox = await startSandbox({ ...SMALL, people: 2_000 });
    const folder = await tempDir();
    await read(sandbox, folder, "--stream", "people");
    sandbox.arrive(2);
    await read(sandbox, folder, "--stream", "people");
    const people = join(folder, "people");
    const before = readdirSync(people).toSorted();
    const abort = new AbortController();
    const signal = Object.assign(abort.signal, {
      throwIfAborted: () => {
        if (readdirSync(people).length > before.length) throw new Error("Interrupted");
      },
    });
    const compacted = compactOutput({ folder, newest: false }, testProcess({ signal }));
    await expect(compacted).rejects.toThrow("Interrupted");
    expect(readdirSync(people).toSorted()).toEqual(before);
  });

  it("is compacted to the rows that a key or a cursor of its own tells apart, in their order", async () => {
    await using sandbox = await startSandbox({ ...SMALL, people: 0, undated: 0 });
    const at = (hour: number): string => `2026-03-02T0${hour}:00:00Z`;
    const row = (id: number | null, discoveredAt: string | null, nth: number): string =>
      JSON.stringify({ id, discoveredAt, nth });
    const [first, second] = [
      [row(1, at(1), 0), row(2, at(5), 1), row(null, at(1), 2), row(1, at(1), 3), row(3, null, 4)],
      [row(1, at(3), 5), row(2, at(4), 6), row(null, at(1), 7), row(3, null, 8), row(4, "?", 9)],
    ];
    const compactedTo = async (files: readonly (readonly string[])[], ...flags: string[]) => {
      const folder = await tempDir();
      await read(sandbox, folder, "--stream", "people");
      mkdirSync(join(folder, "people"), { recursive: true });
      for (const [nth, lines] of files.entries())
        writeFileSync(
          join(folder, "people", `20260302T000000Z-00000000${nth + 1}.jsonl`),
          `${lines.join("\n")}\n`,
        );
      const { code, stdout } = await run(CONNECTOR, ["output", "compact", ...flags, folder]);
      const left = [...filesIn(folder).values()].map((text) =>
        text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line).nth),
      );
      return { code, stdout, left };
    };
    const said = (before: string, rows: number): unknown =>
      expect.stringMatching(new RegExp(`^people: ${before} rows became \\S+ with ${rows} rows\n$`));
    expect(await compactedTo([first, second])).toEqual({
      ...{ code: 0, stdout: said("2 files with 10", 8), left: [[1, 2, 3, 5, 6, 7, 8, 9]] },
    });
    expect(await compactedTo([first, second], "--newest")).toEqual({
      ...{ code: 0, stdout: said("2 files with 10", 6), left: [[1, 2, 5, 7, 8, 9]] },
    });
    expect(await compactedTo([first])).toEqual({
      ...{ code: 0, stdout: said("1 file with 5", 4), left: [[1, 2, 3, 4]] },
    });
    const [alone, other] = [first.slice(0, 3), [second[4] ?? ""]];
    expect(await compactedTo([alone, other])).toMatchObject({ left: [[0, 1, 2, 9]] });
    expect(await compactedTo([alone])).toEqual({ code: 0, stdout: "", left: [[0, 1, 2]] });
  });

  it("is compacted one stream after the other, and its manifest names what is there", async () => {
    await using sandbox = await startSandbox({ ...SMALL, people: 0, undated: 0 });
    const folder = await tempDir();
    await read(sandbox, folder, "--stream", "people");
    for (const stream of ["people", "companies"]) {
      mkdirSync(join(folder, stream), { recursive: true });
      for (const nth of [1, 2])
        writeFileSync(
          join(folder, stream, `20260302T000000Z-00000000${nth}.jsonl`),
          `{"id":${nth},"domain":"a${nth}.example","discoveredAt":"2026-03-02T0${nth}:00:00Z"}\n`,
        );
    }
    const { code, stdout } = await run(CONNECTOR, ["output", "compact", folder]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^people: .*\ncompanies: .* with 2 rows\n$/)]);
    const { output } = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
    await checkManifest(folder, output.files);
    expect(output.files).toBe(2);
  });

  it("compacts nothing but its own folders, and no file that is damaged", async () => {
    await using sandbox = await startSandbox(SMALL);
    const folder = await tempDir();
    expect(await run(CONNECTOR, ["output", "compact", folder])).toMatchObject({
      ...{ code: 1, stdout: "" },
      stderr: `Cannot compact "${folder}": it has no state.json, so no read --output wrote it\n`,
    });
    await read(sandbox, folder);
    const [name = ""] = readdirSync(join(folder, "people"));
    writeFileSync(join(folder, "people", name.replace("1.jsonl", "2.jsonl")), '{"id":"cut of\n');
    const failed = await run(CONNECTOR, ["output", "compact", folder]);
    expect([failed.code, failed.stderr]).toEqual([
      1,
      expect.stringContaining("has a line that is no JSON object"),
    ]);
    expect(readdirSync(join(folder, "people"))).toHaveLength(2);
  });

  it("compresses files if it is told to, and counts them in the summary", async () => {
    await using sandbox = await startSandbox(SMALL);
    const [folder, summary] = [await tempDir(), join(await tempDir(), "summary.json")];
    const words = ["--compress", "gzip", "--stream", "people", "--summary", summary];
    expect(await read(sandbox, folder, ...words)).toMatchObject({ code: 0 });
    const [[name, text] = []] = filesIn(folder);
    expect(name).toMatch(/\.jsonl\.gz$/);
    expect(rowsIn(text)).toBe(62);
    expect(JSON.parse(readFileSync(summary, "utf8"))).toMatchObject({
      saved_to: join(folder, "state.json"),
      streams: [
        {
          ...{ stream: "people", rows: 62, files: 1, saved_up_to: expect.stringMatching(/^20\d\d-/) },
          state_after: expect.objectContaining({
            undated: { rows: 2, seen: [expect.any(String), expect.any(String)] },
          }),
        },
      ],
    });
  });

  const lookups = (url: string, receipts: string): Promise<string> =>
    file("config.json", {
      ...{ base_url: url, api_key: "k", requests_per_minute: 6000, receipts_file: receipts },
      external_api: { api_url: url, api_key: "k" },
      company_lookup: { domains: Array.from({ length: 12 }, (_, n) => `d${n}.example`) },
    });

  it("writes the answers of jobs into one file, and tells the end of their stream once", async () => {
    await using service = await CountingService.start();
    const [folder, summary] = [await tempDir(), join(await tempDir(), "summary.json")];
    const config = await lookups(service.url, join(await tempDir(), "receipts.jsonl"));
    const args = ["read", "--config", config, "--stream", "company_lookups", "--output", folder];
    const { code, stderr } = await run(CONNECTOR, [...args, "--summary", summary], { clock: hurriedClock() });
    expect(code).toBe(0);
    const { streams } = JSON.parse(readFileSync(summary, "utf8"));
    expect(streams).toMatchObject([{ stream: "company_lookups", rows: 12, windows: 0 }]);
    const files = [...filesIn(folder).values()].map(rowsIn);
    expect(files.reduce((sum, rows) => sum + rows, 0)).toBe(12);
    // A commit at the end, and one a minute before it.
    expect(files.length).toBeLessThanOrEqual(1 + Math.ceil(streams[0].seconds / 60));
    expect(streams[0].files).toBe(files.length);
    expect(stderr).not.toContain("window");
    const told = stderr.match(/12 (rows|answered|submitted)/g);
    expect(told).toEqual(["12 rows", "12 answered", "12 submitted", "12 rows"]);
    expect(stderr).toMatch(
      /complete, 12 rows in \d new files?, \d+ requests, [^;]*; 12 answered, 12 submitted/,
    );
  });

  it("saves what it is about to buy before it buys it where no receipts are kept", async () => {
    await using service = await CountingService.start();
    const [folder, unsaved] = [await tempDir(), [] as number[]];
    const known = (): number => {
      const path = join(folder, "state.json");
      if (!existsSync(path)) return 0;
      const saved = JSON.parse(readFileSync(path, "utf8")).bookmarks.company_lookups;
      return saved.jobs.length + doneIn(saved);
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

  it("says that a stream without rows has got no file", async () => {
    await using sandbox = await startSandbox({ ...SMALL, companies: 0 });
    const { code, stderr } = await read(sandbox, await tempDir(), "--stream", "companies");
    expect(code).toBe(0);
    expect(stderr).toContain("0 rows in 0 new files");
    sandbox.fault("status=403:path=/sources:times=always");
    const failed = await read(sandbox, await tempDir(), "--stream", "sources");
    expect(failed.code).toBe(2);
    expect(failed.stderr).toContain("0 rows in 0 new files");
  });

  it("goes on from --state in a folder without a state, and refuses it in one that has its own", async () => {
    await using sandbox = await startSandbox(SMALL);
    const [first, second] = [await tempDir(), await tempDir()];
    await read(sandbox, first, "--stream", "people");
    const state = join(first, "state.json");
    expect(await read(sandbox, second, "--stream", "people", "--state", state)).toMatchObject({ code: 0 });
    expect([...filesIn(second).values()].reduce((sum, text) => sum + rowsIn(text), 0)).toBeLessThan(30);
    const before = [readFileSync(state, "utf8"), filesIn(first)];
    const refused = await read(sandbox, first, "--stream", "people", "--state", state);
    expect(refused.code).toBe(2);
    expect(refused.stdout + refused.stderr).toContain("the folder has a state of its own");
    expect([readFileSync(state, "utf8"), filesIn(first)]).toEqual(before);
  });

  it("numbers on from the largest file that is there, though the state is gone", async () => {
    await using sandbox = await startSandbox(SMALL);
    const folder = await tempDir();
    mkdirSync(join(folder, "people"));
    const there = join(folder, "people", "20200101T000000Z-000000041.jsonl");
    writeFileSync(there, '{"id":"kept"}\n');
    expect(await read(sandbox, folder, "--stream", "people")).toMatchObject({ code: 0 });
    expect([...filesIn(folder).keys()].at(-1)).toMatch(/-000000042\.jsonl$/);
    expect(readFileSync(there, "utf8")).toBe('{"id":"kept"}\n');
  });

  it("removes parts that a killed run left, and nothing else that looks like them", async () => {
    await using sandbox = await startSandbox(SMALL);
    const folder = await tempDir();
    const people = join(folder, "people");
    mkdirSync(people);
    const left = ".20200101T000000Z-0123456789abcdef.part";
    const others = [".20200101T000000Z-0123.part", "notes.part", ".full-0123456789abcdef.part.txt"];
    for (const name of [left, ...others]) writeFileSync(join(people, name), "x");
    expect(await read(sandbox, folder, "--stream", "people")).toMatchObject({ code: 0 });
    expect(existsSync(join(people, left))).toBe(false);
    for (const name of others) expect(existsSync(join(people, name)), name).toBe(true);
  });

  it("finishes what a run of the version before left when it was killed", async () => {
    await using sandbox = await startSandbox(SMALL);
    const folder = await tempDir();
    const [part, full] = [".20260101T000000Z-0123456789abcdef.part", ".full-0123456789abcdef.part"];
    mkdirSync(join(folder, "people"));
    mkdirSync(join(folder, "sources", full), { recursive: true });
    writeFileSync(join(folder, "people", part), '{"id":"a"}\n');
    writeFileSync(join(folder, "people", part.replace("0123", "f123")), "x");
    writeFileSync(join(folder, "sources", full, "20260101T000000Z-000000002.jsonl"), '{"slug":"s"}\n');
    const pending = [
      { stream: "people", part, name: "20260101T000000Z-000000003.jsonl" },
      { stream: "sources", part: full, name: "full-000000001" },
    ];
    const output = { numbers: { people: 3, sources: 2 }, pending };
    writeFileSync(join(folder, "state.json"), JSON.stringify({ bookmarks: {}, output }));
    expect(await read(sandbox, folder, "--stream", "companies")).toMatchObject({ code: 0 });
    expect([...filesIn(folder)].filter(([name]) => !name.startsWith("companies"))).toEqual([
      ["people/20260101T000000Z-000000003.jsonl", '{"id":"a"}\n'],
      ["sources/full-000000001/20260101T000000Z-000000002.jsonl", '{"slug":"s"}\n'],
    ]);
    expect(readdirSync(folder, { recursive: true }).join()).not.toContain("part");
    const saved = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
    expect(saved.output).toMatchObject({ ...output, pending: [{ stream: "companies" }] });
  });

  it.each([
    [["--state-file", "state.json"], 2, "leave out --state-file"],
    [["--stream", "nobody"], 2, "Cannot read the stream"],
  ])("refuses %j", async (words, code, said) => {
    await using sandbox = await startSandbox(SMALL);
    const ended = await read(sandbox, await tempDir(), ...words);
    expect(ended).toMatchObject({ code, stderr: expect.stringContaining(said) });
  });

  it.each([
    ["names of files that it does not give", { numbers: {}, pending: [{ ...STREAM, part: "../x" }] }],
    ["numbers that are none", { numbers: { people: -1 }, pending: [] }],
    ["no list", { numbers: {}, pending: {} }],
    ["entries that say nothing", { numbers: {}, pending: [null] }],
  ])("refuses a state with %s, and touches nothing", async (_what, output) => {
    await using sandbox = await startSandbox(SMALL);
    const folder = await tempDir();
    const text = JSON.stringify({ bookmarks: {}, output });
    writeFileSync(join(folder, "state.json"), text);
    const ended = await read(sandbox, folder, "--stream", "people");
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain("is not {numbers, pending} as this program writes it");
    expect(readFileSync(join(folder, "state.json"), "utf8")).toBe(text);
    expect(filesIn(folder).size).toBe(0);
  });

  it("says that the folder above is not there", async () => {
    await using sandbox = await startSandbox(SMALL);
    const ended = await read(sandbox, join(await tempDir(), "not", "there"));
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringMatching(/Cannot .*not.*there/) });
    expect(await read(sandbox, await file("a-file", "x"))).toMatchObject({ code: 2 });
  });
});
