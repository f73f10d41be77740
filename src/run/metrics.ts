import type { Usage } from "../api/usage.ts";
import type { Event, MetricPoint } from "../streams/event.ts";

export type Meter = {
  /** Monotonic ms. */
  readonly monotonic: () => number;
  /** What the run has asked of the service so far. */
  readonly usage: Readonly<Usage>;
  readonly pid: number;
};

/**
 * Adds the metrics of a stream before the stream's end, in the names and units of the Meltano SDK (`singer_sdk.metrics`):
 * records, requests, the seconds until their headers came, and the seconds that the stream took.
 */
export async function* withMetrics(
  events: AsyncIterable<Event>,
  stream: string,
  meter: Meter,
): AsyncGenerator<Event> {
  const began = meter.monotonic();
  const before = { ...meter.usage };
  let rows = 0;
  const points = (complete: boolean): readonly Event[] => {
    const status = complete ? "succeeded" : "failed";
    const tags = { stream, pid: meter.pid };
    const { requests, requestMs } = meter.usage;
    return [
      point({ type: "counter", metric: "record_count", value: rows, tags }),
      point({ type: "counter", metric: "http_request_count", value: requests - before.requests, tags }),
      point({
        type: "timer",
        metric: "http_request_duration",
        value: seconds(requestMs - before.requestMs),
        tags,
      }),
      point({
        ...{ type: "timer", metric: "sync_duration", value: seconds(meter.monotonic() - began) },
        tags: { ...tags, status },
      }),
    ];
  };
  try {
    for await (const event of events) {
      if (event.kind === "records") rows += event.lines.length;
      if (event.kind === "close") yield* points(event.complete && event.error === undefined);
      yield event;
    }
  } catch (error) {
    yield* points(false);
    throw error;
  }
}

const point = (metric: MetricPoint): Event => ({ kind: "log", level: "info", text: "METRIC", metric });

const seconds = (ms: number): number => Math.round(ms) / 1000;
