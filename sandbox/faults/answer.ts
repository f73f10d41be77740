import type { Collection } from "../data/account.ts";
import type { Filter } from "../data/dataset.ts";
import type { ServiceError } from "../data/service-error.ts";
import { toWire, wireJson } from "../data/wire-text.ts";

/** The subject of a stream. */
export type Scope = { readonly collection: Collection; readonly filter: Filter };

/** The answer of an endpoint, before a fault changes it. */
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body in wire text; in a stream each piece is one line with its line feed. Read at most once. */
  readonly pieces: Iterable<string>;
  /** About how many rows the body has. */
  readonly rows: () => number;
  /** Whether the body is compressed: for clients that take gzip, or for all. Default: for none. */
  readonly gzip?: "accepted" | "always";
  /** There for streams, whose length is not known in advance. */
  readonly stream?: Scope;
  /** There for pages of a list. */
  readonly page?: Scope;
};

/** How a body ends: properly, properly and then closing the connection, cut by FIN, cut by RST, or not at all. */
export type Ending = "end" | "end-close" | "fin" | "reset" | "hang";

/** How an answer travels. */
export type Delivery = {
  /** `close`: no length and no chunks, so only the end of the connection ends the body. */
  readonly framing: "chunked" | "length" | "close";
  /** The announced content-length; absent with `length` framing means the true one. */
  readonly length?: number;
  readonly gzip: boolean;
  /** How many of the last bytes are never sent. */
  readonly holdBack: number;
  /** After this number of bytes nothing more is sent, and the connection closes. */
  readonly most?: number;
  readonly ending: Ending;
  /** `after`: bytes that are sent at once. */
  readonly drip?: { readonly bytes: number; readonly everyMs: number; readonly after: number };
  readonly bytesPerSecond?: number | undefined;
};

export type Response = { readonly answer: Answer; readonly delivery: Delivery };

/** A body in the error envelope of the interface, as wire text. */
export const errorBody = (code: string, message: string): string =>
  wireJson({ success: false, error: { code, message } });

export function errorAnswer({ status, code, message, headers }: ServiceError): Answer {
  return jsonAnswer(status, errorBody(code, message), headers);
}

export function jsonAnswer(
  status: number,
  wireText: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8", ...headers },
    pieces: [wireText],
    rows: () => 1,
  };
}

export function textAnswer(status: number, contentType: string, text: string): Answer {
  return { status, headers: { "content-type": contentType }, pieces: [toWire(text)], rows: () => 1 };
}
