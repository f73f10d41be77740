import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, merged } from "../base/json.ts";
import { parseJsonFile, readText } from "../output/files/read-file.ts";
import { type Config, type ConfigPlace, parseConfig } from "./config.ts";
import { type Environment, OUR_PREFIXES, type Prefixes, TAP_PREFIXES } from "./environment.ts";

const DEFAULT_FILE = "config.json";

/** As `findConfig`. @throws ConfigError without a file and without a variable */
export async function openConfig(...given: Parameters<typeof findConfig>): Promise<Config> {
  const config = await findConfig(...given);
  if (config === undefined)
    throw noConfig("Run `source-contact-intelligence init`, or name a file with --config");
  return config;
}

/** Reads the config from a file, by default `config.json`, and from variables. @param isTemporary see ConfigPlace @throws ConfigError */
export async function findConfig(
  file: string | undefined,
  environment: Environment,
  isTemporary = false,
): Promise<Config | undefined> {
  const found = file === undefined && existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined;
  const path = file ?? found;
  if (path === undefined && !hasVariables(environment, OUR_PREFIXES)) return undefined;
  const folder = path === undefined || path === "-" ? "" : dirname(path);
  const { value, place } = await readFiles(path === undefined ? [] : [path]);
  const config = parseConfig(value, environment, { ...place, folder, isTemporary });
  if (found === undefined) return config;
  const origins = [`"${found}" in this folder`, ...new Set(config.origins.values())].filter(
    (origin) => origin !== place.name,
  );
  return { ...config, note: `The settings come from ${origins.join(" and from ")}` };
}

const noConfig = (advice: string): ConfigError => new ConfigError(`No config found. ${advice}`);

const hasVariables = (environment: Environment, prefixes: Prefixes): boolean =>
  Object.keys(environment).some((name) => prefixes.some((prefix) => name.startsWith(prefix)));

/** Reads config files and, for `ENV`, the tap's variables. A later file wins. The returned function parses. Both throw ConfigError. */
export async function readConfigs(names: readonly string[], environment: Environment): Promise<() => Config> {
  const { value, place } = await readFiles(names.filter((name) => name !== "ENV"));
  const prefixes = names.includes("ENV") ? TAP_PREFIXES : OUR_PREFIXES;
  if (names.length === 0 && !hasVariables(environment, prefixes))
    return () => {
      throw noConfig("Name a file with --config, or set the variables of docs/settings.md");
    };
  // Orchestrators write the config into a temporary folder, and start the tap in the project's folder.
  return () => parseConfig(value, environment, { ...place, prefixes, isTemporary: true });
}

async function readFiles(files: readonly string[]): Promise<{ value: JsonObject; place: ConfigPlace }> {
  let [value, text]: [JsonObject, string] = [{}, ""];
  for (const file of files) {
    text = await readText("config", file);
    const next = parseJsonFile("config", file, text);
    if (!isObject(next))
      throw new ConfigError(`Cannot use ${originOf([file])}: it is not an object of properties`);
    value = merged(value, next);
  }
  const name = files.length === 0 ? "the environment" : originOf(files);
  return { value, place: { name, lines: files.length === 1 ? linesOf(text) : undefined } };
}

/** The line of each property of a JSON text, by its dotted name. Empty for a text of one line. */
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
