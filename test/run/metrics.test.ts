import { describe, expect, it } from "vitest";
import { noUsage } from "../../src/api/usage.ts";
import { metricsOf } from "../../src/run/metrics.ts";
import { RunStats } from "../../src/run/stats.ts";
import type { Event } from "../../src/streams/event.ts";
import { close, open, records } from "../support/events.ts";

/** The metrics of a stream's events, of which each takes a second and two requests of half a second. */
function metricsAfter(...events: readonly Event[]): readonly unknown[] {
  let now = 0;
  const usage = { ...noUsage() };
  const stats = new RunStats({ now: () => 0, monotonic: () => now });
  stats.measure(() => usage);
  for (const event of events) {
    stats.note(event);
    now += 1_000;
    usage.requests += 2;
    usage.requestMs += 1_000;
  }
  const { current } = stats;
  if (current === undefined) throw new Error("No stream was opened");
  return metricsOf(current, 7).map((event) => event.kind === "log" && event.metric);
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

describe("metricsOf()", () => {
  const rows = records("people", { id: 1 }, { id: 2 });

  it.each([
    ["a complete stream", [open("people"), rows, close("people")], pointsOf(2, 4, 2, "succeeded")],
    ["an incomplete stream", [open("people"), close("people", false)], pointsOf(0, 2, 1, "failed")],
    ["a stream that fails", [open("people"), close("people", true, "down")], pointsOf(0, 2, 1, "failed")],
    ["a stream that has not ended", [open("people"), rows], pointsOf(2, 4, 2, "failed")],
  ])("counts rows and requests of %s, and says in seconds how long they took", (_, events, points) => {
    expect(metricsAfter(...events)).toEqual(points);
  });
});
