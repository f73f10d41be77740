import { describe, expect, it } from "vitest";
import { cut, simulate } from "./simulate.ts";

const BILLION = { people: 1_000_000_000, shards: 1, rowsPerSecond: 100_000 };

describe("a first load of a billion people", () => {
  it.each([
    ["ten years", 8_000],
    ["last 30 days", 1_000],
  ] as const)("spread over the %s, stays below %i requests", async (spread, most) => {
    expect((await simulate({ ...BILLION, spread })).requests).toBeLessThan(most);
  });

  it("is cut into a thousand shards by a request each", async () => {
    const { parts, requests } = await cut(BILLION.people, "ten years", 1_000);
    expect(parts).toHaveLength(1_000);
    expect(requests).toBeLessThanOrEqual(1_001);
  });

  it("ends, when the service checks everyone again each month", async () => {
    const load = await simulate({ ...BILLION, spread: "re-checked monthly" });
    expect(load.requests).toBeLessThan(1_000);
    expect(load.rechecks).toBeGreaterThan(0);
  });
});

describe("shards", () => {
  it("divide the hours where the service's speed binds", async () => {
    const scenario = { people: 100_000_000, spread: "last 30 days", rowsPerSecond: 5_000 } as const;
    const one = await simulate({ ...scenario, shards: 1 });
    const sixteen = await simulate({ ...scenario, shards: 16 });
    expect(one.binds).toBe("service");
    expect(sixteen.hours).toBeLessThan(one.hours / 4);
  });
});
