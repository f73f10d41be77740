import { asciiJson } from "./language.ts";

/** Texts that are never masked, because output needs them: up to 5 characters, or one word of up to 15 letters. */
const WORD = /^(?:.{0,5}|[a-z_]{1,15})$/is;
/** The secret part of a key of the service. */
const SEGMENT = /(?<=_[0-9a-f]{8}_)[0-9a-f]{32}$/i;

/** Returns a function that hides secrets and their forms: JSON, URL, base64, the secret segment of a key, any case. */
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
  // Bytes and URLs cannot contain half of a surrogate pair.
  const bytes = Buffer.from(secret);
  const base64 = [bytes.toString("base64").replace(/=+$/, ""), bytes.toString("base64url")];
  return [secret, ...escaped, encodeURIComponent(bytes.toString()), ...base64];
}

/** Hides secrets that become known only during a run. */
export class Mask {
  #hide: (text: string) => string = (text) => text;

  readonly apply = (text: string): string => this.#hide(text);

  hide(secrets: readonly string[]): void {
    this.#hide = secretMask(secrets);
  }
}
