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
 * The streams of a run that names none, incremental where they can be. A stream that the key's plan does not cover is left
 * out with a warning. It is not left out, so that it fails, if a setting asks for it or an earlier run has read it.
 * @param states the incoming state, by its keys
 * @throws ConfigError for a key that can read nothing of use
 */
export async function readableStreams(
  run: Run,
  states: ReadonlyMap<string, unknown>,
): Promise<readonly ConfiguredStream[]> {
  const known = new Set([...states.keys()].map(streamOfKey));
  const streams: StreamSpec[] = [];
  const refused: { readonly name: string; readonly error: ConfigError }[] = [];
  for await (const { reader, error } of probeStreams(run)) {
    const { spec } = reader;
    if (canBeLeftOut(spec, error) && !known.has(spec.name)) refused.push({ name: spec.name, error });
    else streams.push(spec);
  }
  const [first] = refused;
  if (first !== undefined && !streams.some(isOfUse)) throw first.error;
  if (first !== undefined) await run.emit(warning(leftOutText(refused.map(({ name }) => name))));
  return streams.map(({ name }) => incremental(name));
}

/** Whether a key works that can read a stream. The list of sources alone is of no use. */
export const isOfUse = ({ name }: StreamSpec): boolean => name !== SOURCES.name;

/** Whether a run that names no stream does without this one. A setting asks for the streams of jobs. */
export const canBeLeftOut = ({ setting }: StreamSpec, error: unknown): error is ConfigError =>
  setting === undefined && isNotOnPlan(error);

export const leftOutText = (names: readonly string[]): string =>
  `The plan of this key does not include ${names.join(", ")} (403 ENDPOINT_NOT_ON_PLAN): left out`;

/** Whether the key's plan does not cover a stream. */
export const isNotOnPlan = (error: unknown): error is ConfigError =>
  error instanceof ConfigError && error.scope === "stream";

/** A stream that a setting turns on may use another key and another address than the streams of the Public API. */
const isOfAll = (error: unknown, { spec }: Reader): boolean =>
  spec.setting === undefined &&
  error instanceof ConnectorError &&
  (error.scope === "service" || error.scope === "run");
