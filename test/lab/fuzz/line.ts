import { rawLine } from "../../support/events.ts";
import { CANARY, CANARY_NUMBER, FORBIDDEN } from "./canary.ts";
import type { Dice } from "./dice.ts";
import { bent, mutated, NAMES } from "./hostile.ts";

/** The moment of the service, which no run's clock changes, and the days on which its rows lie. */
export const NOW = "2026-03-06T12:00:00.000Z";
export const DAYS = ["2026-03-06", "2026-03-05", "2026-03-04", "2026-03-03", "2026-02-27", "2025-12-31"];

/** A line of an export, one byte a character. `day`: on which the service has it; null: without a date. */
export type Line = { readonly text: string; readonly day: string | null };

const quoted = (text: string): string => `"${text}${CANARY}"`;

/** JSON texts, with canaries, as they may stand in the place of any value. */
const VALUES: readonly string[] = [
  ..."null true false 0 -0 1.0 1e3 5e-324 1e308 1e999 -1E+2 {} []".split(" "),
  '""',
  ...["9007199254740993", "12345678901234567890123", "0.1000000000000000055511151231257827", "-0.0"],
  `${CANARY_NUMBER}01`,
  `${CANARY_NUMBER}.5e3`,
  ...String.raw`\u0000 \ud800 \udc00x \ud83d\ude00 \uD83D\uDE00 \u2028 \\u2028 \/`
    .split(" ")
    .map((text) => `"${CANARY}${text}"`),
  ...["\u2028", "\u2029", "\u0085", "\u202e", "\u007f", "\ufeff", "é", "𝄞"].map(quoted),
  ...["\\n\\r\\t", "\\\\", '\\"', "\\u001b[2J"].map(quoted),
  ...["{", "}", "[", "]", ",", ":", '\\"}', '\\"},{\\"id\\":\\"x\\"', "true", "</script>", "=1+1", "%s"].map(
    (text) => `"${CANARY}${text}"`,
  ),
  `["${CANARY}",null,[["${CANARY}"]],{"a":"${CANARY}"}]`,
  `{"a":{"b":{"${"x".repeat(300)}":"${CANARY}"}},"id":"${CANARY}","discoveredAt":"${CANARY}"}`,
  `{"__proto__":{"a":"${CANARY}"},"constructor":"${CANARY}","toString":null}`,
  `{"":"${CANARY}","a b":[${CANARY_NUMBER}],"a.b":true}`,
  ...[50, 900, 985].map((levels) => `${"[".repeat(levels)}"${CANARY}"${"]".repeat(levels)}`),
  ...[40, 700].map((levels) => `${'{"a":'.repeat(levels)}"${CANARY}"${"}".repeat(levels)}`),
];
const LONG = [`"${CANARY}${"x".repeat(70_000)}"`, `[${`"${CANARY}",`.repeat(5_000)}1]`];

/** Fields that no schema declares, as JSON spells their names. */
const NEW_NAMES: readonly string[] = [
  ...NAMES.filter((name) => name.length < 100 && !["id", "domain", "discoveredAt"].includes(name)).map(
    (name) => JSON.stringify(name).slice(1, -1),
  ),
  ..."\\u2028 ID EMAIL new_1 new_2 new_3 _sdc_batched_at stream RECORD".split(" "),
  "x".repeat(5_000),
];

/** What is no row, each with a canary where there is room for one. */
const JUNK: readonly string[] = [
  ...'null [] 5 "x" { } <html> \u0000 \u001b[2J true NaN [[[[ {}{} \ufeff'.split(" "),
  ...[`"${CANARY}"`, `["${CANARY}"]`, `{"id":"${CANARY}"`, `{"id":"${CANARY}",}`, `<title>${CANARY}</title>`],
  ...[`{'id':'${CANARY}'}`, `{"id":"${CANARY}"} {"id":"${CANARY}"}`, `{"id":"${CANARY}","email":"\u0001"}`],
  ...[`at ${CANARY} (bug.js:1:1)`, `{"id":"${CANARY}","a":${"[".repeat(1_001)}${"]".repeat(1_001)}}`],
  ...['{"id":"\\u12"}', `{"id":"${CANARY}\\x"}`, "\xff\xfe", `{"id":"${CANARY}\xc3"}`, "data: {}", "\u0085"],
].map((text) => (/[\xff\xc3]/.test(text) ? text : rawLine(text)));

const KEYLESS: readonly string[] = [
  ...["{}", '{"id":null}', '{"id":""}', '{"id":[]}', '{"id":{}}', '{"id":true}', `{"email":"${CANARY}"}`],
];

const ERRORS: readonly string[] = [
  `{"success":false,"error":{"code":"STREAM_FAILED","message":"${CANARY}"}}`,
  `{"success":false,"error":{"code":"${CANARY}","message":"${CANARY}"}}`,
  '{"success":false,"error":{"code":5}}',
  `{"success":false,"error":{},"id":"${CANARY}"}`,
];

const VALUES_LATIN1 = VALUES.map(rawLine);
const NEW_NAMES_LATIN1 = NEW_NAMES.map(rawLine);

type Member = [name: string, value: string];

/** Makes the lines of one collection. Most of them are rows that are odd in one way or another. */
export class LineMaker {
  readonly #dice: Dice;
  readonly #key: string;
  /** Values of these fields are forbidden everywhere. */
  readonly #forbidden: ReadonlySet<string>;

  constructor(dice: Dice, key: string, forbidden: ReadonlySet<string> = new Set()) {
    this.#dice = dice;
    this.#key = key;
    this.#forbidden = forbidden;
  }

  /** A row, or what may still be one: whoever asks judges it. */
  row(nth: number): Line {
    const dice = this.#dice;
    const { text: date, day } = dateOf(dice, nth);
    const members = this.#members(nth, date);
    const way = dice.below(100);
    if (way < 25) return { text: plain(members), day };
    if (way < 60) this.#replaceValues(members, VALUES_LATIN1);
    else if (way < 70) this.#addNames(members);
    else if (way < 75) shuffle(members, dice);
    else if (way < 80) members.splice(1 + dice.below(3), 1 + dice.below(5));
    else if (way < 84) this.#repeat(members);
    else if (way < 88) return { text: this.#spaced(members), day };
    else if (way < 91) return { text: this.#escaped(members), day };
    else if (way < 99) {
      const text = way < 95 ? this.#mutated(nth, date) : this.#bent(plain(members));
      return { text: isUsable(text, date) ? text : plain(members), day };
    } else if (dice.chance(0.02)) this.#replaceValues(members, LONG);
    else this.#odd(members);
    return { text: plain(members), day };
  }

  /** A line that is no row at all. */
  junk(): string {
    const dice = this.#dice;
    if (dice.chance(0.1)) return dice.pick(KEYLESS).replace('"id"', `"${this.#key}"`);
    return dice.pick(JUNK).replace('"id"', `"${this.#key}"`);
  }

  /** The service's last line of an export that failed. */
  error(): string {
    return this.#dice.pick(ERRORS);
  }

  #members(nth: number, date: string | undefined): Member[] {
    const text = (name: string): string =>
      `"${this.#forbidden.has(name) ? FORBIDDEN : CANARY}-${name}-${nth}"`;
    const members: Member[] = [
      [this.#key, `"${CANARY}-${nth}"`],
      ["firstName", text("firstName")],
      ["lastName", nth % 3 === 0 ? "null" : text("lastName")],
      ["email", text("email")],
      ["jobTitle", text("jobTitle")],
      [
        "companySize",
        this.#forbidden.has("companySize") ? text("companySize") : `${CANARY_NUMBER}${nth % 97}`,
      ],
      ["industry", text("industry")],
      ["sources", `[${text("sources")},"b"]`],
    ];
    if (date !== undefined) members.push(["discoveredAt", date]);
    return members;
  }

  /** Values of the key and of forbidden fields stay, and the date always does. */
  #replaceValues(members: Member[], values: readonly string[]): void {
    const dice = this.#dice;
    for (let times = 1 + dice.below(3); times > 0; times--) {
      const member = members[dice.below(members.length)];
      if (member === undefined || member[0] === "discoveredAt" || this.#forbidden.has(member[0])) continue;
      if (member[0] !== this.#key || dice.chance(0.05)) member[1] = dice.pick(values);
    }
  }

  #addNames(members: Member[]): void {
    const dice = this.#dice;
    for (let times = 1 + dice.below(3); times > 0; times--) {
      const value = this.#forbidden.has("*") ? `"${FORBIDDEN}"` : dice.pick(VALUES_LATIN1);
      members.splice(dice.below(members.length + 1), 0, [dice.pick(NEW_NAMES_LATIN1), value]);
    }
  }

  /** A field twice, which is legal JSON: the last counts. */
  #repeat(members: Member[]): void {
    const dice = this.#dice;
    const member = members[dice.below(members.length)];
    if (member === undefined) return;
    members.splice(dice.below(members.indexOf(member) + 1), 0, [
      member[0],
      this.#forbidden.has(member[0]) ? `"${FORBIDDEN}"` : dice.pick(VALUES_LATIN1),
    ]);
  }

  #odd(members: Member[]): void {
    const dice = this.#dice;
    const key = members[0];
    if (key === undefined) return;
    if (dice.chance(0.5)) key[1] = dice.pick(VALUES_LATIN1);
    else key[1] = String(9_007_199_254_740_990 + dice.below(9));
  }

  #spaced(members: readonly Member[]): string {
    const space = (): string => this.#dice.pick(["", "", " ", "  ", "\t", "\r", " \r"]);
    const inside = members.map(
      ([name, value]) => `${space()}"${name}"${space()}:${space()}${value}${space()}`,
    );
    return `${space()}{${inside.join(",")}}${space()}`;
  }

  /** Names and values with escapes that mean the same characters. */
  #escaped(members: readonly Member[]): string {
    const spelt = (text: string): string =>
      text.replace(/[a-zA-Z]/g, (letter) =>
        this.#dice.chance(0.2) ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}` : letter,
      );
    // An escaped canary is one that a search would not find.
    return plain(members.map(([name, value]) => [name === "discoveredAt" ? name : spelt(name), value]));
  }

  #mutated(nth: number, date: string | undefined): string {
    const row = Object.fromEntries(
      this.#members(nth, undefined).map(([name, value]) => [name, JSON.parse(value)]),
    );
    const value = this.#forbidden.size > 0 ? row : mutated(row, this.#dice, 0.08);
    const text = rawLine(JSON.stringify(value) ?? "null");
    if (date === undefined || !text.endsWith("}")) return text;
    return text === "{}" ? `{"discoveredAt":${date}}` : `${text.slice(0, -1)},"discoveredAt":${date}}`;
  }

  #bent(text: string): string {
    // A bent name would let a forbidden value through under another.
    if (this.#forbidden.size > 0) return text;
    return bent(Buffer.from(text, "latin1"), this.#dice).toString("latin1");
  }
}

/**
 * Whether a line that was changed at random still says the date under which the service has it, and has made no name of a
 * value; or is no row at all.
 */
function isUsable(text: string, date: string | undefined): boolean {
  let isNamed = false;
  try {
    const { discoveredAt } = JSON.parse(text, (name, value: unknown) => {
      isNamed ||= name.includes(CANARY) || name.includes(CANARY_NUMBER);
      return value;
    }) as { discoveredAt?: unknown };
    const wanted = date === undefined ? undefined : JSON.stringify(JSON.parse(date));
    return !isNamed && JSON.stringify(discoveredAt) === wanted;
  } catch {
    return true;
  }
}

const plain = (members: readonly Member[]): string =>
  `{${members.map(([name, value]) => `"${name}":${value}`).join(",")}}`;

function shuffle(members: Member[], dice: Dice): void {
  for (let at = members.length - 1; at > 0; at--) {
    const other = dice.below(at + 1);
    const [one, two] = [members[at], members[other]];
    if (one !== undefined && two !== undefined) [members[at], members[other]] = [two, one];
  }
}

/** What stands for a date, as JSON; undefined: nothing does. */
function dateOf(dice: Dice, nth: number): { readonly text: string | undefined; readonly day: string | null } {
  if (dice.chance(0.06)) {
    const odd = [undefined, ...'null "" true [] {} "2026-02-30" "2026-13-01T00:00:00Z"'.split(" ")];
    odd.push(`"${CANARY}-when"`);
    return { text: dice.pick(odd), day: null };
  }
  const day = dice.pick(DAYS);
  const ms = Date.parse(`${day}T00:00:00.000Z`) + ((nth * 7919) % 21_600_000);
  const iso = new Date(ms).toISOString();
  return { text: dice.chance(0.85) ? `"${iso}"` : dice.pick(SPELLINGS)(ms, iso), day };
}

const SPELLINGS: readonly ((ms: number, iso: string) => string)[] = [
  (_, iso) => `"${iso.slice(0, 23)}456Z"`,
  (_, iso) => `"${iso.slice(0, 23)}+00:00"`,
  (ms) => `"${new Date(ms + 19_800_000).toISOString().slice(0, 23)}+05:30"`,
  (ms) => `"${new Date(ms - 28_800_000).toISOString().slice(0, 23)}-0800"`,
  (_, iso) => `"${iso.slice(0, 23).replace("T", " ")}+00"`,
  (_, iso) => `"${iso.toLowerCase()}"`,
  (_, iso) => `"${iso.replace(".", ",")}"`,
  (_, iso) => `"${iso.slice(0, 19)}"`,
  (ms) => String(ms),
  (ms) => `"${Math.floor(ms / 1000)}"`,
];
