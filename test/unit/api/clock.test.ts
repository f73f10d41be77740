import { expect, it } from "vitest";
import { systemClock } from "../../../src/api/clock.ts";
import { noUsage } from "../../../src/api/usage.ts";

it("sleeps no longer than until the signal aborts, and not at all once it has", async () => {
  const abort = new AbortController();
  const asleep = systemClock.sleep(3_600_000, abort.signal);
  abort.abort(new Error("stop"));
  await expect(asleep).rejects.toThrow("aborted");
  await expect(systemClock.sleep(3_600_000, abort.signal)).rejects.toThrow("aborted");
  await systemClock.sleep(0);
});

it("says what time it is, and what has passed, which only grows", () => {
  const [before, began] = [Date.now(), systemClock.monotonic()];
  const now = systemClock.now();
  expect([now >= before, now <= Date.now(), systemClock.monotonic() >= began]).toEqual([true, true, true]);
});

it("has used nothing before the first request", () => {
  expect(new Set(Object.values(noUsage()))).toEqual(new Set([0]));
});
