import { type Config, parseConfig } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { OUR_PREFIXES, TAP_PREFIXES } from "../config/environment.ts";
import { ConfigError } from "../errors.ts";
import { readJson } from "../files/read.ts";
import { isObject, type JsonObject } from "../json.ts";

/** Reads the config from its file, if one is named, and from the environment. Throws ConfigError. */
export async function openConfig(file: string | undefined, environment: Environment): Promise<Config> {
  if (file === undefined) return parseConfig(undefined, environment, ENVIRONMENT);
  return parseConfig(await readJson("config", file), environment, named([file]));
}

const ENVIRONMENT = "the environment (no file is named with --config)";

/**
 * Reads config files, of which a later one wins, property by property. `ENV` in place of a file stands for the
 * environment under the names that other Singer taps use. Throws ConfigError; so does the returned function, which parses
 * what they say together.
 */
export async function readConfigs(names: readonly string[], environment: Environment): Promise<() => Config> {
  const files = names.filter((name) => name !== "ENV");
  let value: JsonObject = {};
  for (const file of files) {
    const next = await readJson("config", file);
    if (!isObject(next)) {
      throw new ConfigError(`Cannot use ${named([file])}: it is not an object of properties`);
    }
    value = mergedFiles(value, next);
  }
  const origin = files.length === 0 ? ENVIRONMENT : named(files);
  return () => parseConfig(value, environment, origin, names.includes("ENV") ? TAP_PREFIXES : OUR_PREFIXES);
}

const named = (files: readonly string[]): string =>
  `the config file${files.length === 1 ? "" : "s"} ${files.map((file) => `"${file}"`).join(", ")}`;

/** Objects are merged as well; the spec has none inside of others. */
function mergedFiles(base: JsonObject, over: JsonObject): JsonObject {
  const entries = Object.entries(over).map(([name, value]) => {
    const below = Object.hasOwn(base, name) ? base[name] : undefined;
    return [name, isObject(below) && isObject(value) ? { ...below, ...value } : value] as const;
  });
  return { ...base, ...Object.fromEntries(entries) };
}
