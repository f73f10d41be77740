import { ConfigError, ConnectorError } from "../base/errors.ts";
import { type ConfiguredStream, incremental } from "../catalog/airbyte.ts";
import { SOURCES, type StreamSpec } from "../catalog/streams.ts";
import type { Probed, Reader } from "../run/reader.ts";
import type { Run } from "../run/run.ts";
import type { Pace } from "../run/session.ts";
import { streamOfKey } from "../state/envelopes.ts";
import { warning } from "../sync/event.ts";

/** The pace of a command that a platform waits for. The platform shows nothing until the end. */
export const PATIENT: Pace = { patienceMs: 50_000 };
/** The pace of a command that a person waits for. */
export const QUICK: Pace = { ...PATIENT, tries: 2 };

/** A probed stream. `error`: why the key cannot read the stream; undefined: the key can. */
export type ProbedStream = Probed & { readonly reader: Reader; readonly error?: unknown };

/** Requests one row of each stream, or a job that does not exist. Buys nothing. @throws errors that concern every stream */
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

/** Chooses streams for a run without names: readable streams, and streams in `states`, whose errors must stop the run. */
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

/** Whether a key is useful if it reads only this stream. A key for sources alone is not useful. */
export const isOfUse = ({ name }: StreamSpec): boolean => name !== SOURCES.name;

export const leftOutText = (name: string): string =>
  `"${name}" is left out: the plan of this key does not include it (403 ENDPOINT_NOT_ON_PLAN)`;

/** Whether the plan of the key lacks a stream. */
export const isNotOnPlan = (error: unknown): error is ConfigError =>
  error instanceof ConfigError && error.scope === "stream";

/** Whether an error concerns every stream. Jobs may use another key and another address. */
const isOfAll = (error: unknown, { spec }: Reader): boolean =>
  spec.setting === undefined &&
  error instanceof ConnectorError &&
  (error.scope === "service" || error.scope === "run");
