import { getSystemErrorMap } from "node:util";
import { ConfigError, ConnectorError, OutputError } from "../../base/errors.ts";

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
  return PLAIN_WORDS[code] ?? words;
}

/** Plainer words than the system's. A rename replaces no file that is a mount of its own. */
const PLAIN_WORDS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOSPC: "no space left on device. Free space and run again",
  ENOTDIR: "a part of its path is a file, not a folder",
  ...{ EBUSY: "it is mounted alone", EXDEV: "it is mounted alone", EISDIR: "it is a folder" },
  ...{ ENOSYS: "its volume cannot do that", ENOTSUP: "its volume cannot do that" },
};
const FORBIDDEN: ReadonlySet<string> = new Set(["EACCES", "EBUSY", "EPERM", "EROFS", "EXDEV"]);

/** A failure after which the disk may lack what was written. */
const LOST: ReadonlySet<string> = new Set(["EDQUOT", "EIO", "ENOSPC"]);

export const losesBytes = (error: unknown): boolean => LOST.has(codeOf(error) ?? "");

const WAY_OUT =
  ". This user must be able to write into the folder. In a container, mount the folder, not the file alone";

/** The error of a file or folder that cannot be written. A full disk may have room later. Returns our own errors as they are. */
export function cannotMake(
  what: string,
  cause: unknown,
  why = codeOf(cause) === "ENOENT" ? "its folder does not exist" : reasonOf(cause),
): ConnectorError {
  if (cause instanceof ConnectorError) return cause;
  const Failure = losesBytes(cause) ? OutputError : ConfigError;
  const way = FORBIDDEN.has(codeOf(cause) ?? "") ? WAY_OUT : "";
  return new Failure(`Cannot ${what}: ${why}${way}`, { cause });
}

/** An error of writing into a folder, with the file and the system's reason. Returns other errors as they are. */
export function writeFailure(folder: string, error: unknown): unknown {
  if (error instanceof ConnectorError || codeOf(error) === undefined) return error;
  const { path = folder } = error as { path?: string };
  return new OutputError(`Cannot write to "${path}": ${reasonOf(error)}`, { cause: error });
}
