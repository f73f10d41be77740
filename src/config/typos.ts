import { isObject, type JsonObject, printable, quoted } from "../base/json.ts";
import { distanceOf, nearestName, plain, plural } from "../base/text.ts";
import type { Environment, Prefixes } from "./environment.ts";
import { configSpec, innerProperty, type SpecProperty, settingsIn, variableOf } from "./spec.ts";

/**
 * A setting that the spec does not have, and the one that may have been meant: dotted paths, or variables. `isTypo`: they
 * differ by so little that nothing else can have been meant.
 */
export type Unknown = {
  readonly name: string;
  readonly nearest: string | undefined;
  readonly isTypo: boolean;
};

/** The settings of a config that the spec does not have, in the order of the config. */
export function unknownSettings(draft: JsonObject): readonly Unknown[] {
  return unknownPaths(draft, configSpec(), []).map((path) => {
    const nearest = nearestOf(path);
    return { name: path.join("."), nearest: nearest?.join("."), isTypo: isTypo(path, nearest) };
  });
}

/** What is wrong with each setting, and each variable of ours, that is a known one misspelt: it would not take effect. */
export function typoProblems(
  unknown: readonly Unknown[],
  variables: readonly Unknown[],
): { readonly path: string; readonly text: string }[] {
  const text = (nearest: string): string => `is not a setting. Did you mean ${quoted(nearest)}?`;
  const settings = unknown.filter(({ isTypo }) => isTypo);
  const typos = variables.filter(({ isTypo }) => isTypo);
  return [
    ...settings.map(({ name, nearest = "" }) => ({ path: printable(name), text: text(nearest) })),
    ...typos.map(({ name, nearest = "" }) => ({ path: VARIABLE + name, text: text(nearest) })),
  ];
}

/** What precedes the name of a variable in words. */
export const VARIABLE = "the environment variable ";

/** One warning for each other unknown setting, and for each variable that looks like a misspelt setting. */
export function unknownWarnings(
  unknown: readonly Unknown[],
  variables: readonly Unknown[],
): readonly string[] {
  const settings = unknown.map(({ name, nearest }) => {
    const advice = nearest === undefined ? "It has no effect" : `Did you mean ${quoted(nearest)}?`;
    return `Unknown setting ${quoted(name)}. ${advice}`;
  });
  const others = variables.map(
    ({ name, nearest }) => `Unknown environment variable ${quoted(name)}. Did you mean ${nearest}?`,
  );
  const all = [...settings, ...others];
  if (all.length <= MOST_WARNINGS) return all;
  return [
    ...all.slice(0, MOST_WARNINGS),
    `Unknown besides: ${plural(all.length - MOST_WARNINGS, "setting")}`,
  ];
}

const MOST_WARNINGS = 20;

/** Other programs' variables may begin with the same words: only what comes near a setting is a mistake. */
export function unknownVariables(environment: Environment, prefixes: Prefixes): readonly Unknown[] {
  const paths = [...settingsIn()].map(({ path }) => path);
  return Object.keys(environment).flatMap((name) => {
    const prefix = prefixes.find((one) => name.startsWith(one));
    if (prefix === undefined || paths.some((path) => variableOf(path, prefix) === name)) return [];
    const path = name.slice(prefix.length).toLowerCase().split("__");
    const nearest = nearestOf(path);
    if (nearest === undefined) return [];
    return [{ name, nearest: variableOf(nearest, prefix), isTypo: isTypo(path, nearest) }];
  });
}

/** Letters by which a name may differ from another that is meant for sure. */
const TYPO_LETTERS = 2;

const isTypo = (path: readonly string[], nearest: readonly string[] | undefined): boolean =>
  nearest?.slice(0, -1).join(".") === path.slice(0, -1).join(".") &&
  distanceOf(plain(path.at(-1) ?? ""), plain(nearest.at(-1) ?? "")) <= TYPO_LETTERS;

function unknownPaths(draft: JsonObject, spec: SpecProperty, path: readonly string[]): (readonly string[])[] {
  return Object.entries(draft).flatMap(([name, value]) => {
    const property = innerProperty(spec, name);
    if (property === undefined) return [[...path, name]];
    return isObject(value) && property.properties !== undefined
      ? unknownPaths(value, property, [...path, name])
      : [];
  });
}

/** The setting that is spelt most like a name: first among its neighbours, then anywhere under its very name. */
function nearestOf(path: readonly string[]): readonly string[] | undefined {
  const wanted = plain(path.at(-1) ?? "");
  const parent = path.slice(0, -1).join(".");
  const all = [...settingsIn()].map((located) => located.path);
  const siblings = all.filter((candidate) => candidate.slice(0, -1).join(".") === parent);
  const near = nearestName(
    path.at(-1) ?? "",
    siblings.map((candidate) => candidate.at(-1) ?? ""),
  );
  return (
    siblings.find((candidate) => candidate.at(-1) === near) ??
    all.find((candidate) => plain(candidate.at(-1) ?? "") === wanted)
  );
}
