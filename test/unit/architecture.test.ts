import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../support/run.ts";

/** What each part may import besides itself. Imports point down only. */
const LAYERS: Readonly<Record<string, string>> = {
  base: "",
  "output/files": "base",
  sync: "base",
  config: "base output/files privacy",
  catalog: "base config",
  privacy: "base catalog config output/files",
  state: "base catalog config output/files sync",
  service: "base catalog config output/files sync",
  jobs: "base catalog config output/files privacy service state sync",
  shards: "base config state sync",
  protocol: "base catalog config output/files sync",
  output: "base catalog config output/files protocol run service state sync",
  run: "base catalog config output output/files protocol service state sync",
  reconcile: "base output/files sync",
  sandbox: "sandbox/data sandbox/faults sandbox/http",
  "sandbox/http": "sandbox/data sandbox/faults",
  "sandbox/faults": "sandbox/data",
  "sandbox/data": "",
  commands:
    "base catalog config jobs output output/files privacy protocol reconcile run service shards state sync",
  cli: "base commands run",
  "tap-cli": "cli commands",
  main: "base cli output/files protocol run service",
  "source-contact-intelligence": "cli main",
  "tap-contact-intelligence": "main tap-cli",
};

/** The one part that knows a library. */
const HOMES: Readonly<Record<string, readonly string[]>> = {
  undici: ["service"],
  split2: ["service"],
  ajv: ["base"],
  yargs: ["cli"],
  papaparse: ["output/files"],
};

/** Parts that touch nothing but values: no files, no sockets, no clock. */
const PURE: ReadonlySet<string> = new Set(["sync"]);

type Import = { readonly file: string; readonly part: string; readonly target: string };

/** A folder of src or a file in it; `output/files` and the folders of the sandbox are parts of their own. */
function partOf(file: string): string {
  const [top = "", part = "", nested] = relative(ROOT, file).split(sep);
  if (top === "src") return nested === "files" ? `${part}/files` : part.replace(/\.ts$/, "");
  return nested === undefined ? top : `${top}/${part}`;
}

function importsOf(file: string): readonly Import[] {
  const text = readFileSync(file, "utf8");
  const targets = [...text.matchAll(/(?:\bfrom |^import |\bimport\()"([^"\s]+)"/gm)].map(
    (match) => match[1] ?? "",
  );
  return targets.map((target) => ({ file: relative(ROOT, file), part: partOf(file), target }));
}

const files = ["src", "sandbox"].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(ROOT, folder, name)),
);
const imports = files.flatMap(importsOf);

/** Imports from one part into another. `path`: what is imported, from the root. */
const crossing = imports
  .filter(({ target }) => target.startsWith("."))
  .map((one) => ({ ...one, path: join(dirname(one.file), one.target) }))
  .map((one) => ({ ...one, other: partOf(join(ROOT, one.path)) }))
  .filter(({ part, other }) => part !== other);

/** The only files of a part that others import. */
const DOORS: Readonly<Record<string, readonly string[]>> = {
  jobs: ["src/jobs/jobs.ts", "src/jobs/report.ts"],
};

/** The parts that the main job needs, and the features that it does without. */
const CORE: ReadonlySet<string> = new Set(["sync", "service", "run"]);
const GUESTS: ReadonlySet<string> = new Set(["jobs", "privacy", "reconcile", "shards"]);

/** A mistake in one of these loses rows or money, and an answer needs a table: tests may enter them as well. */
const FOR_TESTS = new Set(
  [
    "commands/guests",
    "jobs/join",
    "jobs/book",
    "jobs/charges",
    "jobs/receipts",
    "jobs/requests",
    "privacy/line-rewriter",
    "service/fast-match",
    "service/read-export",
    "service/row-notes",
  ].map((name) => `src/${name}.ts`),
);

const testFiles = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => join(ROOT, "test", name));
/** What tests import of src. */
const entered = testFiles
  .flatMap(importsOf)
  .map(({ file, target }) => ({ file, path: join(dirname(file), target) }))
  .filter(({ path }) => path.startsWith("src"));

describe("the code's structure", () => {
  it("enters a part by its door", () => {
    expect(crossing.filter(({ other, path }) => DOORS[other]?.includes(path) === false)).toEqual([]);
  });

  it("has no guest in the core and in its tests", () => {
    const inSrc = crossing.filter(({ part, other }) => CORE.has(part) && GUESTS.has(other));
    const inTests = entered.filter(({ file, path }) => {
      const [test, unit, part = ""] = file.split(sep);
      return `${test}/${unit}` === "test/unit" && CORE.has(part) && GUESTS.has(partOf(join(ROOT, path)));
    });
    expect([inSrc, inTests]).toEqual([[], []]);
  });

  it("lets tests enter a folder by what it exports to the others", () => {
    const exported = new Set(crossing.map(({ path }) => path));
    const inside = entered.filter(
      ({ path }) => dirname(path) !== "src" && !exported.has(path) && !FOR_TESTS.has(path),
    );
    expect(inside).toEqual([]);
  });

  it("lets imports point down only", () => {
    expect(crossing.filter(({ part, other }) => !LAYERS[part]?.split(" ").includes(other))).toEqual([]);
    expect(crossing.length).toBeGreaterThan(100);
  });

  it("gives each npm library one home", () => {
    const wrong = imports.filter(({ part, target }) => {
      const library = target.split("/")[0] ?? "";
      return (
        !target.startsWith(".") && !target.startsWith("node:") && HOMES[library]?.includes(part) !== true
      );
    });
    expect(wrong).toEqual([]);
  });

  it("keeps the core free of I/O", () => {
    expect(imports.filter(({ part, target }) => PURE.has(part) && target.startsWith("node:"))).toEqual([]);
    const clocks = files.filter(
      (file) =>
        PURE.has(partOf(file)) &&
        /\bDate\.now|new Date\(\)|setTimeout|process\./.test(readFileSync(file, "utf8")),
    );
    expect(clocks).toEqual([]);
  });

  it("lets only the shell touch the process", () => {
    const touching = files
      .filter((file) => /\bprocess\.\w/.test(readFileSync(file, "utf8")))
      .map((file) => relative(ROOT, file));
    expect(touching).toEqual(["src/main.ts", "sandbox/contact-intelligence-sandbox.ts"]);
  });
});
