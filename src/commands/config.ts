import { type Config, parseConfig } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Environment } from "../service/dispatcher.ts";
import { readJson } from "./files.ts";

/** Reads the config from its file, if one is named, and from the environment. Throws ConfigError. */
export async function openConfig(file: string | undefined, environment: Environment): Promise<Config> {
  return parseConfig(file === undefined ? undefined : await readJson("config", file), environment);
}

/** What several files and the environment say together, before anything is made of it. */
export type ConfigDraft = { readonly value: JsonObject; readonly environment: Environment };

/** In place of a file: the environment, with the prefix that other Singer taps give their settings. */
const ENVIRONMENT = "ENV";

const TAP_PREFIX = "TAP_CONTACT_INTELLIGENCE_";
const PREFIX = "CONTACT_INTELLIGENCE_";

/** Reads config files, of which a later one wins, property by property. Throws ConfigError. */
export async function readConfigs(names: readonly string[], environment: Environment): Promise<ConfigDraft> {
  let value: JsonObject = {};
  for (const name of names.filter((name) => name !== ENVIRONMENT)) {
    const next = await readJson("config", name);
    if (!isObject(next)) {
      throw new ConfigError(`Cannot use the config file "${name}": it is not an object of properties`);
    }
    value = merged(value, next);
  }
  return { value, environment: names.includes(ENVIRONMENT) ? withTapNames(environment) : environment };
}

function merged(base: JsonObject, over: JsonObject): JsonObject {
  const entries = Object.entries(over).map(([name, value]) => {
    const below = base[name];
    return [name, isObject(below) && isObject(value) ? merged(below, value) : value] as const;
  });
  return { ...base, ...Object.fromEntries(entries) };
}

function withTapNames(environment: Environment): Environment {
  const named = Object.entries(environment)
    .filter(([name]) => name.startsWith(TAP_PREFIX))
    .map(([name, text]) => [PREFIX + name.slice(TAP_PREFIX.length), text] as const);
  return { ...Object.fromEntries(named), ...environment };
}
