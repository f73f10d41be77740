import { getSystemErrorMap } from "node:util";
import { ConnectorError, OutputError } from "../../base/errors.ts";

/** The code of a system error, such as `ENOSPC`; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/** Says why the system refused, in words: "no space left on device". Never quotes what was parsed. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === undefined)
    return error instanceof Error && !(error instanceof SyntaxError) ? error.message : "unknown error";
  const [, words = code] = [...getSystemErrorMap().values()].find(([name]) => name === code) ?? [];
  return words;
}

/** An error of writing into a folder, with the file and the system's reason. Returns other errors as they are. */
export function writeFailure(folder: string, error: unknown): unknown {
  if (error instanceof ConnectorError || codeOf(error) === undefined) return error;
  const { path = folder } = error as { path?: string };
  return new OutputError(`Cannot write to "${path}": ${reasonOf(error)}`, { cause: error });
}
