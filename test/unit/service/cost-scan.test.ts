import { describe, expect, it } from "vitest";
import { CostScan } from "../../../src/service/cost-scan.ts";

describe("CostScan", () => {
  it.each([
    ['{"contacts":[{"credits_used":1}],"credits_used":12000}', 12_000],
    ['{"credits_used" : "12000", "x": "credits_used: 99999"}', 12_000],
    [JSON.stringify({ note: '"credits_used":99999', credits_used: 3 }), 3],
    ['{"credits_used":0,"contacts":[]}', 0],
    ['{"credits_used":0.5}', 0.5],
    ['{"credits_used":null,"contacts":[]}', null],
    ['{"credits_used":-5}', null],
    ["", null],
  ])("finds in %s the cost %j, wherever its pieces end", (text, credits) => {
    for (let length = 1; length <= text.length; length++) {
      const scan = new CostScan();
      for (let at = 0; at < text.length; at += length) scan.add(Buffer.from(text.slice(at, at + length)));
      expect([scan.credits, scan.bytes]).toEqual([credits, text.length]);
    }
  });
});
