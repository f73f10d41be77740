import { type Config, parseConfig } from "../config.ts";
import type { Environment } from "../service/dispatcher.ts";
import { readJson } from "./files.ts";

/** Reads the config from its file, if one is named, and from the environment. Throws ConfigError. */
export async function openConfig(file: string | undefined, environment: Environment): Promise<Config> {
  return parseConfig(file === undefined ? undefined : await readJson("config", file), environment);
}
