import { inferSchema } from "../api/infer-schema.ts";
import { type DiscoveredStream, toCatalog } from "../catalog/airbyte.ts";
import { schemaUnder } from "../catalog/field-rules.ts";
import { type JsonSchema, loadSchema } from "../catalog/schema.ts";
import type { RowStreamSpec, StreamSpec } from "../catalog/streams.ts";
import { fromLatin1 } from "../latin1.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { catalogMessage } from "../protocol/airbyte-message.ts";
import { write } from "../protocol/writer.ts";
import { openConfig } from "../run/config-files.ts";
import { runToEnd } from "../run/output.ts";
import { isNotOnPlan } from "../run/probe-streams.ts";
import { withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Session } from "../run/session.ts";
import type { Row } from "../streams/stream-api.ts";

const SAMPLE = 10_000;
const SAMPLE_BYTES = 67_108_864;

/** Says which streams there are and which fields their live records have. */
export async function discover(file: string | undefined, runtime: Runtime): Promise<number> {
  const say = airbyte({ now: runtime.clock.now });
  const speech = { name: "source-contact-intelligence", logs: false, say };
  return await runToEnd(speech, runtime, async (open) => {
    const output = await open({ kind: "stdout" });
    const config = openConfig(file, runtime.environment);
    const streams = await withRun({ config, runtime, reporter: output }, (run) =>
      discoverStreams(run.session),
    );
    await write(runtime.stdout, output.mask.apply(catalogMessage(toCatalog(streams))));
    return true;
  });
}

/**
 * Learns the fields of the streams whose records are not documented.
 * @param failed told of a stream whose records cannot be had; unless it throws, what is declared of them counts
 */
export async function discoverStreams(
  session: Session,
  failed: (spec: StreamSpec, error: unknown) => Promise<void> = rethrow,
): Promise<readonly DiscoveredStream[]> {
  const streams: DiscoveredStream[] = [];
  for (const spec of session.streams) {
    const declared = loadSchema(spec.name);
    const isSampled = spec.reading !== "job" && spec.sampled;
    streams.push(
      isSampled ? await sampled(spec, declared, session, failed) : { spec, schema: declared, sampled: null },
    );
  }
  return streams.map((stream) => ({
    ...stream,
    schema: schemaUnder(session.privacy.rules(stream.spec.name), stream.schema, "leaving"),
  }));
}

const rethrow = async (_: StreamSpec, error: unknown): Promise<void> => {
  throw error;
};

/** A stream that the key's plan leaves out stays in the catalog, as far as it is documented: permissions change. */
async function sampled(
  spec: RowStreamSpec,
  declared: JsonSchema,
  session: Session,
  failed: (spec: StreamSpec, error: unknown) => Promise<void>,
): Promise<DiscoveredStream> {
  try {
    const rows = await sample(spec, declared, session);
    return { spec, schema: inferSchema(declared, rows), sampled: rows.length > 0 };
  } catch (error) {
    if (!isNotOnPlan(error)) await failed(spec, error);
    return { spec, schema: declared, sampled: false };
  }
}

/** Live records of a stream, as many as one request shows, at most this number. */
export async function sample(
  spec: RowStreamSpec,
  declared: JsonSchema,
  session: Session,
  most = SAMPLE,
): Promise<readonly Record<string, unknown>[]> {
  const api = session.streamApi(spec, { cursor: null, schema: declared });
  const rows: Row[] = [];
  let bytes = 0;
  if (spec.exportPath === null) rows.push(...(await api.page({ kind: "all" }, 1)).rows);
  else {
    for await (const batch of api.stream({ kind: "all" })) {
      rows.push(...batch.rows);
      bytes += batch.rows.reduce((sum, { raw }) => sum + raw.length, 0);
      if (rows.length >= most || bytes >= SAMPLE_BYTES) break;
    }
  }
  return rows.slice(0, most).map(({ raw }) => JSON.parse(fromLatin1(raw)));
}
