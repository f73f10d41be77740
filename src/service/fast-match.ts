import { isObject } from "../base/json.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import type { RawLine } from "../sync/event.ts";
import type { Row } from "../sync/service.ts";

/** A character of a JSON string, in latin1-decoded UTF-8, that means itself. */
const PLAIN_CHARACTER = String.raw`[^"\\\x00-\x1f]`;
const PLAIN_ONLY = new RegExp(`^${PLAIN_CHARACTER}*$`);
const STRING_ESCAPE = String.raw`\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})`;
const STRING = `"${PLAIN_CHARACTER}*(?:${STRING_ESCAPE}${PLAIN_CHARACTER}*)*"`;
/** Captures by number: names would make each match an object that costs more than the capture. */
const KEY_GROUP = `("${PLAIN_CHARACTER}+")`;
const CURSOR_GROUP = `"(${PLAIN_CHARACTER}*)"`;
/** Text of ASCII that only case can spell differently, with no dot at the end. */
const usualGroup = (characters: string): string => `("[.${characters}]*[${characters}]")`;
/** Without the characters that separate addresses in a list. */
const USUAL_ADDRESS = usualGroup("!#-%*+0-9=@A-Z^_a-z~-");
const USUAL_KEY = usualGroup("!#-&(-+/0-9:=?-\\[\\]-_a-~-");
/** As many digits as a double can have exactly. */
const INTEGER = "-?(?:0|[1-9][0-9]{0,14})";

const SCALARS: ReadonlyMap<string, string> = new Map([
  ["null", "null"],
  ["boolean", "true|false"],
  ["integer", INTEGER],
  ["number", `${INTEGER}(?:\\.[0-9]{1,15})?`],
  ["string", STRING],
]);
const NO_TEXTS = ["null", "boolean", "integer", "number", "array"];
/** Keywords that say nothing of a value that is no object. */
const SILENT: ReadonlySet<string> = new Set([
  "title",
  "description",
  "format",
  "airbyte_type",
  "properties",
  "additionalProperties",
]);

/** Rows of more fields are parsed. */
const MOST_FIELDS = 100;
/** A field with a longer name is left to the parser: an expression of long names cannot be compiled. */
const LONGEST_NAME = 200;
/** Deeper lists of lists are left to the parser: each level doubles the expression. */
const DEEPEST_LIST = 3;
/** Longer lines are parsed: the expression keeps a place to turn back to for each character. */
const LONGEST = 64 * 1024;
/** After this number of lines in a row that did not match none is tried any more. */
const PATIENCE = 1000;

/**
 * The rows of an export name the same fields in the same order, with few exceptions. One regular expression, made of the
 * schema and of the order in which names were seen, proves that a line is such a row: a JSON object of declared fields
 * with values that obey the schema. It finds the key and the cursor on the way, all in a third of the time that JSON.parse
 * takes. It says nothing about a line that does not match: spaced or nested ones are good JSON too, and are parsed.
 *
 * Lines and names are latin1-decoded UTF-8. No part of the expression matches a text in two ways, so that a line that
 * does not match is left soon.
 */
export class LinePattern {
  readonly #values: ReadonlyMap<string, string>;
  readonly #key: string;
  readonly #cursor: string | null;
  readonly #suppression: SuppressionGroups | undefined;
  /** Every name that was seen, in an order that suits the rows so far. */
  #names: readonly string[] = [];
  #expression: RegExp | undefined;
  /** The numbers of the captures; 0: there is none. */
  #groups = { key: 1, cursor: 0, other: 0 };
  /** Lines that did not match since the last one that did. */
  #misses = 0;

  /**
   * @param fields the schemas of the fields, by name
   * @param suppression undefined: no row is suppressed
   */
  constructor(
    fields: ReadonlyMap<string, JsonSchema>,
    key: string,
    cursor: string | null,
    suppression?: SuppressionGroups,
  ) {
    this.#values = valuePatterns(fields, key, cursor, suppression);
    this.#key = key;
    this.#cursor = cursor;
    this.#suppression = suppression;
  }

  /** The row of a line that matches; an empty cursor is none. */
  match(line: string): Row | undefined {
    if (this.#expression === undefined || line.length > LONGEST) return undefined;
    const found = this.#expression.exec(line);
    if (found === null) {
      this.#misses += 1;
      if (this.#misses >= PATIENCE) this.#expression = undefined;
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

  /** Takes in the names of a row that obeys the schema, in their order. */
  learn(names: readonly string[]): void {
    if (this.#misses >= PATIENCE || names.length > MOST_FIELDS) return;
    if (!names.includes(this.#key) || !names.every((name) => this.#values.has(name))) return;
    if (names.every((name) => this.#names.includes(name))) return;
    const all = inOneOrder(this.#names, names);
    if (all.length > MOST_FIELDS) return;
    this.#names = all;
    const captured = all.filter((name) => /\("|"\(/.test(this.#values.get(name) ?? ""));
    const groupOf = (name: string | null | undefined): number => captured.indexOf(name ?? "") + 1;
    this.#groups = {
      key: groupOf(this.#key),
      cursor: groupOf(this.#cursor),
      other: groupOf(this.#suppression?.fields[1]),
    };
    this.#expression = new RegExp(`^\\{${all.map((name) => this.#fieldOf(name)).join("")}\\}$`);
  }

  /** A field with what follows it: a comma before another name, or the end. Only the key must be there. */
  #fieldOf(name: string): string {
    const literal = name.replace(/[$()*+.?[\]^{|}]/g, "\\$&");
    const field = `"${literal}":(?:${this.#values.get(name)})(?:,(?=")|(?=\\}))`;
    return name === this.#key ? field : `(?:${field})?`;
  }
}

/** Fields that decide whether a row is suppressed: the key, and another one if it helps. */
export type SuppressionGroups = {
  readonly fields: readonly string[];
  /** @param json the value of a field, as latin1 */
  hasJson(field: string, json: string): boolean;
  /** As `hasJson`, for the values of both fields if they are strings of usual characters. */
  hasUsual(keyJson: string, otherJson: string | undefined): boolean;
};

/** The pattern of the values of each field, where an expression can say it. */
function valuePatterns(
  fields: ReadonlyMap<string, JsonSchema>,
  key: string,
  cursor: string | null,
  suppression: SuppressionGroups | undefined,
): ReadonlyMap<string, string> {
  // A key that is no text, and a cursor that is a number, are left to the parser.
  const captures = new Map<string | null | undefined, readonly [text: string, ...without: string[]]>([
    [suppression?.fields[1], [USUAL_ADDRESS, "array"]],
    [cursor, [CURSOR_GROUP, "integer", "number"]],
    [key, [suppression === undefined ? KEY_GROUP : USUAL_KEY, ...NO_TEXTS]],
  ]);
  const values = new Map<string, string>();
  for (const [name, schema] of fields) {
    // An object that says success: false may be the service's error.
    if (name === "success" || name.length > LONGEST_NAME || !PLAIN_ONLY.test(name)) continue;
    const [text, ...without] = captures.get(name) ?? [STRING];
    const value = valuePattern(schema, text, without);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

/** The simple values that a schema allows, strings as `text`; undefined if there are none, or if it asks for more than a type. */
function valuePattern(
  schema: unknown,
  text = STRING,
  without: readonly unknown[] = [],
  depth = 0,
): string | undefined {
  if (!isObject(schema)) return undefined;
  const { type, items, ...rest } = schema;
  if (!Object.keys(rest).every((keyword) => SILENT.has(keyword))) return undefined;
  // In a field that may contain anything a list of lists is left to the parser: such fields are many.
  const anything = depth === 0 ? [...SCALARS.keys(), "array"] : SCALARS.keys();
  const kinds = new Set<unknown>(type === undefined ? anything : [type].flat());
  // A text that matched in two ways would be tried in both, and with another such field in four.
  if (kinds.has("number")) kinds.delete("integer");
  const values = [...kinds].flatMap((kind) => {
    if (without.includes(kind)) return [];
    if (kind === "array") return listPattern(items, depth + 1) ?? [];
    return kind === "string" ? text : (SCALARS.get(String(kind)) ?? []);
  });
  return values.length === 0 ? undefined : values.join("|");
}

function listPattern(items: unknown = {}, depth = 1): string | undefined {
  const item = depth > DEEPEST_LIST ? undefined : valuePattern(items, STRING, [], depth);
  return item === undefined ? undefined : `\\[(?:(?:${item})(?:,(?:${item}))*)?\\]`;
}

/** The names of both, each after the one that it follows in `names`. */
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
