/** The UTF-8 bytes of a text, one byte a character. */
export const toLatin1 = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

/** The text of UTF-8 bytes, one byte a character. */
export const fromLatin1 = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8");

/** Changes only ASCII letters to lower case, because other letters can become two (`\u0130`). */
export const asciiLower = (text: string): string =>
  text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** A number for a person: "1,204", "0.3". Avoids locales, because Node needs 10 ms to load one. */
export const shown = (count: number): string =>
  String(Number.isInteger(count) ? count : Number(count.toFixed(3))).replace(
    /(?<!\.\d*)\B(?=(?:\d{3})+(?!\d))/g,
    ",",
  );

/** A number with its noun: "1 row", "2,003 rows". */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${shown(count)} ${count === 1 ? one : many}`;

/** A part of a text; false: the part is left out. */
export type Part = string | false;

/** The parts that are not left out. */
export const joined = (parts: readonly Part[], separator = ", "): string =>
  parts.filter(Boolean).join(separator);

/** "a, b or c". */
export function oneOf(names: readonly string[], show = (name: string): string => name): string {
  const words = names.map(show);
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** Lines of a table for a person: columns as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  return lines.map((line) => line.trimEnd());
}

/** The name that differs by at most two letters, or by at most one if `name` is short. */
export function nearestName(name: string, names: Iterable<string>): string | undefined {
  const wanted = plain(name);
  const most = wanted.length < SHORT_NAME ? [0, 1] : [0, 1, 2];
  const candidates = [...names];
  const near = most.map((letters) => candidates.find((one) => differsBy(letters, wanted, plain(one))));
  return near.find((one) => one !== undefined);
}

const SHORT_NAME = 5;

/** `startDate`, `start-date` and `START_DATE` become equal. */
const plain = (name: string): string =>
  name
    .slice(0, 100)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "");

/** Whether two texts differ by at most `letters` letters that are added, removed or changed. */
function differsBy(letters: number, one: string, other: string): boolean {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const [a, b] = [one.slice(at), other.slice(at)];
  if (a === b) return true;
  if (letters === 0) return false;
  const less = letters - 1;
  return (
    differsBy(less, a.slice(1), b) ||
    differsBy(less, a, b.slice(1)) ||
    differsBy(less, a.slice(1), b.slice(1))
  );
}
