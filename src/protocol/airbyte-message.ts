import { type FailureType, failureTypeOf } from "../base/errors.ts";
import type { StreamState } from "../sync/event.ts";
import { causeChain, fitText, framesOf, userMessage } from "./error-text.ts";
import { jsonLine, toAscii } from "./language.ts";

/** Airbyte's messages except records, each as one line of ASCII. */

export type AirbyteLevel = "WARN" | "INFO" | "DEBUG";
export type StreamStatus = "STARTED" | "RUNNING" | "COMPLETE" | "INCOMPLETE";
export type ConnectionStatus = { readonly status: "SUCCEEDED" | "FAILED"; readonly message?: string };

/** A stream in the words of the protocol. */
export type Descriptor = { readonly name: string; readonly namespace?: string | undefined };

export const specMessage = (spec: object): string => jsonLine({ type: "SPEC", spec });

export const statusMessage = (connectionStatus: ConnectionStatus): string =>
  jsonLine({ type: "CONNECTION_STATUS", connectionStatus });

export const catalogMessage = (catalog: object): string => jsonLine({ type: "CATALOG", catalog });

export const logMessage = (level: AirbyteLevel, message: string): string =>
  jsonLine({ type: "LOG", log: { level, message: fitText(message) } });

/** @param until the end (epoch ms) of the wait for the rate limit */
export function streamStatus(stream: Descriptor, status: StreamStatus, at: number, until?: number): string {
  const quota_reset = Math.ceil(until ?? 0);
  const limited = [{ type: "RATE_LIMITED", rate_limited: { quota_reset } }];
  const reasons = until === undefined ? undefined : limited;
  return trace("STREAM_STATUS", at, { stream_status: { stream_descriptor: stream, status, reasons } });
}

export const estimateMessage = (stream: Descriptor, rows: number, emittedAt: number): string =>
  trace("ESTIMATE", emittedAt, { estimate: { ...stream, type: "STREAM", row_estimate: rows } });

/** @param before lines before the message. They are joined here, because a later concatenation would copy a large state */
export function stateMessage(stream: Descriptor, state: StreamState, rows: number, before: string): string {
  const body = JSON.stringify({ stream_descriptor: stream, stream_state: state });
  // The decimal point makes the count a number for the protocol's readers, and not an integer.
  const stats = `{"recordCount":${rows}.0}`;
  return toAscii(
    `${before}{"type":"STATE","state":{"type":"STREAM","stream":${body},"sourceStats":${stats}}}\n`,
  );
}

/** A failure of a stream; without `stream`, a failure of the run. */
export type StreamFailure = { readonly stream?: Descriptor; readonly error: unknown };

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

/** Sorts failures. A first config_error stops the platform's retries, so only an error of the run may be the first. */
export const inOrderOfHope = (failures: readonly StreamFailure[]): readonly StreamFailure[] =>
  failures.toSorted((a, b) => rank(a) - rank(b));

const RANKS: readonly FailureType[] = ["transient_error", "system_error", "config_error"];

function rank({ stream, error }: StreamFailure): number {
  const type = failureTypeOf(error);
  return stream === undefined && type === "config_error" ? -1 : RANKS.indexOf(type);
}

const trace = (type: string, emittedAt: number, body: object): string =>
  jsonLine({ type: "TRACE", trace: { type, emitted_at: emittedAt, ...body } });
