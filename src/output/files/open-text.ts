import { once } from "node:events";
import { createReadStream, readFileSync } from "node:fs";
import { pipeline } from "node:stream";
import { createGunzip, gunzipSync } from "node:zlib";
import { ConfigError } from "../../base/errors.ts";
import { openStdin, textDecoder } from "./read-file.ts";
import { codeOf, reasonOf } from "./reason.ts";

/** The first bytes of files in formats that this program does not read. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/^PK\p{Cc}\p{Cc}/u, "a zip archive, such as an Excel workbook"],
  [/^\xd0\xcf\p{Cc}\xe0/u, "an Excel workbook"],
  [/^(?:PAR1|ARROW1|(?:Obj|ORC)\p{Cc})/u, "Parquet, Avro, ORC or Arrow"],
  [/^(?:\x28\xb5\x2f\xfd|BZh\d|\xfd7zXZ)/, "compressed, and not by gzip"],
  [/^(?:%PDF|SQLite format 3)/, "a PDF or a database"],
  [/^\s*<(?:!doctype|html|\?xml|table)/i, "HTML or XML"],
  [/^\s*\[\s*(?:[[{"\d-]|\]|$)/, "one JSON array"],
  [/^\s*\{\s*\n/, "JSON over several lines"],
  [/^(?:.*\n)?[ |+:]*-{2,}[ |+:=-]*\r?(?:\n|$)|^\s*\xe2[\x94\x95]/, "a table drawn for a terminal"],
];

/** @param name the file in messages, such as `table "x"` */
export const unusable = (name: string, why: string): ConfigError =>
  new ConfigError(`Cannot use the ${name}: ${why}`);

function refuseForm(name: string, bytes: Buffer): void {
  const head = bytes.toString("latin1", 0, 4096).replace(/^\xef\xbb\xbf/, "");
  const [, form] = FORMS.find(([pattern]) => pattern.test(head)) ?? [];
  if (form !== undefined)
    throw unusable(name, `it is ${form}. Save it as CSV, as JSON lines, or as plain lines`);
}

const isGzip = (bytes: Buffer): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;

function failure(name: string, cause: unknown): ConfigError {
  if (cause instanceof ConfigError) return cause;
  const why = codeOf(cause)?.startsWith("Z_") ? "its gzip data is damaged or cut" : reasonOf(cause);
  return new ConfigError(`Cannot read the ${name}: ${why}`, { cause });
}

/** Reads a text file, a gzip file or stdin (`-`) in pieces. Throws ConfigError. @param name in messages, such as `table "x"` */
export async function* piecesOf(
  name: string,
  path: string,
): AsyncGenerator<{ readonly text: string; readonly isLast: boolean }> {
  const decode = textDecoder(name);
  const file = path === "-" ? openStdin() : createReadStream(path);
  try {
    await once(file, "readable");
    const first: Buffer | null = file.read();
    if (first !== null) file.unshift(first);
    const plain = first !== null && isGzip(first) ? pipeline(file, createGunzip(), () => {}) : file;
    let isFirst = true;
    for await (const bytes of plain) {
      if (isFirst) refuseForm(name, bytes);
      isFirst = false;
      yield { text: decode(bytes), isLast: false };
    }
    yield { text: decode(), isLast: true };
  } catch (cause) {
    throw failure(name, cause);
  }
}

/** Reads a whole text file or gzip file. Throws ConfigError. */
export function textOf(name: string, path: string): string {
  try {
    const read = readFileSync(path);
    const bytes = isGzip(read) ? gunzipSync(read) : read;
    refuseForm(name, bytes);
    const decode = textDecoder(name);
    return decode(bytes) + decode();
  } catch (cause) {
    throw failure(name, cause);
  }
}
