import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { recover, startName, visibleFiles } from "../../../src/output/folder-state.ts";
import { readManifest } from "../../../src/output/manifest.ts";
import { tempDir, textsIn } from "../../support/temp-dir.ts";

it("visibleFiles() names the files of a stream by their numbers, whatever their runs' clocks said", async () => {
  const folder = await tempDir();
  await mkdir(join(folder, "people"));
  const [early, late] = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 2)].map(startName);
  const names = [
    `${late}-000000001.jsonl`,
    `${early}-000000002.jsonl`,
    `${late}-000000003.jsonl.gz`,
    `${early}-000000004.jsonl`,
  ];
  for (const name of [...names.toReversed(), "notes.txt"]) await writeFile(join(folder, "people", name), "");
  expect(await visibleFiles(folder, "people")).toEqual(names);
  expect(await visibleFiles(folder, "companies")).toEqual([]);
});

const START = startName(Date.UTC(2026, 0, 1));
const nameOf = (number: number): string => `${START}-00000000${number}.jsonl`;
const PART = `.${START}-0123456789abcdef.part`;
const PENDING = { stream: "people", part: PART, name: nameOf(3) };
const contentOf = (number: number) => ({ file: `people/${nameOf(number)}`, rows: 1, bytes: 2, sha256: "a" });

it.each<[string, unknown]>([
  ["null", null],
  ["no numbers", { pending: [] }],
  ["no list of what is pending", { numbers: {}, pending: {} }],
  ["nothing that is pending", { numbers: {}, pending: [PENDING, null] }],
  ["half a number", { numbers: { people: 1.5 }, pending: [] }],
  ["a number below 0", { numbers: { companies: 1, people: -1 }, pending: [] }],
  ...Object.entries({
    "another stream": { stream: "nobody" },
    "the part of another program": { part: `x${PART}` },
    "a part elsewhere": { part: `../${PART}` },
    "another name": { name: `${nameOf(1)}.txt` },
    "a name elsewhere": { name: `../${nameOf(1)}` },
    "a file without rows": { files: [contentOf(1), { ...contentOf(1), rows: null }] },
    "a file without a digest": { files: [{ ...contentOf(1), sha256: 1 }] },
    "a file elsewhere": { files: [{ ...contentOf(1), file: `../${nameOf(1)}` }] },
    "what is replaced elsewhere": { replaces: [nameOf(1), "../x"] },
  }).map(([what, changes]): [string, unknown] => [
    what,
    { numbers: {}, pending: [PENDING, { ...PENDING, ...changes }] },
  ]),
])("recover() refuses a state with %s, and touches nothing", async (_what, output) => {
  const folder = await tempDir();
  await mkdir(join(folder, "people"));
  await writeFile(join(folder, "people", PART), "{}");
  await expect(recover(folder, output)).rejects.toThrow(
    'Cannot use the state of the folder: "output" is not {numbers, pending} as this program writes it',
  );
  expect(await readdir(join(folder, "people"))).toEqual([PART]);
});

it("recover() finishes what is pending, removes other parts of ours, and leaves all else", async () => {
  const folder = await tempDir();
  const people = join(folder, "people");
  await mkdir(people);
  const other = PART.replace("0123", "ffff");
  const foreign = [".hidden.part", "notes.txt", `x${PART}`];
  for (const name of [nameOf(1), nameOf(2), PART, other, ...foreign])
    await writeFile(join(people, name), name);
  const pending = [{ ...PENDING, files: [contentOf(3)], replaces: [nameOf(1)] }];
  const { numbers, manifest } = await recover(folder, { numbers: { people: 2, sources: 7 }, pending });
  expect([...numbers]).toEqual([
    ["people", 3],
    ["sources", 7],
  ]);
  expect([manifest, await readManifest(folder)]).toEqual([[contentOf(3)], [contentOf(3)]]);
  const left = [nameOf(2), nameOf(3), ...foreign];
  expect(Object.keys(await textsIn(people)).sort()).toEqual(left.toSorted());
  expect((await textsIn(people))[nameOf(3)]).toBe(PART);
  // Once more, as after a run that was killed right before it replaced the state.
  const again = await recover(folder, { numbers: { people: 2, sources: 7 }, pending });
  expect([again.numbers.get("people"), again.manifest]).toEqual([3, [contentOf(3)]]);
  expect(Object.keys(await textsIn(people)).sort()).toEqual(left.toSorted());
});

it.each([
  [{ people: 5 }, [nameOf(3)], 5],
  [{ people: 2 }, [nameOf(3), nameOf(1)], 3],
  [{}, [nameOf(4), "full-000000009"], 9],
  [{}, [`${nameOf(6)}.gz`], 6],
  [{}, [`${nameOf(6)}.txt`, "full-9", "a.jsonl"], undefined],
])(
  "recover() numbers on from the last file that a state or a folder knows: %j %j",
  async (numbers: object, names, last) => {
    const folder = await tempDir();
    await mkdir(join(folder, "people"));
    for (const name of names) await writeFile(join(folder, "people", name), "");
    const found = await recover(folder, { numbers, pending: [] });
    expect([found.numbers.get("people"), found.manifest]).toEqual([last, []]);
    expect((await recover(folder, undefined)).numbers.has("companies")).toBe(false);
  },
);
