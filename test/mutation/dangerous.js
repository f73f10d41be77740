import { readFileSync } from "node:fs";

const LINE = /^- (?:(src\/\S+) )?`(.+?)` → `(.*?)`: (.+)$/;

/**
 * The changes of dangerous.md: `{ harm, what, snippet, by, hits }`. `hits` are the places, `{ file, start, end }`, at which
 * the snippet stands: one, unless the list is out of date. Throws for a line that is none.
 * @param sources file → text
 */
export function dangerousChanges(sources) {
  const text = readFileSync(new URL("dangerous.md", import.meta.url), "utf8");
  let harm = "";
  return text.split("\n").flatMap((line) => {
    if (line.startsWith("## ")) harm = line.slice(3);
    if (!line.startsWith("- ")) return [];
    const [, where, snippet, by, what] = LINE.exec(line) ?? [];
    if (snippet === undefined) throw new Error(`dangerous.md: this is no change: ${line}`);
    const files = [...sources].filter(([file]) => where === undefined || file === where);
    const hits = files.flatMap(([file, source]) =>
      [...source.matchAll(patternOf(snippet))].map(({ index, 0: { length } }) => {
        return { file, start: index, end: index + length };
      }),
    );
    return [{ harm, what, snippet, by, hits }];
  });
}

/** The words of a snippet, however they are wrapped. */
const patternOf = (snippet) =>
  new RegExp(
    snippet
      .split(" ")
      .map((word) => word.replace(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`))
      .join(String.raw`\s+`)
      .replace(/(?<=\\\(|\\\[|\{)(?!$)/g, String.raw`\s*`),
    "g",
  );

/** Whether a change does what must never go unnoticed. */
export const isWorst = ({ harm }) => harm !== "other";
