import { type Node, type Rule, rule, schemaAt, schemasIn, typesOf } from "./json-schema.ts";

const SECRET_NAMES = new Set(
  (
    "client_token access_token api_token token secret client_secret password key service_account_info service_account " +
    "tenant_id certificate jwt credentials app_id appid refresh_token api_key"
  ).split(" "),
);
const FORBIDDEN =
  "not anyOf patternProperties prefixItems allOf if then else dependentSchemas dependentRequired".split(" ");

type Check = (schema: Node, path: string) => boolean;

/** Where a check finds something in a specification. */
const placesOf = (spec: unknown, isBroken: Check): string[] =>
  [...schemasIn(spec)].filter(({ schema, path }) => isBroken(schema, path)).map(({ path }) => path || "/");

/** A rule that looks at each schema by itself. */
const each = (id: string, says: string, isBroken: Check): Rule =>
  rule(id, says, (spec) => placesOf(spec, isBroken));

const nameOf = (path: string): string => path.split("/").at(-1) ?? "";

/** CS3 to CS17; CS1, CS2 and CS18 compare a specification with something else. */
export const SPEC_RULES: readonly Rule[] = [
  each("CS3", "enum values are unique", ({ enum: values }) => {
    return Array.isArray(values) && new Set(values).size < values.length;
  }),
  each("CS4", "a oneOf is an object told apart by one const", isBadOneOf),
  rule("CS5", "what is required exists, and there is a secret", (spec) => [
    ...placesOf(spec, (schema) =>
      requiredOf(schema).some((name) => !Object.hasOwn(schemaAt(schema.properties), name)),
    ),
    ...([...schemasIn(spec)].some(({ schema }) => schema.airbyte_secret === true) ? [] : ["no secret"]),
  ]),
  each("CS6", "what is named like a secret is one", (schema, path) => {
    return SECRET_NAMES.has(nameOf(path)) && isScalar(schema) !== (schema.airbyte_secret === true);
  }),
  each("CS7", "a type is x, [x] or [x, null]", ({ type }) => !isSpecType(type)),
  each("CS8", "an object has properties", (schema) => {
    const isEmpty = Object.keys(schemaAt(schema.properties)).length === 0;
    return typesOf(schema).includes("object") && schema.oneOf === undefined && isEmpty;
  }),
  each("CS9", "an array has items of one plain type", isBadArray),
  each("CS10", "no keyword that forms cannot show", (schema) => FORBIDDEN.some((word) => word in schema)),
  each("CS11", "a date has a pattern for dates, and the reverse", ({ format, pattern }) => {
    return (format === "date") !== isDatePattern(pattern) || format === "date-time";
  }),
  each("CS12", "order is unique within a group", hasRepeatedOrder),
  rule("CS13", "only top-level properties have a group, and it exists", (spec) => {
    const { groups } = schemaAt(spec);
    const ids = new Set((Array.isArray(groups) ? groups : []).map((group) => schemaAt(group).id));
    const isTop = (path: string): boolean => path.split("/").length === 2;
    return placesOf(spec, ({ group }, path) => group !== undefined && (!isTop(path) || !ids.has(group)));
  }),
  each("CS14", "display_type stands beside oneOf", ({ display_type, oneOf }) => {
    const isKnown = oneOf !== undefined && ["radio", "dropdown"].includes(String(display_type));
    return display_type !== undefined && !isKnown;
  }),
  rule("CS15", "no $ref", (spec) => (JSON.stringify(spec).includes('"$ref"') ? ["$ref"] : [])),
  each("CS16", "additionalProperties is true where it is given", ({ additionalProperties = true }) => {
    return additionalProperties !== true;
  }),
  rule("CS17", "no advanced_auth: there is no OAuth", (spec) => {
    return schemaAt(spec).advanced_auth === undefined ? [] : ["advanced_auth"];
  }),
];

/** CS18: what a config that was valid under the previous specification may stumble over. */
export function specBreaks(previous: unknown, current: unknown): string[] {
  const now = new Map([...schemasIn(current)].map(({ path, schema }) => [path, schema]));
  return [...schemasIn(previous)].flatMap(({ path, schema }) => {
    const next = now.get(path);
    if (next === undefined) return [`${path} was removed`];
    const added = requiredOf(next).filter((name) => !requiredOf(schema).includes(name));
    const narrower = {
      type: !typeNames(schema).every((name) => typeNames(next).includes(name)),
      enum: !isSubset(schema.enum, next.enum),
      minimum: bound(next, "minimum", -Infinity) > bound(schema, "minimum", -Infinity),
      maximum: bound(next, "maximum", Infinity) < bound(schema, "maximum", Infinity),
      pattern:
        next.pattern !== undefined &&
        next.pattern !== schema.pattern &&
        !isWider(schema.pattern, next.pattern),
    };
    return [
      ...added.map((name) => `${path}/${name} became required`),
      ...Object.entries(narrower).flatMap(([name, is]) => (is ? [`${path} has a narrower ${name}`] : [])),
    ];
  });
}

/** Whether a pattern lets in what another does, and more beside it. */
const isWider = (before: unknown, after: unknown): boolean =>
  String(after).startsWith(String(before).replace(/^(\^\\s\*)(.*)\$$/, "$1($2|"));

const requiredOf = ({ required }: Node): string[] => (Array.isArray(required) ? required.map(String) : []);

const typeNames = ({ type }: Node): unknown[] => (Array.isArray(type) ? type : [type]);

const isSubset = (before: unknown, after: unknown): boolean =>
  !Array.isArray(after) || (Array.isArray(before) && before.every((value) => after.includes(value)));

const bound = (schema: Node, name: "minimum" | "maximum", none: number): number =>
  Number(schema[name] ?? none);

const isScalar = (schema: Node): boolean =>
  schema.const === undefined &&
  typesOf(schema).some((type) => ["string", "integer", "number"].includes(String(type)));

const isSpecType = (type: unknown): boolean =>
  Array.isArray(type)
    ? type.length === 1 || (type.length === 2 && type[0] !== "null" && type[1] === "null")
    : typeof type === "string";

function isBadArray(schema: Node): boolean {
  if (!typesOf(schema).includes("array")) return false;
  const { enum: values, type } = schemaAt(schema.items);
  return values === undefined && !["object", "string", "number", "integer"].includes(String(type));
}

function isBadOneOf({ oneOf, type }: Node): boolean {
  if (oneOf === undefined) return false;
  if (!Array.isArray(oneOf) || type !== "object") return true;
  const constants = oneOf.map((variant) =>
    Object.entries(schemaAt(schemaAt(variant).properties))
      .filter(([, property]) => schemaAt(property).const !== undefined)
      .map(([name]) => name),
  );
  return (constants[0] ?? []).filter((name) => constants.every((names) => names.includes(name))).length !== 1;
}

const isDatePattern = (pattern: unknown): boolean =>
  typeof pattern === "string" && new RegExp(pattern).test("2026-01-02") && !new RegExp(pattern).test("2026");

function hasRepeatedOrder(schema: Node): boolean {
  const orders = Object.values(schemaAt(schema.properties))
    .map(schemaAt)
    .filter(({ order }) => order !== undefined)
    .map(({ group, order }) => `${String(group)} ${String(order)}`);
  return new Set(orders).size < orders.length;
}
