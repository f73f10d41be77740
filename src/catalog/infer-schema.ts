import { isObject, type JsonObject, kindOf } from "../base/json.ts";
import { isInstant } from "../base/time.ts";
import { type JsonSchema, TIMESTAMP } from "./schema.ts";

/** Objects deeper than this stay open: their fields are not named. */
const MAX_DEPTH = 5;
/** A nested object with more names than this is a map, not a record: its fields are not named. */
const MAX_NESTED_FIELDS = 200;
/** The fields that most records have are named; beyond this many, no more. */
const MAX_FIELDS = 1000;
/** Names beyond this many are not even counted. */
const MAX_COUNTED = 20_000;

/**
 * Adds to the declared schema the fields that the records show. Says only what the next records will hardly
 * contradict: every field is nullable, every number is `number`, a field that was only null is a string, a field of
 * mixed types has no type, and only an array of one scalar type has `items`. The order of the records does not matter.
 *
 * Left out are names that platforms cannot store (empty, with NUL or lone surrogates, `__proto__`) and, of names that
 * differ only by case, all but a declared one or else the one that sorts last (lower case after upper).
 */
export function inferSchema(declared: JsonSchema, records: Iterable<Readonly<JsonObject>>): JsonSchema {
  const shape = new Shape(0);
  for (const record of records) shape.addFields(record);
  const known = new Set(Object.keys(declared.properties ?? {}).map(folded));
  const found = shape.named(MAX_FIELDS).filter(([name]) => !known.has(folded(name)));
  return {
    ...declared,
    properties: { ...declared.properties, ...schemasOf(found) },
    additionalProperties: true,
  };
}

/** The values of one field so far. */
class Shape {
  readonly kinds = new Set<string>();
  readonly elements = new Set<string>();
  readonly #depth: number;
  #seen = 0;
  #timestamps = true;
  #fields: Map<string, Shape> | "too many" = new Map();

  constructor(depth: number) {
    this.#depth = depth;
  }

  add(value: unknown): void {
    this.#seen++;
    if (value === null || value === undefined) return;
    this.kinds.add(kindOf(value));
    if (typeof value === "string") this.#timestamps &&= isInstant(value);
    if (Array.isArray(value)) for (const element of value) this.elements.add(kindOf(element));
    if (isObject(value)) this.addFields(value);
  }

  addFields(record: Readonly<JsonObject>): void {
    if (this.#depth >= MAX_DEPTH) return;
    for (const [name, value] of Object.entries(record)) {
      if (this.#fields === "too many") return;
      if (!isFieldName(name) || value === undefined) continue;
      const known = this.#fields.get(name);
      if (known === undefined && this.#fields.size >= MAX_COUNTED) continue;
      const field = known ?? new Shape(this.#depth + 1);
      if (known === undefined) this.#fields.set(name, field);
      field.add(value);
      if (this.#depth > 0 && this.#fields.size > MAX_NESTED_FIELDS) this.#fields = "too many";
    }
  }

  /** At most `limit` fields by name, no two the same but for case. */
  named(limit: number): [string, Shape][] {
    if (this.#fields === "too many") return [];
    const sorted = [...this.#fields].sort(([a], [b]) => (a < b ? -1 : 1));
    const byFold = new Map(sorted.map((entry) => [folded(entry[0]), entry]));
    const commonest = [...byFold.values()].sort(([, a], [, b]) => b.#seen - a.#seen).slice(0, limit);
    return commonest.sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** None where fields are not named: a catalog lets a field without `properties` out as one value. */
  #properties(): { properties?: Record<string, JsonSchema> } {
    const isNamed = this.#depth < MAX_DEPTH && this.#fields !== "too many";
    return isNamed ? { properties: schemasOf(this.named(MAX_NESTED_FIELDS)) } : {};
  }

  toSchema(): JsonSchema {
    const [kind = "string", another] = this.kinds;
    if (another !== undefined) return {};
    const type = ["null", kind];
    switch (kind) {
      case "string":
        return this.kinds.size > 0 && this.#timestamps ? TIMESTAMP : { type };
      case "array":
        return { type, ...itemsOf(this.elements) };
      case "object":
        return { type, ...this.#properties(), additionalProperties: true };
      default:
        return { type };
    }
  }
}

function itemsOf(elements: ReadonlySet<string>): { items?: JsonSchema } {
  const [kind, another] = [...elements].filter((name) => name !== "null");
  if (kind === undefined || another !== undefined || kind === "object" || kind === "array") return {};
  return { items: { type: ["null", kind] } };
}

const schemasOf = (fields: readonly [string, Shape][]): Record<string, JsonSchema> =>
  Object.fromEntries(fields.map(([name, shape]) => [name, shape.toSchema()]));

const isFieldName = (name: string): boolean =>
  name !== "" && name !== "__proto__" && !name.includes("\0") && !/\p{Surrogate}/u.test(name);

const folded = (name: string): string => name.toLowerCase();
