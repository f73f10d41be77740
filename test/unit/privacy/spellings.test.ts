import fc from "fast-check";
import { expect, it } from "vitest";
import { Privacy } from "../../../src/privacy/privacy.ts";
import { asRead, rawLine } from "../../support/events.ts";

const SECRET = "jö-secret";
const NAMES = ["email", "phone", "note", "hq", "x"] as const;
const JOBS = { companyLookup: null, emailVerification: null, emailCheck: null };

type Value = string | number | null | readonly Value[] | { readonly [name: string]: Value };

/** Values in which every field that a setting names holds the secret, at any depth. */
const { value } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<Value>(null, 7, "", "open", 'a"\\\n'),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("note", "hq", "x"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
    fc.constant({ email: SECRET, phone: [SECRET, null] }),
  ),
}));

/** JSON of a value in one of its spellings: characters escaped or not, spaces between tokens, names that come twice. */
function spelt(of: Value, next: () => number): string {
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
    return `{${space()}${list(fields.flatMap((field) => (next() % 8 === 0 ? [field, field] : [field])))}${space()}}`;
  };
  return write(of);
}

const escaped = (one: string): string => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;

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
