import type { Delivery, Response } from "./answer.ts";
import type { Cut, Fault, FaultSpec, FaultTable } from "./fault.ts";

const GZIP_TRAILER_BYTES = 8;
/** Enough that the compressed data itself lacks its end. */
const GZIP_TAIL_BYTES = 24;
/** More than any row has, so that an announced length is never reached. */
const MORE_THAN_A_ROW = 8192;

const DRIP = { label: "BYTES", type: "number", fallback: "7" } as const;

const cut = (description: string, how: Cut): FaultSpec => ({ kind: "cut", description, cut: how });

/** Faults of the connection under a body that is itself right. */
export const CUT_FAULTS: FaultTable = {
  reset: cut("chunked body, then the connection is reset", { ending: "reset" }),
  fin: cut("chunked body, then the connection closes without the last chunk", { ending: "fin" }),
  end: cut("chunked body that ends properly, but too early", { ending: "end" }),
  midline: cut("chunked body that ends properly in the middle of a line", { ending: "end", torn: true }),
  length: cut("announced length, then the connection closes early", {
    ending: "fin",
    framing: "length",
    gzip: false,
  }),
  "length-reset": cut("announced length, then the connection is reset", {
    ending: "reset",
    framing: "length",
    gzip: false,
  }),
  close: cut("body that ends with its connection, too early, after a complete line", {
    ending: "fin",
    framing: "close",
    gzip: false,
  }),
  "close-gzip": cut("gzip body that ends with its connection, too early", {
    ending: "fin",
    framing: "close",
    gzip: true,
    holdBack: GZIP_TAIL_BYTES,
  }),
  "gzip-cut": cut("properly ended chunks around a gzip body that is cut", {
    ending: "end",
    gzip: true,
    holdBack: GZIP_TAIL_BYTES,
  }),
  "length-gzip": cut("gzip body with an announced length, then the connection closes early", {
    ending: "fin",
    framing: "length",
    gzip: true,
    holdBack: GZIP_TAIL_BYTES,
  }),
  "gzip-trailer": cut("the gzip body but for its last eight bytes", {
    ending: "end",
    gzip: true,
    holdBack: GZIP_TRAILER_BYTES,
    whole: true,
  }),
  gateway: {
    kind: "cut",
    description: "the connection closes after BYTES of a body, as behind a gateway with a time limit",
    argument: { label: "BYTES", type: "number" },
    cut: { ending: "end", whole: true, gzip: false, byBytes: true },
  },
  stall: cut("some rows, then silence", { ending: "hang" }),
  drip: {
    kind: "cut",
    description: "the body, BYTES at a time, with every= ms between them",
    argument: DRIP,
    options: ["every"],
    cut: { ending: "end", whole: true, drips: true },
  },
  endless: {
    kind: "cut",
    description:
      "a body without an end: a blank line, or a piece of the same row, each every= ms; after=all behind all rows",
    argument: { label: "LINE", type: "text", fallback: "blank", choices: ["blank", "row"] },
    options: ["every"],
    cut: {
      ending: "hang",
      gzip: false,
      drips: true,
      endless: (row, { text }) => (text === "row" ? row : "\n"),
    },
  },
};

/** The response, cut after this number of rows. */
export function applyCut(
  { answer, delivery: planned }: Response,
  fault: Fault,
  cut: Cut,
  after: number,
): Response {
  const rows = cut.endless && fault.after !== undefined ? [...firstPieces(answer.pieces, after, false)] : [];
  const pieces = cut.endless
    ? forEver(rows.length > 0 ? rows : answer.pieces, rows, fault, cut.endless)
    : cut.whole
      ? answer.pieces
      : firstPieces(answer.pieces, after, cut.torn ?? false);
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
    ...(cut.byBytes ? { most: fault.value } : {}),
    ...(cut.drips ? { drip: { ...dripOf(fault), after: rows.join("").length } } : {}),
  };
  return { answer: { ...answer, pieces }, delivery };
}

/** `drip=BYTES` says how many bytes go at once; of what is endless, a line break or about a row each second. */
function dripOf({ value, text, options }: Fault): Omit<NonNullable<Delivery["drip"]>, "after"> {
  const endless = text === "row" ? 512 : 1;
  const isEndless = Number.isNaN(value);
  return {
    bytes: isEndless ? endless : value,
    everyMs: Number(options.get("every") ?? (isEndless ? 1000 : 0)),
  };
}

/** One line for ever, made of the first one, behind some rows. */
function* forEver(
  pieces: Iterable<string>,
  before: readonly string[],
  fault: Fault,
  toLine: NonNullable<Cut["endless"]>,
): Generator<string> {
  const [first = "\n"] = pieces;
  const line = toLine(first, fault);
  yield* before;
  for (;;) yield line;
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
