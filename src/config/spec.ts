import { readPackageFile } from "../base/package-file.ts";

/** The part of a property's schema that this program reads. Forms read the rest. */
export type SpecProperty = {
  readonly title?: string;
  readonly description?: string;
  readonly type: string | readonly string[];
  readonly pattern?: string;
  readonly pattern_descriptor?: string;
  readonly minLength?: number;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly airbyte_secret?: boolean;
  readonly items?: SpecProperty;
  readonly properties?: Readonly<Record<string, SpecProperty>>;
};

export type Spec = {
  /** Absent until a release, because a form would show a link to a page that does not exist. */
  readonly documentationUrl?: string;
  readonly connectionSpecification: SpecProperty & Readonly<Record<string, unknown>>;
};

/** Reads spec.json, which describes all settings. */
export const loadSpec = (): Spec => (loaded ??= readPackageFile("spec.json") as Spec);

let loaded: Spec | undefined;

/** The schema of a config. */
export const configSpec = (): SpecProperty => loadSpec().connectionSpecification;

/** A property's type other than null. */
export const typeOf = ({ type }: SpecProperty): string =>
  typeof type === "string" ? type : (type.find((name) => name !== "null") ?? "null");

/** Whether a property is a day. The spec has no `format`, because platforms would then refuse "30d". */
export const isDayProperty = ({ pattern_descriptor: form = "" }: SpecProperty): boolean =>
  form.startsWith("YYYY-MM-DD");

/** The property of an object's schema. The name may be from outside. */
export function innerProperty(
  { properties = {} }: Pick<SpecProperty, "properties">,
  name: string,
): SpecProperty | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

export type Located = { readonly path: readonly string[]; readonly property: SpecProperty };

/** Every property below `parent`, by default every setting. An outer property precedes its inner properties. */
export function* settingsIn(
  parent: SpecProperty = configSpec(),
  path: readonly string[] = [],
): Generator<Located> {
  for (const [name, property] of Object.entries(parent.properties ?? {})) {
    yield { path: [...path, name], property };
    yield* settingsIn(property, [...path, name]);
  }
}

/** Whether a setting names a file. @param name the last part of its name */
export const isFile = (name = ""): boolean => name.endsWith("_file");

/** Whether a setting is the root of an API. */
export const isRoot = (name = ""): boolean => ["base_url", "api_url"].includes(name);

/** Whether a setting is a list of items, which are compared in a normal form. */
export const isItemList = (name = ""): boolean => ["domains", "emails"].includes(name);

/** The beginning of the names of all our environment variables. */
export const VARIABLE_PREFIX = "CONTACT_INTELLIGENCE_";

/** The environment variable of a property. */
export const variableOf = (path: readonly string[], prefix: string = VARIABLE_PREFIX): string =>
  `${prefix}${path.join("__").toUpperCase()}`;
