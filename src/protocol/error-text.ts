import { ConnectorError } from "../base/errors.ts";
import { printableLines } from "../base/json.ts";

const MAX_CAUSES = 8;

/** Characters of a message. Meltano reads stderr with a limit of 64 KiB a line; an escaped character takes six bytes. */
const MAX_TEXT = 8 * 1024;

/** A text cut for a log or a message, however long a catalog or a state has made it. */
export const fitText = (text: string): string => printableLines(text.slice(0, MAX_TEXT));

/** The message for a person. An unexpected error is a bug of ours, and its own message may quote anything. */
export function userMessage(error: unknown): string {
  if (error instanceof ConnectorError) return fitText(error.message);
  return `Cannot continue: this is a bug of source-contact-intelligence, please report it (${errorName(error)})`;
}

/** The class and message of an error and of its causes, for debugging. */
export function causeChain(error: unknown): string {
  const links: string[] = [];
  for (let next = error; next !== undefined && links.length < MAX_CAUSES; next = causeOf(next)) {
    links.push(linkOf(next));
  }
  return fitText(links.join("; caused by "));
}

/** The frames of an unexpected error, without its message. Undefined for an expected one. */
export function framesOf(error: unknown): string | undefined {
  if (error instanceof ConnectorError || !(error instanceof Error)) return undefined;
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [errorName(error), ...frames].join("\n");
}

function causeOf(error: unknown): unknown {
  if (error instanceof AggregateError && error.cause === undefined) return error.errors[0];
  return error instanceof Error ? error.cause : undefined;
}

/** `JSON.parse` quotes its input, which may be a row, in the message of a SyntaxError: that one is left out. */
function linkOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof SyntaxError) return errorName(error);
  const { code } = error as NodeJS.ErrnoException;
  const name = typeof code === "string" ? `${errorName(error)} ${code}` : errorName(error);
  return error.message === "" ? name : `${name}: ${error.message}`;
}

const errorName = (error: unknown): string => (error instanceof Error ? error.name : typeof error);
