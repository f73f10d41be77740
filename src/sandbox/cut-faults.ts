import type { Answer } from "./answer.ts";
import type { Delivery } from "./delivery.ts";
import type { Cut, Fault, FaultSpec } from "./fault.ts";

const GZIP_TRAILER_BYTES = 8;
/** Enough that the compressed data itself lacks its end. */
const GZIP_TAIL_BYTES = 24;
/** More than any row has, so that an announced length is never reached. */
const MORE_THAN_A_ROW = 8192;

const DRIP = { label: "BYTES", type: "number", fallback: "7" } as const;

/** Faults of the connection under a body that is itself right. */
export const CUT_FAULTS: readonly (readonly [string, FaultSpec])[] = [
  cut("reset", "chunked body, then the connection is reset", { ending: "reset" }),
  cut("fin", "chunked body, then the connection closes without the last chunk", { ending: "fin" }),
  cut("end", "chunked body that ends properly, but too early", { ending: "end" }),
  cut("midline", "chunked body that ends properly in the middle of a line", { ending: "end", torn: true }),
  cut("length", "announced length, then the connection closes early", {
    ending: "fin",
    framing: "length",
    gzip: false,
  }),
  cut("length-reset", "announced length, then the connection is reset", {
    ending: "reset",
    framing: "length",
    gzip: false,
  }),
  cut("close", "body that ends with its connection, too early, after a whole line", {
    ending: "fin",
    framing: "close",
    gzip: false,
  }),
  cut("close-gzip", "gzip body that ends with its connection, too early", {
    ending: "fin",
    framing: "close",
    gzip: true,
    holdBack: GZIP_TAIL_BYTES,
  }),
  cut("gzip-cut", "properly ended chunks around a gzip body that is cut", {
    ending: "end",
    gzip: true,
    holdBack: GZIP_TAIL_BYTES,
  }),
  cut("length-gzip", "gzip body with an announced length, then the connection closes early", {
    ending: "fin",
    framing: "length",
    gzip: true,
    holdBack: GZIP_TAIL_BYTES,
  }),
  cut("gzip-trailer", "the whole gzip body but for its last eight bytes", {
    ending: "end",
    gzip: true,
    holdBack: GZIP_TRAILER_BYTES,
    whole: true,
  }),
  cut("stall", "some rows, then silence", { ending: "hang" }),
  [
    "drip",
    {
      kind: "cut",
      description: "the whole body, a few bytes at a time; every= ms between them",
      argument: DRIP,
      options: ["every"],
      cut: { ending: "end", whole: true, drips: true },
    },
  ],
];

/** What is delivered, and how, once the cut has struck. */
export function applyCut(
  answer: Answer,
  planned: Delivery,
  fault: Fault,
  cut: Cut,
  after: number,
): [Answer, Delivery] {
  const pieces = cut.whole ? answer.pieces : firstPieces(answer.pieces, after, cut.torn ?? false);
  const gzip = cut.gzip ?? planned.gzip;
  const isUnfinished = gzip && cut.ending !== "end";
  const framing = cut.framing ?? "chunked";
  const delivery: Delivery = {
    ...planned,
    framing,
    gzip,
    ending: cut.ending,
    holdBack: cut.holdBack ?? (isUnfinished ? GZIP_TAIL_BYTES : 0),
    ...(framing === "length" ? { length: (after + 2) * MORE_THAN_A_ROW } : {}),
    ...(cut.drips ? { drip: { bytes: fault.value, everyMs: Number(fault.options.get("every") ?? 0) } } : {}),
  };
  return [{ ...answer, pieces }, delivery];
}

function* firstPieces(pieces: Iterable<string>, count: number, torn: boolean): Generator<string> {
  let nth = 0;
  for (const piece of pieces) {
    if (nth++ < count) yield piece;
    else {
      if (torn) yield piece.slice(0, Math.floor(piece.length / 2));
      return;
    }
  }
}

function cut(name: string, description: string, how: Cut): [string, FaultSpec] {
  return [name, { kind: "cut", description, cut: how }];
}
