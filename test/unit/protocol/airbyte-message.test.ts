import { describe, expect, it } from "vitest";
import { BodyError, ConfigError, DataError, TransientError } from "../../../src/errors.ts";
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
