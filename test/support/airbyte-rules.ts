import { isObject } from "../../src/base/json.ts";

/** A node of a specification or a catalog. */
type Node = Readonly<Record<string, unknown>> & { readonly airbyte_secret?: unknown };
type Check = (node: Node, path: string) => boolean;

/** A rule of Airbyte's acceptance tests: where a specification breaks it. */
type Rule = { readonly id: string; readonly says: string; readonly broken: (spec: unknown) => string[] };

const nodeAt = (value: unknown): Node => (isObject(value) ? value : {});
const listAt = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** Every schema below `properties` and `items` of one, with its path; the schema itself first. */
export function* schemasIn(schema: unknown, path = ""): Generator<{ path: string; schema: Node }> {
  if (!isObject(schema)) return;
  yield { path, schema };
  for (const [name, inner] of Object.entries(nodeAt(schema["properties"])))
    yield* schemasIn(inner, `${path}/${name}`);
  yield* schemasIn(schema["items"], `${path}/[]`);
}

/** The types of a schema, null left out. */
const typesOf = ({ type }: Node): unknown[] => [type ?? []].flat().filter((name) => name !== "null");

const rule = (id: string, says: string, isBroken: Check): Rule => ({
  ...{ id, says },
  broken: (spec) =>
    [...schemasIn(spec)].filter(({ schema, path }) => isBroken(schema, path)).map(({ path }) => path || "/"),
});

const SECRET_NAMES =
  /token$|secret$|password$|^(.*_)?key$|^service_account|certificate|jwt|credentials|^app_?id$/;
const FORBIDDEN =
  "$ref oneOf anyOf allOf not patternProperties prefixItems if then else dependentSchemas dependentRequired " +
  "advanced_auth display_type";

/** A config for each example of a setting. */
export const exampleConfigs = (spec: unknown): readonly object[] =>
  [...schemasIn(spec)].flatMap(({ path, schema }) =>
    listAt(schema["examples"]).map((example) =>
      path
        .split("/")
        .slice(1)
        .reduceRight<unknown>((inner, name) => ({ [name]: inner }), example),
    ),
  ) as readonly object[];

/** All but CS1, CS2 and CS18, which compare a specification with something else. */
export const SPEC_RULES: readonly Rule[] = [
  rule("CS3", "enum values are unique", ({ enum: values }) => {
    return new Set(listAt(values)).size < listAt(values).length;
  }),
  rule("CS4, CS10, CS14, CS15, CS17", "no keyword that forms cannot show", (schema) => {
    return FORBIDDEN.split(" ").some((word) => word in schema);
  }),
  rule("CS5", "what is required exists", ({ required, properties }) => {
    return listAt(required).some((name) => !(String(name) in nodeAt(properties)));
  }),
  rule("CS6", "what is named like a secret is one", (schema, path) => {
    const isNamed = SECRET_NAMES.test(path.split("/").at(-1) ?? "");
    return isNamed && !typesOf(schema).includes("object") && schema.airbyte_secret !== true;
  }),
  rule("CS7", "a type is x, [x] or [x, null]", ({ type }) => {
    const [first, second = "null", ...others] = [type].flat();
    return typeof first !== "string" || second !== "null" || others.length > 0;
  }),
  rule("CS8, CS9", "an object has properties, and an array items of one plain type", (schema) => {
    const { items, properties } = schema;
    const isEmpty = Object.keys(nodeAt(properties)).length === 0;
    const isMixed = typeof nodeAt(items)["type"] !== "string";
    return (typesOf(schema).includes("object") && isEmpty) || (typesOf(schema).includes("array") && isMixed);
  }),
  rule("CS11", "no format, by which the platform would refuse what a pattern allows", ({ format }) => {
    return format !== undefined;
  }),
  rule("CS12", "order is unique within a group", ({ properties }) => {
    const ordered = Object.values(nodeAt(properties)).map(nodeAt);
    const orders = ordered.flatMap(({ group, order }) => (order === undefined ? [] : `${group} ${order}`));
    return new Set(orders).size < orders.length;
  }),
  rule("CS13", "only top-level properties have a group, and it exists", ({ properties, groups }, path) => {
    const ids = [undefined, ...listAt(path === "" ? groups : []).map((group) => nodeAt(group)["id"])];
    return Object.values(nodeAt(properties)).some((property) => !ids.includes(nodeAt(property)["group"]));
  }),
  rule("CS16", "additionalProperties is true where it is given", ({ additionalProperties = true }) => {
    return additionalProperties !== true;
  }),
];

const bound = (value: unknown, none: number): number => Number(value ?? none);

/** Whether a pattern lets in what another does, and more beside it. */
const isWider = (before: unknown, after: unknown): boolean =>
  String(after).startsWith(String(before).replace(/^(\^\\s\*)(.*)\$$/, "$1($2|"));

/**
 * CS18: what a config that was valid before may stumble over.
 * @param previous a line for each schema of the specification: its path, a space and its rules as JSON
 */
export function specBreaks(previous: readonly string[], current: unknown): string[] {
  const now = new Map([...schemasIn(current)].map(({ path, schema }) => [path || "/", schema]));
  return previous.flatMap((line) => {
    const [path = ""] = line.split(" ", 1);
    const old: Node = JSON.parse(line.slice(path.length));
    const next = now.get(path);
    if (next === undefined) return [`${path} was removed`];
    const added = listAt(next["required"]).filter((name) => !listAt(old["required"]).includes(name));
    const lacks = (values: unknown, others: unknown): boolean =>
      [values].flat().some((value) => ![others].flat().includes(value));
    const { pattern } = next;
    const narrower = {
      type: lacks(old["type"], next["type"]),
      enum: next["enum"] !== undefined && lacks(old["enum"], next["enum"]),
      minimum: bound(next["minimum"], -Infinity) > bound(old["minimum"], -Infinity),
      maximum: bound(next["maximum"], Infinity) < bound(old["maximum"], Infinity),
      pattern: pattern !== undefined && pattern !== old["pattern"] && !isWider(old["pattern"], pattern),
    };
    const names = Object.entries(narrower).flatMap(([name, is]) => (is ? [name] : []));
    return [
      ...added.map((name) => `${path}/${name} became required`),
      ...names.map((name) => `${path} has a narrower ${name}`),
    ];
  });
}

/** What a connection relies on in a catalog, a line each: cursor, key and modes of each stream, types of each field. */
const factsOf = (catalog: unknown): string[] =>
  listAt(nodeAt(catalog)["streams"])
    .map(nodeAt)
    .flatMap(({ name, json_schema, supported_sync_modes: modes, ...stream }) => [
      ...listAt(modes).map((mode) => `${name} can be read by ${mode}`),
      ...["default_cursor_field", "source_defined_primary_key"].map(
        (fact) => `${name} has the ${fact} ${JSON.stringify(stream[fact])}`,
      ),
      ...[...schemasIn(json_schema)].map(({ path, schema: { type, format, airbyte_type } }) =>
        [`${name}${path}:`, [type].flat().join(" or "), format, airbyte_type].filter(Boolean).join(" "),
      ),
    ]);

/** CD9: the lines of a previous catalog that a connection made with it would lose. */
export function catalogBreaks(previous: readonly string[], current: unknown): string[] {
  const now = new Set(factsOf(current));
  return previous.filter((fact) => !now.has(fact));
}
