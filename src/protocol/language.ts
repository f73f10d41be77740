import { plural, shown } from "../base/text.ts";
import type { Event, Notice } from "../sync/event.ts";

/**
 * Turns an event into output lines, or "" if it needs none. The text has one byte a character
 * (latin1): record lines are spliced in as the bytes they came in, and every other line is pure ASCII.
 */
export type Language = (event: Event) => string;

/** Puts each line between a head and a tail. Concatenation: joining with `tail + head` takes 1.8 times as long. */
export function splice(head: string, tail: string, lines: readonly string[]): string {
  let text = "";
  for (const line of lines) text += head + line + tail;
  return text;
}

/**
 * JSON in pure ASCII, so that it means the same in latin1 and UTF-8 and no reader splits it at U+2028, U+2029 or U+0085.
 * A lone surrogate, which readers in Python cannot encode, becomes U+FFFD.
 */
export function asciiJson(value: unknown, indent?: number): string {
  return toAscii(JSON.stringify(value, null, indent));
}

/** A message as a line of ASCII. A text that is put together before its end is not copied again. */
export const jsonLine = (message: object): string => toAscii(`${JSON.stringify(message)}\n`);

/** Escapes in JSON text what is not ASCII. */
export const toAscii = (json: string): string =>
  json.replace(LONE_SURROGATE, "$1\\ufffd").replace(NOT_ASCII, escaped);

/** `JSON.stringify` escapes a surrogate only if it is alone. The look-behind tells an escape from an escaped backslash. */
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

const NOT_ASCII = /[\u007f-\uffff]/g;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** "people, 2024-01-01 to 2024-01-31: 1,502 of 3,003 rows arrived; reading again" */
export function cutText({ stream, days, shown: rows, counted }: Extract<Notice, { kind: "cut" }>): string {
  const arrived =
    counted !== null && rows < counted
      ? `${shown(rows)} of ${plural(counted, "row")} arrived`
      : `the answer broke off after ${plural(rows, "row")}`;
  return `${stream}, ${days}: ${arrived}; reading again`;
}

/** "Cannot count people at 127.0.0.1:8080: the connection was refused (ECONNREFUSED). Try 2 of 5 in 1.3 s" */
export function waitingText(event: Extract<Notice, { kind: "limited" | "retrying" }>, now: number): string {
  if (event.kind === "limited") return `Waiting ${secondsUntil(event.until, now)} s for the rate limit`;
  const { what, reason, attempt, attempts, waitMs } = event;
  return `Cannot ${what}: ${reason}. Try ${attempt} of ${attempts} in ${(waitMs / 1000).toFixed(1)} s`;
}

export const secondsUntil = (until: number, now: number): number =>
  Math.max(0, Math.ceil((until - now) / 1000));

/** A wait for the rate limit that is shorter (ms) is not logged. */
const SHORT_WAIT_MS = 10_000;

/** Tells which waits for the rate limit are worth a line. Requests that wait together are one wait. */
export function longWaits(now: () => number): (until: number) => boolean {
  let reported = 0;
  return (until) => {
    const isLong = until - now() >= SHORT_WAIT_MS && until >= reported + SHORT_WAIT_MS;
    if (isLong) reported = until;
    return isLong;
  };
}
