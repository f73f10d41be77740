import { type Notice, type RawLine, type UsualNames, warning } from "./event.ts";
import type { Window } from "./window.ts";

/**
 * A row before the output. The program only compares `key` and `cursor`.
 * `key`: the JSON of the row's key as latin1 without escapes; empty: the row has no key.
 * `cursor`: the text as it arrived, or the digits of a number.
 */
export type Row = {
  readonly raw: RawLine;
  readonly key: string;
  readonly cursor: string | null;
  readonly names?: UsualNames;
  /** A suppressed row counts only as shown. */
  readonly isSuppressed?: boolean | undefined;
};

/** Rows that arrived together. */
export type Batch = readonly Row[];

/**
 * The rows of a window at a moment of the service's clock, between `asked` and `answered` (epoch ms).
 * The service counted all rows with a cursor before `asked`, and no row with a cursor after `answered`.
 * `undated`: the count of everything minus the count of dated rows; 0 if the window has a date filter.
 */
export type Count = {
  readonly rows: number;
  readonly undated: number;
  /** False: the service does not count, and `rows` and `undated` are 0. */
  readonly known: boolean;
  readonly asked: number;
  readonly answered: number;
};

/** The count for attempts that are not compared with a count. */
export const NOT_COUNTED: Count = { rows: 0, undated: 0, known: false, asked: 0, answered: 0 };

/** One page of a list. `size`: the page size that the service used. `total`: null if the service did not count. */
export type Page = { readonly rows: Batch; readonly size: number; readonly total: number | null };

/** `row`: undefined if the place is empty. `total`: the total of the answer; null if the service did not count. */
export type PlacedRow = { readonly row: Row | undefined; readonly total: number | null };

/** The functions that the core needs from the service, the clocks and the log. */
export type Service = {
  /** The requested page size. */
  readonly pageSize: number;
  /**
   * Counts the rows of a window now.
   * @param once true: a temporary failure is thrown, unless the answer names a time to retry; false: the request is repeated
   * @throws TransientError, ConfigError or DataError
   */
  count(window: Window, once?: boolean): Promise<Count>;
  /**
   * The export of a window. It ends only if the body ended properly.
   * @param once as for `count`, if the export cannot begin. The caller may then request an export of fewer rows
   * @throws BodyError for an error in the content of the body
   */
  stream(window: Window, once?: boolean): AsyncIterable<Batch>;
  /** The row at a place (1 and up) of the window's list; undefined if the list refuses the place or fails there. */
  rowAt(window: Window, place: number): Promise<PlacedRow | undefined>;
  /** A page (1 and up) of the window's list, newest first. @throws BodyError for a page that cannot be fetched or parsed */
  page(window: Window, number: number): Promise<Page>;
  /** The slugs of all sources that the key can read. @throws ConnectorError if the list cannot be read to its end */
  sources(): Promise<readonly string[]>;
  /** Waits after the given number of failures (1 and up). */
  backOff(failures: number): Promise<void>;
  /** Epoch ms by the service's clock. */
  now(): number;
  /** Ms by this machine, never decreasing. */
  monotonic(): number;
  notify(notice: Notice): void;
};

export const warn = (service: Service, text: string): void => service.notify(warning(text));
