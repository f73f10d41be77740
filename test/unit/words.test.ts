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
const OPENING = /(?:^|^(?:\/\*\*|\*|\/\/|--?) |[.:!?] )(?:Of|What|Who|Whose|Whom) /;

const PAGES = "README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md spec.json test/golden/help.txt".split(" ");
const COMMENT_OR_TEXT = /^\*|\/[/*]|["'`]/;
/** A name of a test: the first argument before a function or options. */
const NAME = /\(\s*(["'`])((?:\\.|(?!\1)[^\\])+?)\1,\s*(?:async |\{|\()/gs;

type Line = readonly [place: string, text: string];

const textOf = (path: string): string => readFileSync(`${ROOT}${path}`, "utf8");
const linesOf = (path: string): Line[] =>
  textOf(path)
    .split("\n")
    .map((line, nth) => [`${path}:${nth + 1}`, line.trim()]);
const matching = (lines: readonly Line[], pattern: RegExp) => lines.filter(([, text]) => pattern.test(text));

it("comments, messages, pages and settings are in plain words", () => {
  const pages = filesBelow("docs").filter((path) => /\.(md|sh|sql)$/.test(path));
  const source = filesBelow("src").filter((path) => path.endsWith(".ts"));
  const lines = [
    ...matching(source.flatMap(linesOf), COMMENT_OR_TEXT),
    ...[...PAGES, ...pages].flatMap(linesOf),
  ];
  expect(matching(lines, WORDS)).toEqual([]);
  expect(matching(lines, OPENING)).toEqual([]);
});

it("names of tests are in plain words", () => {
  const files = filesBelow("test").filter((path) => path.endsWith(".ts"));
  const names = files.flatMap((path) =>
    [...textOf(path).matchAll(NAME)].map(([, , name = ""]): Line => [path, name]),
  );
  expect(names.length).toBeGreaterThan(700);
  expect(matching(names, WORDS)).toEqual([]);
});
