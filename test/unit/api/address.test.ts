import { describe, expect, it } from "vitest";
import { isUsableId, toSegment } from "../../../src/api/address.ts";
import { DataError } from "../../../src/errors.ts";

const USABLE = ["a", "...", ".a", "a.", "..a", "a..", "a/b?c#d", "../x", "é😀 %2e", "x".repeat(200)];
const NOT_USABLE = ["", ".", "..", "x".repeat(201), "a\ud800", "\udc00b"];

describe("isUsableId()", () => {
  it("takes what can be one segment of a path, and nothing else", () => {
    expect([...USABLE, ...NOT_USABLE].filter(isUsableId)).toEqual(USABLE);
  });
});

describe("toSegment()", () => {
  it("stays one segment below its folder in an address, whatever the id holds", () => {
    for (const id of USABLE) {
      const { pathname, search, hash } = new URL(`http://service.example/jobs/${toSegment(id)}`);
      expect([decodeURIComponent(pathname), search, hash]).toEqual([`/jobs/${id}`, "", ""]);
      expect(pathname.split("/")).toHaveLength(3);
    }
  });

  it.each(NOT_USABLE)("refuses the id %j, and says how long it is rather than what it is", (id) => {
    expect(() => toSegment(id)).toThrow(DataError);
    expect(() => toSegment(id)).toThrow(
      `Cannot use an id of the service: it has ${id.length} characters or holds what no path may hold. Tell the service's owner`,
    );
  });
});
