import { asciiJson } from "./language.ts";

const MASK = "***";

/** Shorter texts are no secrets: masking them would only garble the output. */
const MIN_LENGTH = 6;

const KEY_SHAPE = /_([0-9a-f]{8})_([0-9a-f]{32})$/i;

/**
 * Replaces each secret wherever it stands in a text: complete, in part (the segments of a key), in upper or lower case, as
 * hex or base64, or escaped as URLs and JSON escape. Where a secret of less than 16 letters could be a word of the
 * protocols, it stays as it is: the output would no longer mean anything.
 */
export function secretMask(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.filter((secret) => secret.length >= MIN_LENGTH).flatMap(formsOf);
  if (forms.length === 0) return (text) => text;
  const longestFirst = forms.sort((a, b) => b.text.length - a.text.length);
  const pattern = new RegExp([...new Set(longestFirst.map((form) => form.pattern))].join("|"), "g");
  return (text) => text.replace(pattern, MASK);
}

/** A text that gives a secret away, and how it is found. */
type Form = { readonly text: string; readonly pattern: string };

function formsOf(secret: string): readonly Form[] {
  const [, short, ...long] = KEY_SHAPE.exec(secret) ?? [];
  const bytes = Buffer.from(secret);
  const escaped = [JSON.stringify(secret), asciiJson(secret)].map((json) => json.slice(1, -1));
  // The bytes hold no half of a surrogate pair, which no URL can.
  const caseless = [secret, encodeURIComponent(bytes.toString()), ...escaped, bytes.toString("hex"), ...long];
  return [
    ...caseless.map((text) => ({ text, pattern: inAnyCase(text) })),
    ...base64Forms(secret).map((text) => ({ text, pattern: literalPattern(text) })),
    // Eight hex digits may stand in a longer number or digest by chance: only a run of exactly these is the segment.
    ...(short === undefined
      ? []
      : [{ text: short, pattern: `(?<![0-9A-Fa-f])${inAnyCase(short)}(?![0-9A-Fa-f])` }]),
  ];
}

/** A pattern of a text in upper or lower case; base64 is told apart by case, so that one flag for all will not do. */
function inAnyCase(text: string): string {
  const letters = [...text].map((character) => {
    const [lower, upper] = [character.toLowerCase(), character.toUpperCase()];
    const isLetter = lower !== upper && lower.length === 1 && upper.length === 1;
    return isLetter ? `[${lower}${upper}]` : literalPattern(character);
  });
  return /^[a-z_]{1,15}$/i.test(text) ? asWord(letters.join("")) : letters.join("");
}

/**
 * Messages are made of names such as `"type":"CONNECTION_STATUS"`. A short secret of nothing but letters is masked neither
 * within a longer word nor where it is a complete string of JSON.
 */
const asWord = (pattern: string): string => `(?<!\\w)(?:(?<!(?<!\\\\)")${pattern}|${pattern}(?!"))(?!\\w)`;

/** The secret alone, behind `Bearer `, and in the middle of any longer text, which has three alignments. */
function base64Forms(secret: string): readonly string[] {
  const ends = [secret, `Bearer ${secret}`].map((text) => Buffer.from(text).toString("base64"));
  const inner = [0, 1, 2].map((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
    // The digits that depend on the secret's bytes only, whatever stands before and after them.
    return bytes.toString("base64").slice(Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6));
  });
  const forms = [...ends, ...inner];
  return [...forms, ...forms.map((form) => form.replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, ""))];
}

/** The text for a place in a regular expression. */
const literalPattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

/** Hides secrets, which become known only while a run goes on. */
export class Mask {
  #hide: (text: string) => string = (text) => text;

  readonly apply = (text: string): string => this.#hide(text);

  /** Nothing that is said afterwards shows one of these. */
  hide(secrets: readonly string[]): void {
    this.#hide = secretMask(secrets);
  }
}
