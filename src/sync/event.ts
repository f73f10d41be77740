import type { Status } from "./coverage.ts";
import type { Filters } from "./state.ts";
import type { Window } from "./window.ts";

/** The bytes of one JSON object as latin1, one byte a character. The program understands only its ASCII characters. */
export type RawLine = string & { readonly __brand: "RawLine" };

export type Lines = readonly RawLine[];

/** The written state of a stream: one JSON object that always has all keys. */
export type StreamState = Readonly<Record<string, unknown>>;

/** A JSON schema of one field. */
export type FieldSchema = Readonly<Record<string, unknown>>;

/**
 * The names that the line of a usual row may have: each at most once, in this order, as latin1 and without escapes.
 * A usual row is one object without spaces between its tokens and without an inner object. Undefined: the row may be unusual.
 */
export type UsualNames = readonly string[] | undefined;

/** Lines to write. */
export type LineBatch = {
  readonly lines: Lines;
  /** The names of each line; absent: every row may be unusual. */
  readonly names?: readonly UsualNames[];
  /** The number of suppressed rows, records and items, which are not among the lines. */
  readonly suppressed?: number;
  /** The number of lines with a cursor that no rule can read. */
  readonly unreadable?: number;
};

/**
 * The facts about the reading of a window, without values of rows.
 * `counted`: null if nothing was counted. `shown`: distinct rows, also suppressed rows. `seconds`: by the service's clock.
 */
export type WindowRecord = Filters & {
  readonly kind: Window["kind"];
  /** The date filters of the requests; null: no filter. */
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
 * The reason why days are read.
 * - `new`: no run has proven the days.
 * - `retry`: rows disappeared while an earlier run read the days, so an equal result is believed now.
 * - `lookback`: every run reads the days, and most of their rows were delivered before.
 * - `turn`: the days were proven, and their rows are delivered again.
 */
export type Why = "new" | "retry" | "lookback" | "turn";

/**
 * The purchases of a stream of jobs. `submissions`: also submissions without an answer. `credits`: as answers report them.
 * `open`: the number of jobs that a later run collects.
 */
export type Spent = { readonly submissions: number; readonly credits: number; readonly open: number };

/** An event of a run, before a language writes it. The run adds the namespace that the catalog gives to the stream. */
export type Event = { readonly namespace?: string | undefined } & StreamEvent;

/** An event of one kind. */
export type EventOf<Kind extends Event["kind"]> = Extract<Event, { kind: Kind }>;

type StreamEvent =
  /** `before`: the stream's part of the incoming state; absent or undefined: there is no state. */
  | { readonly kind: "open"; readonly stream: string; readonly before?: unknown }
  | { readonly kind: "estimate"; readonly stream: string; readonly rows: number }
  /** Top-level fields that the stream's schema lacks. The event precedes the first batch that contains the fields. */
  | {
      readonly kind: "fields";
      readonly stream: string;
      readonly added: Readonly<Record<string, FieldSchema>>;
    }
  /**
   * Rows that were read together, because one event for each row would cost more than to parse the row.
   * `at`: the time of the reading (epoch ms). `window`: the number of the row's window, by the order in which windows begin;
   * absent: the stream is one window. `span`: the days of the window for names of files.
   * `why`: an output may skip rows of a `lookback` that it already has.
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
   * A state for the earlier records of the windows with a number below `windows`; absent: of all windows.
   * Only the last of these windows may send more records. `read`: the windows since the last checkpoint.
   * `spent`: the purchases of the stream in this run so far.
   * `announces`: only this state contains a purchase, so the state must be durable before the run continues.
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
  /** `isTimeUp`: the run's time ended before all planned windows were read. */
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

/** An event that may be written before earlier records and checkpoints. `stream`: the stream that the event is about. */
export type Notice = { readonly stream?: string | undefined } & (
  | {
      readonly kind: "log";
      readonly level: "debug" | "info" | "warn";
      readonly text: string;
      /** A measurement of a stream, for programs that show measurements instead of text. */
      readonly metric?: { readonly tags: { readonly stream: string } };
    }
  /**
   * An attempt lacked rows or broke off, so its days are read again. `shown`: the number of rows that arrived.
   * `to`: the last day; null: up to now, or rows without a date. `counted`: null if unknown.
   * `isCut`: a part of the rows arrived, or the answer ended without an error; otherwise the attempt failed.
   */
  | {
      readonly kind: "cut";
      readonly isExport: boolean;
      readonly isCut: boolean;
      readonly days: string;
      readonly to: string | null;
      readonly shown: number;
      readonly counted: number | null;
    }
  /** A failed request is made again. `what`: the end of "Cannot …". `reason`: a few words. `attempt`: 2 and up. */
  | {
      readonly kind: "retrying";
      readonly what: string;
      readonly reason: string;
      readonly attempt: number;
      readonly attempts: number;
      readonly waitMs: number;
    }
  /** The service limits this key, so every open stream waits. `until`: epoch ms by this machine's clock. */
  | { readonly kind: "limited"; readonly until: number }
);

/** A message after which a run continues. */
export const info = (text: string) => ({ kind: "log", level: "info", text }) as const;
export const warning = (text: string) => ({ kind: "log", level: "warn", text }) as const;
