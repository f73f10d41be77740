/** Stands in the values of all rows, texts and numbers, so that a value is known wherever it turns up. Never in a name. */
export const CANARY = "Kanarek";
export const CANARY_NUMBER = "7316429";

/** Stands in the values of fields that a run was told to drop, hash or withhold: these may not even be in records. */
export const FORBIDDEN = "Verboten";

const SECRET = "00112233445566778899aabbccddeeff";
export const KEY = `svc_0a1b2c3d_${SECRET}`;

/** What a text that is no record may not hold. */
const PRIVATE: ReadonlyMap<string, RegExp> = new Map([
  ["a value of a row", new RegExp(`${CANARY}|${CANARY_NUMBER}|${FORBIDDEN}`, "i")],
  ["the key", new RegExp(SECRET, "i")],
  ['the word "bug"', /\bbug\b/i],
  ["a stack frame", /(?:^|\n|\\n)\s+at .*:\d+:\d+/],
]);

function refuse(where: string, what: string, pattern: RegExp, text: string): void {
  const { index } = pattern.exec(text) ?? {};
  if (index === undefined) return;
  const around = text.slice(Math.max(0, index - 300), index + 300);
  throw new Error(`${where} holds ${what}: ${JSON.stringify(around)}`);
}

/** Throws if a text that is no record says what only a record may say, or what nobody should read. */
export function refusePrivate(where: string, text: string): void {
  // A state names the sources that the key can read.
  const said = text.replace(/\\?"sources\\?":\[[^\]]*\]/g, "");
  for (const [what, pattern] of PRIVATE) refuse(where, what, pattern, said);
}

/** What moves the cursor of a terminal, breaks a line or turns the direction of a text. */
const UNPRINTABLE = /[^\P{Cc}\n\t]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** Throws if a text for a person would do more to a terminal than stand there. */
export function refuseUnprintable(where: string, text: string): void {
  refuse(where, "what no terminal may get", UNPRINTABLE, text);
}

const LONGEST_MESSAGE = 20_000;

/** Throws if a message is so long that no log takes it. */
export function refuseLong(where: string, text: string): void {
  if (text.length > LONGEST_MESSAGE) throw new Error(`${where} has ${text.length} characters`);
}
