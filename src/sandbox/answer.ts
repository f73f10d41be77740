import type { Collection } from "./account.ts";
import type { Filter } from "./roster.ts";

/** What a stream is a stream of. */
export type Scope = { readonly collection: Collection; readonly filter: Filter };

/** What a handler answers, before anything happens to it on its way. */
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body in wire text; in a stream each piece is one line with its line feed. Read at most once. */
  readonly pieces: Iterable<string>;
  /** About how many rows the body has. */
  readonly rows: () => number;
  /** Whether the body is compressed for clients that take gzip. */
  readonly compressible?: boolean;
  /** There for streams, whose length nobody knows up front. */
  readonly stream?: Scope;
};
