import { secretsOf } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { catalogMessage } from "../protocol/airbyte-message.ts";
import { secretMask } from "../protocol/mask.ts";
import { Writer, write } from "../protocol/writer.ts";
import { Session } from "../service/session.ts";
import { type DiscoveredStream, toCatalog } from "../source/catalog.ts";
import { inferSchema } from "../source/infer.ts";
import { RowCheck } from "../source/row-check.ts";
import { type JsonSchema, loadSchema } from "../source/schema.ts";
import type { RowStreamSpec, StreamSpec } from "../source/streams.ts";
import type { Event } from "../sync/event.ts";
import type { Row } from "../sync/ports.ts";
import { openConfig } from "./config.ts";
import type { Process } from "./world.ts";

const SAMPLE = 10_000;

/** Says which streams there are and which fields their live records have. */
export async function discover(file: string | undefined, world: Process): Promise<number> {
  let mask = (text: string): string => text;
  try {
    const config = await openConfig(file, world.environment);
    mask = secretMask(secretsOf(config));
    const session = new Session(config, world, () => undefined);
    try {
      const streams = await discoverStreams(session);
      await write(world.stdout, mask(catalogMessage(toCatalog(streams))));
      return 0;
    } finally {
      await session.close();
    }
  } catch (error) {
    world.signal.throwIfAborted();
    const writer = new Writer(airbyte({ now: world.clock.now }), world.stdout, undefined, { mask });
    const events: readonly Event[] = [{ kind: "failed", error }, { kind: "end" }];
    for (const event of events) await writer.emit(event);
    await writer.close();
    return 1;
  }
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
    const declared = loadSchema(spec.schemaFile);
    const isSampled = spec.reading !== "job" && spec.sampled;
    streams.push({ spec, schema: isSampled ? await sampled(spec, declared, session, failed) : declared });
  }
  return streams;
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
): Promise<JsonSchema> {
  try {
    const rows = await sample(spec, declared, session);
    return inferSchema(declared, rows);
  } catch (error) {
    const refused = error instanceof ConfigError && error.code === "ENDPOINT_NOT_ON_PLAN";
    if (!refused) await failed(spec, error);
    return declared;
  }
}

/** Live records of a stream, as many as one request shows and at most so many. */
export async function sample(
  spec: RowStreamSpec,
  declared: JsonSchema,
  session: Session,
  most = SAMPLE,
): Promise<readonly Record<string, unknown>[]> {
  const ports = session.ports(spec, null, new RowCheck(spec.name, declared), "pass");
  const rows: Row[] = [];
  if (spec.exportPath === null) rows.push(...(await ports.page({ kind: "all" }, 1)).rows);
  else {
    for await (const batch of ports.stream({ kind: "all" })) {
      rows.push(...batch);
      if (rows.length >= most) break;
    }
  }
  return rows.slice(0, most).map(({ raw }) => JSON.parse(Buffer.from(raw, "latin1").toString("utf8")));
}
