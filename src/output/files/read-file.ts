import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { buffer as streamBytes } from "node:stream/consumers";
import { ConfigError } from "../../base/errors.ts";
import { tryParseJson } from "../../base/json.ts";
import { OPEN_OBJECT } from "../../base/json-text.ts";
import { codeOf, reasonOf } from "./reason.ts";

/** Returns a decoder for pieces of UTF-8. A call without a piece ends the text. Throws ConfigError. @param name such as `table "x"` */
export function textDecoder(name: string): (piece?: Uint8Array) => string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let line = 1;
  let before: Uint8Array | undefined;
  const refuse = (nth: number): ConfigError =>
    new ConfigError(
      `Cannot read the ${name}: line ${nth} is not UTF-8, but another encoding, such as UTF-16 (PowerShell's ">") or ` +
        "Latin-1. Save the file as UTF-8",
    );
  return (piece) => {
    // In UTF-16 and UTF-32, each ASCII character contains a NUL.
    if (before === undefined && piece?.subarray(0, 4).includes(0)) throw refuse(1);
    try {
      const text = decoder.decode(piece, { stream: piece !== undefined });
      line += text.split("\n").length - 1;
      before = piece;
      return text;
    } catch {
      // A character may begin in the last piece and end in this piece, so both pieces are searched.
      const begun = latin1(before).replace(/^.*\n|^[\x80-\xbf]+/s, "");
      const lines = `${begun}${latin1(piece)}`.split("\n");
      throw refuse(line + lines.findIndex((one) => !isUtf8(Buffer.from(one, "latin1"))));
    }
  };
}

const latin1 = (bytes: Uint8Array = Buffer.alloc(0)): string => Buffer.from(bytes).toString("latin1");

/** Standard input, which stays open after its end. */
export const openStdin = () => createReadStream("", { fd: 0, autoClose: false });

const ADVICE: Readonly<Record<string, string>> = {
  EACCES: '. Run as its owner ("docker run --user")',
  "ENOENT config": ". `source-contact-intelligence init` makes one",
};

/** Reads a UTF-8 file, a pipe, or stdin (`-`). Throws ConfigError. @param what the name in messages, such as "config" */
export async function readText(what: string, path: string): Promise<string> {
  // A path may be the JSON of a config by mistake. No message quotes the path, because a config has secrets.
  if (/^\s*[[{].*"/s.test(path))
    throw new ConfigError(
      `Cannot read the ${what} file: its name is JSON. Write the JSON into a file and name the file`,
    );
  let bytes: Buffer;
  try {
    bytes = path === "-" ? await streamBytes(openStdin()) : await readFile(path);
  } catch (cause) {
    const advice = ADVICE[`${codeOf(cause)} ${what}`] ?? ADVICE[String(codeOf(cause))] ?? "";
    const why = `${reasonOf(cause)}${advice}`;
    throw new ConfigError(`Cannot read the ${what} file "${path}": ${why}`, { cause });
  }
  const decode = textDecoder(`${what} file "${path}"`);
  const text = decode(bytes);
  // The output of a killed run may end in the middle of a message. Then half a character at its end is not an error.
  const isMessage = bytes[bytes.lastIndexOf("\n") + 1] === OPEN_OBJECT;
  return isMessage ? text : text + decode();
}

/** Reads a catalog: a JSON value, or the CATALOG message of `discover`. Throws ConfigError. */
export async function readCatalog(path: string): Promise<unknown> {
  const text = await readText("catalog", path);
  const message = text.split("\n").find((line) => /^\s*\{"type":\s*"CATALOG"/.test(line));
  return parseJsonFile("catalog", path, message ?? text);
}

/** The value of a JSON text. The error names the wrong place and quotes no text, because a config has secrets. */
export function parseJsonFile(what: string, path: string, text: string): unknown {
  const value = tryParseJson(text);
  if (value !== undefined) return value;
  const before = text.slice(0, endOfJson(text));
  const [line, column] = [before.split("\n").length, before.length - before.lastIndexOf("\n")];
  const why = text.trim() === "" ? "it is empty" : `it is not JSON, see line ${line}, column ${column}`;
  throw new ConfigError(`Cannot use the ${what} file "${path}": ${why}`);
}

/** The number of first characters that are correct JSON. Some errors of the engine do not name the place. */
function endOfJson(text: string): number {
  let good = 0;
  for (let step = 2 ** Math.ceil(Math.log2(text.length + 1)); step >= 1; step /= 2)
    if (good + step <= text.length && canBegin(text.slice(0, good + step))) good += step;
  return good;
}

function canBegin(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const [, place] = /position (\d+)/.exec(String(error)) ?? [];
    return place === undefined ? /end of JSON/.test(String(error)) : Number(place) >= text.length;
  }
}
