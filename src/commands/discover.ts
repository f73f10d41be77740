import { ConfigError } from "../base/errors.ts";
import { shown, table, toLatin1 } from "../base/text.ts";
import { cursorOf, type DiscoveredStream, toCatalog } from "../catalog/airbyte.ts";
import { schemaUnder } from "../catalog/field-rules.ts";
import { inferSchema } from "../catalog/infer-schema.ts";
import { loadSchema, propertiesOf } from "../catalog/schema.ts";
import { toSingerCatalog } from "../catalog/singer.ts";
import { ROW_STREAMS, type StreamSpec } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { openConfig, readConfigs } from "../config/config-files.ts";
import { type OutputOptions, runToEnd } from "../output/output.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { catalogMessage } from "../protocol/airbyte-message.ts";
import { userMessage } from "../protocol/error-text.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import type { Run } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { warning } from "../sync/event.ts";
import type { TapOptions } from "./about.ts";
import { withGuests } from "./guests.ts";
import { isNotOnPlan, PATIENT, probeStreams, QUICK } from "./probe.ts";

export type DiscoverOptions = {
  readonly config: string | undefined;
  /** Whether a terminal gets the catalog, and not a table. */
  readonly json: boolean;
};

/** Prints the streams and the fields of their live records: a catalog, or a table at a terminal. */
export async function discover({ config: file, json }: DiscoverOptions, runtime: Runtime): Promise<number> {
  const isTable = runtime.stdout.isTTY === true && !json;
  const outputOptions: OutputOptions = isTable
    ? { audience: "person" }
    : { audience: "airbyte", format: airbyte({ now: runtime.clock.now }) };
  return await runToEnd(outputOptions, runtime, async (open) => {
    const output = await open({});
    const config = await openConfig(file, runtime.environment);
    const text = await withGuests({ config, runtime, reporter: output, pace: PATIENT }, async (run) => {
      const streams = await discoverStreams(run);
      return isTable ? await shownStreams(run, streams) : catalogMessage(toCatalog(streams));
    });
    await write(runtime.stdout, output.mask.apply(text));
    return true;
  });
}

/** A table of streams and their rows, and the errors of streams that the key cannot read. */
async function shownStreams(run: Run, streams: readonly DiscoveredStream[]): Promise<string> {
  const rows = [["stream", "rows", "fields", "read"]];
  const notes: string[] = [];
  for await (const { reader, rows: count, error } of probeStreams(run)) {
    const { spec } = reader;
    const found = streams.find((stream) => stream.spec === spec) ?? declaredStream(spec);
    const isJob = spec.setting !== undefined;
    const how = isJob ? "jobs" : cursorOf(found) === null ? "whole" : "what is new";
    const number = error === undefined ? (typeof count === "number" ? shown(count) : "?") : "not readable";
    const fields = shown(Object.keys(propertiesOf(found.schema)).length);
    rows.push([spec.name, isJob ? "" : number, fields, how]);
    if (error !== undefined) notes.push(`${spec.name}: ${userMessage(error)}`);
  }
  const lines = [...table(rows), ...notes, "The catalog as JSON: discover --json, or add: > catalog.json"];
  return toLatin1(`${lines.join("\n")}\n`);
}

/** A stream with its declared fields only. */
const declaredStream = (spec: StreamSpec): DiscoveredStream => ({
  spec,
  schema: loadSchema(spec.name),
  isComplete: !spec.sampled,
});

/** Adds fields of live records. A stream that the plan lacks has its declared fields. @param isLenient errors become warnings */
export async function discoverStreams(
  { session, readers, privacy, emit }: Run,
  isLenient = false,
): Promise<readonly DiscoveredStream[]> {
  const streams: DiscoveredStream[] = [];
  for (const reader of readers) {
    const { spec } = reader;
    let stream = declaredStream(spec);
    try {
      if (spec.sampled) {
        const rows = await reader.sample(stream.schema);
        stream = { spec, schema: inferSchema(stream.schema, rows), isComplete: rows.length > 0 };
      }
    } catch (error) {
      session.signal.throwIfAborted();
      if (!isLenient && !isNotOnPlan(error)) throw error;
      const text = `The first schema of "${spec.name}" has only the declared fields. ${userMessage(error)}`;
      if (!isNotOnPlan(error)) await emit(warning(text));
    }
    const schema = schemaUnder(privacy.rules(spec.name), stream.schema, "leaving");
    streams.push({ ...stream, schema });
  }
  return streams;
}

/** Prints the tap's catalog. Fails if records cannot be read, because a run sends only fields that are in the catalog. */
export async function tapDiscover(options: TapOptions, runtime: Runtime): Promise<number> {
  const { configs, logLevel, logFormat } = options;
  return await runToEnd({ audience: "singer", logLevel, logFormat }, runtime, async (open) => {
    const output = await open({});
    const parse = await readConfigs(configs, runtime.environment);
    let config: Config | undefined;
    try {
      config = parse();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const text = `${error.message}. The catalog shows the declared fields`;
      await output.emit(warning(text));
    }
    const streams = config
      ? await withGuests({ config, runtime, reporter: output, pace: QUICK, logLevel }, (run) =>
          discoverStreams(run),
        )
      : ROW_STREAMS.map(declaredStream);
    // Prints many lines, because Meltano hangs on a line of more than 64 KiB.
    const catalog = asciiJson(toSingerCatalog(streams), 2);
    await write(runtime.stdout, `${output.mask.apply(catalog)}\n`);
    return true;
  });
}
