import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BodyError, ConfigError, DataError, TransientError } from "../../../src/errors.ts";
import { airbyte } from "../../../src/protocol/airbyte.ts";
import {
  catalogMessage,
  logMessage,
  specMessage,
  statusMessage,
} from "../../../src/protocol/airbyte-message.ts";
import type { Event } from "../../../src/streams/event.ts";
import {
  type AirbyteMessage,
  errorsOf as errorsIn,
  expectAirbyteMessages,
  linesOf,
} from "../../support/airbyte-messages.ts";
import { AT, asRead, checkpoint, close, END, open, rawLine, records, sayAll } from "../../support/events.ts";

const NOW = 1_767_000_000_000.5;
const outputOf = (events: readonly Event[]): string => sayAll(airbyte({ now: () => NOW }), events);
const messagesOf = (events: readonly Event[]): AirbyteMessage[] =>
  expectAirbyteMessages(linesOf(outputOf(events)));

/** A message in one word. */
function word({ type, record, state, trace, log }: AirbyteMessage): string {
  const status = trace?.stream_status;
  if (status !== undefined)
    return `${status.stream_descriptor.name} ${status.reasons?.[0]?.type ?? status.status}`;
  if (trace?.error !== undefined) return `ERROR ${trace.error.failure_type}`;
  if (state !== undefined)
    return `${state.stream.stream_descriptor.name} STATE ${state.sourceStats.recordCount}`;
  return record === undefined ? (trace?.type ?? log?.level ?? type) : `${record.stream} RECORD`;
}

const wordsOf = (events: readonly Event[]): string[] => messagesOf(events).map(word);

const errorsOf = (events: readonly Event[]) => errorsIn(messagesOf(events));

describe("airbyte()", () => {
  it("cuts what a catalog or a state has made of a message", () => {
    const error = new ConfigError("x".repeat(70_000), { cause: new Error("y".repeat(70_000)) });
    const text = outputOf([
      { kind: "log", level: "warn", text: error.message },
      { kind: "failed", error },
      END,
    ]);
    expect(text.length).toBeLessThan(30_000);
  });

  it("tells a stream in the order that platforms rely on", () => {
    const said = wordsOf([
      open("people"),
      { kind: "estimate", stream: "people", rows: 3 },
      { kind: "fields", stream: "people", added: { x: {} } },
      records("people", { id: 1 }, { id: 2 }),
      records("people", { id: 3 }),
      checkpoint("people", { a: 1 }),
      records("people", { id: 4 }),
      checkpoint("people", { a: 2 }),
      close("people"),
      END,
    ]);
    expect(said).toEqual([
      "people STARTED",
      "ESTIMATE",
      "people RUNNING",
      ...["people RECORD", "people RECORD", "people RECORD", "people STATE 3"],
      ...["people RECORD", "people STATE 1", "people COMPLETE"],
    ]);
  });

  it("echoes the namespace of a stream wherever it names the stream, and knows two of one name", () => {
    const there = (namespace: string, events: readonly Event[]): Event[] =>
      events.map((event) => ({ ...event, namespace }));
    const events = [
      open("people"),
      { kind: "estimate", stream: "people", rows: 3 } as const,
      records("people", { id: 1 }),
      checkpoint("people", { a: 1 }),
      close("people", false),
    ];
    const said = messagesOf([...there("eu", events), ...there("us", events), ...events, END]);
    const places = said.map(({ record, state, trace }) => {
      const { estimate, error, stream_status } = trace ?? {};
      const named = record ?? state?.stream.stream_descriptor ?? estimate;
      const stream = named ?? error?.stream_descriptor ?? stream_status?.stream_descriptor;
      return stream?.namespace ?? "none";
    });
    const each = (place: string): string[] => Array(6).fill(place);
    expect(places).toEqual([...each("eu"), ...each("us"), ...each("none"), "eu", "us", "none"]);
  });

  it("says three statuses for an empty stream, complete or not", () => {
    const state = checkpoint("people", {});
    expect(wordsOf([open("people"), state, close("people"), END])).toEqual([
      ...["people STARTED", "people RUNNING", "people STATE 0", "people COMPLETE"],
    ]);
    expect(wordsOf([open("people"), close("people", false, new DataError("x")), END])).toEqual([
      ...["people STARTED", "people RUNNING", "people INCOMPLETE", "ERROR system_error"],
    ]);
  });

  it("counts the records of interleaved streams apart", () => {
    const counts = wordsOf([
      ...[open("a"), open("b"), records("a", { x: 1 }, { x: 2 }), records("b", { x: 1 })],
      ...[checkpoint("a", {}), records("b", { x: 2 }), checkpoint("b", {}), close("b"), close("a"), END],
    ]);
    expect(counts).toContain("a STATE 2");
    expect(counts).toContain("b STATE 2");
  });

  it("writes recordCount with a decimal point", () => {
    const text = outputOf([open("people"), checkpoint("people", { discoveredAt: "é" })]);
    expect(text).toContain(
      '"stream":{"stream_descriptor":{"name":"people"},"stream_state":{"discoveredAt":"\\u00e9"}},' +
        '"sourceStats":{"recordCount":0.0}}}\n',
    );
  });

  it("hands on any JSON object as the bytes that it came in", () => {
    const object = fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ stringUnit: "grapheme" }), {
      minKeys: 1,
    });
    fc.assert(
      fc.property(object, (value) => {
        const raw = rawLine(JSON.stringify(value));
        const say = airbyte({ now: () => NOW });
        say(open("people"));
        const said = say({ kind: "records", stream: "people", lines: [raw], at: AT });
        expect(said).toContain(`"data":${raw}}}\n`);
        expect(JSON.parse(asRead(said).split("\n")[1] ?? "").record).toEqual({
          stream: "people",
          emitted_at: Math.floor(NOW),
          data: JSON.parse(JSON.stringify(value)),
        });
      }),
    );
  });

  it("keeps integers beyond 2^53 and the spelling of numbers", () => {
    const lines = [rawLine('{"id":9007199254740993,"n":1.50e3}')];
    const text = outputOf([open("people"), { kind: "records", stream: "people", lines, at: AT }]);
    expect(text).toContain('"data":{"id":9007199254740993,"n":1.50e3}}}');
  });

  it("neither writes nor counts a record without fields", () => {
    const said = wordsOf([open("a"), records("a", {}, { x: 1 }), checkpoint("a", {}), close("a"), END]);
    expect(said.filter((each) => each === "a RECORD")).toHaveLength(1);
    expect(said).toContain("a STATE 1");
  });

  it("holds errors back until the end, the hopeful first", () => {
    const said = messagesOf([
      ...[open("a"), close("a", false, new ConfigError("no a"))],
      ...[open("b"), close("b", false, new DataError("no b"))],
      ...[open("c"), close("c", false, new BodyError("no c"))],
      ...[open("d"), records("d", { x: 1 }), checkpoint("d", {}), close("d"), END],
    ]);
    expect(said.slice(-3).map(({ trace }) => trace?.error)).toMatchObject([
      { message: "no c", failure_type: "transient_error", stream_descriptor: { name: "c" } },
      { message: "no b", failure_type: "system_error", stream_descriptor: { name: "b" } },
      { message: "no a", failure_type: "config_error", stream_descriptor: { name: "a" } },
    ]);
  });

  it("puts a config error of the whole run before what a retry would heal", () => {
    const said = wordsOf([
      ...[open("a"), close("a", false, new TransientError("later"))],
      ...[{ kind: "failed", error: new ConfigError("wrong key") } as const, END],
    ]);
    expect(said.slice(-2)).toEqual(["ERROR config_error", "ERROR transient_error"]);
  });

  it("ends a stream that was left open as INCOMPLETE", () => {
    const said = wordsOf([
      open("a"),
      records("a", { x: 1 }),
      { kind: "failed", error: new DataError("x") },
      END,
    ]);
    expect(said.slice(-2)).toEqual(["a INCOMPLETE", "ERROR system_error"]);
    expect(wordsOf([open("a"), END]).slice(-2)).toEqual(["a INCOMPLETE", "ERROR transient_error"]);
  });

  it("never says COMPLETE beside an error, and never INCOMPLETE without one", () => {
    expect(wordsOf([open("a"), close("a", true, new DataError("x")), END])).toContain("a INCOMPLETE");
    expect(errorsOf([open("a"), close("a", false), END])).toHaveLength(1);
  });

  it("starts a stream that is closed without being opened", () => {
    expect(wordsOf([close("gone", false, new ConfigError("no such stream")), END])).toEqual([
      ...["gone STARTED", "gone RUNNING", "gone INCOMPLETE", "ERROR config_error"],
    ]);
  });

  it("says RATE_LIMITED for every open stream, and RUNNING when records come again", () => {
    const said = messagesOf([
      ...[open("a"), open("b"), open("c"), checkpoint("c", {}), close("c"), records("a", { x: 1 })],
      ...[{ kind: "limited", until: AT } as const, records("a", { x: 2 }), checkpoint("a", {}), close("a")],
      ...[checkpoint("b", {}), close("b"), END],
    ]);
    const words = said.map(word);
    expect(words.filter((each) => each.endsWith("RATE_LIMITED"))).toEqual([
      "a RATE_LIMITED",
      "b RATE_LIMITED",
    ]);
    expect(words.slice(words.indexOf("b RATE_LIMITED") + 1).slice(0, 2)).toEqual(["a RUNNING", "a RECORD"]);
    const reasons = said.flatMap(({ trace }) => trace?.stream_status?.reasons ?? []);
    expect(reasons[0]).toEqual({ type: "RATE_LIMITED", rate_limited: { quota_reset: AT } });
  });

  it("logs in ASCII", () => {
    const say = airbyte({ now: () => NOW });
    const line = say({ kind: "log", level: "warn", text: "1 row of “é” \u2028" });
    expect(line).toBe(
      '{"type":"LOG","log":{"level":"WARN","message":"1 row of \\u201c\\u00e9\\u201d \\\\u2028"}}\n',
    );
    expect(say({ kind: "log", level: "info", text: "x" })).toContain('"INFO"');
  });

  it("refuses records and states after the end of their stream", () => {
    const say = airbyte({ now: () => NOW });
    for (const event of [open("a"), checkpoint("a", {}), close("a")]) say(event);
    expect(() => say(records("a", { x: 1 }))).toThrow('"a": it is not open');
    expect(() => say(checkpoint("a", {}))).toThrow('"a": it is not open');
    expect(() => say(open("a"))).toThrow("it was open before");
  });

  it("keeps its order whatever the clock does", () => {
    let now = 2000;
    const say = airbyte({ now: () => now-- });
    expectAirbyteMessages(linesOf([open("a"), checkpoint("a", {}), close("a"), END].map(say).join("")));
  });
});

describe("the ERROR trace", () => {
  it("names the causes of an expected error, without a stack", () => {
    const cause = Object.assign(new Error("connect refused"), { code: "ECONNREFUSED" });
    const error = new TransientError("Cannot reach the service", { cause: new AggregateError([cause], "") });
    const [said] = errorsOf([{ kind: "failed", error }, END]);
    expect(said).toEqual({
      message: "Cannot reach the service",
      internal_message:
        "TransientError: Cannot reach the service; caused by AggregateError; caused by Error ECONNREFUSED: connect refused",
      failure_type: "transient_error",
    });
  });

  it("calls an unexpected error a bug, with its stack", () => {
    const [said] = errorsOf([open("a"), close("a", false, new TypeError("x is not a function")), END]);
    expect(said?.message).toContain("a bug of source-contact-intelligence");
    expect(said?.internal_message).toBe("TypeError: x is not a function");
    expect(said?.stack_trace).toMatch(/^TypeError\n\s+at .*airbyte\.test\.ts/);
    expect(said?.failure_type).toBe("system_error");
  });

  it("never quotes the row that did not parse", async () => {
    const failure = await Promise.resolve("ada@example.org")
      .then(JSON.parse)
      .catch((error: unknown) => error);
    expect(String(failure)).toContain("ada@");
    const text = outputOf([open("a"), close("a", false, new BodyError("cut", { cause: failure })), END]);
    expect(text + outputOf([{ kind: "failed", error: failure }, END])).not.toContain("ada@");
  });
});

describe("single messages", () => {
  it("follow the protocol", () => {
    const lines = [
      specMessage({ connectionSpecification: { type: "object", title: "é" } }),
      statusMessage({ status: "FAILED", message: "no – wrong key" }),
      catalogMessage({ streams: [{ name: "a", json_schema: {}, supported_sync_modes: ["full_refresh"] }] }),
      logMessage("DEBUG", "x"),
    ];
    const types = expectAirbyteMessages(linesOf(lines.join(""))).map(({ type }) => type);
    expect(types).toEqual(["SPEC", "CONNECTION_STATUS", "CATALOG", "LOG"]);
  });
});
