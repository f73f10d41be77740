import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { Privacy } from "../../../src/privacy/privacy.ts";
import { asRead, rawLine } from "../../support/events.ts";
import { runs } from "../../support/runs.ts";

const SECRET = "jö-secret";
const NAMES = ["email", "phone", "note", "hq", "x", 'é"\\😀'] as const;
const JOBS = { companyLookup: null, emailVerification: null, emailCheck: null };

type Value = string | number | null | readonly Value[] | { readonly [name: string]: Value };

/** Values in which every field that a setting names holds the secret, at any depth. */
const { value } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<Value>(null, 7, -1.5e300, "", "open", 'a"\\\n', "é😀"),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("note", "hq", "x", 'é"\\😀'), tie("value"), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
    fc.constant({ email: SECRET, phone: [SECRET, null] }),
  ),
}));

/** JSON of a value in one of its spellings: characters escaped or not, spaces between tokens, names that come twice. */
function spelt(of: Value, next: () => number, mayRepeat = true): string {
  const space = (): string => [" ", "\t", "", "", ""][next() % 5] ?? "";
  const text = (plain: string): string =>
    `"${[...plain].map((one) => (next() % 4 === 0 ? escaped(one) : JSON.stringify(one).slice(1, -1))).join("")}"`;
  const list = (parts: readonly string[]): string => parts.join(`${space()},${space()}`);
  const write = (one: Value): string => {
    if (typeof one === "string") return text(one);
    if (typeof one !== "object" || one === null) return String(one);
    if (Array.isArray(one)) return `[${space()}${list(one.map(write))}${space()}]`;
    const fields = Object.entries(one).map(
      ([name, inner]) => `${text(name)}${space()}:${space()}${write(inner)}`,
    );
    return `{${space()}${list(fields.flatMap((field) => (mayRepeat && next() % 8 === 0 ? [field, field] : [field])))}${space()}}`;
  };
  return write(of);
}

const escaped = (one: string): string =>
  one.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

const unescaped = (text: string): string =>
  text.replace(/\\u([0-9a-f]{4})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));

it.each(["people", "companies", "sources"])(
  "no spelling of a withheld value leaves a row of %s",
  (stream) => {
    const fields = fc.dictionary(fc.constantFrom(...NAMES), value, { noNullPrototype: true });
    const lists = fc.subarray(["email", "phone"] as const);
    fc.assert(
      fc.property(fields, lists, fc.array(fc.nat(), { minLength: 1 }), (row, hashFields, dice) => {
        let place = 0;
        const next = (): number => (dice[place++ % dice.length] ?? 0) + place;
        const dropFields = ["email", "phone"].filter((name) => !hashFields.some((one) => one === name));
        const given = new Privacy({ ...JOBS, onlyFields: [], dropFields, hashFields, hashSalt: "a salt" });
        const line = rawLine(spelt({ ...row, email: SECRET, phone: SECRET }, next));
        const left = asRead(given.rewriter(stream)?.(line) ?? line);
        expect(() => JSON.parse(left)).not.toThrow();
        expect(unescaped(left)).not.toContain(SECRET);
        expect(new Set(left.match(/\b[0-9a-f]{64}\b/g)).size).toBe(hashFields.length === 0 ? 0 : 1);
      }),
    );
  },
);

const FIELDS = ["email", "hq", "hq.email", "hq.x", "x.hq.email", "x.note", "hq.hq", "note", 'é"\\😀'];
const SETTINGS = fc.subarray([...FIELDS, ...FIELDS.map((name) => `companies.${name}`)], { maxLength: 4 });
const ONLY = fc.subarray([
  ...[...FIELDS, "companies.x", "companies.hq.*", "x.*", "hq.x.email", "people.email", "companies.*"],
]);

const KEYS = { domain: "d", discoveredAt: "2026-01-02" };

type Row = { readonly [name: string]: Value };
type Model = (inner: Value, path: readonly string[]) => Value | undefined;

const isRow = (one: Value): one is Row => typeof one === "object" && one !== null && !Array.isArray(one);

/** Applies `change` to each field at a path; undefined takes it away. Lists are stepped into. */
function changed(of: Row, change: Model, around: readonly string[] = []): Row {
  const entries = Object.entries(of).flatMap(([name, inner]) => {
    const left = change(inner, [...around, name]);
    return left === undefined ? [] : [[name, left]];
  });
  return Object.fromEntries(entries);
}

const isNamed = (names: readonly string[], path: readonly string[]): boolean =>
  names.some((name) => {
    const text = path.join(".");
    const isOf = name.startsWith("companies.");
    return isOf ? text === name.slice(10) : text === name || text.endsWith(`.${name}`);
  });

/** What `drop_fields` and `hash_fields` say of a field by the words of the docs. */
const dropped = (drop: readonly string[], hash: readonly string[]): Model =>
  function model(inner, path): Value | undefined {
    if (isNamed(drop, path)) return undefined;
    const step = (one: Value): Value => {
      if (Array.isArray(one)) return one.map(step);
      if (isNamed(hash, path)) return one === null ? null : digestOf(one);
      return isRow(one) ? changed(one, model, path) : one;
    };
    return step(inner);
  };

/** What `only_fields` says. A digest has no fields inside of it. */
const narrowed = (only: readonly string[], hash: readonly string[]): Model => {
  const paths = only.flatMap((name) => (name.startsWith("people.") ? [] : [name.replace("companies.", "")]));
  return function model(inner, path): Value | undefined {
    const text = path.join(".");
    const isWhole = paths.some((one) => one.endsWith("*") && `${text}.`.startsWith(one.slice(0, -1)));
    if (paths.length === 0 || text === "domain" || text === "discoveredAt" || isWhole) return inner;
    const isLeaf = paths.includes(text);
    const hasInner = paths.some((one) => one.startsWith(`${text}.`)) && !isNamed(hash, path);
    if (!isLeaf && !hasInner) return undefined;
    const step = (one: Value): Value => {
      if (Array.isArray(one)) return one.map(step);
      return isRow(one) ? changed(one, model, path) : isLeaf ? one : null;
    };
    return step(inner);
  };
};

const digestOf = (one: Value): string =>
  createHmac("sha256", "a salt")
    .update(typeof one === "string" ? one : JSON.stringify(one))
    .digest("hex");

it("a row leaves as the settings say, in any spelling and with any other fields", () => {
  const fields = fc.dictionary(fc.constantFrom(...NAMES), value, { noNullPrototype: true });
  fc.assert(
    fc.property(
      fields,
      SETTINGS,
      SETTINGS,
      ONLY,
      fc.array(fc.nat(), { minLength: 1 }),
      (row, drop, hash, only, dice) => {
        let place = 0;
        const next = (): number => (dice[place++ % dice.length] ?? 0) + place;
        const given = new Privacy({
          ...JOBS,
          onlyFields: only,
          dropFields: drop,
          hashFields: hash,
          hashSalt: "a salt",
        });
        const line = rawLine(spelt({ ...KEYS, ...row }, next, hash.length === 0));
        const left = JSON.parse(asRead(given.rewriter("companies")?.(line) ?? line));
        const expected = changed(changed({ ...KEYS, ...row }, dropped(drop, hash)), narrowed(only, hash));
        expect(left).toEqual(expected);
      },
    ),
    { numRuns: runs(500, 5000) },
  );
});
