import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toLatin1 } from "../../../src/base/text.ts";
import { type NamingField, Suppression } from "../../../src/privacy/suppress.ts";
import { RowParser } from "../../../src/service/rows.ts";
import type { RawLine } from "../../../src/sync/event.ts";

const SUPPRESSED = new Suppression([["per_1"], ["é_1"], ["a@x.example"], ["x.example"]]);
const PEOPLE: readonly NamingField[] = ["id", "email"];
const COMPANIES: readonly NamingField[] = ["domain"];

/** Texts as services write them: usual ones, and others that mean the same. */
const SPELT = [
  ...['"per_1"', '"PER_1"', '"per_2"', '"per\\u005f1"', '" per_1"', '"per_1\u200b"', '"é_1"', '"\\u00e9_1"'],
  ...[
    '"a@x.example"',
    '"A@X.example"',
    '"a@x.example."',
    '"b@y.example,a@x.example"',
    '"b@y.example;a@x.example"',
    '"A <a@x.example>"',
  ],
  ...['"x.example"', '"https://X.example/"', '"www.x.example"', '"y.example"', '"per_1/2"', '""', "null"],
];
/** Each sign that JSON writes as it is, around a name and between two. */
const SIGNED = Array.from({ length: 95 }, (_, nth) => String.fromCharCode(32 + nth))
  .filter((sign) => sign !== '"' && sign !== "\\")
  .flatMap((sign) => [
    `"b@y.example${sign}a@x.example"`,
    ...[`"${sign}a@x.example"`, `"a@x.example${sign}"`, `"${sign}x.example"`, `"per_1${sign}"`],
  ]);
const LINE = fc.record(
  Object.fromEntries(["id", "email", "domain", "note"].map((name) => [name, fc.constantFrom(...SPELT)])),
  { noNullPrototype: true },
);

describe.each([
  ["people, the key first", "people", "id", PEOPLE, [...PEOPLE, "note"], '"per_1"'],
  ["people, the key last", "people", "id", PEOPLE, ["note", "email", "id"], '"per_1"'],
  ["companies, the key first", "companies", "domain", COMPANIES, [...COMPANIES, "note"], '"x.example"'],
  ["companies, the key last", "companies", "domain", COMPANIES, ["note", "domain"], '"x.example"'],
] as const)("a suppressed row of %s", (_, stream, key, fields, names, suppressed) => {
  const properties = Object.fromEntries(names.map((name) => [name, { type: ["null", "string"] }]));
  const parser = new RowParser({
    ...{ key, cursor: null, schema: { type: "object", properties } },
    suppression: SUPPRESSED.groupsOf(stream),
  });
  const usual = JSON.stringify(Object.fromEntries(names.map((name) => [name, "q"])));
  parser.parse(usual as RawLine, JSON.parse(usual));

  /** Whether a line is held back: as its expression says, if that knows it, and as its parser says. */
  const verdicts = (line: string) => {
    const raw = toLatin1(line) as RawLine;
    return { matched: parser.match(raw), parsed: parser.parse(raw, JSON.parse(raw)) };
  };

  const expectOneVerdict = (spelt: Readonly<Record<string, string | undefined>>): void => {
    const line = `{${names.map((name) => `"${name}":${spelt[name] ?? '"q"'}`).join(",")}}`;
    const { matched, parsed } = verdicts(line);
    const isSuppressed = fields.some((field) => SUPPRESSED.has(field, JSON.parse(spelt[field] ?? "null")));
    expect(parsed.isSuppressed, line).toBe(isSuppressed);
    if (matched !== undefined)
      expect([matched.isSuppressed, matched.key], line).toEqual([isSuppressed, parsed.key]);
  };

  it("is suppressed in every spelling of its names, whether its line is usual or parsed", () => {
    fc.assert(fc.property(LINE, expectOneVerdict), { numRuns: 200 });
    for (const signed of SIGNED) for (const field of fields) expectOneVerdict({ [field]: signed });
    const line = (value: string): string =>
      `{${names.filter((name) => name !== "email").map((name) => (name === key ? `"${name}":${value}` : `"${name}":"n"`))}}`;
    expect([suppressed, '"other"'].map((value) => verdicts(line(value)).matched?.isSuppressed)).toEqual([
      true,
      false,
    ]);
  });

  it("is suppressed if one of two fields of one name says who it is", () => {
    for (const pair of [`"${key}":${suppressed},"${key}":"q"`, `"${key}":"q","${key}":${suppressed}`]) {
      const { matched, parsed } = verdicts(`{${pair},"note":"n"}`);
      expect([matched?.isSuppressed ?? true, parsed.isSuppressed]).toEqual([true, true]);
    }
  });

  it("teaches nothing", () => {
    const { withoutKey } = parser.notes;
    expect(verdicts(`{"${key}":${suppressed},"note":5,"more":1}`).parsed.isSuppressed).toBe(true);
    expect(parser.notes.newFields.size).toBe(0);
    verdicts(`{"${key}":["q"],"note":5,"more":1}`);
    expect([parser.notes.withoutKey, parser.notes.newFields.size]).toEqual([withoutKey + 1, 1]);
  });
});
