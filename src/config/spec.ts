import { readFileSync } from "node:fs";

/** What this program reads of a property's schema; the rest is for forms. */
export type SpecProperty = {
  readonly title?: string;
  readonly description?: string;
  readonly type: string | readonly string[];
  readonly format?: string;
  readonly pattern_descriptor?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly airbyte_secret?: boolean;
  readonly items?: SpecProperty;
  readonly properties?: Readonly<Record<string, SpecProperty>>;
};

export type Spec = {
  readonly documentationUrl: string;
  readonly changelogUrl: string;
  readonly connectionSpecification: SpecProperty & Readonly<Record<string, unknown>>;
};

/** Reads the one description of the config, from which everything else about it is derived. */
export function loadSpec(): Spec {
  return JSON.parse(readFileSync(new URL("../../spec.json", import.meta.url), "utf8"));
}

/** A property's type, null aside. */
export function typeOf({ type }: SpecProperty): string {
  return typeof type === "string" ? type : (type.find((name) => name !== "null") ?? "null");
}

export type Located = { readonly path: readonly string[]; readonly property: SpecProperty };

/** Every property under one, outer before inner. */
export function* propertiesOf(parent: SpecProperty, path: readonly string[] = []): Generator<Located> {
  for (const [name, property] of Object.entries(parent.properties ?? {})) {
    yield { path: [...path, name], property };
    yield* propertiesOf(property, [...path, name]);
  }
}

/** The environment variable that stands for a property. */
export function variableOf(path: readonly string[]): string {
  return `CONTACT_INTELLIGENCE_${path.join("__").toUpperCase()}`;
}
