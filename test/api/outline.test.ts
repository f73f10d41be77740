import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Outline } from "../../src/api/outline.ts";
import { isObject } from "../../src/json.ts";
import { runs } from "../support/runs.ts";

/** The outline of a text that arrives in pieces of these lengths. */
function outlineOf(text: string, lengths: readonly number[] = []): Outline {
  const outline = new Outline();
  let rest = Buffer.from(text);
  for (const length of [...lengths, rest.length]) {
    outline.add(rest.subarray(0, length));
    rest = rest.subarray(length);
  }
  return outline;
}

const emptied = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(emptiedInside);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, emptiedInside(inner)]));
};
const emptiedInside = (value: unknown): unknown => (Array.isArray(value) ? [] : isObject(value) ? {} : value);

describe("Outline", () => {
  it("is what stands at the top of any JSON, wherever its pieces end", () => {
    const names = fc.constantFrom("a", "credits_used", '"', "\\\\", "[{");
    const { value: json } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.string(),
        fc.double(),
        fc.constant(null),
        tie("list"),
        tie("object"),
      ),
      list: fc.array(tie("value"), { maxLength: 4 }),
      object: fc.dictionary(names, tie("value"), { maxKeys: 4 }),
    }));
    fc.assert(
      fc.property(json, fc.array(fc.nat(9), { maxLength: 30 }), fc.nat(2), (value, lengths, indent) => {
        const text = JSON.stringify(value, null, indent);
        const outline = outlineOf(text, lengths);
        expect(outline.bytes).toBe(Buffer.byteLength(text));
        const kept = Buffer.from(String(outline), "latin1").toString();
        expect(JSON.parse(kept)).toEqual(emptied(JSON.parse(text)));
      }),
      { numRuns: runs(500, 10_000) },
    );
  });

  it("says nothing of an answer whose top is long itself, and does not hold it", () => {
    const long = `{"message":"${"x".repeat(70_000)}","credits_used":1}`;
    expect(String(outlineOf(long))).toBe("");
    expect(String(outlineOf(long, [60_000, 9_000]))).toBe("");
  });
});
