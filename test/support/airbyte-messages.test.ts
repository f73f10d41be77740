import { describe, expect, it } from "vitest";
import { airbyte } from "../../src/protocol/airbyte.ts";
import { expectAirbyteMessages, linesOf } from "./airbyte-messages.ts";
import { checkpoint, close, END, open, records, sayAll } from "./events.ts";

const GOOD = linesOf(
  sayAll(airbyte({ now: () => 1000 }), [
    ...[open("a"), records("a", { x: 1 }), checkpoint("a", {}), close("a")],
    ...[open("b"), close("b", false), END],
  ]),
);

const [STARTED = "", RUNNING = "", RECORD = "", STATE = "", COMPLETE = ""] = GOOD;
const LOG = '{"type":"LOG","log":{"level":"INFO","message":"x"}}';

const later = (line: string): string => line.replace(/"emitted_at":\d+/, '"emitted_at":9999');

describe("expectAirbyteMessages()", () => {
  it("takes a proper output", () => {
    expect(expectAirbyteMessages(GOOD)).toHaveLength(GOOD.length);
  });

  it.each<[string, string[]]>([
    ["a text that is no JSON", ["hello"]],
    ["an unknown type", ['{"type":"NEWS","news":{}}']],
    [
      "a message without its body",
      ['{"type":"LOG","trace":{"type":"ERROR","emitted_at":1,"error":{"message":"x"}}}'],
    ],
    ["a body that the protocol does not have", ['{"type":"LOG","log":{"level":"LOUD","message":"x"}}']],
    ["a log that is not ASCII", ['{"type":"LOG","log":{"level":"INFO","message":"é"}}']],
    ["no STARTED", [RUNNING, RECORD, STATE, COMPLETE]],
    ["no RUNNING", [STARTED, RECORD, STATE, COMPLETE]],
    ["no terminal status", [STARTED, RUNNING, later(RUNNING), RECORD, STATE]],
    ["a record before RUNNING", [STARTED, RECORD, RUNNING, STATE, COMPLETE]],
    ["a record after COMPLETE", [STARTED, RUNNING, STATE.replace("1.0", "0.0"), COMPLETE, RECORD]],
    ["COMPLETE without a STATE", [STARTED, RUNNING, COMPLETE]],
    ["COMPLETE with records after the last STATE", [STARTED, RUNNING, RECORD, STATE, RECORD, COMPLETE]],
    ["a wrong recordCount", [STARTED, RUNNING, RECORD, RECORD, STATE, COMPLETE]],
    ["an integer recordCount", [STARTED, RUNNING, RECORD, STATE.replace("1.0", "1"), COMPLETE]],
    ["an empty record", [STARTED, RUNNING, RECORD.replace('{"x":1}', "{}"), STATE, COMPLETE]],
    ["the same emitted_at twice", [STARTED, RUNNING, RUNNING, RECORD, STATE, COMPLETE]],
    ["an ERROR trace before the end", [...GOOD, LOG]],
  ])("refuses %s", (_, lines) => {
    expect(() => expectAirbyteMessages(lines)).toThrow();
  });

  it("refuses a line that was cut", () => {
    expect(() => linesOf("{}\n{")).toThrow();
  });
});
