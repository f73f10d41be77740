import { ConfigError, TransientError } from "../base/errors.ts";
import type { DiscoveredStream } from "../catalog/airbyte.ts";
import { toSingerCatalog } from "../catalog/singer.ts";
import { ROW_STREAMS } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { readConfigs } from "../config/config-files.ts";
import { runToEnd } from "../output/output.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import type { Reporter } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { warning } from "../sync/event.ts";
import { declaredStream, discoverStreams } from "./discover.ts";
import { withGuests } from "./guests.ts";
import type { TapOptions } from "./tap-options.ts";

/** Orchestrators discover before every run, so that a service that does not answer is given up soon. */
const DISCOVERY_TRIES = 2;

/** How long (ms) after its start a discovery may still wait for the rate limit: orchestrators show nothing until it ends. */
const MAX_LIMIT_MS = 50_000;

const limitedTooLong = (until: number): TransientError =>
  new TransientError(
    `Cannot discover the streams: the service limits this key until ${new Date(until).toISOString()}. ` +
      "Run it again later, or use a key that nothing else uses",
  );

/**
 * Prints the catalog. A stream that the key's plan leaves out, and without a config every stream, is in it as declared.
 * The discovery fails if the service could show a stream and does not: a catalog without its fields would let none out.
 */
export async function tapDiscover({ configs, logLevel }: TapOptions, runtime: Runtime): Promise<number> {
  return await runToEnd({ audience: "singer", logLevel }, runtime, async (open) => {
    const output = await open({});
    const parse = await readConfigs(configs, runtime.environment);
    let config: Config | undefined;
    try {
      config = parse();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const text = `${error.message}. The catalog shows what is declared`;
      await output.emit(warning(text));
    }
    // A config that cannot be used yet has streams that can still be shown.
    const declared = ROW_STREAMS.map(declaredStream);
    const streams = config ? await discoverInTime(config, output, runtime) : declared;
    // On many lines, because Meltano hangs on a line of more than 64 KiB.
    const catalog = asciiJson(toSingerCatalog(streams), 2);
    await write(runtime.stdout, `${output.mask.apply(catalog)}\n`);
    return true;
  });
}

async function discoverInTime(
  config: Config,
  output: Reporter,
  runtime: Runtime,
): Promise<readonly DiscoveredStream[]> {
  const limit = new AbortController();
  const latest = runtime.clock.now() + MAX_LIMIT_MS;
  const reporter: Reporter = {
    mask: output.mask,
    emit: async (event) => {
      if (event.kind === "limited" && event.until > latest) limit.abort(limitedTooLong(event.until));
      await output.emit(event);
    },
  };
  const patient = { ...runtime, signal: AbortSignal.any([runtime.signal, limit.signal]) };
  const options = { config, runtime: patient, reporter, pace: { tries: DISCOVERY_TRIES } };
  return await withGuests(options, (run) => discoverStreams(run));
}
