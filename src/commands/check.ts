import type { Config } from "../config.ts";
import { secretsOf } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { type ConnectionStatus, statusMessage } from "../protocol/airbyte-message.ts";
import { userMessage } from "../protocol/error-text.ts";
import { secretMask } from "../protocol/mask.ts";
import { write } from "../protocol/writer.ts";
import { Session } from "../service/session.ts";
import { openConfig } from "./config.ts";
import type { Process } from "./world.ts";

/** Somebody waits for the answer, so that a service that does not answer is given up soon. */
const TRIES = 2;

/** Says whether the config works and what its key can read. Fails by its message, never by its exit code. */
export async function check(file: string | undefined, world: Process): Promise<number> {
  let mask = (text: string): string => text;
  let status: ConnectionStatus;
  try {
    const config = await openConfig(file, world.environment);
    mask = secretMask(secretsOf(config));
    status = { status: "SUCCEEDED", message: await whatCanBeRead(config, world) };
  } catch (error) {
    world.signal.throwIfAborted();
    status = { status: "FAILED", message: userMessage(error) };
  }
  await write(world.stdout, mask(statusMessage(status)));
  return 0;
}

/** A key works if it can read what the connector is for, or any of the jobs that are configured. Submits nothing. */
async function whatCanBeRead(config: Config, world: Process): Promise<string> {
  const session = new Session(config, world, () => undefined, TRIES);
  try {
    const readable: string[] = [];
    const refused: { name: string; error: ConfigError }[] = [];
    let works = false;
    for (const [index, spec] of session.streams.entries()) {
      try {
        const rows = await session.probe(spec);
        readable.push(rows === null ? spec.name : `${spec.name} (${rows})`);
        works ||= index === 0 || spec.reading === "job";
      } catch (error) {
        if (!(error instanceof ConfigError) || error.code === "INVALID_API_KEY") throw error;
        refused.push({ name: spec.name, error });
      }
    }
    const [first] = refused;
    if (first !== undefined && !works) throw first.error;
    const reasons = refused.map(({ name, error }) => `${name}: ${error.message}`);
    return [`This key can read ${readable.join(", ")}`, ...reasons].join(". ");
  } finally {
    await session.close();
  }
}
