import { type Config, parseConfig, secretsOf } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { secretMask } from "../protocol/mask.ts";
import { singer } from "../protocol/singer.ts";
import type { ConfiguredStream } from "../source/catalog.ts";
import { offersIn, toOffer } from "../source/offers.ts";
import type { JsonSchema } from "../source/schema.ts";
import { type Selected, type Selection, select } from "../source/selection.ts";
import type { Offer } from "../source/singer-catalog.ts";
import type { Event } from "../sync/event.ts";
import { readConfigs } from "./config.ts";
import { readJson } from "./files.ts";
import { conclude, type Output, openTapOutput } from "./output.ts";
import { openState } from "./state-file.ts";
import { type Asked, readableStreams, type Sync, syncStreams, withSession } from "./sync.ts";
import { discoverWhatCanBe } from "./tap-discover.ts";
import type { TapOptions } from "./tap-options.ts";
import type { Process } from "./world.ts";

/** Reads what a catalog selects, or all that the key can read, in Singer's language. */
export async function tapSync(options: TapOptions, world: Process): Promise<number> {
  const output = await openTapOutput(options.logLevel, world);
  return await conclude(output, world, () => syncSelected(options, world, output));
}

async function syncSelected(options: TapOptions, world: Process, output: Output): Promise<boolean> {
  const { value, environment } = await readConfigs(options.configs, world.environment);
  const config = parseConfig(value, environment);
  output.mask = secretMask(secretsOf(config));
  const catalog = options.catalog === undefined ? undefined : await readJson("catalog", options.catalog);
  const { saved, file } = await openState(options);
  output.stateFile = file;
  const nuls = new Nuls((event) => output.emit(event));
  return await withSession(config, world, nuls.emit, async (sync) => {
    const offers = catalog === undefined ? await liveOffers(sync) : offersIn(catalog);
    const selected = select(catalog, offers);
    output.say = singer({
      selections: selected.selections,
      state: { ...saved.rest, bookmarks: Object.fromEntries(saved.streams) },
      version: versionOf(config, world),
      nuls: nuls.count,
    });
    await warn(selected, sync);
    const asked = selected.selections.map((selection) => toAsked(selection, offers));
    const complete = await syncStreams(sync, asked, saved.streams);
    return complete && selected.unknown.length === 0;
  });
}

/** Those that the key's plan covers; what they hold is asked of the service. */
async function liveOffers(sync: Sync): Promise<readonly Offer[]> {
  const readable = await readableStreams(sync);
  const discovered = await discoverWhatCanBe(sync.session, sync.world, sync.emit);
  return discovered.filter(({ spec }) => readable.some(({ name }) => name === spec.name)).map(toOffer);
}

/** Greater than that of every earlier run, as long as the clock is not set back. */
function versionOf({ emitActivateVersion }: Config, { clock }: Process): number | undefined {
  return emitActivateVersion ? Math.floor(clock.now()) : undefined;
}

async function warn({ warnings, unknown }: Selected, { emit }: Sync): Promise<void> {
  for (const text of warnings) await emit({ kind: "log", level: "warn", text });
  if (unknown.length === 0) return;
  const names = unknown.map((name) => JSON.stringify(name)).join(", ");
  const error = new ConfigError(`Cannot read ${names}: this tap has no such stream. Discover again`);
  await emit({ kind: "failed", error });
}

/** The catalog decides on the method, whatever a state says of an earlier one. */
function toAsked({ stream, method, keyProperties }: Selection, offers: readonly Offer[]): Asked {
  const configured: ConfiguredStream = {
    name: stream,
    syncMode: method === "INCREMENTAL" ? "incremental" : "full_refresh",
    // Targets that are told of a key crash on a record without one.
    destinationSyncMode: keyProperties.length > 0 ? "append_dedup" : null,
    generationId: null,
    syncId: null,
    schema: null,
  };
  return { configured, told: offers.find(({ name }) => name === stream)?.schema as JsonSchema | undefined };
}

/** Counts escaped NULs that were replaced, and reports them at the end of their stream. */
class Nuls {
  readonly #counts = new Map<string, number>();
  readonly #emit: (event: Event) => Promise<void>;

  constructor(emit: (event: Event) => Promise<void>) {
    this.#emit = emit;
  }

  readonly count = (stream: string, count: number): void => {
    this.#counts.set(stream, (this.#counts.get(stream) ?? 0) + count);
  };

  readonly emit = async (event: Event): Promise<void> => {
    const count = event.kind === "close" ? this.#counts.get(event.stream) : undefined;
    if (event.kind === "close" && count !== undefined) {
      const text = `The rows of "${event.stream}" hold NUL characters, which SQL targets cannot store: ${count} replaced by U+FFFD`;
      await this.#emit({ kind: "log", level: "warn", text });
    }
    await this.#emit(event);
  };
}
