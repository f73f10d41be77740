import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OutputError } from "../../../src/base/errors.ts";
import { openSink, type Saved } from "../../../src/output/sink.ts";
import { Mask } from "../../../src/protocol/mask.ts";
import type { Event } from "../../../src/sync/event.ts";
import { checkpoint, close, open, records } from "../../support/events.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { testProcess } from "../../support/terminal.ts";

/** A folder that takes events, and what it has saved by now. */
async function sinkOf(path: string, more: object = {}, clock: object = {}) {
  const noted: Saved[] = [];
  const process = testProcess();
  const runtime = {
    ...process,
    clock: { ...process.clock, now: () => Date.UTC(2026, 2, 20, 10), ...clock },
  };
  const sink = await openSink({ output: path, ...more }, () => "", new Mask(), runtime);
  const emit = async (...events: readonly Event[]): Promise<void> => {
    for (const event of events) noted.push(...[await sink.emit(event)].flatMap((saved) => saved ?? []));
  };
  return { sink, emit, noted };
}

/** The result; undefined if it cannot be had. */
function attempt<Result>(act: () => Result): Result | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

const at = (discoveredAt: string) => checkpoint("people", { version: 2, discoveredAt });
const row = (id: number, window = 0): Event => ({ ...records("people", { id: `${id}` }), window }) as Event;
const stateIn = (folder: string) => JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
const namesIn = (folder: string): readonly string[] => readdirSync(folder).sort();
const rowsIn = (folder: string): readonly (readonly string[])[] =>
  namesIn(folder).map((name) =>
    readFileSync(join(folder, name), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).id),
  );

describe("the folder of read --output", () => {
  it("commits once a minute has passed, or enough bytes, or an announcement has come, and not before", async () => {
    const [folder, large] = [await tempDir(), await tempDir()];
    let now = 0;
    const { sink, emit, noted } = await sinkOf(folder, {}, { monotonic: () => now });
    const saved = (): number => noted.length;
    await emit(open("people"), row(1), at("1"));
    now = 59_999;
    await emit(row(2), at("2"));
    expect(saved()).toBe(0);
    now = 60_000;
    await emit(row(3), at("3"));
    expect(saved()).toBe(1);
    now = 119_999;
    await emit(row(4), at("4"));
    expect(saved()).toBe(1);
    await emit({ ...at("5"), announces: true } as Event);
    expect(saved()).toBe(2);
    await emit(row(6), at("6"), { kind: "end" });
    expect(saved()).toBe(3);
    await sink.release();
    expect(rowsIn(join(folder, "people"))).toEqual([["1", "2", "3"], ["4"], ["6"]]);
    const other = await sinkOf(large, { fileBytes: 20 });
    await other.emit(open("people"), row(1), at("1"));
    expect(other.noted).toHaveLength(0);
    await other.emit(row(2), at("2"));
    expect(other.noted).toHaveLength(1);
    await other.sink.release();
  });

  it("publishes the rows of windows that a state covers, and removes the others", async () => {
    const folder = await tempDir();
    const { sink, emit } = await sinkOf(folder);
    await emit(open("people"), row(1, 0), row(2, 1), row(3, 2));
    await emit({ ...at("1"), windows: 2 } as Event, close("people", false));
    await sink.release();
    expect(rowsIn(join(folder, "people"))).toEqual([["1"], ["2"]]);
  });

  it("lets rows that come after a checkpoint of their window join the file, or leaves them out", async () => {
    const folder = await tempDir();
    const { sink, emit } = await sinkOf(folder);
    await emit(open("people"), row(1), row(2, 1), { ...at("1"), windows: 1 } as Event, row(3), row(4, 1));
    await emit({ ...at("2"), windows: 2 } as Event, row(5), row(6, 1), close("people", false));
    await sink.release();
    expect(rowsIn(join(folder, "people"))).toEqual([
      ["1", "3"],
      ["2", "4"],
    ]);
  });

  it("makes one folder of each complete reading of a stream that is read from the start", async () => {
    const folder = await tempDir();
    const sources = checkpoint("sources", { version: 2, full_refresh: null });
    const slug = (name: string): Event => records("sources", { slug: name });
    for (const [names, complete] of [
      [["a"], true],
      [["b"], false],
      [["a"], true],
      [["c"], true],
    ] as const) {
      const { sink, emit } = await sinkOf(folder);
      await emit(open("sources"), ...names.map(slug), sources, close("sources", complete));
      await sink.release();
    }
    const made = namesIn(join(folder, "sources"));
    expect(made).toHaveLength(2);
    for (const [nth, name] of made.entries()) {
      expect(name).toMatch(/^full-\d{9}$/);
      const [inside = "", ...more] = namesIn(join(folder, "sources", name));
      expect(more).toEqual([]);
      expect(readFileSync(join(folder, "sources", name, inside), "utf8")).toBe(`{"slug":"${"ac"[nth]}"}\n`);
    }
  });

  it("keeps few rows in memory and no file open during a refresh of many windows", async () => {
    const folder = await tempDir();
    const people = join(folder, "people");
    const { sink, emit } = await sinkOf(folder);
    const state = { version: 1, discoveredAt: "1", full_refresh: { done: false } };
    const row = records("people", { id: "x".repeat(100_000) });
    await emit(open("people"));
    for (let window = 0; window < 40; window += 1) {
      const rows = Array.from({ length: window % 10 === 0 ? 10 : 1 }, () => ({ ...row, window }) as Event);
      await emit(...rows, { ...checkpoint("people", state), windows: window + 1 } as Event);
    }
    const written = namesIn(people).reduce((sum, name) => sum + statSync(join(people, name)).size, 0);
    expect(written).toBeGreaterThan(76 * 100_000 - 600_000);
    const files = existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd") : [];
    const names = files.map((fd) => attempt(() => readlinkSync(`/proc/self/fd/${fd}`)) ?? "");
    expect(names.filter((name) => name.startsWith(people))).toEqual([]);
    await sink.release();
  });

  it("leaves nothing hidden behind a write that fails, and takes nothing afterwards", async () => {
    const folder = await tempDir();
    const { sink, emit } = await sinkOf(folder);
    await emit(open("people"), row(1), at("1"), close("people"));
    rmSync(join(folder, "state.json.previous"));
    mkdirSync(join(folder, "state.json.previous"));
    await emit(open("people"), row(2), at("2"));
    await expect(emit(close("people"))).rejects.toThrow(OutputError);
    const names = namesIn(join(folder, "people"));
    expect(names).toHaveLength(1);
    await emit(row(3), at("3"), close("people"));
    expect(namesIn(join(folder, "people"))).toEqual(names);
    await sink.release();
    expect(namesIn(folder)).toEqual(["people", "state.json", "state.json.previous"]);
    expect(stateIn(folder).bookmarks.people.discoveredAt).toBe("1");
  });

  it("calls it a failure of the output that no folder of a stream can be made", async () => {
    const folder = await tempDir();
    const { sink, emit } = await sinkOf(folder);
    rmSync(folder, { recursive: true });
    await expect(emit(open("people"))).rejects.toThrow(OutputError);
    await sink.release();
  });

  it("writes a row again only if its newest files do not have it as the newest of its key", async () => {
    const folder = await tempDir();
    const person = (id: number, name: string): Event =>
      ({ ...records("people", { id: `${id}`, name }), why: "lookback" }) as Event;
    /** The rows that a run adds. */
    const added = async (...rows: readonly Event[]): Promise<readonly string[]> => {
      const before = existsSync(join(folder, "people")) ? namesIn(join(folder, "people")) : [];
      const { sink, emit } = await sinkOf(folder);
      await emit(open("people"), ...rows, at("1"), close("people"));
      await sink.release();
      const names = namesIn(join(folder, "people")).filter((name) => !before.includes(name));
      return names.map((name) =>
        readFileSync(join(folder, "people", name), "utf8").replace(/[^\da-z]|id|name/g, ""),
      );
    };
    expect(await added(person(1, "a"), person(2, "a"))).toEqual(["1a2a"]);
    expect(await added(person(1, "a"), person(2, "a"))).toEqual([]);
    expect(await added(person(1, "b"), person(2, "a"), person(3, "a"))).toEqual(["1b3a"]);
    // An older file has this row, and a newer one has another of its key.
    expect(await added(person(1, "a"), person(3, "a"))).toEqual(["1a"]);
    expect(await added(records("people", { id: "1", name: "a" }), person(3, "a"))).toEqual(["1a"]);
    rmSync(join(folder, "people", namesIn(join(folder, "people")).at(-1) ?? ""));
    expect(await added(person(1, "a"), person(2, "a"))).toEqual(["1a2a"]);
    rmSync(join(folder, "state.json"));
    expect(await added(person(1, "a"), person(2, "a"))).toEqual(["1a2a"]);
    expect(await added(person(1, "a"), person(2, "a"))).toEqual([]);
  });
});
