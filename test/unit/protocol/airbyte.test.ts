import { describe, expect, it } from "vitest";
import { BodyError, ConfigError, DataError } from "../../../src/base/errors.ts";
import { airbyte } from "../../../src/protocol/airbyte.ts";
import type { Event } from "../../../src/sync/event.ts";
import {
  type AirbyteMessage,
  errorsOf as errorsIn,
  expectAirbyteMessages,
  linesOf,
} from "../../support/airbyte-messages.ts";
import { AT, checkpoint, close, END, open, records, sayAll } from "../../support/events.ts";

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
  const BROKEN = new DataError("x");

  it.each<[string, Event[], string[]]>([
    [
      "records, counted by each state",
      [
        open("a"),
        { kind: "estimate", stream: "a", rows: 3 },
        { kind: "fields", stream: "a", added: { x: {} } },
        ...[records("a", { id: 1 }), records("a", { id: 2 }), checkpoint("a", {}), checkpoint("a", {})],
        close("a"),
      ],
      ["STARTED", "ESTIMATE", "RUNNING", "RECORD", "RECORD", "STATE 2", "STATE 0", "COMPLETE"],
    ],
    [
      "a record without fields, which is neither written nor counted",
      [open("a"), records("a", {}, { x: 1 }), checkpoint("a", {}), close("a")],
      ["STARTED", "RUNNING", "RECORD", "STATE 1", "COMPLETE"],
    ],
    [
      "less than all, without an error",
      [open("a"), close("a", false)],
      ["STARTED", "RUNNING", "INCOMPLETE", "ERROR transient_error"],
    ],
    ["no end", [open("a")], ["STARTED", "RUNNING", "INCOMPLETE", "ERROR transient_error"]],
    [
      "no end, because the run failed",
      [open("a"), records("a", { x: 1 }), { kind: "failed", error: BROKEN }],
      ["STARTED", "RUNNING", "RECORD", "INCOMPLETE", "ERROR system_error"],
    ],
    [
      "a wait for the rate limit",
      [
        ...[open("a"), records("a", { x: 1 }), { kind: "limited", until: AT } as const],
        ...[records("a", { x: 2 }), checkpoint("a", {}), close("a")],
      ],
      ["STARTED", "RUNNING", "RECORD", "RATE_LIMITED", "RUNNING", "RECORD", "STATE 2", "COMPLETE"],
    ],
  ])("writes a stream with %s in the order that platforms need", (_, events, words) => {
    expect(wordsOf([...events, END]).map((said) => said.replace(/^a /, ""))).toEqual(words);
  });

  it("reports errors at the end: first those of the run, then temporary ones, last those of a config", () => {
    const said = messagesOf([
      ...[open("a"), close("a", false, new ConfigError("no a"))],
      ...[open("b"), close("b", false, new DataError("no b"))],
      ...[open("c"), close("c", false, new BodyError("no c"))],
      ...[open("d"), records("d", { x: 1 }), checkpoint("d", {}), close("d")],
      ...[{ kind: "failed", error: new ConfigError("no run") } as const, END],
    ]);
    expect(said.slice(-4).map(({ trace }) => trace?.error)).toMatchObject([
      { message: "no run", failure_type: "config_error" },
      { message: "no c", failure_type: "transient_error", stream_descriptor: { name: "c" } },
      { message: "no b", failure_type: "system_error", stream_descriptor: { name: "b" } },
      { message: "no a", failure_type: "config_error", stream_descriptor: { name: "a" } },
    ]);
  });
});

describe("the ERROR trace", () => {
  it("calls an unexpected error a bug, with its stack", () => {
    const [said] = errorsOf([open("a"), close("a", false, new TypeError("x is not a function")), END]);
    expect(said?.message).toMatch(/a bug of source-contact-intelligence.*\(TypeError\)$/);
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
