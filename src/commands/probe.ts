import { ConfigError, ConnectorError } from "../base/errors.ts";
import { type ConfiguredStream, incremental } from "../catalog/airbyte.ts";
import { SOURCES, type StreamSpec } from "../catalog/streams.ts";
import type { Probed, Reader } from "../run/reader.ts";
import type { Run } from "../run/run.ts";
import type { Pace } from "../run/session.ts";
import { streamOfKey } from "../state/envelopes.ts";
import { warning } from "../sync/event.ts";

/** The pace of a command for which a platform waits, and shows nothing until it ends. */
export const PATIENT: Pace = { patienceMs: 50_000 };
/** The same where a person waits. */
export const QUICK: Pace = { ...PATIENT, tries: 2 };

/** A stream that was probed. `error`: what keeps this key from reading it; undefined: nothing does. */
export type ProbedStream = Probed & { readonly reader: Reader; readonly error?: unknown };

/**
 * Asks for one row of each stream, or for a job that does not exist. Buys nothing. Throws what concerns every stream:
 * an interruption, a service that does not answer, a wrong key of the Public API.
 */
export async function* probeStreams(
  { readers, session }: Run,
  isThorough = false,
): AsyncGenerator<ProbedStream> {
  for (const reader of readers) {
    yield await reader.probe(isThorough).then(
      (probed) => ({ reader, ...probed }),
      (error: unknown) => {
        session.signal.throwIfAborted();
        if (isOfAll(error, reader)) throw error;
        return { reader, error };
      },
    );
  }
}

/**
 * The streams of a run that names none, incremental where they can be. A warning names streams that the key's plan does not
 * include. A stream that an earlier run has read is not left out, so that the run fails.
 * @param states the incoming state, by its keys
 */
export async function readableStreams(
  run: Run,
  states: ReadonlyMap<string, unknown>,
): Promise<readonly ConfiguredStream[]> {
  const known = new Set([...states.keys()].map(streamOfKey));
  const streams: string[] = [];
  for await (const { reader, error } of probeStreams(run)) {
    const { name } = reader.spec;
    if (isNotOnPlan(error) && !known.has(name)) await run.emit(warning(leftOutText(name)));
    else streams.push(name);
  }
  return streams.map(incremental);
}

/** Whether a key works that can read a stream. The list of sources alone is of no use. */
export const isOfUse = ({ name }: StreamSpec): boolean => name !== SOURCES.name;

export const leftOutText = (name: string): string =>
  `"${name}" is left out: the plan of this key does not include it (403 ENDPOINT_NOT_ON_PLAN)`;

/** Whether the key's plan does not cover a stream. */
export const isNotOnPlan = (error: unknown): error is ConfigError =>
  error instanceof ConfigError && error.scope === "stream";

/** A stream that a setting turns on may use another key and another address than the streams of the Public API. */
const isOfAll = (error: unknown, { spec }: Reader): boolean =>
  spec.setting === undefined &&
  error instanceof ConnectorError &&
  (error.scope === "service" || error.scope === "run");
