import { describe, expect, it } from "vitest";
import { StateShare } from "../../../src/streams/state-share.ts";

describe("StateShare", () => {
  it("lets states that take no time follow one another", () => {
    const share = new StateShare();
    share.begin(5);
    share.end(5);
    expect(share.isDue(5)).toBe(true);
  });

  it.each([1, 7, 300])("waits for twenty times the %i ms that the last state took", (took) => {
    const share = new StateShare();
    share.begin(1_000);
    share.end(1_000 + took);
    expect(share).toMatchObject({ writtenAt: 1_000 + took, pauseMs: 20 * took });
    expect(share.isDue(1_000 + 21 * took - 1)).toBe(false);
    expect(share.isDue(1_000 + 21 * took)).toBe(true);
  });
});
