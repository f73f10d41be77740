import type { Language } from "../../src/protocol/language.ts";
import type { Event, Lines, RawLine, StreamState } from "../../src/sync/event.ts";

/** A value as the bytes of its JSON, one byte a character: what a service sends. */
export const rawLine = (json: string): RawLine => Buffer.from(json, "utf8").toString("latin1") as RawLine;

const rawLines = (...values: readonly unknown[]): Lines =>
  values.map((value) => rawLine(JSON.stringify(value)));

/** What a reader of the output's bytes sees. */
export const asRead = (text: string): string => Buffer.from(text, "latin1").toString("utf8");

export const sayAll = (say: Language, events: readonly Event[]): string => asRead(events.map(say).join(""));

export const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export const open = (stream: string): Event => ({ kind: "open", stream });

export const records = (stream: string, ...values: readonly unknown[]): Event => ({
  kind: "records",
  stream,
  lines: rawLines(...values),
  at: AT,
});

export const checkpoint = (stream: string, state: StreamState): Event => ({
  kind: "checkpoint",
  stream,
  state,
});

export const close = (stream: string, complete = true, error?: unknown): Event =>
  error === undefined ? { kind: "close", stream, complete } : { kind: "close", stream, complete, error };

export const END: Event = { kind: "end" };
