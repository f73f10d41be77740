import { asciiJson } from "./language.ts";

/**
 * Texts that are not masked, because the output would mean nothing without them: up to 5 characters, and words such as
 * `people`, of up to 15 letters.
 */
const WORD = /^(?:.{0,5}|[a-z_]{1,15})$/is;

/** The secret part of a key of the service. */
const SEGMENT = /(?<=_[0-9a-f]{8}_)[0-9a-f]{32}$/i;

/**
 * Replaces each secret in a text: as it is, as JSON or a URL escapes it, or as base64, in upper or lower case. A key's
 * secret segment is a secret too.
 */
export function secretMask(secrets: readonly string[]): (text: string) => string {
  const all = secrets.flatMap((secret) => [secret, ...(SEGMENT.exec(secret) ?? [])]);
  const forms = all.filter((secret) => !WORD.test(secret)).flatMap(formsOf);
  if (forms.length === 0) return (text) => text;
  const longestFirst = [...new Set(forms)].sort((a, b) => b.length - a.length);
  const literals = longestFirst.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  const pattern = new RegExp(literals.join("|"), "gi");
  return (text) => text.replace(pattern, "***");
}

function formsOf(secret: string): readonly string[] {
  const escaped = [JSON.stringify(secret), asciiJson(secret)].map((json) => json.slice(1, -1));
  // A text has each half of a surrogate pair; bytes and URLs have none.
  const bytes = Buffer.from(secret);
  const base64 = [bytes.toString("base64").replace(/=+$/, ""), bytes.toString("base64url")];
  return [secret, ...escaped, encodeURIComponent(bytes.toString()), ...base64];
}

/** Hides secrets, which become known only during a run. */
export class Mask {
  #hide: (text: string) => string = (text) => text;

  readonly apply = (text: string): string => this.#hide(text);

  /** From now on no text shows one of these. */
  hide(secrets: readonly string[]): void {
    this.#hide = secretMask(secrets);
  }
}
