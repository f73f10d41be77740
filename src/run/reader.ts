import type { ConfiguredStream } from "../catalog/airbyte.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import type { StreamSpec } from "../catalog/streams.ts";
import type { RowCheck } from "../service/rows.ts";
import type { Event } from "../sync/event.ts";

/** A stream of a run. `selection`: the fields that a Singer catalog selects; undefined: the platform is not Singer. */
export type RequestedStream = {
  readonly configured: ConfiguredStream;
  readonly selection?: Selection | undefined;
};

/** `rows`: the total; null: the service does not count; undefined: there is no list. `warning`: a text for a person. */
export type Probed = { readonly rows?: number | null; readonly warning?: string };

/** The functions that read a stream. */
export type Reader = {
  readonly spec: StreamSpec;
  /**
   * Requests one row, or a job that does not exist. Buys nothing.
   * @param isThorough whether the first row of an export is requested too
   * @throws the reason why the key cannot read the stream
   */
  probe(isThorough?: boolean): Promise<Probed>;
  /** The records of one request. A stream that costs money returns no records. */
  sample(schema: JsonSchema): Promise<readonly Record<string, unknown>[]>;
  /** The events of the stream after "open", to its "close". @param savedState the stream's part of the incoming state */
  read(asked: RequestedStream, check: RowCheck, savedState: unknown): AsyncIterable<Event>;
};
