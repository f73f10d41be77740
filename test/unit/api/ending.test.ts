import { describe, expect, it, onTestFinished, vi } from "vitest";
import { RequestEnding } from "../../../src/api/ending.ts";
import { networkError, PUBLIC_API } from "../../../src/api/error-table.ts";

/** Until the test ends, timers go by what it tells vi.advanceTimersByTime(). */
function holdTimers(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
}

describe("RequestEnding", () => {
  it.each([0, 20])("ends a request with the run, or %i ms later, for the run's reason", (graceMs) => {
    holdTimers();
    for (const isLate of [false, true]) {
      const run = new AbortController();
      if (isLate) run.abort("told to stop");
      const ending = new RequestEnding(run.signal, 60_000, graceMs);
      run.abort("told to stop");
      if (graceMs > 0) {
        vi.advanceTimersByTime(graceMs - 1);
        expect([ending.signal.aborted, ending.reason]).toEqual([false, undefined]);
        vi.advanceTimersByTime(1);
      }
      expect([ending.signal.aborted, ending.reason]).toEqual([true, "told to stop"]);
      ending.close();
    }
  });

  it("ends a request that takes longer than its time, and says so", () => {
    holdTimers();
    const ending = new RequestEnding(new AbortController().signal, 1_000);
    vi.advanceTimersByTime(999);
    expect([ending.signal.aborted, ending.reason]).toEqual([false, undefined]);
    vi.advanceTimersByTime(1);
    expect(ending.reason).toMatchObject({ message: "The deadline has passed" });
    const { message } = networkError("x", { host: "h", settings: PUBLIC_API }, ending.reason);
    expect(message).toContain("the answer did not end in time (ANSWER_TIMEOUT)");
  });

  it("ends no request later than its deadline because the run has ended", () => {
    holdTimers();
    const run = new AbortController();
    const ending = new RequestEnding(run.signal, 1_000, 5_000);
    run.abort("told to stop");
    vi.advanceTimersByTime(1_000);
    expect(ending.reason).toMatchObject({ message: "The deadline has passed" });
  });

  it("ends with the run alone once its deadline is lifted, and with nothing once it is over", () => {
    holdTimers();
    const run = new AbortController();
    const [lifted, closed] = [1, 2].map(() => new RequestEnding(run.signal, 1_000)) as [
      RequestEnding,
      RequestEnding,
    ];
    lifted.liftDeadline();
    closed.close();
    expect(vi.getTimerCount()).toBe(0);
    run.abort("told to stop");
    expect([lifted.reason, closed.reason]).toEqual(["told to stop", undefined]);
  });
});
