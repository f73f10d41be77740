import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openSink, type Sink } from "../../../src/output/sink.ts";
import { Mask } from "../../../src/protocol/mask.ts";
import { checkpoint, close, open, records } from "../../support/events.ts";
import { tempDir, textsIn } from "../../support/temp-dir.ts";
import { testProcess } from "../../support/terminal.ts";

const START = "20260101T000000Z";
const nameOf = (number: number): string => `${START}-00000000${number}-people-2026-01-01_now.jsonl`;
const PART = `.${START}-0123456789abcdef.part`;
const FILE = { part: PART, name: nameOf(3) };
const COMMIT = { key: "people", state: { discoveredAt: "2" }, files: [FILE] };

/** Opens a folder with these files of people. @param output of its state.json; undefined: it has none */
async function openWith(
  output: object | null | undefined,
  names: readonly string[],
  folder: string,
): Promise<Sink> {
  mkdirSync(join(folder, "people"), { recursive: true });
  for (const name of names) writeFileSync(join(folder, "people", name), name);
  const state = { bookmarks: { people: { discoveredAt: "1" } }, output };
  if (output !== undefined) writeFileSync(join(folder, "state.json"), JSON.stringify(state));
  const process = testProcess();
  const clock = { ...process.clock, now: () => Date.UTC(2026, 2, 20, 10) };
  return await openSink({ output: folder }, () => "", new Mask(), { ...process, clock });
}

/** The numbers that the next file of people and the next state get. */
async function goOn(sink: Sink, folder: string): Promise<string | undefined> {
  await sink.emit(open("people"));
  await sink.emit(records("people", { id: "new" }));
  for (const event of [checkpoint("people", { discoveredAt: "3" }), close("people")]) await sink.emit(event);
  await sink.release();
  return readdirSync(join(folder, "people")).find((name) => name.startsWith("20260320T100000Z"));
}

const stateOf = (pending: unknown, numbers: unknown = { people: 2 }) => ({ version: 1, numbers, pending });

it.each<[string, object | null, string]>([
  [
    "of a build before 1.0",
    { numbers: {}, pending: [] },
    "a build before 1.0 wrote it. Read on with the build tagged 0.1",
  ],
  ["of a later format", { version: 2 }, "its format is 2, and this build knows format 1"],
  [
    "of a sample",
    { ...stateOf(null, {}), sample: 5 },
    "it has a sample of read --limit. Choose another folder",
  ],
  ...Object.entries({
    "that is null": null,
    "without numbers": stateOf(null, null),
    "with half a number": stateOf(null, { people: 1.5 }),
    "with a number below 0": stateOf(null, { people: -1 }),
    "with a commit that is none": stateOf([]),
    "with a commit of another stream": stateOf({ ...COMMIT, key: "pets" }),
    "with a commit without a state": stateOf({ ...COMMIT, state: undefined }),
    "with the part of another program": stateOf({ ...COMMIT, files: [FILE, { ...FILE, part: `x${PART}` }] }),
    "with a part elsewhere": stateOf({ ...COMMIT, files: [{ ...FILE, part: `../${PART}` }] }),
    "with another name": stateOf({ ...COMMIT, files: [{ ...FILE, name: `${nameOf(1)}.txt` }] }),
    "with a name elsewhere": stateOf({ ...COMMIT, files: [{ ...FILE, name: `../${nameOf(1)}` }] }),
  }).map(([what, output]): [string, object | null, string] => [what, output, "its state.json is damaged"]),
])("a folder %s is refused, and stays as it is", async (_what, output, why) => {
  const folder = await tempDir();
  await expect(openWith(output, [PART], folder)).rejects.toThrow(`Cannot use the folder "${folder}": ${why}`);
  expect(readdirSync(join(folder, "people"))).toEqual([PART]);
});

it("a folder finishes the commit of a killed run, removes other parts of ours, and leaves all else", async () => {
  const folder = await tempDir();
  const other = PART.replace("0123", "ffff");
  const foreign = [".hidden.part", "notes.txt", `x${PART}`];
  const names = [nameOf(1), nameOf(2), PART, other, ...foreign];
  for (const _again of ["the commit is pending", "it was finished, and the state is the old one"]) {
    const sink = await openWith(
      stateOf(COMMIT, { people: 3 }),
      _again.startsWith("the") ? names : [],
      folder,
    );
    await sink.release();
    expect(sink.saved.streams.get("people")).toEqual({ discoveredAt: "2" });
    const found = await textsIn(join(folder, "people"));
    expect(Object.keys(found).sort()).toEqual([nameOf(1), nameOf(2), nameOf(3), ...foreign].toSorted());
    expect(found[nameOf(3)]).toBe(PART);
    const saved = JSON.parse(readFileSync(join(folder, "state.json"), "utf8"));
    expect(saved).toEqual({
      bookmarks: { people: { discoveredAt: "2" } },
      output: stateOf(null, { people: 3 }),
    });
  }
});

it.each<[object | undefined, readonly string[], number]>([
  [{ people: 5 }, [nameOf(3)], 6],
  [undefined, [nameOf(3), nameOf(1)], 5],
  [{}, [nameOf(4), "full-000000009"], 11],
  [{}, [`${nameOf(6)}.gz`], 8],
  [{ people: 6 }, [`${nameOf(6)}.gz`], 7],
  [{}, [`${nameOf(6)}.txt`, "full-9", "a.jsonl"], 1],
])(
  "the next file of a folder has a higher number than its state and its files: %j %j",
  async (numbers, names, next) => {
    const folder = await tempDir();
    const sink = await openWith(numbers && stateOf(null, numbers), names, folder);
    expect(await goOn(sink, folder)).toMatch(new RegExp(`-00000*${next}-people\\.jsonl$`));
  },
);
