import { ConfigError, ConnectorError } from "../base/errors.ts";
import { type ConfiguredStream, incremental } from "../catalog/airbyte.ts";
import type { Probed, Reader } from "../run/reader.ts";
import type { Run } from "../run/run.ts";
import type { Pace } from "../run/session.ts";
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
export async function* probeStreams({ readers, session }: Run): AsyncGenerator<ProbedStream> {
  for (const reader of readers) {
    yield await reader.probe().then(
      (probed) => ({ reader, ...probed }),
      (error: unknown) => {
        session.signal.throwIfAborted();
        if (isOfAll(error, reader)) throw error;
        return { reader, error };
      },
    );
  }
}

/** Every stream that this key's plan covers, incremental where it can be; a warning names each that is left out. */
export async function readableStreams(run: Run): Promise<readonly ConfiguredStream[]> {
  const streams: ConfiguredStream[] = [];
  for await (const { reader, error } of probeStreams(run)) {
    const { name } = reader.spec;
    if (isNotOnPlan(error)) await run.emit(warning(`"${name}" is left out. ${error.message}`));
    else streams.push(incremental(name));
  }
  return streams;
}

/** Whether the key's plan does not cover a stream. */
export const isNotOnPlan = (error: unknown): error is ConfigError =>
  error instanceof ConfigError && error.scope === "stream";

/** A stream that a setting turns on may use another key than the streams of the Public API. */
const isOfAll = (error: unknown, { spec }: Reader): boolean =>
  error instanceof ConnectorError &&
  (error.scope === "service" || (error.scope === "run" && spec.setting === undefined));
