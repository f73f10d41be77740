import type { DiscoveredStream } from "../catalog/airbyte.ts";
import { KEEP_ALL, schemaUnder } from "../catalog/field-rules.ts";
import { toSingerCatalog } from "../catalog/singer.ts";
import { select } from "../catalog/singer-selection.ts";
import { readConfigs } from "../config/config-files.ts";
import { readCatalog } from "../output/files/read-file.ts";
import { type OpenOutput, runToEnd } from "../output/output.ts";
import type { Language } from "../protocol/language.ts";
import { singer } from "../protocol/singer.ts";
import { type Run, syncStreams } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { warning } from "../sync/event.ts";
import type { TapOptions } from "./about.ts";
import { discoverStreams } from "./discover.ts";
import { withGuests } from "./guests.ts";
import { readableStreams } from "./probe.ts";

/** Reads what a catalog selects, or all that the key can read, in Singer's language. */
export async function tapSync(options: TapOptions, runtime: Runtime): Promise<number> {
  // Prints nothing until the selection is known.
  const language: { format: Language } = { format: () => "" };
  const format: Language = (event) => language.format(event);
  const { logLevel, logFormat } = options;
  const outputOptions = { audience: "singer", logLevel, logFormat, format } as const;
  return await runToEnd(outputOptions, runtime, (open) => syncSelected(options, runtime, open, language));
}

async function syncSelected(
  options: TapOptions,
  runtime: Runtime,
  open: OpenOutput,
  language: { format: Language },
): Promise<boolean> {
  const config = (await readConfigs(options.configs, runtime.environment))();
  const chosen = options.catalog === undefined ? undefined : select(await readCatalog(options.catalog));
  const output = await open({ ...options, isPlatform: true }, config);
  const { saved } = output.sink;
  const { logLevel } = options;
  return await withGuests({ config, runtime, reporter: output, logLevel }, async (run, openJobs) => {
    const configured = chosen?.streams.map((stream) => stream.configured);
    await openJobs(configured, saved.streams, async () => output.sink.lock?.check());
    const { streams, warnings } = chosen ?? select(toSingerCatalog(await liveStreams(run, saved.streams)));
    const asked = streams.map(({ configured, selection }) => ({
      configured,
      selection: selection && {
        ...selection,
        schema: schemaUnder(run.privacy.rules(selection.stream), selection.schema, "leaving"),
        // Without a catalog every field is sent, also fields that live rows did not show.
        ...(chosen === undefined && { rules: KEEP_ALL, isComplete: true }),
      },
    }));
    language.format = singer({
      selections: asked.flatMap(({ selection }) => selection ?? []),
      state: { ...saved.rest, bookmarks: Object.fromEntries(saved.streams) },
      // The time, because the version must be higher than the versions of earlier runs.
      version: config.emitActivateVersionMessages ? Math.floor(runtime.clock.now()) : undefined,
      monotonic: runtime.clock.monotonic,
    });
    for (const text of warnings) await run.emit(warning(text));
    return await syncStreams(run, asked, saved.streams);
  });
}

/** The streams to read without a catalog, with the fields of live rows. */
async function liveStreams(
  run: Run,
  states: ReadonlyMap<string, unknown>,
): Promise<readonly DiscoveredStream[]> {
  const readable = await readableStreams(run, states);
  // Lenient, because a run without a catalog sends all fields. If live rows cannot be read, the declared fields are enough.
  const discovered = await discoverStreams(run, true);
  return discovered.filter(({ spec }) => readable.some(({ name }) => name === spec.name));
}
