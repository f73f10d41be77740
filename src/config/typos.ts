import { isObject, type JsonObject, printable, quoted } from "../base/json.ts";
import { nearestName } from "../base/text.ts";
import type { Environment, Prefixes } from "./environment.ts";
import type { Problem } from "./problems.ts";
import { configSpec, innerProperty, settingsIn, variableOf } from "./spec.ts";

/** A setting that the spec does not have, by its dotted path, or a variable that no setting has. */
export type Unknown = {
  readonly name: string;
  /** A setting with a similar name; undefined: no setting has a similar name. */
  readonly meant: string | undefined;
};

/** Words before the name of a variable. */
export const VARIABLE = "the environment variable ";

/** The settings of a config that the spec does not have, in the order of the config. */
export function unknownSettings(
  draft: JsonObject,
  known = configSpec().properties ?? {},
  path = "",
): readonly Unknown[] {
  return Object.entries(draft).flatMap(([name, value]): readonly Unknown[] => {
    const property = innerProperty({ properties: known }, name);
    if (property === undefined) {
      const meant = nearestName(name, Object.keys(known));
      return [{ name: path + printable(name), meant: meant && path + meant }];
    }
    const { properties } = property;
    return isObject(value) && properties ? unknownSettings(value, properties, `${path}${name}.`) : [];
  });
}

/** Variables that look like a misspelled setting. Variables of other programs may have the same prefix. */
export function unknownVariables(environment: Environment, prefixes: Prefixes): readonly Unknown[] {
  const settings = [...settingsIn()];
  const known = prefixes.flatMap((prefix) => settings.map(({ path }) => variableOf(path, prefix)));
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || !prefixes.some((prefix) => name.startsWith(prefix))) return [];
    const meant = nearestName(name, known);
    return meant === undefined ? [] : [{ name: VARIABLE + name, meant }];
  });
}

/** A problem for each unknown setting with a similar name, because it would have no effect. */
export const typoProblems = (unknown: readonly Unknown[]): Problem[] =>
  unknown.flatMap(({ name, meant }) =>
    meant === undefined ? [] : [{ path: name, text: `is not a setting. Did you mean ${quoted(meant)}?` }],
  );

/** A warning for each unknown setting without a similar name. @param place the config in words */
export const unknownWarnings = (unknown: readonly Unknown[], place: string): readonly string[] =>
  unknown
    .filter(({ meant }) => meant === undefined)
    .map(({ name }) => `Unknown setting "${name}" in ${place}. It has no effect`);
