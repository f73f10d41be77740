import { type Config, parseConfig, secretsOf } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { userMessage } from "../protocol/error-text.ts";
import { asciiJson } from "../protocol/language.ts";
import { secretMask } from "../protocol/mask.ts";
import { write } from "../protocol/writer.ts";
import { Session } from "../service/session.ts";
import type { DiscoveredStream } from "../source/catalog.ts";
import { toOffer } from "../source/offers.ts";
import { loadSchema } from "../source/schema.ts";
import { toSingerCatalog } from "../source/singer-catalog.ts";
import { streamsOf } from "../source/streams.ts";
import type { Event } from "../sync/event.ts";
import { type ConfigDraft, readConfigs } from "./config.ts";
import { discoverStreams } from "./discover.ts";
import { conclude, type Output, openTapOutput } from "./output.ts";
import type { TapOptions } from "./tap-options.ts";
import type { Process } from "./world.ts";

/** Orchestrators discover before every run, so that a service that does not answer is given up soon. */
const TRIES = 2;

/** Prints the catalog; what the service does not tell is taken from what is declared. */
export async function tapDiscover({ configs, logLevel }: TapOptions, world: Process): Promise<number> {
  const output = await openTapOutput(logLevel, world);
  return await conclude(output, world, async () => {
    const streams = await discovered(await readConfigs(configs, world.environment), world, output);
    // On many lines, because Meltano hangs on a line of more than 64 KiB.
    const catalog = asciiJson(toSingerCatalog(streams.map(toOffer)), 2);
    await write(world.stdout, `${output.mask(catalog)}\n`);
    return true;
  });
}

async function discovered(
  { value, environment }: ConfigDraft,
  world: Process,
  output: Output,
): Promise<readonly DiscoveredStream[]> {
  const emit = (event: Event): Promise<void> => output.emit(event);
  let config: Config | undefined;
  try {
    config = parseConfig(value, environment);
    output.mask = secretMask(secretsOf(config));
    const session = new Session(config, world, (notice) => void emit(notice), TRIES);
    try {
      return await discoverWhatCanBe(session, world, emit);
    } finally {
      await session.close();
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    await emit({ kind: "log", level: "warn", text: `${error.message}. The catalog shows what is declared` });
    return streamsOf(config).map((spec) => ({ spec, schema: loadSchema(spec.schemaFile) }));
  }
}

/** A stream whose records cannot be had is what is declared of it; a sync then says the rest. */
export async function discoverWhatCanBe(
  session: Session,
  { signal }: Process,
  emit: (event: Event) => Promise<void>,
): Promise<readonly DiscoveredStream[]> {
  return await discoverStreams(session, async ({ name }, error) => {
    signal.throwIfAborted();
    const text = `The catalog shows of "${name}" only what is declared. ${userMessage(error)}`;
    await emit({ kind: "log", level: "warn", text });
  });
}
