import { PassThrough } from "node:stream";
import fc from "fast-check";
import { expect } from "vitest";
import { RENEW_MS } from "../../src/output/files/lock.ts";
import type { FolderState } from "../../src/output/folder-state.ts";
import { openSink, type Sink, type SinkRuntime } from "../../src/output/sink.ts";
import { Mask } from "../../src/protocol/mask.ts";
import { parseStateText } from "../../src/state/envelopes.ts";
import type { Event, RawLine } from "../../src/sync/event.ts";
import { checkpoint, close, END, open } from "./events.ts";
import { Crash, type CrashKind, MemoryDisk, mounted } from "./memory-disk.ts";

/** One run: what it reads, how it goes about it, and how it ends. */
export const plan = fc.record({
  /** How many rows each of its windows has. */
  windows: fc.array(fc.nat({ max: 3 }), { maxLength: 6 }),
  width: fc.integer({ min: 1, max: 3 }),
  choices: fc.array(fc.nat(), { minLength: 20, maxLength: 20 }),
  commitBytes: fc.constantFrom<number[]>(1, 12, 40, 1_000),
  /** How much time (ms) passes at each look at the clock. Rows are committed once a minute. */
  pace: fc.constantFrom<number[]>(0, 25_000, 60_000),
  end: fc.constantFrom<End[]>("complete", "failed", "interrupted", "kill", "power", "kill", "power"),
  crashAt: fc.integer({ min: 1, max: 150 }),
  /** After how many rows a checkpoint comes that covers the rows of unfinished windows too. */
  early: fc.integer({ min: 1, max: 12 }),
  /** Whether a reader takes the files that it sees afterwards. */
  isTaken: fc.boolean(),
});
type End = "complete" | "failed" | "interrupted" | CrashKind;
export type Plan = typeof plan extends fc.Arbitrary<infer Value> ? Value : never;

export const ONE_ROW: Plan = {
  ...{ windows: [1], width: 1, choices: [0], commitBytes: 1 },
  ...{ pace: 0, end: "complete", crashAt: 0, early: 100, isTaken: false },
};

export const FOLDER = "out";
const SOURCES = ["s1", "s2", "s3"] as RawLine[];

export function runtimeOf(pid: number, pace = 0): SinkRuntime {
  let time = 0;
  const sleep = async (ms: number): Promise<void> => {
    // Renewals say nothing here.
    if (ms === RENEW_MS) await new Promise(() => undefined);
    time += ms;
  };
  return {
    ...{ pid, stdout: new PassThrough(), signal: new AbortController().signal },
    clock: { now: () => Date.UTC(2026, 0, 1), monotonic: () => (time += pace), sleep },
    // The process that had the lock is dead.
    processes: { ownName: String(pid), stateOf: () => "ended" },
  };
}

export const openFolder = (runtime: SinkRuntime, commitBytes?: number): Promise<Sink> =>
  openSink({ output: FOLDER, fileBytes: commitBytes }, () => "", new Mask(), runtime);

/** What a state of this test covers: complete windows, and some rows of the windows after them. */
type Covered = { readonly discoveredAt?: string; readonly rows?: readonly RawLine[] };
const cursorOf = (state: unknown): number => Number((state as Covered | undefined)?.discoveredAt ?? 0);
const earlyIn = (state: unknown): readonly RawLine[] => (state as Covered | undefined)?.rows ?? [];
const windowOf = (row: string): number => Number(/\d+/.exec(row)?.[0]);

export const rowsOf = (window: number, rows: number): RawLine[] =>
  Array.from({ length: rows }, (_, row) => `w${window}.${row}` as RawLine);

/** Runs windows side by side, as the reader of a stream does, until the plan's end. */
async function play(output: Sink, plan: Plan, sizes: number[]): Promise<void> {
  const { windows, width, choices, end } = plan;
  const stream = "people";
  const before = output.saved.streams.get(stream);
  const from = cursorOf(before);
  // A window of which a state covers rows has at least these.
  const early = earlyIn(before);
  const least = windows.map((rows, nth) =>
    Math.max(
      rows,
      ...early.filter((row) => windowOf(row) === from + nth).map((row) => 1 + Number(row.split(".")[1])),
    ),
  );
  sizes.splice(from, Number.POSITIVE_INFINITY, ...least);
  const at = 0;
  await output.emit(open(stream));
  let covered = early;
  const emitted = [...early];
  const saved = (prefix: number, windows = prefix): Promise<unknown> => {
    const rows = covered.filter((row) => windowOf(row) >= from + prefix);
    const state = { version: 1, discoveredAt: String(from + prefix), rows, full_refresh: null };
    return output.emit({ kind: "checkpoint", stream, state, windows });
  };
  const running: { window: number; left: RawLine[] }[] = [];
  const ended = new Set<number>();
  let [begun, prefix, step] = [0, 0, 0];
  const last = end === "complete" ? windows.length : Math.floor(windows.length / 2);
  while (prefix < last) {
    while (running.length < width && begun < windows.length) {
      const left = rowsOf(from + begun, least[begun] ?? 0).filter((row) => !early.includes(row));
      running.push({ window: begun, left });
      begun += 1;
    }
    const chosen = (choices[step++ % choices.length] ?? 0) % running.length;
    const one = running[chosen];
    const row = one?.left.shift();
    if (one !== undefined && row !== undefined) {
      await output.emit({ kind: "records", stream, lines: [row], at, window: one.window });
      emitted.push(row);
      if (emitted.length % plan.early > 0) continue;
      covered = [...emitted];
      await saved(prefix, begun);
      continue;
    }
    running.splice(chosen, 1);
    ended.add(one?.window ?? 0);
    const before = prefix;
    while (ended.has(prefix)) prefix += 1;
    if (prefix > before) await saved(prefix);
  }
  if (end === "interrupted") return void (await output.emit(END));
  if (end === "complete") await saved(prefix);
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

export const visible = (disk: MemoryDisk, stream: string): [path: string, text: string][] =>
  [...disk.files(FOLDER)].filter(([path]) => isVisible(path) && path.startsWith(`${FOLDER}/${stream}/`));

export const linesIn = (files: readonly (readonly [string, string])[]): string[] =>
  files.flatMap(([, text]) => text.split("\n").slice(0, -1));

/** The rows that the state of the folder covers, and those of the commit that the next run finishes. */
export function expectedRows(disk: MemoryDisk, sizes: readonly number[], isFinished = true): string[] {
  const text = disk.files(FOLDER).get(`${FOLDER}/state.json`) ?? "";
  const { streams, rest } = parseStateText(text);
  const pending = (rest["output"] as FolderState | undefined)?.pending;
  const isPeople = isFinished && pending?.key === "people";
  const state = isPeople ? pending.state : streams.get("people");
  const whole = sizes.slice(0, cursorOf(state)).flatMap((rows, window) => rowsOf(window, rows));
  return [...whole, ...earlyIn(state)];
}

/** Plays a chain of runs and holds every file that a reader could see against the state. */
export async function check(plans: readonly Plan[]): Promise<number> {
  const disk = new MemoryDisk();
  mounted.disk = disk;
  const sizes: number[] = [];
  const taken: [string, string][] = [];
  let seen = new Map<string, string>();
  let operations = 0;

  const look = (): void => {
    const people = [...taken, ...visible(disk, "people")];
    expect(linesIn(people).toSorted()).toEqual(expectedRows(disk, sizes).toSorted());
    const folders = visible(disk, "sources").map(([path]) => path.split("/").slice(0, 3).join("/"));
    for (const folder of new Set(folders)) expect(linesIn([...disk.files(folder)])).toEqual(SOURCES);
    const now = new Map([...visible(disk, "people"), ...visible(disk, "sources")]);
    for (const [path, text] of seen) expect(now.get(path), path).toBe(text);
    seen = now;
  };

  for (const [index, one] of plans.entries()) {
    const { end, choices } = one;
    const crashes = end === "kill" || end === "power";
    disk.start(crashes ? one.crashAt : undefined);
    try {
      const output = await openFolder(runtimeOf(index, one.pace), one.commitBytes);
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
    if (crashes) disk.crash(end, (below) => (choices[choice++ % 20] ?? 0) % below);
    // A reader sees no row before a state covers it.
    const early = linesIn([...taken, ...visible(disk, "people")]);
    const covered = new Set(expectedRows(disk, sizes));
    expect(early.filter((row) => !covered.has(row))).toEqual([]);
    expect(new Set(early).size).toBe(early.length);
    // And the state alone, which may be handed on, covers no row that no reader sees.
    expect(expectedRows(disk, sizes, false).filter((row) => !early.includes(row))).toEqual([]);
    for (const file of one.isTaken ? visible(disk, "people") : []) {
      taken.push(file);
      disk.take(file[0]);
      seen.delete(file[0]);
    }
  }
  disk.start();
  await (await openFolder(runtimeOf(99))).release();
  look();
  return operations;
}

export const hasCrash = (error: unknown): boolean =>
  error instanceof Crash || (error instanceof Error && hasCrash(error.cause ?? undefined));
