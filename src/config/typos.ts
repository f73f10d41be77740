import { isObject, type JsonObject, printable, quoted } from "../base/json.ts";
import { distanceOf, nearestName, plain } from "../base/text.ts";
import type { Environment, Prefixes } from "./environment.ts";
import type { Problem } from "./problems.ts";
import { configSpec, innerProperty, type SpecProperty, settingsIn, variableOf } from "./spec.ts";

/** A setting that the spec does not have, by its dotted path, or a variable that no setting has. */
export type Unknown = {
  readonly what: "setting" | "environment variable";
  readonly name: string;
  /** The one that may have been meant, in the same words. */
  readonly nearest: string | undefined;
  /** Whether they differ by so little that nothing else can have been meant. */
  readonly isTypo: boolean;
};

/** The settings of a config that the spec does not have, in the order of the config. */
export function unknownSettings(draft: JsonObject): readonly Unknown[] {
  return unknownPaths(draft, configSpec(), []).map((path) => {
    const near = nearestOf(path);
    return { what: "setting", name: path.join("."), nearest: near?.join("."), isTypo: isTypo(path, near) };
  });
}

/** Other programs' variables may begin with the same words: only a name that is similar to a setting is a mistake. */
export function unknownVariables(environment: Environment, prefixes: Prefixes): readonly Unknown[] {
  const paths = [...settingsIn()].map(({ path }) => path);
  return Object.keys(environment).flatMap((name): Unknown[] => {
    const prefix = prefixes.find((one) => name.startsWith(one));
    if (prefix === undefined || paths.some((path) => variableOf(path, prefix) === name)) return [];
    const path = name.slice(prefix.length).toLowerCase().split("__");
    const near = nearestOf(path);
    if (near === undefined) return [];
    const nearest = variableOf(near, prefix);
    return [{ what: "environment variable", name, nearest, isTypo: isTypo(path, near) }];
  });
}

/** Words before the name of a variable. */
export const VARIABLE = "the environment variable ";

/** A problem for each that is a known setting or variable misspelt: it would not take effect. */
export const typoProblems = (unknown: readonly Unknown[]): Problem[] =>
  unknown.flatMap(({ what, name, nearest = "", isTypo }) => {
    const path = what === "setting" ? printable(name) : VARIABLE + name;
    return isTypo ? [{ path, text: `is not a setting. Did you mean ${quoted(nearest)}?` }] : [];
  });

/** A warning for each. */
export const unknownWarnings = (unknown: readonly Unknown[]): readonly string[] =>
  unknown.map(({ what, name, nearest }) => {
    const advice = nearest === undefined ? "It has no effect" : `Did you mean ${quoted(nearest)}?`;
    return `Unknown ${what} ${quoted(name)}. ${advice}`;
  });

/** Letters by which a name may differ from another that is meant for sure. */
const TYPO_LETTERS = 2;

const isTypo = (path: readonly string[], nearest: readonly string[] | undefined): boolean =>
  nearest?.slice(0, -1).join(".") === path.slice(0, -1).join(".") &&
  distanceOf(plain(lastOf(path)), plain(lastOf(nearest))) <= TYPO_LETTERS;

function unknownPaths(draft: JsonObject, spec: SpecProperty, path: readonly string[]): (readonly string[])[] {
  return Object.entries(draft).flatMap(([name, value]) => {
    const property = innerProperty(spec, name);
    if (property === undefined) return [[...path, name]];
    return isObject(value) && property.properties !== undefined
      ? unknownPaths(value, property, [...path, name])
      : [];
  });
}

/** The setting of the same object with the most similar name, or else one of the same name anywhere. */
function nearestOf(path: readonly string[]): readonly string[] | undefined {
  const parentOf = (one: readonly string[]): string => one.slice(0, -1).join(".");
  const all = [...settingsIn()].map((located) => located.path);
  const siblings = all.filter((one) => parentOf(one) === parentOf(path));
  const near = nearestName(lastOf(path), siblings.map(lastOf));
  return (
    siblings.find((one) => lastOf(one) === near) ??
    all.find((one) => plain(lastOf(one)) === plain(lastOf(path)))
  );
}

const lastOf = (path: readonly string[]): string => path.at(-1) ?? "";
