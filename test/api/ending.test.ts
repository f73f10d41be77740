import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { RequestEnding } from "../../src/api/ending.ts";

describe("RequestEnding", () => {
  it.each([0, 20])("ends a request with the run, or %i ms later, for the run's reason", async (graceMs) => {
    const run = new AbortController();
    const ending = new RequestEnding(run.signal, 60_000, graceMs);
    run.abort("told to stop");
    expect(ending.signal.aborted).toBe(graceMs === 0);
    if (graceMs > 0) await once(ending.signal, "abort");
    expect(ending.reason).toBe("told to stop");
    ending.close();
  });
});
