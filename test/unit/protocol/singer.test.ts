import { describe, expect, it } from "vitest";
import { propertiesOf } from "../../../src/catalog/schema.ts";
import type { Selection } from "../../../src/catalog/singer-selection.ts";
import { DataError } from "../../../src/errors.ts";
import { type SingerOptions, singer } from "../../../src/protocol/singer.ts";
import type { Event, StreamState } from "../../../src/streams/event.ts";
import { linesOf } from "../../support/airbyte-messages.ts";
import { AT, checkpoint, close, END, open, rawLine, records, sayAll } from "../../support/events.ts";
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
  rules: null,
  sampled: null,
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
  it("says schema, records and whole states", () => {
    const run = (stream: string, record: object, state: StreamState): Event[] => [
      open(stream),
      records(stream, record),
      checkpoint(stream, state),
      close(stream),
    ];
    const first = run("people", { id: "1", name: "é😀" }, STATE);
    const said = messagesOf([...first, ...run("sources", { slug: "x" }, { done: true }), END]);
    expect(typesOf(said)).toEqual(["SCHEMA", "RECORD", "STATE", "SCHEMA", "RECORD", "STATE"]);
    expect(said[0]).toEqual({
      type: "SCHEMA",
      stream: "people",
      schema: PEOPLE.schema,
      key_properties: ["id"],
      bookmark_properties: ["discoveredAt"],
    });
    expect(said[1]).toEqual({
      type: "RECORD",
      stream: "people",
      record: { id: "1", name: "é😀" },
      time_extracted: "2026-01-02T03:04:05.678Z",
    });
    const people = {
      ...STATE,
      replication_key: "discoveredAt",
      replication_key_value: "2026-01-01T23:59:59.999Z",
    };
    expect(said[2]?.value).toEqual({ bookmarks: { people } });
    const sources = { done: true, replication_key: null, replication_key_value: null };
    expect(said[5]?.value).toEqual({ bookmarks: { people, sources } });
  });

  it("hands a record on as the bytes that it came in", () => {
    const raw = rawLine('{"id": "1", "name":9007199254740993,"discoveredAt":null }');
    const text = outputOf([open("people"), { kind: "records", stream: "people", lines: [raw], at: AT }]);
    expect(text).toContain(`"record":${raw}}\n`);
  });

  it("carries over what it does not know of the state", () => {
    const state = {
      currently_syncing: "x",
      bookmarks: { gone: { x: 1 }, people: { old: 1 }, sources: { s: 1 } },
    };
    const said = messagesOf([open("people"), checkpoint("people", STATE), close("people"), END], { state });
    expect(said.at(-1)?.value).toMatchObject({
      currently_syncing: "x",
      bookmarks: { gone: { x: 1 }, sources: { s: 1 } },
    });
    expect(said.at(-1)?.value?.bookmarks).not.toHaveProperty("people.old");
  });

  it("says a state again only if it is the last line", () => {
    const quiet = [open("people"), checkpoint("people", STATE), checkpoint("people", STATE), close("people")];
    expect(typesOf(messagesOf([...quiet, END]))).toEqual(["SCHEMA", "STATE"]);
    const failing = close("people", false, new DataError("x"));
    const cut = [open("people"), checkpoint("people", STATE), records("people", { id: "1" }), failing, END];
    expect(typesOf(messagesOf(cut))).toEqual(["SCHEMA", "STATE", "RECORD", "STATE"]);
  });

  it("says a second schema for new fields", () => {
    const fields: Event = { kind: "fields", stream: "people", added: { zz: { type: ["number", "null"] } } };
    const [one, two] = [records("people", { id: "1" }), records("people", { id: "2", zz: 1 })];
    const said = messagesOf([open("people"), one, fields, two, END]);
    expect(typesOf(said)).toEqual(["SCHEMA", "RECORD", "SCHEMA", "RECORD", "STATE"]);
    expect(said[2]?.schema?.properties).toEqual({
      ...propertiesOf(PEOPLE.schema),
      zz: { type: ["number", "null"] },
    });
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
