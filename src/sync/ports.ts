import type { Notice, RawLine } from "./event.ts";
import type { Window } from "./window.ts";

/**
 * A row before it is admitted to the output. `key` and `cursor` are for comparing only: they come from a
 * latin1-decoded parse. An empty key stands for a row without one (streams that allow it).
 */
export type Row = { readonly raw: RawLine; readonly key: string; readonly cursor: string | null };

/**
 * What a window held at a moment of the service's clock. No row whose cursor is before `asked` came in later,
 * and none whose cursor is after `answered` was counted (both epoch ms).
 * `undated`: what the count of everything has beyond the dated rows; 0 where a date filter holds.
 */
export type Count = {
  readonly rows: number;
  readonly undated: number;
  /** False if the service does not count; then `rows` and `undated` are 0. */
  readonly known: boolean;
  readonly asked: number;
  readonly answered: number;
};

/** One page of a list. `size`: the page size that the service used; `total`: null if it did not count. */
export type Page = { readonly rows: readonly Row[]; readonly size: number; readonly total: number | null };

/** `row`: of no form but its own, undefined if nothing stands there; `total`: as the same answer counts, null if it does not. */
export type Peek = { readonly row: string | undefined; readonly total: number | null };

/** All that the core asks of the world. */
export type Ports = {
  /** Asks the service how many rows a window holds now. Retries what time can heal; throws TransientError or ConfigError at the end. */
  count(window: Window): Promise<Count>;
  /** The window's export in batches. Ends only if the body ended properly; throws BodyError for what is wrong with its content. */
  stream(window: Window): AsyncIterable<readonly Row[]>;
  /** Whether a window holds any row, for services that do not count. */
  holdsAny(window: Window): Promise<boolean>;
  /** What stands at a place (1 and up) of the window's list; undefined if the list does not let itself be asked. */
  peek(window: Window, place: number): Promise<Peek | undefined>;
  /** One page of the window's list, newest first, 1-indexed. */
  page(window: Window, number: number): Promise<Page>;
  /** Backs off after the given number of failures (1 and up) of the same work. */
  rest(failures: number): Promise<void>;
  /** Epoch ms by the service's clock. */
  now(): number;
  note(notice: Notice): void;
};
