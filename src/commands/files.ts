import { readFile } from "node:fs/promises";
import { ConfigError } from "../errors.ts";

/** Reads a text file of any name, `/dev/stdin` too, without a byte order mark. `what`: such as "config". */
export async function readText(what: string, path: string): Promise<string> {
  try {
    return (await readFile(path, "utf8")).replace(/^\uFEFF/, "");
  } catch (cause) {
    const { code } = cause as { code?: unknown };
    throw new ConfigError(
      `Cannot read the ${what} file "${path}": ${code === "ENOENT" ? "there is none" : String(code)}`,
    );
  }
}

/** Reads a JSON file. The parser's own message is left out: it quotes what it could not read. */
export async function readJson(what: string, path: string): Promise<unknown> {
  const text = await readText(what, path);
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(`Cannot use the ${what} file "${path}": it is not JSON`);
  }
}
