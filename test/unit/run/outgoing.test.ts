import { describe, expect, it } from "vitest";
import type { FieldRules } from "../../../src/catalog/field-rules.ts";
import { Privacy } from "../../../src/catalog/privacy.ts";
import type { Selection } from "../../../src/catalog/singer-selection.ts";
import { catalogWarnings, outgoing } from "../../../src/run/outgoing.ts";
import { type Event, NO_FACTS, type RowFacts } from "../../../src/streams/event.ts";
import { AT, checkpoint, close, rawLine, records } from "../../support/events.ts";

const privacy = new Privacy({
  ...{ companyLookup: null, emailVerification: null, emailCheck: null },
  ...{ onlyFields: [], dropFields: ["email"], hashFields: [], hashSalt: null },
});

describe("outgoing()", () => {
  it("goes by what is known of each row: an odd one sends no other row of its batch the slow way", () => {
    const [usual, odd] = ['{"id":"1","email":"e"}', '{"id":"2","\\u0065mail":"e"}'].map(rawLine) as [
      never,
      never,
    ];
    const event: Event = {
      ...{ kind: "records", stream: "people", at: AT },
      lines: [usual, odd, usual, usual],
      // What is said of the third is wrong, which only the way by the known names cannot see.
      names: [["id", "email"], undefined, ["id"], ["id", "email"]],
    };
    const [left] = [...outgoing("people", privacy, undefined)(event)];
    expect(left).toMatchObject({ lines: ['{"id":"1"}', '{"id":"2"}', usual, '{"id":"1"}'] });
  });
});

const TEXT = { type: "string" };
const free = new Privacy({
  ...{ companyLookup: null, emailVerification: null, emailCheck: null },
  ...{ onlyFields: [], dropFields: [], hashFields: [], hashSalt: null },
});
const hashing = new Privacy({
  ...{ companyLookup: null, emailVerification: null, emailCheck: null },
  ...{
    onlyFields: [],
    dropFields: ["email", "phone"],
    hashFields: ["age", "score"],
    hashSalt: "0123456789abcdef",
  },
});

const REFRESH =
  "Discover again and use the new catalog: refresh the source's schema in Airbyte, run with --refresh-catalog in Meltano";
const withFields = (...names: readonly string[]): RowFacts => ({
  ...NO_FACTS,
  newFields: new Map(names.map((name) => [name, { rows: 1, schema: TEXT }])),
});
const withheld = { kind: "withhold", setting: "the catalog" } as const;
const selecting = (
  rules: FieldRules | null,
  stream = "people",
  sampled: boolean | null = true,
): Selection => ({
  ...{ stream, schema: {}, keyProperties: ["id"], replicationKey: null, method: "INCREMENTAL" },
  ...{ rules, sampled },
});
const ONLY_ID: FieldRules = { others: withheld, fields: new Map([["id", "keep"]]) };

/** What leaves of some events. */
function left(events: readonly Event[], selection?: Selection, of = free): readonly Event[] {
  const leave = outgoing(selection?.stream ?? "people", of, selection);
  return events.flatMap((event) => [...leave(event)]);
}
const warning = (text: string): Event => ({ kind: "log", level: "warn", text });
const isNew = (name: string, rows: string): Event =>
  warning(
    `The rows of "people" differ from its schema: new field "${name}" in ${rows}, which is lost where the catalog lacks it`,
  );

describe("what rows teach", () => {
  const row = records("people", { id: "1", x: "y" });
  const fact = (...names: readonly string[]): Event => ({ ...row, facts: withFields(...names) }) as Event;

  it("is said of a new field before the first batch that has it, and of all at the end", () => {
    const [first, second] = [fact("x"), fact("x")];
    const end = close("people");
    expect(left([first, second, end])).toEqual([
      ...[{ kind: "fields", stream: "people", added: { x: TEXT } }, first, second],
      ...[isNew("x", "2 rows"), end],
    ]);
    expect(left([row, checkpoint("people", {}), end])).toEqual([row, checkpoint("people", {}), end]);
  });

  it("says nothing of a field that does not leave", () => {
    const events = left([fact("email"), fact("email", "x"), close("people")], undefined, privacy);
    expect(events.map((event) => ("added" in event ? event.added : event.kind))).toEqual([
      ...["records", { x: TEXT }, "records", "log", "close"],
    ]);
    expect(events[3]).toEqual(isNew("x", "1 row"));
  });

  it("adds nothing to a Singer catalog, which lists all fields, and adds to a tap that has none", () => {
    const kinds = (rules: FieldRules | null) => left([fact("x")], selecting(rules)).map(({ kind }) => kind);
    expect([kinds(ONLY_ID), kinds(null)]).toEqual([["records"], ["fields", "records"]]);
  });

  it("leaves without a row where all were held back, and not at all where there was none", () => {
    const none = { ...records("people"), facts: { ...NO_FACTS, held: 0 } } as Event;
    const held = { ...records("people"), facts: { ...NO_FACTS, held: 2 } } as Event;
    expect(left([records("people"), none, held])).toEqual([held]);
    const unknown = selecting(ONLY_ID, "people", false);
    expect(left([none, held], unknown)).toHaveLength(1);
    expect(() => left([row], unknown)).toThrow(
      "was not on the key's plan, so that the catalog does not name its fields",
    );
    // Before any of its rows leaves.
    expect(() => outgoing("people", free, unknown)(row).next()).toThrow(REFRESH);
    expect(() => left([row], selecting(ONLY_ID, "people", null))).not.toThrow();
  });
});

describe("a Singer catalog", () => {
  it("withholds what it does not name, and says once which fields, and how to get them", () => {
    const rows = records("companies", { id: "1", x: "y", z: { a: 1 } }, { id: "2", x: "y" });
    const [out, said, end, ...more] = left([rows, close("companies")], selecting(ONLY_ID, "companies"));
    expect(out).toMatchObject({ lines: ['{"id":"1"}', '{"id":"2"}'] });
    expect(said).toEqual(
      warning(
        `The rows of "companies" have fields that the catalog does not name, which were withheld: "x", "z". ${REFRESH}`,
      ),
    );
    expect([end, more]).toEqual([close("companies"), []]);
  });

  it("names a field by hand that discovery cannot find, and at most a thousand fields", () => {
    const of = (stream: string, names: readonly string[]) => {
      const row = Object.fromEntries(names.map((name) => [name, 1]));
      const events = left([records(stream, row), close(stream)], selecting(ONLY_ID, stream));
      return events.flatMap((event) => (event.kind === "log" ? [event.text] : []));
    };
    const texts = of("email_checks", ["email", "surprise"]);
    expect(texts).toHaveLength(2);
    expect(texts[0]).toContain(`withheld: "email". ${REFRESH}`);
    expect(texts[1]).toContain(
      'withheld: "surprise". Discovery does not find them, because the fields of this stream are fixed. ' +
        'Add them to the catalog by hand: in Meltano with the extra "schema"',
    );
    const names = Array.from({ length: 1_002 }, (_, nth) => `f${nth}`);
    const [many = ""] = of("people", names);
    expect([many.includes('"f999"'), many.includes('"f1000"')]).toEqual([true, false]);
  });

  it("lets no NUL character out, and says how many there were; other languages keep them", () => {
    const rows = records("people", { id: "a\u0000b\u0000" }, { id: "c" });
    for (const rules of [ONLY_ID, null]) {
      const [out, said] = left([rows, close("people")], selecting(rules));
      const [first, second] = (out as { lines: readonly string[] }).lines;
      expect([first?.includes("u0000"), second]).toEqual([false, '{"id":"c"}']);
      expect(said).toEqual(
        warning(
          'The rows of "people" hold NUL characters, which SQL targets cannot store: 2 replaced by U+FFFD',
        ),
      );
    }
    expect(left([rows, close("people")])).toEqual([rows, close("people")]);
  });
});

describe("catalogWarnings()", () => {
  const schemaOf = (...names: readonly string[]) => ({
    properties: Object.fromEntries(names.map((name) => [name, { type: "integer" }])),
  });
  const warned = (schema: object | null, of: Privacy) => [...catalogWarnings("people", schema, of)];

  it("names the fields that do not leave and stand in the catalog", () => {
    expect(warned(schemaOf("id", "email"), hashing)).toEqual([
      warning(`The catalog of "people" names "email", which the config lets not leave. ${REFRESH}`),
    ]);
    expect(warned(schemaOf("phone", "email"), hashing)).toEqual([
      warning(`The catalog of "people" names "phone", "email", which the config lets not leave. ${REFRESH}`),
    ]);
    for (const [schema, of] of [
      [schemaOf("id"), hashing],
      [schemaOf("email"), free],
      [null, hashing],
    ] as const)
      expect(warned(schema, of)).toEqual([]);
  });

  it.each([["age"], ["age", "score"]])(
    "refuses digests of fields that have another type: %s %s",
    (...names) => {
      expect(() => warned(schemaOf("email", ...names), hashing)).toThrow(
        `Cannot read the stream "people": the catalog types ${names.map((name) => `"${name}"`).join(", ")} as it was before ` +
          `hash_fields named it, and a digest is a text. ${REFRESH}`,
      );
    },
  );
});
