import type { DiscoveredStream } from "../catalog/airbyte.ts";
import { loadSchema } from "../catalog/schema.ts";
import { toSingerCatalog, toTapStream } from "../catalog/singer.ts";
import { streamsOf } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { ConfigError, TransientError } from "../errors.ts";
import { userMessage } from "../protocol/error-text.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import { readConfigs } from "../run/config-files.ts";
import { type Output, runToEnd, tapOutput } from "../run/output.ts";
import { withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Session } from "../run/session.ts";
import type { Event, Notice } from "../streams/event.ts";
import { discoverStreams } from "./discover.ts";
import type { TapOptions } from "./tap-options.ts";

/** Orchestrators discover before every run, so that a service that does not answer is given up soon. */
const DISCOVERY_TRIES = 2;

/** How long (ms) after its start a discovery may still wait for the rate limit: orchestrators show nothing meanwhile. */
const LONGEST_LIMIT_MS = 50_000;

const limitedTooLong = (until: number): TransientError =>
  new TransientError(
    `Cannot discover the streams: the service limits this key until ${new Date(until).toISOString()}. ` +
      "Run it again later, or use a key that nothing else uses",
  );

/**
 * Prints the catalog. A stream that the key's plan leaves out, and without a config every stream, is in it as declared.
 * A stream that the service could show and does not fails the discovery: a catalog without its fields would let none
 * of them out.
 */
export async function tapDiscover({ configs, logLevel }: TapOptions, runtime: Runtime): Promise<number> {
  return await runToEnd(tapOutput(logLevel), runtime, async (open) => {
    const output = await open({ kind: "stdout" });
    const streams = await discovered(await readConfigs(configs, runtime.environment), runtime, output);
    // On many lines, because Meltano hangs on a line of more than 64 KiB.
    const catalog = asciiJson(toSingerCatalog(streams.map(toTapStream)), 2);
    await write(runtime.stdout, `${output.mask.apply(catalog)}\n`);
    return true;
  });
}

async function discovered(
  parse: () => Config,
  runtime: Runtime,
  output: Output,
): Promise<readonly DiscoveredStream[]> {
  const emit = (event: Event): Promise<void> => output.emit(event);
  const config = await usableConfig(parse, emit);
  if (config === undefined) return declaredStreams();
  const limit = new AbortController();
  const latest = runtime.clock.now() + LONGEST_LIMIT_MS;
  const onNotice = (notice: Notice): void => {
    if (notice.kind === "limited" && notice.until > latest) limit.abort(limitedTooLong(notice.until));
  };
  const patient = { ...runtime, signal: AbortSignal.any([runtime.signal, limit.signal]) };
  try {
    return await withRun(
      { config, runtime: patient, reporter: output, tries: DISCOVERY_TRIES, onNotice },
      ({ session }) => discoverStreams(session),
    );
  } catch (error) {
    limit.signal.throwIfAborted();
    throw error;
  }
}

/** Undefined, with a warning, for a config that cannot be used yet: its streams can still be shown. */
async function usableConfig(
  parse: () => Config,
  emit: (event: Event) => Promise<void>,
): Promise<Config | undefined> {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    await emit({ kind: "log", level: "warn", text: `${error.message}. The catalog shows what is declared` });
    return undefined;
  }
}

function declaredStreams(): readonly DiscoveredStream[] {
  return streamsOf(undefined).map((spec) => ({
    spec,
    schema: loadSchema(spec.name),
    sampled: spec.sampled ? false : null,
  }));
}

/** Without a catalog everything leaves, so that a stream whose rows cannot be had is shown as declared. */
export async function discoverWhatCanBe(
  session: Session,
  emit: (event: Event) => Promise<void>,
): Promise<readonly DiscoveredStream[]> {
  return await discoverStreams(session, async ({ name }, error) => {
    session.signal.throwIfAborted();
    const text = `The first schema of "${name}" has only the declared fields. ${userMessage(error)}`;
    await emit({ kind: "log", level: "warn", text });
  });
}
