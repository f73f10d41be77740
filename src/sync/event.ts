import type { Status } from "./coverage.ts";
import type { Filters } from "./state.ts";
import type { Window } from "./window.ts";

/** One JSON object as the bytes it came in, one byte a character (latin1). Only its ASCII has meaning to this program. */
export type RawLine = string & { readonly __brand: "RawLine" };

export type Lines = readonly RawLine[];

/** A stream's state as it is written: one JSON object, every key present each time. */
export type StreamState = Readonly<Record<string, unknown>>;

/** A JSON schema of one field. */
export type FieldSchema = Readonly<Record<string, unknown>>;

/**
 * The names that the line of a usual row may have, each at most once and in this order, written as JSON
 * writes them without an escape, one byte a character. It is one object without any space between its tokens and without
 * an object in it. Undefined: nothing is known.
 */
export type UsualNames = readonly string[] | undefined;

/** Lines to write. */
export type LineBatch = {
  readonly lines: Lines;
  /** The names of each line; absent: nothing is known of any. */
  readonly names?: readonly UsualNames[];
  /** Rows, records and items that were left out because they are suppressed. */
  readonly suppressed?: number;
  /** Rows among the lines with a cursor that no rule can read. */
  readonly unreadable?: number;
};

/**
 * How a window was read, without a value of a row. `counted`: null if nothing was counted. `shown`: distinct rows, suppressed ones
 * too. `seconds`: by the service's clock.
 */
export type WindowRecord = Filters & {
  readonly kind: Window["kind"];
  /** The filters of its requests; null: none. */
  readonly discovered_from: string | null;
  readonly discovered_to: string | null;
  readonly verdict: Status;
  readonly counted: number | null;
  readonly shown: number;
  readonly suppressed: number;
  readonly passes: number;
  readonly seconds: number;
};

/**
 * Why days are read. `new`: no run has proven them. `retry`: an earlier run read all rows that stayed, so the same result is
 * believed now. `lookback`: every run reads them, so that most of their rows were delivered before. `turn`: they were proven,
 * and their rows are delivered again.
 */
export type Why = "new" | "retry" | "lookback" | "turn";

/**
 * The purchases of a stream of jobs: its submissions, also those whose answer was lost, and the credits of the answers that came.
 * `open`: the jobs that a later run collects.
 */
export type Spent = { readonly submissions: number; readonly credits: number; readonly open: number };

/**
 * An event of a run, before a language writes it. `namespace`: under which the catalog files the stream; the run adds it to
 * each event of a stream that has one.
 */
export type Event = { readonly namespace?: string | undefined } & StreamEvent;

type StreamEvent =
  /** `before`: the stream's part of the incoming state; absent or undefined: there is none. */
  | { readonly kind: "open"; readonly stream: string; readonly before?: unknown }
  | { readonly kind: "estimate"; readonly stream: string; readonly rows: number }
  /** Top-level fields that the stream's schema lacks; precedes the first batch that has them. */
  | {
      readonly kind: "fields";
      readonly stream: string;
      readonly added: Readonly<Record<string, FieldSchema>>;
    }
  /**
   * A batch, because one event a row costs more than the parse. `at`: epoch ms at which the batch was read.
   * `window`: which window of the stream it is of, in the order in which they begin; absent where there is only one.
   * `span`: the days of that window, as names of files have them. `why`: an output may leave out the rows of a `lookback` that
   * it has.
   */
  | ({
      readonly kind: "records";
      readonly stream: string;
      readonly at: number;
      readonly window?: number;
      readonly span?: string;
      readonly why?: Why;
    } & LineBatch)
  /**
   * Every record before it of the windows below `windows` is delivered; absent: every record before it. Records of the last
   * such window may follow. `spent`: what the stream has bought in this run so far. `announces`: only this state
   * contains a purchase, so it must be durable before the run continues. `read`: the windows that no checkpoint before it has covered.
   */
  | {
      readonly kind: "checkpoint";
      readonly stream: string;
      readonly state: StreamState;
      readonly windows?: number;
      readonly read?: readonly WindowRecord[];
      readonly spent?: Spent;
      readonly announces?: boolean;
    }
  /** `isTimeUp`: the run ended before all that was planned. */
  | {
      readonly kind: "close";
      readonly stream: string;
      readonly complete: boolean;
      readonly error?: unknown;
      readonly isTimeUp?: boolean;
    }
  /** The run itself cannot continue. */
  | { readonly kind: "failed"; readonly error: unknown }
  /** The last event of every run. */
  | { readonly kind: "end" }
  | Notice;

/** Covers nothing, so it may overtake records and checkpoints. `stream`: the stream whose rows it is about. */
export type Notice = { readonly stream?: string | undefined } & (
  | {
      readonly kind: "log";
      readonly level: "debug" | "info" | "warn";
      readonly text: string;
      /** A measurement of a stream, for programs that show those instead of the text. */
      readonly metric?: { readonly tags: { readonly stream: string } };
    }
  /**
   * An attempt lacked rows or broke off. Its days are read again. `to`: the last day; null: up to now, or without a date.
   * `shown`: the rows that arrived; `counted`: null if unknown.
   */
  | {
      readonly kind: "cut";
      readonly isExport: boolean;
      readonly days: string;
      readonly to: string | null;
      readonly shown: number;
      readonly counted: number | null;
    }
  /** A request has failed and is made again. `what`: the end of "Cannot …"; `reason`: a few words; `attempt`: 2 and up. */
  | {
      readonly kind: "retrying";
      readonly what: string;
      readonly reason: string;
      readonly attempt: number;
      readonly attempts: number;
      readonly waitMs: number;
    }
  /** The service limits this key: every open stream waits. `until`: epoch ms by this machine's clock. */
  | { readonly kind: "limited"; readonly until: number }
);

/** A message after which a run continues. */
export const info = (text: string) => ({ kind: "log", level: "info", text }) as const;
export const warning = (text: string) => ({ kind: "log", level: "warn", text }) as const;
