import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ROOT } from "../support/run.ts";
import { filesBelow } from "../support/temp-dir.ts";

/** Words that readers stumble over. The subject of a sentence is the program, the service or the user. */
const REFUSED =
  "told|stands|brings|held|whoever|nobody|somebody|spelt|mends?|mended|dearest|shall|beside|owes|meanwhile|" +
  "so many|is had|be had|in vain|all the same|of before";
const WORDS = new RegExp(`\\b(?:${REFUSED})\\b`, "i");
/** How no sentence begins, but for headings. */
const OPENING = /(?:^|^\s*(?:\/\*\*|\*|\/\/|--?) |[.:!?] )(?:Of|What|Who|Whose|Whom) /;

const PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "spec.json"];
const isCommentOrText = (line: string): boolean => /^\s*\*|\/[/*]|["'`]/.test(line);
/** A name of a test: the first argument before a function or options. */
const NAME = /\(\s*(["'`])((?:\\.|(?!\1)[^\\])+?)\1,\s*(?:async |\{|\()/gs;

/** The lines of files that a person reads, each with its place. */
const linesOf = (paths: readonly string[]): (readonly [place: string, line: string])[] =>
  paths.flatMap((path) =>
    readFileSync(`${ROOT}${path}`, "utf8")
      .split("\n")
      .map((line, nth) => [`${path}:${nth + 1}`, line] as const),
  );

const found = (lines: readonly (readonly [string, string])[], pattern: RegExp): string[] =>
  lines.flatMap(([place, line]) => (pattern.test(line) ? [`${place} ${line.trim()}`] : []));

const source = linesOf(filesBelow("src").filter((path) => path.endsWith(".ts")));
const pages = linesOf([...PAGES, ...filesBelow("docs").filter((path) => /\.(md|sh|sql)$/.test(path))]);

it("comments, messages, pages and settings are in plain words", () => {
  const help = linesOf(["test/golden/help.txt"]);
  const lines = [...pages, ...help, ...source.filter(([, line]) => isCommentOrText(line))];
  expect(found(lines, WORDS)).toEqual([]);
  expect(found(lines, OPENING)).toEqual([]);
});

it("names of tests are in plain words", () => {
  const files = filesBelow("test").filter((path) => path.endsWith(".ts"));
  const names = files.flatMap((path) =>
    [...readFileSync(`${ROOT}${path}`, "utf8").matchAll(NAME)].map(
      ([, , name = ""]) => [path, name] as const,
    ),
  );
  expect(names.length).toBeGreaterThan(700);
  expect(found(names, WORDS)).toEqual([]);
});
