import { QUOTE } from "../json.ts";
import { fromLatin1, toLatin1 } from "../latin1.ts";
import {
  CLOSE_LIST,
  CLOSE_OBJECT,
  compactJson,
  malformedJson,
  nameOf,
  OPEN_LIST,
  OPEN_OBJECT,
  skipSpace,
  skipString,
  skipValue,
  toNext,
} from "./json-text.ts";
import { type JsonSchema, propertiesOf } from "./schema.ts";

/** What happens to the value of a field. Lists are stepped into: a rule holds for each of their elements. */
export type FieldRule = "keep" | FieldAction | FieldRules;

/** What happens to the fields of an object. `others` is for those that `fields` does not name. */
export type FieldRules = { readonly others: FieldRule; readonly fields: ReadonlyMap<string, FieldRule> };

/**
 * `withhold`: dropped because the catalog does not name the field. `setting`: what asked for it, for messages. `inside`:
 * rules whose actions are told before the value goes.
 */
export type FieldAction = {
  readonly kind: "drop" | "hash" | "withhold";
  readonly setting: string;
  readonly inside?: FieldRules;
};

export type RewriteOptions = {
  /** Digests a value. Takes UTF-8 bytes, one a character; returns ASCII without quotes. */
  readonly hash?: (bytes: string) => string;
  /** Told of each action on a row. `path`: the names of the field and of the objects around it. */
  readonly acted?: (action: FieldAction, path: readonly string[]) => void;
};

/**
 * One set of rules that does what `privacy` and then `selection` do, and tells of every action of `privacy`.
 * @param selection rules that end at some depth; those of `privacy` need not
 */
export function mergeRules(privacy: FieldRules | null, selection: FieldRules | null): FieldRules | null {
  if (privacy === null || selection === null) return privacy ?? selection;
  const names = new Set([...privacy.fields.keys(), ...selection.fields.keys()]);
  const fields = [...names].map(
    (name) => [name, stricterOf(ruleFor(name, privacy), ruleFor(name, selection))] as const,
  );
  return { others: stricterOf(privacy.others, selection.others), fields: new Map(fields) };
}

function stricterOf(privacy: FieldRule, selection: FieldRule): FieldRule {
  if (privacy === "keep" || selection === "keep") return privacy === "keep" ? selection : privacy;
  if (!("kind" in privacy)) {
    return "kind" in selection
      ? { ...selection, inside: privacy }
      : (mergeRules(privacy, selection) ?? "keep");
  }
  const goes = privacy.kind === "hash" && "kind" in selection;
  return goes ? { ...privacy, kind: selection.kind } : privacy;
}

export const ruleFor = (name: string, { fields, others }: FieldRules): FieldRule =>
  fields.get(name) ?? others;

export const isDrop = (rule: FieldRule): boolean => rule !== "keep" && "kind" in rule && rule.kind !== "hash";

/**
 * The schema of rows under rules. `leaving`: of what the rules leave. `arriving`: what a check of rows as they come may
 * expect, so that nothing is said of values that do not leave: it takes any value in the fields that are not kept, and
 * knows the names of the dropped.
 */
export function schemaUnder(
  rules: FieldRules | null,
  schema: JsonSchema,
  view: "arriving" | "leaving",
): JsonSchema {
  if (rules === null) return schema;
  const seen = seenSchema(schema, rules, view);
  if (view === "leaving") return seen;
  const dropped = [...rules.fields].flatMap(([name, rule]) => (isDrop(rule) ? [[name, {}] as const] : []));
  return { ...seen, properties: { ...seen.properties, ...Object.fromEntries(dropped) } };
}

function seenSchema(schema: JsonSchema, rule: FieldRule, view: "arriving" | "leaving"): JsonSchema {
  if (rule === "keep") return schema;
  if ("kind" in rule) return view === "arriving" ? {} : hashedSchema(schema);
  const { properties, items, required } = schema;
  const fields = Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const inner = ruleFor(name, rule);
    return view === "leaving" && isDrop(inner) ? [] : [[name, seenSchema(property, inner, view)] as const];
  });
  const kept = Object.fromEntries(fields);
  return {
    ...schema,
    ...(Array.isArray(required) && { required: required.filter((name) => Object.hasOwn(kept, name)) }),
    ...(properties !== undefined && { properties: kept }),
    ...(items !== undefined && { items: seenSchema(items, rule, view) }),
  };
}

/** A list stays a list, of digests. */
function hashedSchema({ title, description, type, items }: JsonSchema): JsonSchema {
  const words = { ...(title !== undefined && { title }), ...(description !== undefined && { description }) };
  if (![type].flat().includes("array")) return { ...words, type: ["null", "string"] };
  return { ...words, type: ["null", "array"], ...(items !== undefined && { items: hashedSchema(items) }) };
}

/** Takes a line of a row, and returns what of it leaves. */
export type Rewrite = (line: string) => string;

/**
 * Returns a function that rebuilds the line of a row by rules. It reads the line token by token: names are decoded
 * before they are compared, so that `"\u0065mail"` is `email`, and a name that stands twice is treated twice. Values
 * that stay are written as they were spelt, because JSON.parse would round integers above 2^53. A line from which
 * nothing is taken is returned as it is. Lines are UTF-8 with one byte a character (latin1).
 * The function throws for a line that is no JSON object.
 */
export function lineRewriter(rules: FieldRules, options: RewriteOptions = {}): Rewrite {
  const rewriter = new LineRewriter(options);
  return (line) => rewriter.rewrite(line, rules);
}

/** Stands for a value that stays as it is: no JSON is empty. */
const SAME = "";
const NO_RUN = -1;

const withMember = (members: string, member: string): string =>
  members === "" ? member : `${members},${member}`;

class LineRewriter {
  readonly #hash: (bytes: string) => string;
  readonly #acted: ((action: FieldAction, path: readonly string[]) => void) | undefined;
  readonly #path: string[] = [];
  #text = "";
  #at = 0;

  constructor({ hash = refuse, acted }: RewriteOptions) {
    this.#hash = hash;
    this.#acted = acted;
  }

  rewrite(line: string, rules: FieldRules): string {
    this.#text = line;
    this.#at = skipSpace(line, 0);
    this.#path.length = 0;
    if (line.charCodeAt(this.#at) !== OPEN_OBJECT) throw malformedJson();
    const rebuilt = this.#object(rules);
    if (skipSpace(line, this.#at) < line.length) throw malformedJson();
    return rebuilt === SAME ? line : rebuilt;
  }

  /** The text of an object; members that stay are copied together, because most of them do. */
  #object(rules: FieldRules): string {
    const text = this.#text;
    let built = "";
    let changed = false;
    let run = NO_RUN;
    let runEnd = NO_RUN;
    this.#at = skipSpace(text, this.#at + 1);
    while (text.charCodeAt(this.#at) !== CLOSE_OBJECT) {
      const start = this.#at;
      const end = skipString(text, start);
      const name = nameOf(text, start, end);
      this.#at = skipSpace(text, skipSpace(text, end) + 1);
      const value = this.#member(name, ruleFor(name, rules));
      if (value === SAME) {
        if (run === NO_RUN) run = start;
        runEnd = this.#at;
      } else {
        changed = true;
        if (run !== NO_RUN) built = withMember(built, text.slice(run, runEnd));
        run = NO_RUN;
        if (value !== undefined) built = withMember(built, `${text.slice(start, end)}:${value}`);
      }
      this.#toNext(CLOSE_OBJECT);
    }
    this.#at += 1;
    if (!changed) return SAME;
    return `{${run === NO_RUN ? built : withMember(built, text.slice(run, runEnd))}}`;
  }

  /** The text of a member's value; undefined if the member goes. */
  #member(name: string, rule: FieldRule): string | undefined {
    if (rule === "keep") return this.#same();
    this.#path.push(name);
    const value = "kind" in rule ? this.#act(rule) : this.#inner(rule);
    this.#path.pop();
    return value;
  }

  #act(action: FieldAction): string | undefined {
    this.#acted?.(action, this.#path);
    if (action.kind === "hash") return this.#hashed();
    if (action.inside === undefined) this.#same();
    else this.#inner(action.inside);
    return undefined;
  }

  /** Applies the rules of an object to a value, which may be a list of them or nothing of the kind. */
  #inner(rules: FieldRules): string {
    const first = this.#text.charCodeAt(this.#at);
    if (first === OPEN_OBJECT) return this.#object(rules);
    return first === OPEN_LIST ? this.#list(() => this.#inner(rules)) : this.#same();
  }

  #list(element: () => string): string {
    const text = this.#text;
    const elements: string[] = [];
    let changed = false;
    this.#at = skipSpace(text, this.#at + 1);
    while (text.charCodeAt(this.#at) !== CLOSE_LIST) {
      const start = this.#at;
      const value = element();
      changed ||= value !== SAME;
      elements.push(value === SAME ? text.slice(start, this.#at) : value);
      this.#toNext(CLOSE_LIST);
    }
    this.#at += 1;
    return changed ? `[${elements.join(",")}]` : SAME;
  }

  #same(): string {
    this.#at = skipValue(this.#text, this.#at);
    return SAME;
  }

  /** Null stays null; lists are hashed element by element; of all else nothing stays. */
  #hashed(): string {
    const first = this.#text.charCodeAt(this.#at);
    if (first === OPEN_LIST) return this.#list(() => this.#hashed());
    const start = this.#at;
    this.#at = skipValue(this.#text, start);
    const kept = this.#text.slice(start, this.#at);
    if (kept === "null") return SAME;
    return `"${this.#hash(first === QUOTE ? stringBytes(kept) : first === OPEN_OBJECT ? compactJson(kept) : kept)}"`;
  }

  #toNext(close: number): void {
    this.#at = toNext(this.#text, this.#at, close);
  }
}

/** What a string says, in UTF-8 bytes, whichever way it is spelt. */
function stringBytes(token: string): string {
  return token.includes("\\") ? toLatin1(JSON.parse(fromLatin1(token))) : token.slice(1, -1);
}

const refuse = (): never => {
  throw new Error("Cannot hash a field: there is no salt");
};
