import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inferSchema } from "../../../src/catalog/infer-schema.ts";
import { type JsonSchema, TIMESTAMP } from "../../../src/catalog/schema.ts";

const NOTHING: JsonSchema = { type: "object", properties: {} };
const DECLARED: JsonSchema = { type: "object", properties: { domain: { type: "string", title: "Domain" } } };

const infer = (...records: Record<string, unknown>[]): JsonSchema["properties"] =>
  inferSchema(NOTHING, records).properties;
const values = (...seen: unknown[]): JsonSchema | undefined =>
  Object.values(infer(...seen.map((a) => ({ a }))) ?? {})[0];

/** Records that share names, so that their types meet. */
const name = fc.oneof(
  fc.constantFrom("a", "A", "b", "toString", "__proto__", "", "\ud800", "x\0"),
  fc.string({ maxLength: 3 }),
);
const { field } = fc.letrec((tie) => ({
  field: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, "", "2026-01-02T03:04:05Z", "2026-02-30T03:04:05Z", 1, 1.5, true),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.array(tie("field"), { maxLength: 3 }),
    fc.dictionary(name, tie("field"), { maxKeys: 4 }),
  ),
}));
const records = fc.array(fc.dictionary(name, field, { maxKeys: 5 }), { minLength: 1, maxLength: 6 });

describe("inferSchema()", () => {
  it("lets every record of the set pass", () => {
    // Own properties only: a field may be called toString.
    const ajv = new Ajv({ strict: false, ownProperties: true, formats: { "date-time": /T.*Z$/ } });
    fc.assert(
      fc.property(records, (set) => {
        const isValid = ajv.compile(inferSchema(NOTHING, set));
        for (const record of set) expect(isValid(record), JSON.stringify(isValid.errors)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  it("gives the same text whatever the order", () => {
    const ordered = records.chain((set) =>
      fc.tuple(fc.constant(set), fc.shuffledSubarray(set, { minLength: set.length, maxLength: set.length })),
    );
    fc.assert(
      fc.property(ordered, ([set, shuffled]) => {
        const reversed = shuffled.map((record) => Object.fromEntries(Object.entries(record).toReversed()));
        expect(JSON.stringify(inferSchema(DECLARED, reversed))).toBe(
          JSON.stringify(inferSchema(DECLARED, set)),
        );
      }),
    );
  });

  it("says date-time only if every value is a timestamp with a zone", () => {
    expect(values("2026-01-02T03:04:05Z", null, "2026-01-02T03:04:05.123+02:00")).toEqual(TIMESTAMP);
    const others = ["2026-01-02", "2026-02-30T03:04:05Z", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z"];
    for (const other of others) {
      expect(values("2026-01-02T03:04:05Z", other), other).toEqual({ type: ["null", "string"] });
      expect(values(other, "2026-01-02T03:04:05Z"), other).toEqual({ type: ["null", "string"] });
    }
  });

  it("nests where the records nest, and leaves the deep open", () => {
    const open = { type: ["null", "object"], additionalProperties: true };
    const c = { ...open, properties: { d: { type: ["null", "string"] } } };
    const properties = { b: { type: ["null", "number"] }, c };
    expect(values({ b: 1 }, { c: { d: "x" } })).toEqual({ ...open, properties });
    let deep: unknown = "end";
    for (let level = 0; level < 1000; level++) deep = { deep };
    expect(JSON.stringify(values(deep)).split('"deep"').length).toBeLessThan(10);
  });

  it("leaves out names that platforms cannot store", () => {
    const odd = JSON.parse('{"": 1, "a\\ud800": 1, "b\\u0000": 1, "__proto__": 1, "ok": 1, "😀": 1}');
    expect(Object.keys(infer(odd) ?? {})).toEqual(["ok", "😀"]);
  });
});
