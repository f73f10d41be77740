import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pruner } from "../../src/protocol/prune.ts";
import type { Pruning } from "../../src/source/selection.ts";
import { asRead, rawLine } from "../support/events.ts";

type Rules = Record<string, "keep" | "drop" | Pruning>;

const pruning = (others: "keep" | "drop", rules: Rules): Pruning => ({
  others,
  fields: new Map(Object.entries(rules)),
});

const pruned = (json: string, rules: Pruning): string => asRead(pruner(rules)(rawLine(json)));

/** What pruning means, on values. */
function model(value: unknown, rules: Pruning): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).flatMap(([name, member]) => {
    const rule = rules.fields.get(name) ?? rules.others;
    if (rule === "drop") return [];
    return [[name, rule === "keep" ? member : model(member, rule)] as const];
  });
  return Object.fromEntries(entries);
}

/** Without the spaces between tokens. Texts are compared: JSON.parse of Node 24 and 26 mixes up names like "\\"" and "\\\\". */
const compact = (json: string): string => json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");

describe("pruner()", () => {
  it("keeps what it keeps to the byte", () => {
    const rules = pruning("drop", { id: "keep", name: "keep", n: "keep" });
    const json =
      '{ "id" : 9007199254740993 , "x": {"a":"}\\"{"}, "name":"a\\u00e9é😀\\\\", "y":[[],["]"]],"n":1.50e3 }';
    expect(pruned(json, rules)).toBe('{"id" : 9007199254740993,"name":"a\\u00e9é😀\\\\","n":1.50e3}');
  });

  it("knows a name however it is spelt", () => {
    const rules = pruning("keep", { é: "drop", "😀": "drop", 'q"': "drop", "": "drop" });
    expect(pruned('{"é":1,"\\u00e9":2,"\\ud83d\\ude00":3,"😀":4,"q\\"":5,"":6,"e":7}', rules)).toBe(
      '{"e":7}',
    );
  });

  it("prunes nested objects, and hands on what is none", () => {
    const rules = pruning("keep", { a: pruning("keep", { b: "drop", c: pruning("drop", {}) }) });
    expect(pruned('{"a":{"b":1,"c":{"d":1},"e":2}}', rules)).toBe('{"a":{"c":{},"e":2}}');
    expect(pruned('{"a":null}', rules)).toBe('{"a":null}');
    expect(pruned('{"a":[{"b":1}],"b":1}', rules)).toBe('{"a":[{"b":1}],"b":1}');
  });

  it("leaves an object that lost everything", () => {
    expect(pruned('{"a":1}', pruning("drop", {}))).toBe("{}");
  });

  it("agrees with pruning the parsed value, for any JSON object", () => {
    const names = fc.constantFrom("a", "b", "é", "😀", '"', "\\", "\u0001");
    const { object } = fc.letrec((tie) => ({
      object: fc.dictionary(names, tie("value")),
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<unknown>(null, true, 0, -1.5e300, ""),
        fc.string({ unit: "grapheme" }),
        fc.array(tie("value")),
        tie("object"),
      ),
    }));
    const { rules } = fc.letrec<{ rules: Pruning; rule: "keep" | "drop" | Pruning }>((tie) => ({
      rules: fc.record({
        others: fc.constantFrom<"keep" | "drop">("keep", "drop"),
        fields: fc.dictionary(names, tie("rule")).map((fields) => new Map(Object.entries(fields))),
      }),
      rule: fc.oneof({ maxDepth: 3 }, fc.constantFrom<"keep" | "drop">("keep", "drop"), tie("rules")),
    }));
    const spaces = fc.constantFrom(undefined, 1, "\t");
    fc.assert(
      fc.property(object, rules, spaces, (value, rule, space) => {
        const json = JSON.stringify(value, null, space);
        expect(compact(pruned(json, rule))).toBe(JSON.stringify(model(value, rule)));
      }),
      { numRuns: 1000 },
    );
  });

  it("throws rather than loops on what is no object", () => {
    const prune = pruner(pruning("drop", {}));
    for (const text of ["", "{", '{"a', '{"a":', '{"a":[1', '{"a":1', "{x}", '{"a":"b\\"']) {
      expect(() => prune(text)).toThrow("no JSON object");
    }
  });
});
