import { isObject } from "../base/json.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import type { RawLine } from "../sync/event.ts";
import type { Row } from "../sync/service.ts";

/** A character of a JSON string in latin1-decoded UTF-8 without an escape. */
const PLAIN_CHARACTER = String.raw`[^"\\\x00-\x1f]`;
const PLAIN_ONLY = new RegExp(`^${PLAIN_CHARACTER}*$`);
const STRING_ESCAPE = String.raw`\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})`;
const STRING = `"${PLAIN_CHARACTER}*(?:${STRING_ESCAPE}${PLAIN_CHARACTER}*)*"`;
/** Groups have numbers, because the object of named groups is slower than the match. */
const KEY_GROUP = `("${PLAIN_CHARACTER}+")`;
const CURSOR_GROUP = `"(${PLAIN_CHARACTER}*)"`;
/** ASCII text that does not end with a dot. Two spellings of one text differ only in upper and lower case. */
const usualGroup = (characters: string): string => `("[.${characters}]*[${characters}]")`;
/** The characters of an address without the separators of lists of addresses. */
const USUAL_ADDRESS = usualGroup("!#-%*+0-9=@A-Z^_a-z~-");
const USUAL_KEY = usualGroup("!#-&(-+/0-9:=?-\\[\\]-_a-~-");
/** An integer with as many digits as a double represents exactly. */
const INTEGER = "-?(?:0|[1-9][0-9]{0,14})";

const SCALARS: ReadonlyMap<unknown, string> = new Map([
  ["null", "null"],
  ["boolean", "true|false"],
  ["integer", INTEGER],
  ["number", `${INTEGER}(?:\\.[0-9]{1,15})?`],
  ["string", STRING],
]);
const NO_TEXTS = ["null", "boolean", "integer", "number", "array"];
/** Keywords that do not restrict values other than objects. */
const SILENT = ["title", "description", "format", "airbyte_type", "properties", "additionalProperties"];

/** Rows with more fields are parsed by JSON.parse. */
const MAX_FIELDS = 100;
/** Fields with longer names are parsed, because an expression of long names cannot be compiled. */
const MAX_NAME = 200;
/** Rows with deeper lists of lists are parsed, because each level doubles the length of the expression. */
const MAX_LIST_DEPTH = 3;
/** Longer lines are parsed, because the expression needs memory for each character. */
const MAX_LINE = 64 * 1024;
/** After this number of consecutive lines without a match, all lines are parsed. */
const MAX_MISSES = 1000;

/**
 * One regular expression that recognizes usual rows in a third of the time of JSON.parse.
 * The program makes it from the schema and the order of names in earlier rows. Most rows of an export are similar.
 * A match proves that a line is a JSON object of declared fields with correct values. It has groups for the key and the cursor.
 * A line without a match may still be a row, so it is parsed.
 *
 * Lines and names are latin1-decoded UTF-8. No part of the expression matches a text in two ways, so that a mismatch is found soon.
 */
export class LinePattern {
  readonly #values: ReadonlyMap<string, string>;
  readonly #rules: MatchRules;
  readonly #suppression: SuppressionGroups | undefined;
  /** All names so far, in an order that fits the rows so far. */
  #names: readonly string[] = [];
  #expression: RegExp | undefined;
  /** The numbers of the groups; 0: no group. */
  #groups = { key: 1, cursor: 0, other: 0 };
  /** The number of lines since the last match. */
  #misses = 0;

  /** @param fields the schemas of the fields, by name */
  constructor(fields: ReadonlyMap<string, JsonSchema>, rules: MatchRules) {
    this.#values = valuePatterns(fields, rules);
    this.#rules = rules;
    this.#suppression = rules.suppression;
  }

  /** The row of a line; undefined: the line does not match. An empty cursor becomes null. */
  match(line: string): Row | undefined {
    if (this.#expression === undefined || line.length > MAX_LINE) return undefined;
    const found = this.#expression.exec(line);
    if (found === null) {
      this.#misses += 1;
      if (this.#misses >= MAX_MISSES) this.#expression = undefined;
      return undefined;
    }
    this.#misses = 0;
    const groups = this.#groups;
    const key = found[groups.key] ?? "";
    const cursor = (groups.cursor > 0 && found[groups.cursor]) || null;
    const other = groups.other > 0 ? found[groups.other] : undefined;
    const isSuppressed = this.#suppression?.hasUsual(key, other);
    return { raw: line as RawLine, key, cursor, names: this.#names, isSuppressed };
  }

  /** Adds the names of a row that obeys the schema, in their order. */
  learn(names: readonly string[]): void {
    if (this.#misses >= MAX_MISSES || names.length > MAX_FIELDS) return;
    if (!names.includes(this.#rules.key) || !names.every((name) => this.#values.has(name))) return;
    if (names.every((name) => this.#names.includes(name))) return;
    const all = inOneOrder(this.#names, names);
    if (all.length > MAX_FIELDS) return;
    this.#names = all;
    const captured = all.filter((name) => /\("|"\(/.test(this.#values.get(name) ?? ""));
    const groupOf = (name: string | null | undefined): number => captured.indexOf(name ?? "") + 1;
    this.#groups = {
      key: groupOf(this.#rules.key),
      cursor: groupOf(this.#rules.cursor),
      other: groupOf(this.#suppression?.fields[1]),
    };
    this.#expression = new RegExp(`^\\{${all.map((name) => this.#fieldOf(name)).join("")}\\}$`);
  }

  /** The expression of a field and the comma or the end after it. Only the key is required. */
  #fieldOf(name: string): string {
    const literal = name.replace(/[$()*+.?[\]^{|}]/g, "\\$&");
    const field = `"${literal}":(?:${this.#values.get(name)})(?:,(?=")|(?=\\}))`;
    return name === this.#rules.key ? field : `(?:${field})?`;
  }
}

/** Fields that decide whether a row is suppressed: the key, and for some streams a second field. */
export type SuppressionGroups = {
  readonly fields: readonly string[];
  /** @param json the value of a field, as latin1 */
  hasJson(field: string, json: string): boolean;
  /** Like `hasJson` for the values of both fields, if the values are strings of usual characters. */
  hasUsual(keyJson: string, otherJson: string | undefined): boolean;
};

/** `key`, `cursor`: the names of fields. `suppression`: undefined: no row is suppressed. */
export type MatchRules = {
  readonly key: string;
  readonly cursor: string | null;
  readonly suppression?: SuppressionGroups | undefined;
};

/** The patterns of the values of fields, without the fields that no pattern can describe. */
function valuePatterns(
  fields: ReadonlyMap<string, JsonSchema>,
  { key, cursor, suppression }: MatchRules,
): ReadonlyMap<string, string> {
  // The expression describes keys only as texts, and cursors not as numbers. Rows with other values are parsed.
  const captures = new Map<string | null | undefined, readonly [text: string, ...without: string[]]>([
    [suppression?.fields[1], [USUAL_ADDRESS, "array"]],
    [cursor, [CURSOR_GROUP, "integer", "number"]],
    [key, [suppression === undefined ? KEY_GROUP : USUAL_KEY, ...NO_TEXTS]],
  ]);
  const values = new Map<string, string>();
  for (const [name, schema] of fields) {
    // An object with success: false may be the service's error.
    if (name === "success" || name.length > MAX_NAME || !PLAIN_ONLY.test(name)) continue;
    const [text, ...without] = captures.get(name) ?? [STRING];
    const value = valuePattern(schema, text, without);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

/** The pattern of simple values, strings as `text`; undefined: the schema allows no simple value, or restricts more than types. */
function valuePattern(
  schema: unknown,
  text = STRING,
  without: readonly unknown[] = [],
  depth = 0,
): string | undefined {
  if (!isObject(schema)) return undefined;
  const { type, items, ...rest } = schema;
  if (!Object.keys(rest).every((keyword) => SILENT.includes(keyword))) return undefined;
  // In a field without a type, lists of lists are parsed. Many fields without a type would make the expression long.
  const anything = depth === 0 ? [...SCALARS.keys(), "array"] : SCALARS.keys();
  const kinds = new Set<unknown>(type === undefined ? anything : [type].flat());
  // With both types, a number would match in two ways, and two numbers in four ways.
  if (kinds.has("number")) kinds.delete("integer");
  const values = [...kinds].flatMap((kind) => {
    if (without.includes(kind)) return [];
    if (kind === "array") return listPattern(items, depth + 1) ?? [];
    return kind === "string" ? text : (SCALARS.get(kind) ?? []);
  });
  return values.length === 0 ? undefined : values.join("|");
}

function listPattern(items: unknown = {}, depth = 1): string | undefined {
  const item = depth > MAX_LIST_DEPTH ? undefined : valuePattern(items, STRING, [], depth);
  return item === undefined ? undefined : `\\[(?:(?:${item})(?:,(?:${item}))*)?\\]`;
}

/** The names of both lists. Each name of the second list is after the name before it in the second list. */
function inOneOrder(known: readonly string[], names: readonly string[]): string[] {
  const all = [...known];
  let place = 0;
  for (const name of names) {
    const found = all.indexOf(name);
    if (found < 0) all.splice(place, 0, name);
    place = (found < 0 ? place : found) + 1;
  }
  return all;
}
