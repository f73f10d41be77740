import { ConnectorError, UnreachableError } from "../base/errors.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import type { StreamSpec } from "../catalog/streams.ts";
import type { Run } from "./run.ts";
import { isNotOnPlan, type Probed } from "./session.ts";

/** A stream, how many rows it has, and what keeps this key from reading it; `error` undefined: nothing does. */
export type ProbedStream = { readonly spec: StreamSpec; readonly rows?: Probed; readonly error?: unknown };

/**
 * Asks for one row of each stream, or for a job that does not exist. Buys nothing. Throws what concerns every stream:
 * an interruption, a service that does not answer, a wrong key of the Public API.
 */
export async function* probeStreams({ session }: Run): AsyncGenerator<ProbedStream> {
  for (const spec of session.streams) {
    yield await session.probe(spec).then(
      (rows) => ({ spec, rows }),
      (error: unknown) => {
        session.signal.throwIfAborted();
        if (error instanceof UnreachableError || isOfAll(error, spec)) throw error;
        return { spec, error };
      },
    );
  }
}

/** Every stream that this key's plan covers, incremental where it can be; a warning names each that is left out. */
export async function readableStreams(run: Run): Promise<readonly ConfiguredStream[]> {
  const streams: ConfiguredStream[] = [];
  for await (const { spec, error } of probeStreams(run)) {
    if (isNotOnPlan(error)) {
      await run.emit({ kind: "log", level: "warn", text: `"${spec.name}" is left out. ${error.message}` });
    } else streams.push(incremental(spec.name));
  }
  return streams;
}

/** Jobs may use another key than the streams of the Public API. */
const isOfAll = (error: unknown, { reading }: StreamSpec): boolean =>
  reading !== "job" && error instanceof ConnectorError && error.scope === "run";

/** A stream without a configured catalog: incremental, for a destination that is not known. */
export const incremental = (name: string): ConfiguredStream => ({
  name,
  syncMode: "incremental",
  destinationSyncMode: null,
  generationId: null,
  syncId: null,
  schema: null,
});
