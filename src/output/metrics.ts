import type { Event } from "../sync/event.ts";
import type { StreamSummary } from "./stats.ts";

/** The metrics of a stream at its end, in the names and units of the Meltano SDK (`singer_sdk.metrics`). */
export function metricsOf(
  { stream, outcome, rows, seconds, requests, request_seconds: requestSeconds }: StreamSummary,
  pid: number,
): readonly Event[] {
  const tags = { stream, pid };
  const status = outcome === "complete" || outcome === "paused" ? "succeeded" : "failed";
  const points = [
    { type: "counter", metric: "record_count", value: rows, tags },
    { type: "counter", metric: "http_request_count", value: requests, tags },
    { type: "timer", metric: "http_request_duration", value: requestSeconds, tags },
    { type: "timer", metric: "sync_duration", value: seconds, tags: { ...tags, status } },
  ];
  return points.map((metric) => ({ kind: "log", level: "info", text: "METRIC", metric }));
}
