import { isAbsolute, resolve } from "node:path";
import { isObject, type JsonObject, valueAt } from "../base/json.ts";
import { type Prefixes, placed } from "./environment.ts";
import type { Problem } from "./problems.ts";
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
  place: ConfigPlace,
): JsonObject {
  const paths = [...settingsIn()].map(({ path }) => path).filter((path) => path.at(-1)?.endsWith("_file"));
  return paths.reduce((all, path) => {
    const file = valueAt(all, path);
    if (typeof file !== "string" || file === "") return all;
    return placed(all, path, resolve(variables.has(path.join(".")) ? "" : (place.folder ?? ""), file));
  }, draft);
}

/** Receipts in a folder that is thrown away are lost, and what was bought would be bought again. */
export function pathProblems(
  draft: JsonObject,
  variables: ReadonlyMap<string, string>,
  place: ConfigPlace,
): Problem[] {
  const { receipts_file: file, company_lookup, email_verification, email_check } = draft;
  const hasJobs = [company_lookup, email_verification, email_check].some(isObject);
  if (place.isTemporary !== true || !hasJobs || typeof file !== "string" || file === "") return [];
  if (isAbsolute(file)) return [];
  const { receipts_file } = withPaths({ receipts_file: file }, variables, place);
  return [{ path: "receipts_file", text: `must be an absolute path here, such as "${receipts_file}"` }];
}
