import { resolve } from "node:path";
import { type JsonObject, valueAt } from "../base/json.ts";
import { type Prefixes, placed } from "./environment.ts";
import { settingsIn } from "./spec.ts";

/** The place that a config comes from. */
export type ConfigPlace = {
  /** In words, for messages. */
  readonly name?: string;
  /** The lines of its settings, by their dotted names. */
  readonly lines?: ReadonlyMap<string, number> | undefined;
  readonly prefixes?: Prefixes;
  /** The folder in which relative paths begin; those of variables begin in the working folder. */
  readonly folder?: string;
  /** Whether a platform may throw that folder away, so that receipts need an absolute path. */
  readonly isTemporary?: boolean;
};

/** A draft in which the settings that name files have absolute paths. @param variables that settings come from */
export function withPaths(
  draft: JsonObject,
  variables: ReadonlyMap<string, string>,
  folder: string,
): JsonObject {
  const paths = [...settingsIn()].map(({ path }) => path).filter((path) => path.at(-1)?.endsWith("_file"));
  return paths.reduce((all, path) => {
    const file = valueAt(all, path);
    if (typeof file !== "string" || file === "") return all;
    return placed(all, path, resolve(variables.has(path.join(".")) ? "" : folder, file));
  }, draft);
}
