import { expect, it } from "vitest";
import { entriesOf, spellingsOf } from "../../../src/config/items.ts";

// Receipts of older versions name what was bought in the spelling of those versions.

it.each<[kind: "email" | "domain", text: string, version: number, first: string, also: readonly string[]]>([
  ["email", " 'A@X.example.' ", 0, "'a@x.example.'", ["a@x.example", "'a@x.example'"]],
  ["email", " 'A@X.example.' ", 1, "'a@x.example.'", ["a@x.example", "a@x.example."]],
  ["email", " 'A@X.example.' ", 2, "a@x.example", []],
  ["email", "a@bücher.example.", 1, "a@bücher.example.", ["a@xn--bcher-kva.example", "a@bücher.example"]],
  ["email", "a@xn--bcher-kva.example", 0, "a@xn--bcher-kva.example", ["a@bücher.example"]],
  ["email", "a@b", 0, "a@b", []],
  ["email", "a@b", 1, "", []],
  ["domain", "WWW.x.example.", 0, "www.x.example.", ["x.example", "www.x.example", "x.example."]],
  ["domain", "WWW.x.example.", 1, "x.example", []],
])("%s %j of version %i was bought as %j or %j", (kind, text, version, first, also) => {
  const spellings = entriesOf(kind, text).flatMap((entry) => spellingsOf(entry, version));
  expect(spellings[0]).toBe(first);
  expect(spellings).toEqual(expect.arrayContaining([...also]));
  if (also.length === 0) expect(spellings).toHaveLength(1);
});
