import { inferSchema } from "../api/infer-schema.ts";
import { type DiscoveredStream, toCatalog } from "../catalog/airbyte.ts";
import { schemaUnder } from "../catalog/field-rules.ts";
import { loadSchema } from "../catalog/schema.ts";
import type { StreamSpec } from "../catalog/streams.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { catalogMessage } from "../protocol/airbyte-message.ts";
import { userMessage } from "../protocol/error-text.ts";
import { write } from "../protocol/writer.ts";
import { openConfig } from "../run/config-files.ts";
import { runToEnd } from "../run/output.ts";
import { type Run, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { sample } from "../run/sample.ts";
import { isNotOnPlan } from "../run/session.ts";

/** Says which streams there are and which fields their live records have. */
export async function discover(file: string | undefined, runtime: Runtime): Promise<number> {
  const say = airbyte({ now: runtime.clock.now });
  const speech = { name: "source-contact-intelligence", logs: false, say };
  return await runToEnd(speech, runtime, async (open) => {
    const output = await open({ kind: "stdout" });
    const config = await openConfig(file, runtime.environment);
    const streams = await withRun({ config, runtime, reporter: output }, (run) => discoverStreams(run));
    await write(runtime.stdout, output.mask.apply(catalogMessage(toCatalog(streams))));
    return true;
  });
}

/** A stream before its live records are seen. */
export const declaredStream = (spec: StreamSpec): DiscoveredStream => ({
  spec,
  schema: loadSchema(spec.name),
  sampled: spec.sampled ? false : null,
});

/**
 * Learns the fields of the streams whose records are not documented. A stream that the key's plan leaves out stays in the
 * catalog as declared: permissions change.
 * @param isLenient whether a warning, not an error, says that the records of a stream cannot be had
 */
export async function discoverStreams(
  { session, emit }: Run,
  isLenient = false,
): Promise<readonly DiscoveredStream[]> {
  const streams: DiscoveredStream[] = [];
  for (const spec of session.streams) {
    let stream = declaredStream(spec);
    try {
      if (spec.reading !== "job" && spec.sampled) {
        const rows = await sample(spec, stream.schema, session);
        stream = { spec, schema: inferSchema(stream.schema, rows), sampled: rows.length > 0 };
      }
    } catch (error) {
      session.signal.throwIfAborted();
      if (!isLenient && !isNotOnPlan(error)) throw error;
      const text = `The first schema of "${spec.name}" has only the declared fields. ${userMessage(error)}`;
      if (!isNotOnPlan(error)) await emit({ kind: "log", level: "warn", text });
    }
    const schema = schemaUnder(session.privacy.rules(spec.name), stream.schema, "leaving");
    streams.push({ ...stream, schema });
  }
  return streams;
}
