import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const SRC = fileURLToPath(new URL("../src", import.meta.url));

/** What each part may import besides itself. Imports point down only. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  json: [],
  latin1: [],
  sync: ["errors"],
  "schema-checks": [],
  timestamp: ["sync"],
  config: ["errors", "json", "schema-checks", "sync", "timestamp"],
  source: ["config", "errors", "json", "latin1", "schema-checks", "sync", "timestamp"],
  service: ["config", "errors", "json", "latin1", "source", "sync"],
  protocol: ["config", "errors", "json", "source", "sync"],
  sandbox: [],
  cli: ["commands", "errors"],
  "tap-cli": ["cli", "commands"],
  commands: ["config", "errors", "json", "protocol", "sandbox", "service", "source", "sync"],
  main: ["cli", "commands", "errors", "protocol", "service"],
  "source-contact-intelligence": ["cli", "main"],
  "tap-contact-intelligence": ["main", "tap-cli"],
};

/** The one part that knows a library. */
const HOMES: Readonly<Record<string, readonly string[]>> = {
  undici: ["service"],
  split2: ["service"],
  ajv: ["schema-checks"],
  yargs: ["cli"],
  "yocto-spinner": ["commands"],
};

/** Parts that touch nothing but values: no files, no sockets, no clock. */
const PURE: ReadonlySet<string> = new Set(["errors", "json", "sync", "timestamp"]);

type Import = { readonly file: string; readonly part: string; readonly target: string };

const partOf = (file: string): string => (relative(SRC, file).split(sep)[0] ?? "").replace(/\.ts$/, "");

function importsOf(file: string): readonly Import[] {
  const text = readFileSync(file, "utf8");
  const targets = [...text.matchAll(/(?:\bfrom |^import |\bimport\()"([^"\s]+)"/gm)].map(
    (match) => match[1] ?? "",
  );
  return targets.map((target) => ({ file: relative(SRC, file), part: partOf(file), target }));
}

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => join(SRC, name));
const imports = files.flatMap(importsOf);

describe("the code's structure", () => {
  it("lets imports point down only", () => {
    const wrong = imports.filter(({ file, part, target }) => {
      if (!target.startsWith(".")) return false;
      const other = partOf(join(dirname(join(SRC, file)), target));
      return other !== part && LAYERS[part]?.includes(other) !== true;
    });
    expect(wrong).toEqual([]);
    expect(imports.length).toBeGreaterThan(100);
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
      .map((file) => relative(SRC, file));
    expect(touching).toEqual(["main.ts"]);
  });
});
