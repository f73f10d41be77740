import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../support/run.ts";

/** Files below test/ that are longer, in lines, than a person reads at once. */
function longer(most: number, pattern: RegExp): readonly string[] {
  const names = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => pattern.test(name) && statSync(join(ROOT, "test", name)).isFile())
    .map((name) => ({ name, lines: readFileSync(join(ROOT, "test", name), "utf8").split("\n").length - 1 }))
    .filter(({ lines }) => lines > most)
    .map(({ name, lines }) => `${name}: ${lines} lines`);
}

it("a file of tests has at most 400 lines", () => {
  expect(longer(400, /\.(ts|js|py)$/)).toEqual([]);
});

it("a golden file has at most 300 lines", () => {
  expect(longer(300, /^golden\//)).toEqual([]);
});
