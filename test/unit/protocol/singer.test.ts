import { describe, expect, it } from "vitest";
import { DataError } from "../../../src/base/errors.ts";
import { KEEP_ALL } from "../../../src/catalog/field-rules.ts";
import type { Selection } from "../../../src/catalog/singer-selection.ts";
import { type SingerOptions, singer } from "../../../src/protocol/singer.ts";
import type { Event } from "../../../src/sync/event.ts";
import { linesOf } from "../../support/airbyte-messages.ts";
import { checkpoint, close, END, open, records, sayAll } from "../../support/events.ts";
import { expectSingerMessages, type SingerMessage } from "../../support/tap.ts";

const PEOPLE: Selection = {
  stream: "people",
  schema: {
    type: "object",
    properties: { id: { type: "string" }, discoveredAt: { type: ["string", "null"] }, name: {} },
  },
  keyProperties: ["id"],
  replicationKey: "discoveredAt",
  method: "INCREMENTAL",
  rules: KEEP_ALL,
  isComplete: true,
};

const SOURCES: Selection = {
  ...PEOPLE,
  stream: "sources",
  schema: { type: "object", properties: { slug: { type: "string" } } },
  keyProperties: ["slug"],
  replicationKey: null,
  method: "FULL_TABLE",
};

const STATE = { discoveredAt: "2026-01-01T23:59:59.999Z", missing_days: [] };

function outputOf(events: readonly Event[], options: Partial<SingerOptions> = {}): string {
  return sayAll(singer({ selections: [PEOPLE, SOURCES], ...options }), events);
}

function messagesOf(events: readonly Event[], options: Partial<SingerOptions> = {}): SingerMessage[] {
  return expectSingerMessages(linesOf(outputOf(events, options)));
}

const typesOf = (messages: readonly SingerMessage[]): string[] => messages.map(({ type }) => type);

describe("singer()", () => {
  it("repeats a state only as the last line", () => {
    const quiet = [open("people"), checkpoint("people", STATE), checkpoint("people", STATE), close("people")];
    expect(typesOf(messagesOf([...quiet, END]))).toEqual(["SCHEMA", "STATE"]);
    const failing = close("people", false, new DataError("x"));
    const cut = [open("people"), checkpoint("people", STATE), records("people", { id: "1" }), failing, END];
    expect(typesOf(messagesOf(cut))).toEqual(["SCHEMA", "STATE", "RECORD", "STATE"]);
  });

  it("repeats a state with jobs every five seconds at most, but before each purchase and at the end", () => {
    const state = { bookmarks: { company_lookups: { version: 3 } } };
    const lookups = { ...PEOPLE, stream: "company_lookups" };
    let now = 0;
    const say = singer({ selections: [PEOPLE, lookups], state, monotonic: () => now });
    const isSaid = (at: number, event: Event): boolean => {
      now = at;
      return say(event) !== "";
    };
    const people = (day: number): Event => checkpoint("people", { ...STATE, day });
    const said = [isSaid(0, people(1)), isSaid(4_999, people(2)), isSaid(5_000, people(3))];
    const bought = isSaid(5_001, checkpoint("company_lookups", { version: 3, open: 1 }));
    expect([...said, bought]).toEqual([true, false, true, true]);
    expect([isSaid(5_002, people(4)), say(END).includes('"day":4')]).toEqual([false, true]);
  });

  it("activates the version of a full table after it was read whole, and of nothing else", () => {
    const run = (stream: string, end: Event, version?: number) => {
      const row = stream === "people" ? { id: "1" } : { slug: "x" };
      return messagesOf([open(stream), records(stream, row), end, END], { version });
    };
    const whole = run("sources", close("sources"), 7);
    expect(typesOf(whole)).toEqual(["SCHEMA", "RECORD", "ACTIVATE_VERSION", "STATE"]);
    expect(whole[1]?.version).toBe(7);
    expect(whole[2]).toEqual({ type: "ACTIVATE_VERSION", stream: "sources", version: 7 });
    const none = ["SCHEMA", "RECORD", "STATE"];
    expect(typesOf(run("sources", close("sources", false), 7))).toEqual(none);
    expect(typesOf(run("sources", close("sources", true, new DataError("x")), 7))).toEqual(none);
    expect(typesOf(run("sources", close("sources")))).toEqual(none);
    expect(run("sources", close("sources"))[1]).not.toHaveProperty("version");
    expect(typesOf(run("people", close("people"), 7))).toEqual(none);
  });
});
