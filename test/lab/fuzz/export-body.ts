import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import type { Dice } from "./dice.ts";
import { bent } from "./hostile.ts";
import { HEADERS } from "./service.ts";

/** How the bytes of an export arrive: packed, in pieces of odd sizes, and perhaps not all of them. */
export type Packing = {
  readonly gzip: "none" | "one" | "members" | "bent";
  readonly separator: string;
  readonly endsWithSeparator: boolean;
  readonly startsWithMark: boolean;
  /** After which share of the bytes the connection breaks (reset) or the body ends as if it were whole. */
  readonly ends: "whole" | { readonly at: number; readonly how: "reset" | "short" };
};

export const anyPacking = (dice: Dice): Packing => ({
  gzip: dice.pick(["none", "none", "one", "members"]),
  separator: dice.pick(["\n", "\n", "\r\n", "\n\n", "\n \n"]),
  endsWithSeparator: dice.chance(0.7),
  startsWithMark: dice.chance(0.1),
  ends: "whole",
});

/** The bytes before they are packed. */
export function bytesOf(lines: readonly string[], packing: Packing): Buffer {
  const { separator, endsWithSeparator, startsWithMark } = packing;
  const text = lines.join(separator) + (endsWithSeparator ? separator : "");
  return Buffer.from(startsWithMark ? `\xef\xbb\xbf${text}` : text, "latin1");
}

/** Answers with an export. */
export function sendExport(response: ServerResponse, plain: Buffer, packing: Packing, dice: Dice): void {
  const packed = packedBytes(plain, packing, dice);
  const { ends } = packing;
  const sent = ends === "whole" ? packed : packed.subarray(0, Math.floor(ends.at * packed.length));
  response.writeHead(200, {
    ...HEADERS,
    "content-type": "application/x-ndjson",
    ...(packing.gzip !== "none" && { "content-encoding": dice.pick(["gzip", "GZIP", "x-gzip"]) }),
  });
  for (const piece of piecesOf(sent, dice)) response.write(piece);
  if (ends !== "whole" && ends.how === "reset") response.write("", () => response.destroy());
  else response.end();
}

function packedBytes(plain: Buffer, { gzip }: Packing, dice: Dice): Buffer {
  switch (gzip) {
    case "none":
      return plain;
    case "one":
      return zipped(plain);
    case "members": {
      const middle = dice.below(plain.length + 1);
      return Buffer.concat([zipped(plain.subarray(0, middle)), zipped(plain.subarray(middle))]);
    }
    case "bent":
      return bent(zipped(plain), dice);
  }
}

const zipped = (bytes: Buffer): Buffer => gzipSync(bytes, { level: 1 });

/** Cuts bytes at odd places, within characters and escapes too; each piece arrives as one. */
function piecesOf(bytes: Buffer, dice: Dice): Buffer[] {
  const pieces: Buffer[] = [];
  const usual = dice.pick([3, 100, 5_000, 60_000]) + Math.floor(bytes.length / 60);
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + dice.below(usual);
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}
