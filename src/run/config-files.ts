import { type Config, parseConfig } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { OUR_PREFIXES, type Prefixes, TAP_PREFIXES } from "../config/environment.ts";
import { ConfigError } from "../errors.ts";
import { readJson } from "../files/read.ts";
import { isObject, type JsonObject } from "../json.ts";

/** Reads the config from its file, if one is named, and from the environment. Throws ConfigError. */
export async function openConfig(file: string | undefined, environment: Environment): Promise<Config> {
  if (file === undefined) return parseConfig(undefined, environment, ENVIRONMENT);
  return parseConfig(await readJson("config", file), environment, named([file]));
}

const ENVIRONMENT = "the environment (no file is named with --config)";

/** What several files and the environment say together, before anything is made of it. */
export type ConfigDraft = {
  readonly value: JsonObject;
  readonly environment: Environment;
  /** Where the value comes from, in words. */
  readonly file: string;
  readonly prefixes: Prefixes;
};

/** Throws ConfigError. */
export const parseDraft = ({ value, environment, file, prefixes }: ConfigDraft): Config =>
  parseConfig(value, environment, file, prefixes);

/**
 * Reads config files, of which a later one wins, property by property. `ENV` in place of a file stands for the
 * environment under the names that other Singer taps use. Throws ConfigError.
 */
export async function readConfigs(names: readonly string[], environment: Environment): Promise<ConfigDraft> {
  const files = names.filter((name) => name !== "ENV");
  let value: JsonObject = {};
  for (const file of files) {
    const next = await readJson("config", file);
    if (!isObject(next)) {
      throw new ConfigError(`Cannot use ${named([file])}: it is not an object of properties`);
    }
    value = mergedFiles(value, next);
  }
  return {
    value,
    environment,
    file: files.length === 0 ? ENVIRONMENT : named(files),
    prefixes: names.includes("ENV") ? TAP_PREFIXES : OUR_PREFIXES,
  };
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
