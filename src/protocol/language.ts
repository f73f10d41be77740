import { plural, shown } from "../base/text.ts";
import type { Event, EventOf } from "../sync/event.ts";

/**
 * Turns an event into lines of output, or "". The text has one byte a character (latin1): records keep the bytes
 * that arrived, and other lines are ASCII.
 */
export type Language = (event: Event) => string;

/** Puts each line between a head and a tail. `join` takes 1.8 times as long as concatenation. */
export function splice(head: string, tail: string, lines: readonly string[]): string {
  let text = "";
  for (const line of lines) text += head + line + tail;
  return text;
}

/** JSON in ASCII, because some readers split lines at U+2028, U+2029 or U+0085. */
export const asciiJson = (value: unknown, indent?: number): string =>
  toAscii(JSON.stringify(value, null, indent));

/** A message as a line of ASCII. */
export const jsonLine = (message: object): string => toAscii(`${JSON.stringify(message)}\n`);

/** Escapes all characters of a JSON text that are not ASCII. A lone surrogate, which Python cannot encode, becomes U+FFFD. */
export const toAscii = (json: string): string =>
  json.replace(LONE_SURROGATE, "$1\\ufffd").replace(NOT_ASCII, escaped);

/** The escape of a lone surrogate by `JSON.stringify`, with an even number of backslashes before the escape. */
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;
const NOT_ASCII = /[\u007f-\uffff]/g;
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

export const secondsUntil = (until: number, now: number): number =>
  Math.max(0, Math.ceil((until - now) / 1000));

/** Shorter waits (ms) for the rate limit get no line. */
const SHORT_WAIT_MS = 10_000;

/** A notice for a person at every level of the log. */
export type Warned = EventOf<"cut" | "limited" | "retrying">;

/** Returns a function that turns notices into sentences. It returns "" for a short wait, or a wait during a reported wait. */
export function noticeTexts(now: () => number): (event: Warned) => string {
  let reported = 0;
  return (event) => {
    switch (event.kind) {
      case "cut":
        return cutText(event);
      case "retrying": {
        const { what, reason, attempt, attempts, waitMs } = event;
        return `Cannot ${what}: ${reason}. Try ${attempt} of ${attempts} in ${(waitMs / 1000).toFixed(1)} s`;
      }
      case "limited": {
        const { until } = event;
        if (until - now() < SHORT_WAIT_MS || until < reported + SHORT_WAIT_MS) return "";
        reported = until;
        return `Waiting ${secondsUntil(until, now())} s for the rate limit`;
      }
    }
  };
}

/** "people, 2024-01-01 to 2024-01-31: 1,502 of 3,003 rows arrived; reading again" */
function cutText({ stream, days, shown: rows, counted }: EventOf<"cut">): string {
  const arrived =
    counted !== null && rows < counted
      ? `${shown(rows)} of ${plural(counted, "row")} arrived`
      : `the answer failed after ${plural(rows, "row")}`;
  return `${stream}, ${days}: ${arrived}; reading again`;
}
