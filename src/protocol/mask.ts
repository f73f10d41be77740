import { asciiJson } from "./language.ts";

const MASK = "***";

/** Shorter texts are no secrets: masking them would only garble the output. */
const MIN_LENGTH = 6;

const KEY = /_([0-9a-f]{8})_([0-9a-f]{32})$/i;

/** Replaces each secret, whole, in part (the segments of a key) or encoded, wherever it stands in a text. */
export function secretMask(secrets: readonly string[]): (text: string) => string {
  const patterns = secrets.filter((secret) => secret.length >= MIN_LENGTH).flatMap(patternsOf);
  if (patterns.length === 0) return (text) => text;
  const longestFirst = [...new Set(patterns)].toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.join("|"), "g");
  return (text) => text.replace(pattern, MASK);
}

function patternsOf(secret: string): readonly string[] {
  const [, short, long] = KEY.exec(secret) ?? [];
  const whole = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    asciiJson(secret).slice(1, -1),
  ];
  const texts = [...whole, ...base64Forms(secret), ...(long === undefined ? [] : [long])];
  return [...texts.map(quoted), ...(short === undefined ? [] : [bounded(short)])];
}

/** Eight hex digits may stand in a longer number or digest by chance: only a whole run of them is the segment. */
const bounded = (hex: string): string => `(?<![0-9A-Fa-f])${hex}(?![0-9A-Fa-f])`;

/** The secret alone, behind `Bearer `, and in the middle of any longer text (which has three alignments). */
function base64Forms(secret: string): readonly string[] {
  const forms = [
    base64(secret),
    base64(`Bearer ${secret}`),
    ...[0, 1, 2].map((shift) => inner(secret, shift)),
  ];
  return forms.flatMap((form) => [form, toBase64Url(form)]);
}

const toBase64Url = (form: string): string =>
  form.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** The base64 digits that depend on the secret's bytes only, whatever stands before and after it. */
function inner(secret: string, shift: number): string {
  const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
  return bytes.toString("base64").slice(Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6));
}

const quoted = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
