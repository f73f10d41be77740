import { getSystemErrorMap } from "node:util";
import { ConfigError, ConnectorError, OutputError } from "../../base/errors.ts";

/** The code of a system error, such as `ENOSPC`; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/** Returns undefined for the error of a missing file or folder. Throws other errors. */
export function unlessMissing(error: unknown): undefined {
  if (codeOf(error) !== "ENOENT") throw error;
}

/** The system's reason in words: "no space left on device". Never quotes parsed text. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === undefined)
    return error instanceof Error && !(error instanceof SyntaxError) ? error.message : "unknown error";
  const [, words = code] = [...getSystemErrorMap().values()].find(([name]) => name === code) ?? [];
  return PLAIN_WORDS[code] ?? words;
}

/** Words for codes of the system. EBUSY and EXDEV: a rename cannot replace a file that is a mount of its own. */
const PLAIN_WORDS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOSPC: "no space left on device. Free space and run again",
  ENOTDIR: "a part of its path is a file, not a folder",
  ...{ EBUSY: "it is mounted alone", EXDEV: "it is mounted alone", EISDIR: "it is a folder" },
  ...{ ENOSYS: "its volume cannot do that", ENOTSUP: "its volume cannot do that" },
};
const FORBIDDEN: ReadonlySet<string> = new Set(["EACCES", "EBUSY", "EPERM", "EROFS", "EXDEV"]);

/** The codes of failures after which the disk may lack written bytes. */
const LOST: ReadonlySet<string> = new Set(["EDQUOT", "EIO", "ENOSPC"]);

export const losesBytes = (error: unknown): boolean => LOST.has(codeOf(error) ?? "");

const WAY_OUT =
  ". This user must be able to write into the folder. In a container, mount the folder, not the file alone";

/** The error of a file or folder that cannot be written. A full disk may have space later. Returns a ConnectorError unchanged. */
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

/** The error of a failed write into a folder, with the system's reason. Returns errors of other kinds unchanged. */
export function writeFailure(folder: string, error: unknown): unknown {
  if (error instanceof ConnectorError || codeOf(error) === undefined) return error;
  const { path = folder } = error as { path?: string };
  return new OutputError(`Cannot write to "${path}": ${reasonOf(error)}`, { cause: error });
}
