import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject } from "../base/json.ts";
import { parseJsonFile, readText } from "../output/files/read-file.ts";
import { type Config, type ConfigPlace, parseConfig } from "./config.ts";
import { type Environment, OUR_PREFIXES, TAP_PREFIXES } from "./environment.ts";

const DEFAULT_FILE = "config.json";
const ENVIRONMENT = `the environment (no file is named with --config, and there is no ${DEFAULT_FILE} here)`;

/**
 * Reads the config from its file and from the environment. If neither says anything, `config.json` in this folder is the
 * file. Throws ConfigError.
 * @param isTemporary see ConfigPlace
 */
export async function openConfig(
  file: string | undefined,
  environment: Environment,
  isTemporary = false,
): Promise<Config> {
  const isSet = Object.keys(environment).some((name) =>
    OUR_PREFIXES.some((prefix) => name.startsWith(prefix)),
  );
  const isDefault = file === undefined && !isSet && existsSync(DEFAULT_FILE);
  const files = [isDefault ? DEFAULT_FILE : file].filter((path) => path !== undefined);
  const folder = files[0] === undefined || files[0] === "-" ? "" : dirname(files[0]);
  const { value, place } = await readFiles(files);
  const config = parseConfig(value, environment, { ...place, folder, isTemporary });
  if (!isDefault) return config;
  const warning = `No config is named: "${DEFAULT_FILE}" in this folder is used`;
  return { ...config, warnings: [warning, ...config.warnings] };
}

/**
 * Reads config files. A property of a later file wins. `ENV` in place of a file is the environment under the
 * names that other Singer taps use. Throws ConfigError; so does the returned function, which parses what they say together.
 */
export async function readConfigs(names: readonly string[], environment: Environment): Promise<() => Config> {
  const { value, place } = await readFiles(names.filter((name) => name !== "ENV"));
  const prefixes = names.includes("ENV") ? TAP_PREFIXES : OUR_PREFIXES;
  // Orchestrators write the config into a folder of their own, and start the tap in the project's.
  return () => parseConfig(value, environment, { ...place, prefixes, isTemporary: true });
}

async function readFiles(
  files: readonly string[],
): Promise<{ readonly value: JsonObject; readonly place: ConfigPlace }> {
  let [value, text]: [JsonObject, string] = [{}, ""];
  for (const file of files) {
    text = await readText("config", file);
    const next = parseJsonFile("config", file, text);
    if (!isObject(next)) {
      throw new ConfigError(`Cannot use ${originOf([file])}: it is not an object of properties`);
    }
    value = mergedFiles(value, next);
  }
  const name = files.length === 0 ? ENVIRONMENT : originOf(files);
  return { value, place: { name, lines: files.length === 1 ? linesOf(text) : undefined } };
}

/** The line of each property of a JSON text, by its dotted name; of a text of one line none is worth saying. */
function linesOf(text: string): ReadonlyMap<string, number> {
  const lines = new Map<string, number>();
  const path: string[] = [];
  let [name, line] = ["", 1];
  if (!text.trim().includes("\n")) return lines;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:\n]/g)) {
    if (token === "\n") line += 1;
    else if (token === ":") lines.set([...path.slice(1), name].join("."), line);
    else if (token === "{" || token === "[") path.push(name);
    else if (token === "}" || token === "]") path.pop();
    else name = token.slice(1, -1);
  }
  return lines;
}

const originOf = (files: readonly string[]): string =>
  `the config file${files.length === 1 ? "" : "s"} ${files.map((file) => `"${file}"`).join(", ")}`;

/** Objects are merged as well; the spec has none inside of others. */
function mergedFiles(base: JsonObject, over: JsonObject): JsonObject {
  const entries = Object.entries(over).map(([name, value]) => {
    const below = Object.hasOwn(base, name) ? base[name] : undefined;
    return [name, isObject(below) && isObject(value) ? { ...below, ...value } : value] as const;
  });
  return { ...base, ...Object.fromEntries(entries) };
}
