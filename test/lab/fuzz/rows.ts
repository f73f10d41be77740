import { createHmac } from "node:crypto";
import type { Dice } from "./dice.ts";
import { bent, mutated, NAMES } from "./hostile.ts";
import { CANARY, CANARY_NUMBER, FORBIDDEN } from "./verdict.ts";

/** What becomes of the fields of a row on its way. */
export type Rules = {
  readonly leaves: (name: string) => boolean;
  readonly hashed: readonly string[];
  /** What stands for NULs. */
  readonly nul: string;
  /** Whether they say this of rows without objects alone. */
  readonly isForFlat?: boolean;
  /** Fields of which nothing is said. */
  readonly ignores?: (name: string) => boolean;
};
export const SALT = "a long salt that nobody guesses";
export const UNCHANGED: Rules = { leaves: () => true, hashed: [], nul: "\0" };

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/gs;

/**
 * The same text for rows that mean the same: without spaces, with escapes resolved, numbers as they are spelt, and only with
 * the members of the object that leave.
 */
export function canonical(line: string, { leaves: mayLeave, hashed, nul, ignores }: Rules): string {
  const leaves = (field: string): boolean => mayLeave(field) && ignores?.(field) !== true;
  let [depth, name, text] = [0, "", ""];
  let isValue = false;
  for (const [token] of line.matchAll(TOKEN)) {
    if (token === "}" || token === "]") depth -= 1;
    const isOfMember = depth > 0;
    if (token === "{" || token === "[") depth += 1;
    if (!isOfMember) continue;
    const isTop = depth === 1;
    if (isTop && (token === "," || token === ":")) isValue = token === ":";
    else if (isTop && !isValue) {
      name = JSON.parse(token) as string;
      if (leaves(name)) text += `\n${resolved(token, nul)}:`;
    } else if (leaves(name)) text += hashed.includes(name) ? digest(token) : resolved(token, nul);
  }
  return text;
}

/** With U+FFFD for each half of a surrogate pair. */
function resolved(token: string, nul: string): string {
  if (!token.startsWith('"')) return token;
  return JSON.stringify(
    Buffer.from(JSON.parse(token) as string)
      .toString()
      .replaceAll("\0", nul),
  );
}

function digest(token: string): string {
  if (/^(null|[[\],])$/.test(token)) return token;
  const text = token.startsWith('"') ? (JSON.parse(token) as string) : token;
  return `"${createHmac("sha256", SALT).update(text).digest("hex")}"`;
}

/** The moment of the service, which no run's clock changes, and the days on which its rows lie. */
export const NOW = "2026-03-06T12:00:00.000Z";
export const DAYS = ["2026-03-06", "2026-03-05", "2026-03-04", "2026-03-03", "2026-02-27", "2025-12-31"];

/** What JSON texts say; undefined for what is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

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
].map((text) => (parsed(text) === undefined ? `"${CANARY}${text}"` : text));

/** Fields that no schema declares, as JSON spells their names. */
const NEW_NAMES = [
  ...NAMES.filter((name) => name.length < 100 && !["id", "domain", "discoveredAt"].includes(name)),
  ..."\u2028 ID EMAIL new_1 new_2 new_3 _sdc_batched_at stream RECORD é".split(" "),
].map((name) => JSON.stringify(name).slice(1, -1));

/** What is no row, each with a canary where there is room for one; the last are the service's own words for a failed export. */
const JUNK = [
  ...'null [] 5 "x" { } <html> \u0000 \u001b[2J true NaN [[[[ {}{} \ufeff data: {}'.split(" "),
  ...[`"${CANARY}"`, `["${CANARY}"]`, `{"id":"${CANARY}"`, `{"id":"${CANARY}",}`, `<title>${CANARY}</title>`],
  ...[`{'id':'${CANARY}'}`, `{"id":"${CANARY}"} {"id":"${CANARY}"}`, `{"id":"${CANARY}","email":"\u0001"}`],
  ...[`at ${CANARY} (bug.js:1:1)`, `{"id":"${CANARY}","a":${"[".repeat(1_001)}${"]".repeat(1_001)}}`],
  ...['{"id":"\\u12"}', `{"id":"${CANARY}\\x"}`, "{}"],
  `{"success":false,"error":{"code":"STREAM_FAILED","message":"${CANARY}"}}`,
  '{"success":false,"error":{"code":5}}',
];

export const junk = (dice: Dice, key: string): string => dice.pick(JUNK).replace('"id"', `"${key}"`);

/** The fields of every row, but for its key. */
export const USUAL_NAMES = [
  ..."firstName lastName email jobTitle industry companySize sources discoveredAt".split(" "),
];

type Member = [name: string, value: string];

/**
 * A row that is odd in one way or another, and has a key of its own. Values of forbidden fields say so. `day`: on which the
 * service has it.
 */
export function oddRow(
  dice: Dice,
  nth: number,
  key: string,
  isForbidden: (name: string) => boolean,
): { readonly text: string; readonly day: string | null } {
  const { date, day } = dateOf(dice, nth);
  const text = (name: string): string => `"${isForbidden(name) ? FORBIDDEN : CANARY}-${name}-${nth}"`;
  const valueFor = (name: string): string =>
    isForbidden(name) ? `"${FORBIDDEN}"` : dice.pick<string>(VALUES);
  // Integers that a double rounds, now and then.
  const id = dice.chance(0.02) ? `${9_007_199_254_740_990n + BigInt(nth)}` : `"${CANARY}-${nth}"`;
  const members: Member[] = [
    [key, id],
    ...USUAL_NAMES.slice(0, 5).map((name): Member => [name, text(name)]),
    ["companySize", isForbidden("companySize") ? text("companySize") : `${CANARY_NUMBER}${nth % 97}`],
    ["sources", `[${text("sources")},"b"]`],
    ...(date === undefined ? [] : [["discoveredAt", date] satisfies Member]),
  ];
  const spell = (space = () => ""): string =>
    `{${members.map(([name, value]) => `${space()}"${name}"${space()}:${space()}${value}${space()}`).join(",")}}`;
  const way = dice.below(100);
  if (way < 45)
    for (let times = dice.below(4); times > 0; times--) {
      const member = dice.pick(members);
      const isFree = member[0] !== "discoveredAt" && member[0] !== key && !isForbidden(member[0]);
      if (isFree) member[1] = dice.pick(VALUES);
    }
  else if (way < 55) {
    const name = dice.pick(NEW_NAMES);
    members.splice(dice.below(members.length + 1), 0, [name, valueFor(name)]);
  } else if (way < 62) members.sort(() => dice.next() - 0.5);
  else if (way < 68) members.splice(1 + dice.below(3), 1 + dice.below(4));
  // A field twice is legal JSON: the last counts.
  else if (way < 74) {
    const [name] = dice.pick(members);
    members.unshift([name, valueFor(name)]);
  }
  const plain = spell();
  let odd = plain;
  if (way >= 92) odd = bent(Buffer.from(plain), dice).toString();
  else if (way >= 86) odd = JSON.stringify(mutated(JSON.parse(plain), dice, 0.06)) ?? "";
  else if (way >= 80)
    odd = plain.replace(/[a-z](?=[^"\\]*")/g, (one) => (dice.chance(0.1) ? escapeOf(one) : one));
  else if (way >= 74) odd = spell(() => dice.pick(["", "", " ", "  ", "\t", "\r"]));
  return { text: isAlike(odd, plain, key, isForbidden) ? odd : plain, day };
}

const escapeOf = (one: string): string => `\\u00${one.charCodeAt(0).toString(16)}`;

/** Whether a line is still a row with the key and the date of another, and no value of it became a name or another field's. */
function isAlike(text: string, plain: string, key: string, isForbidden: (name: string) => boolean): boolean {
  const [value, before] = [parsed(text), parsed(plain)] as Record<string, unknown>[];
  if (typeof value !== "object" || value === null || before === undefined || text.includes("\n"))
    return false;
  const isMoved = Object.entries(value).some(
    ([name, inner]) => !isForbidden(name) && JSON.stringify(inner).includes(FORBIDDEN),
  );
  // A row of an export may have ten levels more than a page that wraps it. Other digits may be the same number to a double.
  const isOdd = /(\[|\{"a":){900}|(Kanarek|9316429085|Verboten)[^"]*" *:/.test(text) || "success" in value;
  const isSame = [key, "discoveredAt"].every(
    (name) => JSON.stringify(value[name]) === JSON.stringify(before[name]),
  );
  return isSame && !isMoved && (text === plain || !(isOdd || typeof value[key] === "number"));
}

/** What stands for a date, as JSON, and the day that it means; undefined: nothing does. */
function dateOf(dice: Dice, nth: number): { readonly date: string | undefined; readonly day: string | null } {
  if (dice.chance(0.06)) {
    const odd = [undefined, ...'null "" true [] {} "2026-02-30" "2026-13-01T00:00:00Z"'.split(" ")];
    return { date: dice.pick([...odd, `"${CANARY}-when"`]), day: null };
  }
  const day = dice.pick(DAYS);
  const ms = Date.parse(`${day}T00:00:00.000Z`) + ((nth * 7919) % 21_600_000);
  const spelt = dice.chance(0.1) ? ms : JSON.stringify(new Date(ms));
  return { date: String(spelt), day };
}
