import { createHash } from "node:crypto";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { afterAll, describe, expect, it, vi } from "vitest";
import { replaceFiles } from "../../../src/commands/output-compact.ts";
import { RENEW_MS } from "../../../src/files/lock.ts";
import { Part } from "../../../src/files/part.ts";
import { Mask } from "../../../src/protocol/mask.ts";
import { newPartName, recover, startName, visibleFiles } from "../../../src/run/folder-state.ts";
import { openSink, type Sink, type SinkRuntime } from "../../../src/run/sink.ts";
import { StateFile } from "../../../src/run/state-file.ts";
import { parseStateText } from "../../../src/state/envelopes.ts";
import type { Event, RawLine } from "../../../src/streams/event.ts";
import { checkpoint, close, END, open } from "../../support/events.ts";
import { Crash, type CrashKind, MemoryDisk } from "../../support/memory-disk.ts";
import { runs } from "../../support/runs.ts";

const held = vi.hoisted(() => {
  // Another file of tests may have loaded the source with the real disk.
  vi.resetModules();
  return { disk: undefined as { readonly module: object } | undefined };
});
afterAll(() => void vi.resetModules());
vi.mock("node:fs/promises", async (original) => {
  const disk = ["readdir", "lstat", "stat", "mkdir", "link", "rename", "rm", "copyFile"];
  const names = ["open", "readFile", "writeFile", ...disk];
  const standIns = names.map((name) => [
    name,
    (...args: unknown[]) => Reflect.get(held.disk?.module ?? {}, name)(...args),
  ]);
  return { ...(await original<object>()), ...Object.fromEntries(standIns) };
});

/** One run: what it reads, how it goes about it, and how it ends. */
type Plan = {
  /** How many rows each of its windows has. */
  readonly windows: readonly number[];
  readonly width: number;
  readonly choices: readonly number[];
  readonly cutBytes: number;
  /** How much time (ms) passes each time that somebody looks at the clock: rows are committed once a minute. */
  readonly pace: number;
  readonly end: "complete" | "failed" | "interrupted" | CrashKind;
  readonly crashAt: number;
  /** Whether a reader takes the files that it sees afterwards. */
  readonly isTaken: boolean;
};

const plan: fc.Arbitrary<Plan> = fc.record({
  windows: fc.array(fc.nat({ max: 3 }), { maxLength: 6 }),
  width: fc.integer({ min: 1, max: 3 }),
  choices: fc.array(fc.nat(), { minLength: 20, maxLength: 20 }),
  cutBytes: fc.constantFrom(1, 12, 40, 1_000),
  pace: fc.constantFrom(0, 25_000, 60_000),
  end: fc.constantFrom("complete", "failed", "interrupted", "kill", "power", "kill", "power"),
  crashAt: fc.integer({ min: 1, max: 150 }),
  isTaken: fc.boolean(),
});

const ONE_ROW: Plan = {
  ...{ windows: [1], width: 1, choices: [0], cutBytes: 1 },
  ...{ pace: 0, end: "complete", crashAt: 0, isTaken: false },
};

const FOLDER = "out";
const SOURCES = ["s1", "s2", "s3"] as RawLine[];

function runtimeOf(pid: number, pace = 0): SinkRuntime {
  let time = 0;
  const sleep = async (ms: number): Promise<void> => {
    // Renewals say nothing here.
    if (ms === RENEW_MS) await new Promise(() => undefined);
    time += ms;
  };
  const monotonic = (): number => {
    time += pace;
    return time;
  };
  const clock = { now: () => Date.UTC(2026, 0, 1), monotonic, sleep };
  // Whoever held the lock before is dead: this test is about what it left.
  const processes = { ownName: String(pid), stateOf: () => "ended" as const };
  const stats = { noteSaved: () => undefined, notePublished: () => undefined };
  const signal = new AbortController().signal;
  return { clock, signal, pid, processes, stats, stdout: new PassThrough() };
}

const openFolder = (runtime: SinkRuntime, cutBytes?: number): Promise<Sink> =>
  openSink({ kind: "folder", path: FOLDER, gzip: false, cutBytes }, () => "", new Mask(), runtime);

const cursorOf = (state: unknown): number =>
  Number((state as { discoveredAt?: string } | undefined)?.discoveredAt ?? 0);

const rowsOf = (window: number, rows: number): RawLine[] =>
  Array.from({ length: rows }, (_, row) => `w${window}.${row}` as RawLine);

/** Runs windows side by side, as the reader of a stream does, until the plan's end. */
async function play(output: Sink, { windows, width, choices, end }: Plan, sizes: number[]): Promise<void> {
  const stream = "people";
  const from = cursorOf(output.saved.streams.get(stream));
  sizes.length = from;
  sizes.push(...windows);
  const at = 0;
  await output.emit(open(stream));
  const state = (covered: number) => ({
    version: 1,
    discoveredAt: String(from + covered),
    full_refresh: null,
  });
  const running: { window: number; left: RawLine[] }[] = [];
  const ended = new Set<number>();
  let [begun, prefix, step] = [0, 0, 0];
  const last = end === "complete" ? windows.length : Math.floor(windows.length / 2);
  while (prefix < last) {
    while (running.length < width && begun < windows.length) {
      running.push({ window: begun, left: rowsOf(from + begun, windows[begun] ?? 0) });
      begun += 1;
    }
    const chosen = (choices[step++ % choices.length] ?? 0) % running.length;
    const one = running[chosen];
    const row = one?.left.shift();
    if (one !== undefined && row !== undefined) {
      await output.emit({ kind: "records", stream, lines: [row], at, window: one.window });
      continue;
    }
    running.splice(chosen, 1);
    ended.add(one?.window ?? 0);
    const before = prefix;
    while (ended.has(prefix)) prefix += 1;
    if (prefix > before)
      await output.emit({ kind: "checkpoint", stream, state: state(prefix), windows: prefix });
  }
  if (end === "interrupted") return await output.emit(END);
  if (end === "complete")
    await output.emit({ kind: "checkpoint", stream, state: state(prefix), windows: prefix });
  const source = (...lines: RawLine[]): Event => ({ kind: "records", stream: "sources", lines, at });
  for (const event of [
    end === "failed" ? close(stream, false, new Error()) : close(stream),
    open("sources"),
    source(...SOURCES.slice(0, 2)),
    source(...SOURCES.slice(2)),
    checkpoint("sources", { version: 1, full_refresh: null }),
    close("sources"),
    END,
  ])
    await output.emit(event);
}

const isVisible = (path: string): boolean => !path.includes("/.") && path.endsWith(".jsonl");

const visible = (disk: MemoryDisk, stream: string): [path: string, text: string][] =>
  [...disk.files(FOLDER)].filter(([path]) => isVisible(path) && path.startsWith(`${FOLDER}/${stream}/`));

const linesIn = (files: readonly (readonly [string, string])[]): string[] =>
  files.flatMap(([, text]) => text.split("\n").slice(0, -1));

/** What the folder's manifest must say of some files. */
const described = (files: readonly (readonly [string, string])[]): unknown[] =>
  files
    .map(([path, text]) => ({
      file: path.slice(FOLDER.length + 1),
      ...{ rows: linesIn([[path, text]]).length, bytes: text.length },
      sha256: createHash("sha256").update(text).digest("hex"),
    }))
    .toSorted((a, b) => (a.file < b.file ? -1 : 1));

function expectedRows(disk: MemoryDisk, sizes: readonly number[]): string[] {
  const text = disk.files(FOLDER).get(`${FOLDER}/state.json`) ?? "";
  const covered = cursorOf(parseStateText(text).streams.get("people"));
  return sizes.slice(0, covered).flatMap((rows, window) => rowsOf(window, rows));
}

/** Plays a chain of runs and holds every file that a reader could see against the state. */
async function check(plans: readonly Plan[]): Promise<number> {
  const disk = new MemoryDisk();
  held.disk = disk;
  const sizes: number[] = [];
  const taken: [string, string][] = [];
  let seen = new Map<string, string>();
  let operations = 0;

  const look = (): void => {
    const people = [...taken, ...visible(disk, "people")];
    expect(linesIn(people).toSorted()).toEqual(expectedRows(disk, sizes).toSorted());
    const manifest = disk.files(FOLDER).get(`${FOLDER}/manifest.json`) ?? '{"files":[]}';
    const { files } = JSON.parse(manifest) as { files: { file: string }[] };
    expect(files.toSorted((a, b) => (a.file < b.file ? -1 : 1))).toEqual(
      described([...people, ...visible(disk, "sources")]),
    );
    const folders = visible(disk, "sources").map(([path]) => path.split("/").slice(0, 3).join("/"));
    for (const folder of new Set(folders)) expect(linesIn([...disk.files(folder)])).toEqual(SOURCES);
    const now = new Map([...visible(disk, "people"), ...visible(disk, "sources")]);
    for (const [path, text] of seen) expect(now.get(path), path).toBe(text);
    seen = now;
  };

  for (const [index, one] of plans.entries()) {
    const crashes = one.end === "kill" || one.end === "power";
    disk.start(crashes ? one.crashAt : undefined);
    try {
      const output = await openFolder(runtimeOf(index, one.pace), one.cutBytes);
      look();
      await play(output, crashes ? { ...one, end: "complete" } : one, sizes);
      await output.release();
      if (!crashes)
        expect([...disk.files(FOLDER).keys()].filter((path) => /\.part|\.lock|\.tmp/.test(path))).toEqual([]);
    } catch (error) {
      if (!crashes || !hasCrash(error)) throw error;
    }
    operations = Math.max(operations, disk.operations);
    let choice = 0;
    if (crashes)
      disk.crash(one.end === "kill" ? "kill" : "power", (below) => (one.choices[choice++ % 20] ?? 0) % below);
    // A reader sees no row before a state covers it.
    const early = linesIn([...taken, ...visible(disk, "people")]);
    const covered = new Set(expectedRows(disk, sizes));
    expect(early.filter((row) => !covered.has(row))).toEqual([]);
    expect(new Set(early).size).toBe(early.length);
    if (one.isTaken) {
      for (const file of visible(disk, "people")) {
        taken.push(file);
        disk.take(file[0]);
        seen.delete(file[0]);
      }
    }
  }
  disk.start();
  await (await openFolder(runtimeOf(99))).release();
  look();
  return operations;
}

const hasCrash = (error: unknown): boolean =>
  error instanceof Crash || (error instanceof Error && hasCrash(error.cause ?? undefined));

describe("FolderSink on a disk that fails", () => {
  it.each([
    ["removes its parts where the new state cannot have taken effect", "state.json.", 0],
    ["leaves its parts to the next run where it can", FOLDER, 1],
  ])("%s", async (_what, refused, left) => {
    const disk = new MemoryDisk();
    held.disk = disk;
    disk.start();
    const output = await openFolder(runtimeOf(0), 1);
    const stream = "people";
    const state = { version: 1, discoveredAt: "1", full_refresh: null };
    await output.emit(open(stream));
    await output.emit({ kind: "records", stream, lines: rowsOf(0, 1), at: 0, window: 0 });
    disk.refuses = (path) => path === refused || path.startsWith(`${FOLDER}/${refused}`);
    await expect(output.emit({ kind: "checkpoint", stream, windows: 1, state })).rejects.toThrow(
      "Cannot replace the state file",
    );
    disk.refuses = () => false;
    await output.release();
    expect([...disk.files(FOLDER).keys()].filter((path) => path.includes(".part"))).toHaveLength(left);
    await (await openFolder(runtimeOf(1), 1)).release();
    expect(linesIn(visible(disk, stream))).toEqual(expectedRows(disk, [1]));
    expect(linesIn(visible(disk, stream))).toHaveLength(left);
  });
});

describe("FolderSink over crashes", () => {
  it("holds exactly the records that the state covers, in every chain of runs, kills and power cuts", async () => {
    const numRuns = Number(process.env["FOLDER_CHAINS"] ?? runs(50, 150));
    await fc.assert(
      fc.asyncProperty(
        fc.array(plan, { minLength: 1, maxLength: 4 }),
        async (plans) => void (await check(plans)),
      ),
      { numRuns },
    );
  });

  it("holds them after a crash at each single operation of a run", async () => {
    const choices = [0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0];
    const one: Plan = { ...ONE_ROW, windows: [2, 0, 3, 1, 2], width: 2, choices, cutBytes: 12 };
    const operations = await check([one]);
    expect(operations).toBeGreaterThan(60);
    for (let crashAt = 1; crashAt <= operations; crashAt += 1) {
      for (const end of ["kill", "power"] as const) await check([{ ...one, end, crashAt }, one]);
    }
  });

  it("holds them when the power goes while a run finishes what a killed one left", async () => {
    const operations = await check([ONE_ROW]);
    for (let killedAt = 1; killedAt <= operations; killedAt += 1) {
      const killed: Plan = { ...ONE_ROW, end: "kill", crashAt: killedAt };
      // What a run does before it reads, and a little of the reading.
      for (let cutAt = 9; cutAt <= 27; cutAt += 9)
        await check([killed, { ...ONE_ROW, end: "power", crashAt: cutAt }, ONE_ROW]);
      // A run without a row replaces the state, which named what the killed one left.
      for (let cutAt = 30; cutAt <= 60; cutAt += 10)
        await check([killed, { ...ONE_ROW, windows: [], end: "power", crashAt: cutAt }, ONE_ROW]);
    }
  });
});

describe("compaction over crashes", () => {
  /** Makes one file of all of people's, as `output compact` does once it has the rows. */
  async function compact(disk: MemoryDisk, pid: number): Promise<void> {
    const state = await StateFile.open(`${FOLDER}/state.json`, runtimeOf(pid));
    const files = await recover(FOLDER, state.saved.rest["output"]);
    const names = await visibleFiles(FOLDER, "people");
    const start = startName(Date.UTC(2026, 0, 1));
    const part = new Part(`${FOLDER}/people/${newPartName(start)}`, false, 1);
    const lines = linesIn(visible(disk, "people"));
    for (const line of lines) await part.append(`${line}\n`, 1);
    const merged = { part, content: await part.seal(), rows: lines.length, start, gzip: false };
    await replaceFiles(FOLDER, "people", names, merged, files, state);
    await state.release();
  }

  it.each(["kill", "power"] as const)(
    "shows every row at any time, and each once after a %s",
    async (end) => {
      for (let crashAt = 1, isOver = false; !isOver; crashAt += 1) {
        const disk = new MemoryDisk();
        held.disk = disk;
        disk.start();
        const sizes: number[] = [];
        const first = { ...ONE_ROW, windows: [2, 1, 3], cutBytes: 1 };
        for (const pid of [0, 1]) {
          const output = await openFolder(runtimeOf(pid), 1);
          await play(output, first, sizes);
          await output.release();
        }
        const rows = expectedRows(disk, sizes);
        expect(visible(disk, "people")).toHaveLength(6);
        disk.start(crashAt);
        isOver = await compact(disk, 2).then(
          () => true,
          (error: unknown) => {
            if (!hasCrash(error)) throw error;
            return false;
          },
        );
        let choice = crashAt;
        disk.crash(end, (below) => choice++ % below);
        expect([...new Set(linesIn(visible(disk, "people")))].toSorted()).toEqual(rows.toSorted());
        disk.start();
        await (await openFolder(runtimeOf(3))).release();
        const files = visible(disk, "people");
        expect(linesIn(files).toSorted()).toEqual(rows.toSorted());
        expect([1, 6]).toContain(files.length);
        if (isOver) expect(files).toHaveLength(1);
        const manifest = JSON.parse(disk.files(FOLDER).get(`${FOLDER}/manifest.json`) ?? "") as {
          files: { file: string }[];
        };
        expect(manifest.files.filter(({ file }) => file.startsWith("people/"))).toEqual(described(files));
      }
    },
  );
});
