import { type Node, schemaAt, schemasIn, typesOf } from "./json-schema.ts";

/** A rule of Airbyte's acceptance tests: what it finds wrong with a connection specification. */
export type Rule = {
  readonly id: string;
  readonly says: string;
  readonly broken: (spec: unknown) => string[];
};

const SECRET_NAMES = new Set(
  (
    "client_token access_token api_token token secret client_secret password key service_account_info service_account " +
    "tenant_id certificate jwt credentials app_id appid refresh_token api_key"
  ).split(" "),
);
const FORBIDDEN =
  "not anyOf patternProperties prefixItems allOf if then else dependentSchemas dependentRequired".split(" ");

/** Applies a check to every schema of a specification. */
const each =
  (isBroken: (schema: Node, path: string) => boolean) =>
  (spec: unknown): string[] =>
    [...schemasIn(spec)].filter(({ schema, path }) => isBroken(schema, path)).map(({ path }) => path || "/");

const nameOf = (path: string): string => path.split("/").at(-1) ?? "";

/** CS3 to CS17; CS1, CS2 and CS18 compare a specification with something else. */
export const SPEC_RULES: readonly Rule[] = [
  {
    id: "CS3",
    says: "enum values are unique",
    broken: each(({ enum: values }) => Array.isArray(values) && new Set(values).size < values.length),
  },
  { id: "CS4", says: "a oneOf is an object told apart by one const", broken: each(isBadOneOf) },
  {
    id: "CS5",
    says: "what is required exists, and there is a secret",
    broken: (spec) => [
      ...each((schema) =>
        requiredOf(schema).some((name) => !Object.hasOwn(schemaAt(schema.properties), name)),
      )(spec),
      ...([...schemasIn(spec)].some(({ schema }) => schema.airbyte_secret === true) ? [] : ["no secret"]),
    ],
  },
  {
    id: "CS6",
    says: "what is named like a secret is one",
    broken: each(
      (schema, path) =>
        SECRET_NAMES.has(nameOf(path)) && isScalar(schema) !== (schema.airbyte_secret === true),
    ),
  },
  { id: "CS7", says: "a type is x, [x] or [x, null]", broken: each(({ type }) => !isSpecType(type)) },
  {
    id: "CS8",
    says: "an object has properties",
    broken: each(
      (schema) =>
        typesOf(schema).includes("object") &&
        schema.oneOf === undefined &&
        Object.keys(schemaAt(schema.properties)).length === 0,
    ),
  },
  { id: "CS9", says: "an array has items of one plain type", broken: each(isBadArray) },
  {
    id: "CS10",
    says: "no keyword that forms cannot show",
    broken: each((schema) => FORBIDDEN.some((word) => word in schema)),
  },
  {
    id: "CS11",
    says: "a date has a pattern for dates, and the reverse",
    broken: each(
      ({ format, pattern }) => (format === "date") !== isDatePattern(pattern) || format === "date-time",
    ),
  },
  { id: "CS12", says: "order is unique within a group", broken: each((schema) => hasRepeatedOrder(schema)) },
  {
    id: "CS13",
    says: "only top-level properties have a group, and it exists",
    broken: (spec) => {
      const { groups } = schemaAt(spec);
      const ids = new Set((Array.isArray(groups) ? groups : []).map((group) => schemaAt(group).id));
      return each(({ group }, path) => {
        const isTop = path.split("/").length === 2;
        return group !== undefined && (!isTop || !ids.has(group));
      })(spec);
    },
  },
  {
    id: "CS14",
    says: "display_type stands beside oneOf",
    broken: each(
      ({ display_type, oneOf }) =>
        display_type !== undefined &&
        (oneOf === undefined || !["radio", "dropdown"].includes(String(display_type))),
    ),
  },
  {
    id: "CS15",
    says: "no $ref",
    broken: (spec) => (JSON.stringify(spec).includes('"$ref"') ? ["$ref"] : []),
  },
  {
    id: "CS16",
    says: "additionalProperties is true where it is given",
    broken: each(({ additionalProperties = true }) => additionalProperties !== true),
  },
  {
    id: "CS17",
    says: "no advanced_auth: there is no OAuth",
    broken: (spec) => (schemaAt(spec).advanced_auth === undefined ? [] : ["advanced_auth"]),
  },
];

/** CS18: what a config that was valid under the previous specification may stumble over. */
export function specBreaks(previous: unknown, current: unknown): string[] {
  const now = new Map([...schemasIn(current)].map(({ path, schema }) => [path, schema]));
  return [...schemasIn(previous)].flatMap(({ path, schema }) => {
    const next = now.get(path);
    if (next === undefined) return [`${path} was removed`];
    const added = requiredOf(next).filter((name) => !requiredOf(schema).includes(name));
    return [
      ...added.map((name) => `${path}/${name} became required`),
      ...(typeNames(schema).every((name) => typeNames(next).includes(name))
        ? []
        : [`${path} has a narrower type`]),
      ...(isSubset(schema.enum, next.enum) ? [] : [`${path} has a narrower enum`]),
      ...(bound(next, "minimum", -Infinity) <= bound(schema, "minimum", -Infinity)
        ? []
        : [`${path} has a higher minimum`]),
      ...(bound(next, "maximum", Infinity) >= bound(schema, "maximum", Infinity)
        ? []
        : [`${path} has a lower maximum`]),
      ...(next.pattern === undefined || next.pattern === schema.pattern
        ? []
        : [`${path} has another pattern`]),
    ];
  });
}

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
