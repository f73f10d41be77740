import { createHmac } from "node:crypto";
import { rawLine } from "../../support/events.ts";
import type { Dice } from "./dice.ts";
import { bent, mutated, NAMES } from "./hostile.ts";
import { CANARY, CANARY_NUMBER, FORBIDDEN } from "./verdict.ts";

/** What a line of an export is, told by nothing that the connector uses. Lines hold one byte a character; `key`: its JSON. */
export type Judged =
  | { readonly kind: "row"; readonly key: string }
  | { readonly kind: "blank" | "junk" | "error" };

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** A row of an export may have ten more, which a page that wraps it may not. */
const MOST_LEVELS = 990;
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/gs;

export function judgeLine(line: string, keyName: string): Judged {
  if (/^[\t\v\f\r ]*$/.test(line)) return { kind: "blank" };
  const value = parsed(line);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { kind: "junk" };
  const { success, error, [keyName]: key } = value as Record<string, unknown>;
  const isEnvelope = typeof error === "object" && error !== null && !Array.isArray(error);
  if (success === false && (isEnvelope || (typeof error === "string" && !(keyName in value))))
    return { kind: "error" };
  return { kind: "row", key: keyOf(line, key, keyName) };
}

/** Undefined for what is no UTF-8, no JSON, or nested too deep. */
function parsed(line: string): unknown {
  try {
    const text = decode(line);
    let depth = 0;
    for (const [token] of text.length > MOST_LEVELS ? text.matchAll(TOKEN) : []) {
      if (token === "{" || token === "[") depth += 1;
      else if (token === "}" || token === "]") depth -= 1;
      if (depth > MOST_LEVELS) return undefined;
    }
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const decode = (line: string): string => UTF8.decode(Buffer.from(line, "latin1"));
/** With U+FFFD for each half of a surrogate pair. */
const wellFormed = (text: string): string => Buffer.from(text, "utf8").toString("utf8");

/** Text and number are told apart, and no integer is rounded. What cannot tell rows apart is no key. */
function keyOf(line: string, value: unknown, name: string): string {
  if (typeof value === "string") return value === "" ? "" : JSON.stringify(wellFormed(value));
  if (typeof value !== "number") return "";
  if (Number.isSafeInteger(value)) return String(value);
  const spelt = [...line.matchAll(new RegExp(`"${name}"\\s*:\\s*(-?[0-9.eE+-]+)`, "g"))];
  return spelt.findLast(([, digits]) => Number(digits) === value)?.[1] ?? String(value);
}

/** What becomes of the fields of a row on its way. */
export type Rules = {
  readonly leaves: (name: string) => boolean;
  readonly hashed: ReadonlySet<string>;
  /** What stands for NULs. */
  readonly nul: string;
  /** Whether they say this of rows without objects alone. */
  readonly isForFlat?: boolean;
};
export const SALT = "a long salt that nobody guesses";
export const UNCHANGED: Rules = { leaves: () => true, hashed: new Set(), nul: "\0" };

/**
 * The same text for lines that mean the same: without spaces, with escapes resolved, numbers as they are spelt, and only with
 * the members of the object that leave.
 */
export function canonical(line: string, { leaves, hashed, nul }: Rules): string {
  let [depth, name, text] = [0, "", ""];
  let isValue = false;
  for (const [token] of decode(line).matchAll(TOKEN)) {
    if (token === "}" || token === "]") depth -= 1;
    const isOfMember = depth > 0;
    if (token === "{" || token === "[") depth += 1;
    if (!isOfMember) continue;
    const isTop = depth === 1;
    if (isTop && (token === "," || token === ":")) isValue = token === ":";
    else if (isTop && !isValue) {
      name = JSON.parse(token) as string;
      if (leaves(name)) text += `\n${resolved(token, nul)}:`;
    } else if (leaves(name)) text += hashed.has(name) ? digest(token) : resolved(token, nul);
  }
  return text;
}

function resolved(token: string, nul: string): string {
  if (!token.startsWith('"')) return token;
  return JSON.stringify(wellFormed(JSON.parse(token) as string).replaceAll("\0", nul));
}

function digest(token: string): string {
  if (/^(null|[[\],])$/.test(token)) return token;
  const text = token.startsWith('"') ? (JSON.parse(token) as string) : token;
  return `"${createHmac("sha256", SALT).update(text).digest("hex")}"`;
}

/** The moment of the service, which no run's clock changes, and the days on which its rows lie. */
export const NOW = "2026-03-06T12:00:00.000Z";
export const DAYS = ["2026-03-06", "2026-03-05", "2026-03-04", "2026-03-03", "2026-02-27", "2025-12-31"];

/** JSON texts, with canaries, as they may stand in the place of any value. */
const VALUES = [
  ...'null true false 0 -0 1.0 1e3 5e-324 1e308 1e999 -1E+2 {} [] ""'.split(" "),
  ...["9007199254740993", "12345678901234567890123", "0.1000000000000000055511151231257827", "-0.0"],
  ...[`${CANARY_NUMBER}01`, `${CANARY_NUMBER}.5e3`],
  ...String.raw`\u0000 \ud800 \udc00x \ud83d\ude00 \uD83D\uDE00 \u2028 \\u2028 \/ \n\r\t \\ \" \u001b[2J`.split(
    " ",
  ),
  ...["\u2028", "\u2029", "\u0085", "\u202e", "\u007f", "\ufeff", "é", "𝄞"],
  ...[..."{}[],:", '\\"}', '\\"},{\\"id\\":\\"x\\"', ',\\"email\\":\\"', "</script>", "=1+1", "%s"],
  `["${CANARY}",null,[["${CANARY}"]],{"a":"${CANARY}"}]`,
  `{"a":{"b":{"${"x".repeat(300)}":"${CANARY}"}},"id":"${CANARY}","discoveredAt":"${CANARY}"}`,
  `{"__proto__":{"a":"${CANARY}"},"constructor":"${CANARY}","toString":null}`,
  ...[50, 900, 985].map((levels) => `${"[".repeat(levels)}"${CANARY}"${"]".repeat(levels)}`),
  ...[40, 700].map((levels) => `${'{"a":'.repeat(levels)}"${CANARY}"${"}".repeat(levels)}`),
  `"${CANARY}${"x".repeat(70_000)}"`,
]
  .map((text) => (parsed(rawLine(text)) === undefined ? `"${CANARY}${text}"` : text))
  .map(rawLine);

/** Fields that no schema declares, as JSON spells their names. */
const NEW_NAMES = [
  ...NAMES.filter((name) => name.length < 100 && !["id", "domain", "discoveredAt"].includes(name)),
  ..."\u2028 ID EMAIL new_1 new_2 new_3 _sdc_batched_at stream RECORD é".split(" "),
].map((name) => rawLine(JSON.stringify(name).slice(1, -1)));

/** What is no row, each with a canary where there is room for one. */
const JUNK = [
  ...'null [] 5 "x" { } <html> \u0000 \u001b[2J true NaN [[[[ {}{} \ufeff data: {}'.split(" "),
  ...[`"${CANARY}"`, `["${CANARY}"]`, `{"id":"${CANARY}"`, `{"id":"${CANARY}",}`, `<title>${CANARY}</title>`],
  ...[`{'id':'${CANARY}'}`, `{"id":"${CANARY}"} {"id":"${CANARY}"}`, `{"id":"${CANARY}","email":"\u0001"}`],
  ...[`at ${CANARY} (bug.js:1:1)`, `{"id":"${CANARY}","a":${"[".repeat(1_001)}${"]".repeat(1_001)}}`],
  ...['{"id":"\\u12"}', `{"id":"${CANARY}\\x"}`, "{}", '{"id":null}', '{"id":""}', '{"id":[]}'],
].map(rawLine);
const NO_UTF8 = ["\xff\xfe", `{"id":"${CANARY}\xc3"}`];
const ERRORS = [
  `{"success":false,"error":{"code":"STREAM_FAILED","message":"${CANARY}"}}`,
  '{"success":false,"error":{"code":5}}',
];

/** A line that is no row, or the service's last line of an export that failed. */
export const junk = (dice: Dice, key: string): string =>
  dice.chance(0.9) ? dice.pick<string>([...JUNK, ...NO_UTF8]).replace('"id"', `"${key}"`) : dice.pick(ERRORS);

type Member = [name: string, value: string];

/** A row that is odd in one way or another. Values of forbidden fields say so. `day`: on which the service has it. */
export function oddRow(
  dice: Dice,
  nth: number,
  key: string,
  isForbidden: (name: string) => boolean,
): { readonly text: string; readonly day: string | null } {
  const { date, day } = dateOf(dice, nth);
  const text = (name: string): string => `"${isForbidden(name) ? FORBIDDEN : CANARY}-${name}-${nth}"`;
  const members: Member[] = [
    [key, `"${CANARY}-${nth}"`],
    ..."firstName lastName email jobTitle industry".split(" ").map((name): Member => [name, text(name)]),
    ["companySize", isForbidden("companySize") ? text("companySize") : `${CANARY_NUMBER}${nth % 97}`],
    ["sources", `[${text("sources")},"b"]`],
    ...(date === undefined ? [] : [["discoveredAt", date] satisfies Member]),
  ];
  const any = (): Member => dice.pick(members);
  const isFree = ([name]: Member): boolean => name !== "discoveredAt" && name !== key && !isForbidden(name);
  const spell = (join: (member: Member) => string): string => `{${members.map(join).join(",")}}`;
  const plain = (): string => spell(([name, value]) => `"${name}":${value}`);
  const way = dice.below(100);
  if (way < 45)
    for (let times = dice.below(4); times > 0; times--) {
      const member = any();
      if (isFree(member)) member[1] = dice.pick(VALUES);
    }
  else if (way < 55) {
    const name = dice.pick(NEW_NAMES);
    members.splice(dice.below(members.length + 1), 0, [
      name,
      isForbidden(name) ? `"${FORBIDDEN}"` : dice.pick(VALUES),
    ]);
  } else if (way < 62) members.sort(() => dice.next() - 0.5);
  else if (way < 68) members.splice(1 + dice.below(3), 1 + dice.below(4));
  // A field twice is legal JSON: the last counts.
  else if (way < 74) {
    const [name] = any();
    members.unshift([name, isForbidden(name) ? `"${FORBIDDEN}"` : dice.pick(VALUES)]);
  } else if (way < 80) {
    const space = (): string => dice.pick(["", "", " ", "  ", "\t", "\r"]);
    return {
      text: spell(([name, value]) => `${space()}"${name}"${space()}:${space()}${value}${space()}`),
      day,
    };
  } else if (way < 86)
    return {
      text: plain().replace(/[a-z](?=[^"\\]*")/g, (one) => (dice.chance(0.1) ? escapeOf(one) : one)),
      day,
    };
  else if (way < 94) {
    const changed = mutated(JSON.parse(plain()), dice, 0.06);
    const text =
      way < 90
        ? rawLine(JSON.stringify(changed) ?? "")
        : bent(Buffer.from(plain(), "latin1"), dice).toString("latin1");
    if (isUsable(text, date, isForbidden)) return { text, day };
  } else if (way < 96) members[0] = [key, String(9_007_199_254_740_990 + dice.below(9))];
  return { text: plain(), day };
}

const escapeOf = (one: string): string => `\\u00${one.charCodeAt(0).toString(16)}`;

/** Whether a line that was changed at random still says its date, and has made no name of a value; or is no row at all. */
function isUsable(text: string, date: string | undefined, isForbidden: (name: string) => boolean): boolean {
  if (text.includes("\n")) return false;
  let isNamed = false;
  try {
    const value = JSON.parse(decode(text), (name, inner: unknown) => {
      isNamed ||= /Kanarek|7316429|Verboten/.test(name);
      return inner;
    }) as Record<string, unknown>;
    const moved = Object.entries(value).some(
      ([name, inner]) => !isForbidden(name) && JSON.stringify(inner)?.includes(FORBIDDEN),
    );
    return (
      !isNamed &&
      !moved &&
      JSON.stringify(value["discoveredAt"]) === (date && JSON.stringify(JSON.parse(date)))
    );
  } catch {
    return true;
  }
}

/** What stands for a date, as JSON, and the day that it means; undefined: nothing does. */
function dateOf(dice: Dice, nth: number): { readonly date: string | undefined; readonly day: string | null } {
  if (dice.chance(0.06)) {
    const odd = [undefined, ...'null "" true [] {} "2026-02-30" "2026-13-01T00:00:00Z"'.split(" ")];
    return { date: dice.pick([...odd, `"${CANARY}-when"`]), day: null };
  }
  const day = dice.pick(DAYS);
  const ms = Date.parse(`${day}T00:00:00.000Z`) + ((nth * 7919) % 21_600_000);
  const iso = new Date(ms).toISOString();
  return { date: dice.chance(0.85) ? `"${iso}"` : dice.pick(SPELLINGS)(ms, iso), day };
}

const SPELLINGS: readonly ((ms: number, iso: string) => string)[] = [
  (_, iso) => `"${iso.slice(0, 23)}456Z"`,
  (ms) => `"${new Date(ms + 19_800_000).toISOString().slice(0, 23)}+05:30"`,
  (_, iso) => `"${iso.slice(0, 23).replace("T", " ")}+00"`,
  (_, iso) => `"${iso.toLowerCase().replace(".", ",")}"`,
  (_, iso) => `"${iso.slice(0, 19)}"`,
  (ms) => String(ms),
  (ms) => `"${Math.floor(ms / 1000)}"`,
];
