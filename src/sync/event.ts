/** One JSON object as the bytes it came in, one byte a character (latin1). Only its ASCII has meaning to this program. */
export type RawLine = string & { readonly __brand: "RawLine" };

export type Lines = readonly RawLine[];

/** A stream's state as it is written: one JSON object, every key present each time. */
export type StreamState = Readonly<Record<string, unknown>>;

/** A JSON schema of one field. */
export type FieldSchema = Readonly<Record<string, unknown>>;

/** What a run says before it has a language. */
export type Event =
  | { readonly kind: "open"; readonly stream: string }
  | { readonly kind: "estimate"; readonly stream: string; readonly rows: number }
  /** Top-level fields that the stream's schema lacks; precedes the first batch that has them. */
  | {
      readonly kind: "fields";
      readonly stream: string;
      readonly added: Readonly<Record<string, FieldSchema>>;
    }
  /** A batch, because one event a row costs more than the parse. `at`: epoch ms at which the batch was read. */
  | { readonly kind: "records"; readonly stream: string; readonly lines: Lines; readonly at: number }
  /** Covers every record of its stream before it. */
  | { readonly kind: "checkpoint"; readonly stream: string; readonly state: StreamState }
  | { readonly kind: "close"; readonly stream: string; readonly complete: boolean; readonly error?: unknown }
  /** The run itself cannot go on. */
  | { readonly kind: "failed"; readonly error: unknown }
  /** The last event of every run. */
  | { readonly kind: "end" }
  | Notice;

/** Covers nothing, so it may overtake records and checkpoints. */
export type Notice =
  | { readonly kind: "log"; readonly level: "info" | "warn"; readonly text: string }
  /** The service limits this key: every open stream waits. `until`: epoch ms by this machine's clock. */
  | { readonly kind: "limited"; readonly until: number };
