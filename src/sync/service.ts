import { BodyError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { type Notice, type RawLine, type UsualNames, warning } from "./event.ts";
import { describe, type Window } from "./window.ts";

/**
 * A row before it is admitted to the output. `key` and `cursor` are for comparing only. `key` is the JSON of the row's key,
 * byte for byte in latin1 with its escapes resolved; an empty text means a row without one. `cursor` is a text as it
 * arrived, or the digits of a number.
 */
export type Row = {
  readonly raw: RawLine;
  readonly key: string;
  readonly cursor: string | null;
  readonly names?: UsualNames;
  /** Whether it is suppressed: it counts as shown, and in nothing else. */
  readonly isSuppressed?: boolean | undefined;
};

/** Rows that arrived together. */
export type Batch = readonly Row[];

/**
 * The rows of a window at a moment of the service's clock. No row whose cursor is before `asked` came in later,
 * and none whose cursor is after `answered` was counted (both epoch ms).
 * `undated`: what the count of everything has beyond the dated rows; 0 where a date filter is set.
 */
export type Count = {
  readonly rows: number;
  readonly undated: number;
  /** False if the service does not count; then `rows` and `undated` are 0. */
  readonly known: boolean;
  readonly asked: number;
  readonly answered: number;
};

/** For a pass that is compared with no count. */
export const NOT_COUNTED: Count = { rows: 0, undated: 0, known: false, asked: 0, answered: 0 };

/** One page of a list. `size`: the page size that the service used; `total`: null if it did not count. */
export type Page = { readonly rows: Batch; readonly size: number; readonly total: number | null };

/** `row`: undefined if the place is empty; `total`: as the same answer counts, null if it does not. */
export type PlacedRow = { readonly row: Row | undefined; readonly total: number | null };

/** All that the core asks of the world. */
export type Service = {
  /** The page size that is asked for. */
  readonly pageSize: number;
  /**
   * Asks the service how many rows a window contains now.
   * @param once true: what time can heal is thrown, unless the answer says when to ask again; false: it is asked again
   * @throws TransientError, ConfigError or DataError
   */
  count(window: Window, once?: boolean): Promise<Count>;
  /**
   * The window's export in batches. Ends only if the body ended properly; throws BodyError for what is wrong with its content.
   * @param once as for `count`, for an export that could not be begun: fewer rows may succeed sooner
   */
  stream(window: Window, once?: boolean): AsyncIterable<Batch>;
  /** The row at a place (1 and up) of the window's list; undefined if the list refuses or fails so deep. */
  rowAt(window: Window, place: number): Promise<PlacedRow | undefined>;
  /** One page of the window's list, newest first, 1-indexed. Throws BodyError for a page that cannot be fetched or parsed. */
  page(window: Window, number: number): Promise<Page>;
  /** The slugs of all sources that the key can read. @throws ConnectorError if the list cannot be read to its end */
  sources(): Promise<readonly string[]>;
  /** Backs off after the given number of failures (1 and up) of the same work. */
  backOff(failures: number): Promise<void>;
  /** Epoch ms by the service's clock. */
  now(): number;
  /** Ms that only grow, by this machine. */
  monotonic(): number;
  notify(notice: Notice): void;
};

export const warn = (service: Service, text: string): void => service.notify(warning(text));

/** An export with more rows than this, and more than twice the count, may have no end. */
const ENDLESS_ROWS = 10_000;

/** Passes on the batches of an export. @throws BodyError once it shows far more rows than were counted */
export async function* bounded(
  batches: AsyncIterable<Batch>,
  window: Window,
  { known, rows, undated }: Count,
): AsyncGenerator<Batch> {
  const counted = known ? rows + undated : Number.POSITIVE_INFINITY;
  let shown = 0;
  for await (const batch of batches) {
    yield batch;
    shown += batch.length;
    if (shown <= ENDLESS_ROWS || shown <= 2 * counted) continue;
    throw new BodyError(
      `Cannot read ${describe(window)} to its end: ${plural(shown, "row")} arrived, and the service counts ${plural(counted, "row")}`,
    );
  }
}
