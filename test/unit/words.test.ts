import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { docPages } from "../support/docs.ts";
import { ROOT } from "../support/run.ts";
import { filesBelow } from "../support/temp-dir.ts";

type Line = readonly [place: string, text: string];

const textOf = (path: string): string => readFileSync(`${ROOT}${path}`, "utf8");
const linesOf = (path: string): Line[] =>
  textOf(path)
    .split("\n")
    .map((line, nth) => [`${path}:${nth + 1}`, line.trim()]);
const matching = (lines: readonly Line[], pattern: RegExp) => lines.filter(([, text]) => pattern.test(text));
const withoutCode = (lines: readonly Line[]) =>
  lines.map(([place, text]): Line => [place, text.replace(/`[^`]*`/g, "code")]);

/** The first cells of the two tables of the page: words that are refused everywhere, and in texts for users. */
const LIST = "docs/dev/words.md";
const [everywhere, forUsers] = textOf(LIST)
  .split("\n## Refused ")
  .slice(1)
  .map((part) =>
    [...part.matchAll(/^\| (?!refused|-)([^|]+) \|/gm)].flatMap(([, cell = ""]) => cell.split(", ")),
  );
const anyOf = (words: readonly string[] = []) => `\\b(?:${words.join("|")})\\b`;
/** "nobody.example" is a domain of the sandbox. */
const WORDS = new RegExp(`(?!nobody\\.example)${anyOf(everywhere)}`, "i");
/** How no sentence begins, but for headings. */
const OPENING = /(?:^|^(?:\/\*\*|\*|\/\/|--?) |[.:!?] )(?:Of|What|Who|Whose|Whom) /;
const COMMENT_OR_TEXT = /^\*|\/[/*]|["'`]/;
/** A name of a test: the first argument before a function or options. */
const NAME = /\(\s*(["'`])((?:\\.|(?!\1)[^\\])+?)\1,\s*(?:async |\{|\()/gs;

const userPages = docPages().filter((path) => path !== "docs/architecture.md");
const SETTINGS = ["spec.json", "test/golden/help.txt"];
const refused = (lines: readonly Line[]) => [...matching(lines, WORDS), ...matching(lines, OPENING)];

it("comments and messages are in plain words", () => {
  const source = filesBelow("src", "sandbox", "scripts", "bench", "storm").filter((path) =>
    /\.[jt]s$/.test(path),
  );
  expect(refused(matching(source.flatMap(linesOf), COMMENT_OR_TEXT))).toEqual([]);
});

it("pages and settings are in plain words", () => {
  expect([everywhere?.includes("told"), forUsers?.includes("window")]).toEqual([true, true]);
  const pages = filesBelow("docs").filter((path) => /\.(md|sh|sql)$/.test(path) && path !== LIST);
  const others = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "packaging/python/README.md",
    ...SETTINGS,
  ];
  expect(refused(withoutCode([...pages, ...others].flatMap(linesOf)))).toEqual([]);
  const read = withoutCode([...userPages, ...SETTINGS].flatMap(linesOf));
  expect(matching(read, new RegExp(anyOf(forUsers)))).toEqual([]);
});

it("no sentence of a page for users has more than 30 words", () => {
  const all = userPages.flatMap((page) => sentencesOf(textOf(page)).map((text): Line => [page, text]));
  expect(all.length).toBeGreaterThan(1000);
  expect(matching(all, /(?:\S+\s+){30}\S/)).toEqual([]);
});

it("pages for users have at most 18,500 words together", () => {
  const read = userPages.map((page) => textOf(page).replace(/<!--.*?-->|(?<=\])\([^)]*\)/gs, ""));
  const words = read.flatMap((text) => text.match(/\S*[\p{L}\p{N}_]\S*/gu) ?? []);
  expect(words.length).toBeLessThanOrEqual(18_500);
});

/** The sentences of a page, without code, tables and the targets of links. */
function sentencesOf(page: string): string[] {
  const prose = page
    .replace(/^ *```.*?^ *```|<!--.*?-->|^ *(?:\||#|<)[^\n]*$/gms, "\n\n")
    .replace(/\]\([^)]*\)/g, "]")
    .replace(/^ *(?:- |\d+\. )/gm, "\n\n");
  return prose.split(/\n\s*\n|(?<=[.:!?][*)"]*)\s/).map((sentence) => sentence.trim());
}

it("names of tests are in plain words", () => {
  const files = filesBelow("test").filter((path) => path.endsWith(".ts"));
  const names = files.flatMap((path) =>
    [...textOf(path).matchAll(NAME)].map(([, , name = ""]): Line => [path, name]),
  );
  expect(names.length).toBeGreaterThan(700);
  expect(matching(names, WORDS)).toEqual([]);
});
