import { describe, expect, it } from "vitest";
import { noUsage } from "../../src/api/usage.ts";
import { withMetrics } from "../../src/run/metrics.ts";
import type { Event } from "../../src/streams/event.ts";
import { close, open, records } from "../support/events.ts";

/** The metrics of a stream's events, of which each takes a second and two requests of half a second. */
async function metricsOf(events: readonly Event[], error?: Error): Promise<readonly unknown[]> {
  let now = 0;
  const usage = { ...noUsage() };
  const stream = (async function* () {
    for (const event of events) {
      now += 1_000;
      usage.requests += 2;
      usage.requestMs += 1_000;
      yield event;
    }
    if (error !== undefined) throw error;
  })();
  const metrics: unknown[] = [];
  const run = async (): Promise<void> => {
    for await (const event of withMetrics(stream, "people", { monotonic: () => now, usage, pid: 7 }))
      if (event.kind === "log") metrics.push(event.metric);
  };
  if (error === undefined) await run();
  else await expect(run()).rejects.toThrow(error);
  return metrics;
}

const pointsOf = (rows: number, requests: number, seconds: number, status: string) => {
  const tags = { stream: "people", pid: 7 };
  return [
    { type: "counter", metric: "record_count", value: rows, tags },
    { type: "counter", metric: "http_request_count", value: requests, tags },
    { type: "timer", metric: "http_request_duration", value: requests / 2, tags },
    { type: "timer", metric: "sync_duration", value: seconds, tags: { ...tags, status } },
  ];
};

describe("withMetrics()", () => {
  const rows = records("people", { id: 1 }, { id: 2 });

  it("counts rows and requests, and says in seconds how long they took, and how the stream ended", async () => {
    expect(await metricsOf([open("people"), rows, close("people")])).toEqual(pointsOf(2, 6, 3, "succeeded"));
    expect(await metricsOf([open("people"), close("people", false)])).toEqual(pointsOf(0, 4, 2, "failed"));
  });

  it("says them of a stream that throws", async () => {
    expect(await metricsOf([open("people"), rows], new Error("down"))).toEqual(pointsOf(2, 4, 2, "failed"));
  });
});
