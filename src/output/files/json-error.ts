/** A place in a text; both numbers begin at 1, and a column is one UTF-16 unit. */
export type TextPlace = { readonly line: number; readonly column: number };

/** Returns the first place at which a text stops being JSON; its end if only the rest is missing. */
export function placeOfJsonError(text: string): TextPlace {
  const before = text.slice(0, endOfJson(text));
  return { line: before.split("\n").length, column: before.length - before.lastIndexOf("\n") };
}

/** What may come next in a JSON text. */
type Expected = "value" | "value or end" | "key" | "key or end" | "colon" | "comma or end" | "nothing";

/** Returns how many characters of a text can begin a JSON text. */
function endOfJson(text: string): number {
  const open: string[] = [];
  let expected: Expected | undefined = "value";
  let at = 0;
  for (;;) {
    at = matchEnd(SPACE, text, at);
    expected = after(expected, text[at] ?? "", open);
    if (expected === undefined) return at;
    const { end, isComplete } = tokenAt(text, at);
    if (!isComplete) return end;
    at = end;
  }
}

/** What may follow a token; undefined: the token may not stand here. Keeps the brackets that are still to come. */
function after(expected: Expected, token: string, open: string[]): Expected | undefined {
  if (token === "" || expected === "nothing") return undefined;
  if (token === "}" || token === "]") {
    if (!expected.endsWith("or end") || open.pop() !== token) return undefined;
    return afterValue(open);
  }
  if (expected === "colon") return token === ":" ? "value" : undefined;
  if (expected === "comma or end") return token === "," ? afterComma(open) : undefined;
  if (expected.startsWith("key")) return token === '"' ? "colon" : undefined;
  if (token === "{" || token === "[") {
    open.push(token === "{" ? "}" : "]");
    return token === "{" ? "key or end" : "value or end";
  }
  return /["\-0-9tfn]/.test(token) ? afterValue(open) : undefined;
}

const afterValue = (open: readonly string[]): Expected => (open.length > 0 ? "comma or end" : "nothing");

const afterComma = (open: readonly string[]): Expected => (open.at(-1) === "}" ? "key" : "value");

/** Where the token ends that begins at `at`, or where it stops being one. */
function tokenAt(text: string, at: number): { readonly end: number; readonly isComplete: boolean } {
  const first = text[at] ?? "";
  if (first === '"') return stringAt(text, at + 1);
  if (!/[-0-9tfn]/.test(first)) return { end: at + 1, isComplete: true };
  const end = matchEnd(SCALAR_START, text, at);
  return { end, isComplete: end === matchEnd(SCALAR, text, at) };
}

function stringAt(text: string, start: number): { readonly end: number; readonly isComplete: boolean } {
  let at = start;
  while (at < text.length) {
    const character = text[at] ?? "";
    if (character === '"') return { end: at + 1, isComplete: true };
    const next = character === "\\" ? matchEnd(ESCAPE, text, at) : at + 1;
    if (next === at || character < " ") return { end: at, isComplete: false };
    at = next;
  }
  return { end: at, isComplete: false };
}

const SPACE = /[ \t\n\r]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
/** A scalar, or the beginning of one. */
const SCALAR_START =
  /-?(?:0|[1-9]\d*)(?:\.\d*)?(?:(?<=\d)[eE][+-]?\d*)?|-|t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?/y;

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return at + (pattern.exec(text)?.[0].length ?? 0);
}
