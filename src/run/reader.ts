import type { ConfiguredStream } from "../catalog/airbyte.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import type { StreamSpec } from "../catalog/streams.ts";
import type { RowCheck } from "../service/rows.ts";
import type { Event } from "../sync/event.ts";

/** A stream that was asked for. */
export type RequestedStream = {
  readonly configured: ConfiguredStream;
  /** How a Singer catalog lets the stream out; undefined: the platform speaks another language. */
  readonly selection?: Selection | undefined;
};

/** `rows`: null if the service does not count, undefined if nothing lists them. `warning`: what a person should know. */
export type Probed = { readonly rows?: number | null; readonly warning?: string };

/** A stream, and how it is read. The run knows no more of a stream. */
export type Reader = {
  readonly spec: StreamSpec;
  /**
   * Asks for one row, or for a made-up job. Buys nothing.
   * @param isThorough whether the first row of an export is asked for too
   * @throws what keeps the key from the stream
   */
  probe(isThorough?: boolean): Promise<Probed>;
  /** Live records, as many as one request shows; none of a stream whose records cost money. */
  sample(schema: JsonSchema): Promise<readonly Record<string, unknown>[]>;
  /**
   * The events of the stream after "open", to its "close".
   * @param savedState the stream's part of the incoming state
   */
  read(asked: RequestedStream, check: RowCheck, savedState: unknown): AsyncIterable<Event>;
};
