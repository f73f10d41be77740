import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { destinationOf, onlyRead } from "../../../src/run/sink.ts";
import { tempDir } from "../../support/temp-dir.ts";

const FORM = { gzip: false, cutBytes: undefined, sample: undefined };

it.each([
  [{ state: undefined }, { kind: "stdout", state: undefined }],
  [{ state: "s" }, { kind: "stdout", state: "s" }],
  [
    { state: undefined, stateFile: "f" },
    { kind: "state file", path: "f" },
  ],
  [
    { state: undefined, output: "o" },
    { kind: "folder", path: "o", state: undefined, ...FORM },
  ],
  [
    { state: "s", output: "o", compress: "gzip", fileBytes: 7 } as const,
    { kind: "folder", path: "o", state: "s", ...FORM, gzip: true, cutBytes: 7 },
  ],
  [
    { state: "s", stateFile: "f", output: "o", limit: 3 },
    { kind: "folder", path: "o", state: "s", ...FORM, sample: 3 },
  ],
  [
    { state: "s", limit: 3 },
    { kind: "stdout", state: "s" },
  ],
  [
    { state: undefined, stateFile: "none", limit: 3 },
    { kind: "stdout", state: undefined },
  ],
])("the options %j of a command mean the place %j", (places, place) => {
  expect(destinationOf(places)).toEqual(place);
});

it("a run that changes nothing goes on from --state, else from the state of its folder or file, if there is one", async () => {
  const folder = await tempDir();
  const path = join(folder, "state.json");
  const places = { state: undefined, output: folder };
  expect(onlyRead(places)).toEqual({ kind: "stdout", state: undefined });
  await writeFile(path, "{}");
  expect(onlyRead(places)).toEqual({ kind: "stdout", state: path });
  expect(onlyRead({ ...places, state: "s" })).toEqual({ kind: "stdout", state: "s" });
  expect(onlyRead({ state: undefined, stateFile: path })).toEqual({ kind: "stdout", state: path });
  expect(onlyRead({ state: undefined, stateFile: `${path}.none` })).toEqual({
    kind: "stdout",
    state: undefined,
  });
  // A sample is shown as rows from where the next run would go on.
  expect(destinationOf({ state: undefined, stateFile: path, limit: 3 })).toEqual({
    kind: "stdout",
    state: path,
  });
});
