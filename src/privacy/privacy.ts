import { createHash, createHmac, hash } from "node:crypto";
import { ConfigError } from "../base/errors.ts";
import { isObject, quoted } from "../base/json.ts";
import { fromLatin1, nearestName, toLatin1 } from "../base/text.ts";
import { type JsonSchema, loadSchema, propertiesOf } from "../catalog/schema.ts";
import { STREAMS, type StreamSettings, type StreamSpec, streamsOf } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import {
  type FieldRule,
  type FieldRules,
  isDrop,
  lineRewriter,
  mergeRules,
  type Rewrite,
  ruleFor,
} from "./field-rules.ts";
import { concerns, onlyRules } from "./only-fields.ts";

/**
 * What the config drops and hashes. It holds for all that leaves this program: rows, schemas, catalogs, and what is
 * said of rows.
 */
export class Privacy {
  readonly #origins: ReadonlyMap<string, string>;
  readonly #settings: readonly Setting[];
  readonly #only: readonly Setting[];
  readonly #hash: ((bytes: string) => string) | undefined;
  readonly #used = new Set<string>();
  /** Streams of which rows came. */
  readonly #read = new Set<string>();
  /** What `only_fields` names of one stream whose schema does not have it: its live rows may. */
  readonly #undeclaredOnly: readonly (Setting & { readonly stream: string })[];
  /** The names in the first rows of these streams. */
  readonly #live: ReadonlyMap<string, { rows: number; readonly names: Set<string> }>;

  /** Throws a ConfigError that names each setting that cannot be obeyed. */
  constructor(
    config: Pick<Config, "onlyFields" | "dropFields" | "hashFields" | "hashSalt"> &
      StreamSettings &
      Partial<Pick<Config, "origins">>,
  ) {
    const { onlyFields, dropFields, hashFields, hashSalt } = config;
    this.#origins = config.origins ?? new Map();
    this.#only = onlyFields.map((name) => toSetting(name, "only_fields"));
    this.#settings = [
      ...dropFields.map((name) => toSetting(name, "drop_fields")),
      ...hashFields.map((name) => toSetting(name, "hash_fields")),
    ];
    const problems = [...this.#only, ...this.#settings].flatMap((setting) =>
      problemsOf(setting, streamsOf(config)).map((text) => [setting, text] as const),
    );
    this.#refuse(problems);
    this.#undeclaredOnly = this.#only.flatMap((setting) => {
      const { stream, path } = setting;
      return stream === null || isIn(loadSchema(stream), namedIn(path)) ? [] : [{ ...setting, stream }];
    });
    this.#live = new Map(this.#undeclaredOnly.map(({ stream }) => [stream, { rows: 0, names: new Set() }]));
    this.#hash = hashSalt === null ? undefined : hasher(hashSalt);
  }

  /** The rules of a stream; null if all of its fields leave as they are. */
  rules(stream: string): FieldRules | null {
    const spec = STREAMS.find(({ name }) => name === stream);
    const settings = this.#settings.filter((setting) => (setting.stream ?? stream) === stream);
    const own = ruleTreeOf(settings.flatMap(readingsOf));
    return spec === undefined ? own : mergeRules(own, onlyRules(this.#only.flatMap(readingsOf), spec));
  }

  /** What stands for a value of a field where a row repeats it elsewhere; null if the field leaves as it is. */
  echoOf(stream: string, field: string): ((value: string) => string) | null {
    const rules = this.rules(stream);
    const rule = rules === null ? "keep" : ruleFor(field, rules);
    if (rule === "keep" || !("kind" in rule)) return null;
    return (value) => (isDrop(rule) ? "***" : (this.#hash?.(toLatin1(value)) ?? "***"));
  }

  /**
   * What becomes of the lines of a stream under these settings, and then under a catalog; null if they leave as they are.
   * @param selection what a catalog lets out; null: everything
   * @param withheld told of each field of a row that the catalog does not name
   */
  rewriter(
    stream: string,
    selection: FieldRules | null = null,
    withheld: (path: readonly string[]) => void = () => undefined,
  ): Rewrite | null {
    const rules = mergeRules(this.rules(stream), selection);
    if (rules === null) return null;
    const rewrite = lineRewriter(rules, {
      ...(this.#hash !== undefined && { hash: this.#hash }),
      acted: ({ kind, setting }, path) => {
        this.#used.add(setting);
        if (kind === "withhold") withheld(path);
      },
    });
    const live = this.#live.get(stream);
    return (line, names) => {
      this.#read.add(stream);
      if (live !== undefined && live.rows < MOST_LOOKED_AT) {
        live.rows += 1;
        fieldNamesOf(JSON.parse(fromLatin1(line)), live.names);
      }
      return rewrite(line, names);
    };
  }

  /** Names for all streams that no schema has. Only live records can show whether they are misspelt. */
  get undeclared(): readonly Setting[] {
    return this.#settings.filter(({ name, stream }) => stream === null && !DECLARED.has(name));
  }

  /** Throws a ConfigError that says of each name which neither a schema nor a live record has what it may mean. */
  refuseUnknown(live: ReadonlySet<string>): void {
    const unknown = this.undeclared.filter(({ name }) => !live.has(name));
    this.#refuse(unknown.map((setting) => [setting, unknownText(setting, [...DECLARED, ...live])]));
  }

  #refuse(problems: readonly (readonly [setting: Setting, text: string])[]): void {
    if (problems.length === 0) return;
    const [origin = "the config"] = problems.flatMap(([{ list }]) => this.#origins.get(list) ?? []);
    throw new ConfigError(`Cannot use ${origin}: ${problems.map(([, text]) => text).join("; ")}`);
  }

  /** A warning for each setting that no row had. */
  unused(): readonly string[] {
    const unnamed = this.#undeclaredOnly.flatMap(({ name, stream, path }) => {
      const live = this.#live.get(stream);
      const field = namedIn(path).join(".");
      if (live === undefined || live.rows === 0 || field === "" || live.names.has(field)) return [];
      const which = live.rows < MOST_LOOKED_AT ? "the rows" : `the first ${live.rows} rows`;
      const text = `only_fields "${name}" names a field that none of ${which} of "${stream}" had`;
      return [text + meantText(field, live.names)];
    });
    const others = this.#settings.flatMap(({ name, list, stream, path }) => {
      const read = stream === null ? this.#read.size > 0 : this.#read.has(stream);
      return !read || this.#used.has(name) || DECLARED.has(path.join("."))
        ? []
        : [`No row had a field "${name}", which ${list} names: check its spelling`];
    });
    return [...unnamed, ...others];
  }
}

/** What one entry of such a list asks. `stream`: null for all; `path`: names from there on. */
type Setting = {
  readonly name: string;
  readonly list: "only_fields" | "drop_fields" | "hash_fields";
  readonly stream: string | null;
  readonly path: readonly string[];
};

function toSetting(name: string, list: Setting["list"]): Setting {
  const [first = "", ...rest] = name.split(".");
  const isStream = rest.length > 0 && STREAMS.some((spec) => spec.name === first);
  return { name, list, stream: isStream ? first : null, path: isStream ? rest : [first, ...rest] };
}

/** All that a setting may mean: a dot may be a part of a field's name as well. */
function readingsOf(setting: Setting): readonly Setting[] {
  const [first = "", second, ...rest] = setting.path;
  if (second === undefined || setting.path.length > MOST_PARTS) return [setting];
  const inner = readingsOf({ ...setting, path: [second, ...rest] });
  const joined = readingsOf({ ...setting, path: [`${first}.${second}`, ...rest] });
  return [...inner.map((one) => ({ ...one, path: [first, ...one.path] })), ...joined];
}

/** Rows of a stream whose names are held against `only_fields`. */
const MOST_LOOKED_AT = 1_000;

/** What a path names, with or without all that is in it. */
const namedIn = (path: readonly string[]): readonly string[] =>
  path.at(-1) === "*" ? path.slice(0, -1) : path;

/**
 * Why a setting cannot be obeyed. `only_fields` would withhold more than was meant if it named what no schema has. What is to be
 * dropped or hashed in all streams is held against those that the config has, and later against live rows.
 */
function problemsOf({ name, list, stream, path }: Setting, configured: readonly StreamSpec[]): string[] {
  const isOnly = list === "only_fields";
  const isLater = !isOnly && stream === null;
  if (path.includes("")) return [`${list} ${JSON.stringify(name)} is no field name`];
  const meant = isLater ? configured : STREAMS.filter((spec) => concerns({ stream }, spec));
  const needed = isOnly ? [] : meant.flatMap((spec) => neededText(list, path, spec) ?? []);
  if (needed.length > 0) {
    const advice = stream === null ? `. Name the streams that you mean: "<stream>.${path[0]}"` : "";
    return needed.map((text) => `${list} "${name}" ${text}${advice}`);
  }
  const inner = isOnly ? namedIn(path) : path;
  const has = (spec: StreamSpec): boolean =>
    (stream !== null && spec.sampled) || isIn(loadSchema(spec.name), inner);
  if (isLater || inner.length === 0 || meant.some(has)) return [];
  const whose = stream === null ? "no stream has" : `"${stream}" does not have`;
  const near = meantText(
    inner.join("."),
    new Set(meant.flatMap((spec) => [...namesIn(loadSchema(spec.name))])),
  );
  const advice = stream === null ? '. Name a stream whose fields are not declared: "companies.<field>"' : "";
  return [`${list} ${JSON.stringify(name)} names a field that ${whose}${near || advice}`];
}

/** Rows are told apart by their key and read by their cursor. */
function neededText(list: Setting["list"], path: Setting["path"], spec: StreamSpec): string | undefined {
  const [field = "", ...inner] = path;
  const verb = list === "drop_fields" ? "dropped" : "hashed";
  const cannot = (what: string, why: string): string =>
    `names the ${what} of "${spec.name}", which cannot be ${verb}: ${why}`;
  if (inner.length > 0) return undefined;
  if (field === spec.cursorField) return cannot("cursor", "the next run goes on from it");
  const { type } = propertiesOf(loadSchema(spec.name))[field] ?? {};
  const isText = [type].flat().every((kind) => kind === "string" || kind === "null");
  const mayBeHashed = list === "hash_fields" && isText;
  if (!spec.primaryKey.includes(field) || mayBeHashed) return undefined;
  return cannot("primary key", "tables are merged by it");
}

const unknownText = ({ list, name }: Setting, names: Iterable<string>): string =>
  `${list} "${name}" names a field that no stream of this account has${meantText(name, names)}`;

function meantText(name: string, names: Iterable<string>): string {
  const nearest = nearestName(name, names);
  return nearest === undefined ? "" : `. Did you mean ${quoted(nearest)}?`;
}

/** Whether a schema has a field, or does not say what is in the one that should have it. */
function isIn(schema: JsonSchema, path: readonly string[]): boolean {
  const [name = "", ...rest] = path;
  if (schema.properties === undefined) return schema.items === undefined || isIn(schema.items, path);
  const property = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
  return property !== undefined && (rest.length === 0 || isIn(property, rest));
}

/** Names of one field may have as many parts: those of what is nested deeper are not looked at. */
const MOST_PARTS = 8;

/** The names of a record's fields at every depth: `city`, `headquarters.city`. A schema is given as its properties. */
export function fieldNamesOf(value: unknown, names: Set<string>, path: readonly string[] = []): Set<string> {
  if (Array.isArray(value)) for (const element of value) fieldNamesOf(element, names, path);
  if (!isObject(value)) return names;
  for (const [name, inner] of Object.entries(value)) {
    const here = [...path, name].slice(-MOST_PARTS);
    for (let start = 0; start < here.length; start += 1) names.add(here.slice(start).join("."));
    fieldNamesOf(inner, names, here);
  }
  return names;
}

const namesIn = (schema: JsonSchema): ReadonlySet<string> => fieldNamesOf(exampleOf(schema), new Set());

/** A record that has every field of a schema. */
function exampleOf({ items, properties }: JsonSchema): unknown {
  if (properties === undefined) return items === undefined ? null : exampleOf(items);
  return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, exampleOf(inner)]));
}

/** Names of fields in schemas that are fixed: that no row has one is no sign of a misspelling. */
const DECLARED: ReadonlySet<string> = new Set(STREAMS.flatMap(({ name }) => [...namesIn(loadSchema(name))]));

/** Rules for the rows of one stream. A setting without a stream holds at every depth, so that the rules are a graph. */
function ruleTreeOf(settings: readonly Setting[]): FieldRules | null {
  const everywhere = settings.filter(({ stream }) => stream === null);
  const nodes = new Map<string, FieldRules>();
  /** @param here settings whose path begins here */
  const node = (here: readonly Setting[]): FieldRules => {
    const id = JSON.stringify(here);
    const known = nodes.get(id);
    if (known !== undefined) return known;
    const fields = new Map<string, FieldRule>();
    const made: { others: FieldRule; fields: typeof fields } = { others: "keep", fields };
    nodes.set(id, made);
    if (everywhere.length > 0) made.others = node([]);
    const all = [...here, ...everywhere];
    for (const name of new Set(all.map(({ path }) => path[0] ?? "")))
      fields.set(name, ruleOf(all.filter(({ path }) => path[0] === name)));
    return made;
  };
  const ruleOf = (named: readonly Setting[]): FieldRule => {
    const met = named.filter(({ path }) => path.length === 1);
    const strongest = met.find(({ list }) => list === "drop_fields") ?? met[0];
    if (strongest === undefined) return node(named.map((one) => ({ ...one, path: one.path.slice(1) })));
    return { kind: strongest.list === "drop_fields" ? "drop" : "hash", setting: strongest.name };
  };
  return settings.length === 0 ? null : node(settings.filter(({ stream }) => stream !== null));
}

/** Bytes that SHA-256 takes at once. */
const BLOCK = 64;
/** Longer values are digested by Node's own HMAC. */
const LONGEST_POOLED = 4096;

/**
 * The HMAC-SHA-256 of bytes, one a character, in hex. Of short ones it is made of two hashes (RFC 2104) in memory that is
 * there already, which takes half of the time: an HMAC object is made and thrown away for each value.
 */
function hasher(salt: string): (bytes: string) => string {
  const key = Buffer.from(salt, "utf8");
  const padded = Buffer.concat([key.length > BLOCK ? createHash("sha256").update(key).digest() : key], BLOCK);
  const inner = Buffer.concat([padded.map((byte) => byte ^ 0x36)], BLOCK + LONGEST_POOLED);
  const outer = Buffer.concat([padded.map((byte) => byte ^ 0x5c)], BLOCK + 32);
  /** The beginnings of `inner`, by the length of the value: making one costs a tenth of the digest. */
  const beginnings: Buffer[] = [];
  return (bytes) => {
    const { length } = bytes;
    if (length > LONGEST_POOLED) return createHmac("sha256", key).update(bytes, "latin1").digest("hex");
    inner.write(bytes, BLOCK, "latin1");
    const message = beginnings[length] ?? inner.subarray(0, BLOCK + length);
    beginnings[length] = message;
    outer.write(hash("sha256", message, "binary"), BLOCK, "latin1");
    return hash("sha256", outer, "hex");
  };
}
