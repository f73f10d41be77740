import { asciiJson } from "./language.ts";

/** Shorter texts are no secrets: masking them would only garble the output. */
const MIN_LENGTH = 6;

/** The secret part of a key of the service. */
const SEGMENT = /(?<=_[0-9a-f]{8}_)[0-9a-f]{32}$/i;

/**
 * Replaces each secret in a text: as it is, as JSON or a URL escapes it, or as base64, in upper or lower case. A key's
 * secret segment is a secret too.
 */
export function secretMask(secrets: readonly string[]): (text: string) => string {
  const all = secrets.flatMap((secret) => [secret, ...(SEGMENT.exec(secret) ?? [])]);
  const forms = all.filter(({ length }) => length >= MIN_LENGTH).flatMap(formsOf);
  if (forms.length === 0) return (text) => text;
  const longestFirst = [...new Set(forms)].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map(patternOf).join("|"), "gi");
  return (text) => text.replace(pattern, "***");
}

function formsOf(secret: string): readonly string[] {
  const escaped = [JSON.stringify(secret), asciiJson(secret)].map((json) => json.slice(1, -1));
  const bytes = Buffer.from(secret);
  const base64 = bytes.toString("base64");
  // Bytes cannot express half of a surrogate pair, which no URL can.
  return [
    secret,
    ...escaped,
    encodeURIComponent(bytes.toString()),
    base64,
    base64.replace(/=+$/, ""),
    bytes.toString("base64url"),
  ];
}

/**
 * Messages are made of names such as `"type":"CONNECTION_STATUS"`. A short secret of nothing but letters is masked neither
 * within a longer word nor where it is a complete string of JSON.
 */
function patternOf(form: string): string {
  const literal = form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  if (!/^[a-z_]{1,15}$/i.test(form)) return literal;
  return `(?<!\\w)(?:(?<!(?<!\\\\)")${literal}|${literal}(?!"))(?!\\w)`;
}

/** Hides secrets, which become known only while a run goes on. */
export class Mask {
  #hide: (text: string) => string = (text) => text;

  readonly apply = (text: string): string => this.#hide(text);

  /** From now on no text shows one of these. */
  hide(secrets: readonly string[]): void {
    this.#hide = secretMask(secrets);
  }
}
