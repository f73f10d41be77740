import { expect, it } from "vitest";
import { toSegment } from "../../../src/jobs/requests.ts";

it("asks for a job only below its folder, for any id", () => {
  for (const id of ["...", "a/b?c#d", "../x", "é😀 %2e", "x".repeat(200)]) {
    const { pathname, search, hash } = new URL(`http://service.example/jobs/${toSegment(id)}`);
    expect([decodeURIComponent(pathname), search, hash]).toEqual([`/jobs/${id}`, "", ""]);
    expect(pathname.split("/")).toHaveLength(3);
  }
  for (const id of ["", ".", "..", "x".repeat(201), "a\ud800"]) expect(() => toSegment(id)).toThrow();
});
