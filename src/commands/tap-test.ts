import { parseConfig, secretsOf } from "../config.ts";
import { NotFoundError } from "../errors.ts";
import { secretMask } from "../protocol/mask.ts";
import type { Session } from "../service/session.ts";
import { loadSchema } from "../source/schema.ts";
import type { StreamSpec } from "../source/streams.ts";
import { readConfigs } from "./config.ts";
import { sample } from "./discover.ts";
import { conclude, openTapOutput } from "./output.ts";
import { type Sync, withSession } from "./sync.ts";
import type { TapOptions } from "./tap-options.ts";
import type { Process } from "./world.ts";

/** Asks for one record of each stream and says on stderr what came. Sends nothing that could be charged. */
export async function tapTest({ configs, logLevel }: TapOptions, world: Process): Promise<number> {
  const output = await openTapOutput(logLevel, world);
  return await conclude(output, world, async () => {
    const { value, environment } = await readConfigs(configs, world.environment);
    const config = parseConfig(value, environment);
    output.mask = secretMask(secretsOf(config));
    return await withSession(config, world, (event) => output.emit(event), testStreams);
  });
}

async function testStreams({ session, world, emit }: Sync): Promise<boolean> {
  let working = true;
  for (const spec of session.streams) {
    try {
      const text = `Stream "${spec.name}": ${await found(spec, session)}`;
      await emit({ kind: "log", level: "info", text });
    } catch (error) {
      world.signal.throwIfAborted();
      working = false;
      await emit({ kind: "close", stream: spec.name, complete: false, error });
    }
  }
  return working;
}

async function found(spec: StreamSpec, session: Session): Promise<string> {
  try {
    const rows = await session.probe(spec);
    if (spec.reading === "job") return "can be submitted";
    return rows === 0 ? "no record yet" : "a record was read";
  } catch (error) {
    if (!(error instanceof NotFoundError) || spec.reading === "job" || spec.exportPath === null) throw error;
    const rows = await sample(spec, loadSchema(spec.schemaFile), session, 1);
    return rows.length === 0 ? "no record yet" : "a record was read";
  }
}
