import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { text as streamText } from "node:stream/consumers";
import { ConfigError } from "../../base/errors.ts";
import { codeOf, reasonOf } from "./reason.ts";

/**
 * Reads a text file without its byte order mark. Links are followed, named pipes and `/dev/stdin` are read to their end,
 * and `-` is stdin. Throws ConfigError.
 * @param what the file's part in the run, such as "config"
 */
export async function readText(what: string, path: string): Promise<string> {
  // Neither the message nor its cause may have it: a config has secrets.
  if (/^\s*[[{].*"/s.test(path)) {
    throw new ConfigError(`Cannot read the ${what} file: what is named is not a path, but JSON. Name a file`);
  }
  let text: string;
  try {
    text =
      path === "-"
        ? await streamText(createReadStream("", { fd: 0, autoClose: false }))
        : await readFile(path, "utf8");
  } catch (cause) {
    const advice = codeOf(cause) === "EACCES" ? '. Run as its owner ("docker run --user")' : "";
    const why = codeOf(cause) === "ENOENT" ? "there is none" : `${reasonOf(cause)}${advice}`;
    throw new ConfigError(`Cannot read the ${what} file "${path}": ${why}`, { cause });
  }
  // The byte order mark of UTF-16, read as UTF-8.
  if (text.startsWith("\uFFFD\uFFFD"))
    throw new ConfigError(
      `Cannot read the ${what} file "${path}": it is UTF-16, which PowerShell's ">" writes. Save it as UTF-8`,
    );
  return text.replace(/^\uFEFF/, "");
}

/** Reads the state of a file, or of a folder of `read --output`. Throws ConfigError. */
export async function readStateText(path: string): Promise<string> {
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true;
  return await readText("state", isFolder ? join(path, "state.json") : path);
}

/**
 * Reads a catalog: a JSON value, or the messages that `discover` printed, a line each, of which the CATALOG counts.
 * Throws ConfigError.
 */
export async function readCatalog(path: string): Promise<unknown> {
  const text = await readText("catalog", path);
  const message = text.split("\n").find((line) => /^\s*\{"type":\s*"CATALOG"/.test(line));
  return parseJsonFile("catalog", path, message ?? text);
}

/** The value of a file's text. The error names the place that is no JSON, and never quotes it: a config has secrets. */
export function parseJsonFile(what: string, path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const before = text.slice(0, endOfJson(text));
    const [line, column] = [before.split("\n").length, before.length - before.lastIndexOf("\n")];
    const place = `it is not JSON, see line ${line}, column ${column}`;
    throw new ConfigError(
      `Cannot use the ${what} file "${path}": ${text.trim() === "" ? "it is empty" : place}`,
    );
  }
}

/** How many characters of a text can begin a JSON text. Not every error of the engine has the place. */
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
