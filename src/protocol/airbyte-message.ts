import { type FailureType, failureTypeOf } from "../base/errors.ts";
import type { StreamState } from "../sync/event.ts";
import { causeChain, fitText, framesOf, userMessage } from "./error-text.ts";
import { jsonLine, toAscii } from "./language.ts";

/** The Airbyte messages that are no records, each as one line of ASCII. */

export type AirbyteLevel = "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE";
export type StreamStatus = "STARTED" | "RUNNING" | "COMPLETE" | "INCOMPLETE";
export type ConnectionStatus = { readonly status: "SUCCEEDED" | "FAILED"; readonly message?: string };

/** A stream as the protocol names it. */
export type StreamDescriptor = { readonly name: string; readonly namespace?: string | undefined };

export const specMessage = (spec: object): string => jsonLine({ type: "SPEC", spec });

export const statusMessage = (connectionStatus: ConnectionStatus): string =>
  jsonLine({ type: "CONNECTION_STATUS", connectionStatus });

export const catalogMessage = (catalog: object): string => jsonLine({ type: "CATALOG", catalog });

export const logMessage = (level: AirbyteLevel, message: string): string =>
  jsonLine({ type: "LOG", log: { level, message: fitText(message) } });

/** @param limitedUntil epoch ms: the stream waits for its rate limit */
export function streamStatus(
  stream: StreamDescriptor,
  status: StreamStatus,
  emittedAt: number,
  limitedUntil?: number,
): string {
  const reasons =
    limitedUntil === undefined
      ? undefined
      : [{ type: "RATE_LIMITED", rate_limited: { quota_reset: Math.ceil(limitedUntil) } }];
  return trace("STREAM_STATUS", emittedAt, { stream_status: { stream_descriptor: stream, status, reasons } });
}

export function estimateMessage(stream: StreamDescriptor, rows: number, emittedAt: number): string {
  return trace("ESTIMATE", emittedAt, { estimate: { ...stream, type: "STREAM", row_estimate: rows } });
}

/**
 * `recordCount` always has a decimal point: the protocol's readers tell an integer from a number by it.
 * @param before lines that leave first; joined to a large state later they would copy it
 */
export function stateMessage(
  stream: StreamDescriptor,
  state: StreamState,
  recordCount: number,
  before: string,
): string {
  const body = JSON.stringify({ stream_descriptor: stream, stream_state: state });
  const stats = `{"recordCount":${recordCount}.0}`;
  return toAscii(
    `${before}{"type":"STATE","state":{"type":"STREAM","stream":${body},"sourceStats":${stats}}}\n`,
  );
}

/** A failure of a stream, or of the run when there is no stream. */
export type StreamFailure = { readonly stream?: StreamDescriptor; readonly error: unknown };

export function errorMessage({ stream, error }: StreamFailure, emittedAt: number): string {
  return trace("ERROR", emittedAt, {
    error: {
      message: userMessage(error),
      internal_message: causeChain(error),
      stack_trace: framesOf(error),
      failure_type: failureTypeOf(error),
      stream_descriptor: stream,
    },
  });
}

/**
 * The order of failures in the output. The platform goes by the first: a config_error there stops its retries, so it
 * leads only when it is the run's own, where no retry can help.
 */
export function inOrderOfHope(failures: readonly StreamFailure[]): readonly StreamFailure[] {
  return failures.toSorted((a, b) => rank(a) - rank(b));
}

const RANKS: readonly FailureType[] = ["transient_error", "system_error", "config_error"];

function rank({ stream, error }: StreamFailure): number {
  const type = failureTypeOf(error);
  return stream === undefined && type === "config_error" ? -1 : RANKS.indexOf(type);
}

const trace = (type: string, emittedAt: number, body: object): string =>
  jsonLine({ type: "TRACE", trace: { type, emitted_at: emittedAt, ...body } });
