import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BodyError, ConfigError, DataError, TransientError } from "../../../src/errors.ts";
import { airbyte } from "../../../src/protocol/airbyte.ts";
import {
  catalogMessage,
  errorMessage,
  estimateMessage,
  inOrderOfHope,
  logMessage,
  type StreamFailure,
  specMessage,
  stateMessage,
  statusMessage,
  streamStatus,
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
});

describe("the ERROR trace", () => {
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

const PEOPLE = { name: "pé", namespace: "eu" };

describe("Airbyte's messages", () => {
  it.each([
    [specMessage({ a: 1 }), '{"type":"SPEC","spec":{"a":1}}'],
    [
      statusMessage({ status: "FAILED", message: "é" }),
      '{"type":"CONNECTION_STATUS","connectionStatus":{"status":"FAILED","message":"\\u00e9"}}',
    ],
    [catalogMessage({ streams: [] }), '{"type":"CATALOG","catalog":{"streams":[]}}'],
    [logMessage("FATAL", "a\u0007é"), '{"type":"LOG","log":{"level":"FATAL","message":"a\\\\u0007\\u00e9"}}'],
    [
      streamStatus({ name: "a" }, "STARTED", 7),
      '{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":7,"stream_status":{"stream_descriptor":{"name":"a"},"status":"STARTED"}}}',
    ],
    [
      streamStatus(PEOPLE, "RUNNING", 7, 8.2),
      '{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":7,"stream_status":{"stream_descriptor":{"name":"p\\u00e9","namespace":"eu"},' +
        '"status":"RUNNING","reasons":[{"type":"RATE_LIMITED","rate_limited":{"quota_reset":9}}]}}}',
    ],
    [
      estimateMessage(PEOPLE, 3, 7),
      '{"type":"TRACE","trace":{"type":"ESTIMATE","emitted_at":7,"estimate":{"name":"p\\u00e9","namespace":"eu","type":"STREAM","row_estimate":3}}}',
    ],
    [
      stateMessage(PEOPLE, { a: "é" }, 3, '{"before":"é"}\n'),
      '{"before":"\\u00e9"}\n{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"p\\u00e9","namespace":"eu"},' +
        '"stream_state":{"a":"\\u00e9"}},"sourceStats":{"recordCount":3.0}}}',
    ],
    [
      errorMessage({ stream: { name: "a" }, error: new ConfigError("Cannot", { cause: new Error("b") }) }, 7),
      '{"type":"TRACE","trace":{"type":"ERROR","emitted_at":7,"error":{"message":"Cannot","internal_message":"ConfigError: Cannot; caused by Error: b",' +
        '"failure_type":"config_error","stream_descriptor":{"name":"a"}}}}',
    ],
  ])("are lines of ASCII: %s", (message, line) => expect(message).toBe(`${line}\n`));
});

describe("inOrderOfHope()", () => {
  const stream = { name: "a" };
  const [own, transient, body, data, bug, config]: readonly StreamFailure[] = [
    { error: new ConfigError("own") },
    { stream, error: new TransientError("t") },
    { error: new BodyError("b") },
    { stream, error: new DataError("d") },
    { error: new TypeError("x") },
    { stream, error: new ConfigError("c") },
  ];

  it("puts the run's own config error first, then what time heals, and a stream's config error last", () => {
    const ordered = [own, transient, body, data, bug, config] as StreamFailure[];
    expect(inOrderOfHope(ordered)).toEqual(ordered);
    const shuffled = [config, data, transient, own, bug, body] as StreamFailure[];
    expect(inOrderOfHope(shuffled)).toEqual([own, transient, body, data, bug, config]);
    expect(shuffled[0]).toBe(config);
  });
});
