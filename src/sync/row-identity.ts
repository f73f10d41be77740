import { fromLatin1, toLatin1 } from "../base/text.ts";
import type { RawLine } from "./event.ts";

/** The moment of a cursor in ms, or a text that is finer where the cursor is. */
export function identityOf(cursor: string, at: number): number | string {
  if (cursor.length === 24 && cursor.charCodeAt(23) === 90) return at;
  const finer = /[.,]\d{3}(\d*[1-9])0*(?:\D|$)/.exec(cursor)?.[1];
  // An epoch number that says no more than the millisecond, in any unit.
  if ([at / 1_000, at, at * 1_000, at * 1_000_000].some((number) => String(number) === cursor)) return at;
  if (/^-?\d+(?:\.\d+)?$/.test(cursor)) return cursor;
  return finer === undefined ? at : `${at}.${finer}`;
}

/** A row's content without the spaces and escapes that an endpoint chose. */
export function contentOf(raw: RawLine): string {
  if (!raw.includes("\\u")) return JSON.stringify(JSON.parse(raw));
  return toLatin1(JSON.stringify(JSON.parse(fromLatin1(raw))));
}
