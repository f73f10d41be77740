import { ConnectorError } from "../base/errors.ts";
import { printableLines } from "../base/json.ts";

const MAX_CAUSES = 8;
/** The maximum number of characters of a message. Meltano reads 64 KiB a line, and an escaped character needs six bytes. */
const MAX_TEXT = 8 * 1024;

/** The start of a text for a log or a message. Names from a catalog or a state can be very long. */
export const fitText = (text: string): string => printableLines(text.slice(0, MAX_TEXT));

/** The message for a person. Hides the message of an unexpected error, which may quote a row. */
export function userMessage(error: unknown): string {
  if (error instanceof ConnectorError) return fitText(error.message);
  return `Cannot continue: this is a bug of source-contact-intelligence, please report it (${errorName(error)})`;
}

/** The class and message of an error and of its causes, for debugging. */
export function causeChain(error: unknown): string {
  const links: string[] = [];
  for (let next = error; next !== undefined && links.length < MAX_CAUSES; next = causeOf(next))
    links.push(linkOf(next));
  return fitText(links.join("; caused by "));
}

/** The frames of an unexpected error, without its message; undefined for an expected error. */
export function framesOf(error: unknown): string | undefined {
  if (error instanceof ConnectorError || !(error instanceof Error)) return undefined;
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [errorName(error), ...frames].join("\n");
}

function causeOf(error: unknown): unknown {
  if (error instanceof AggregateError && error.cause === undefined) return error.errors[0];
  return error instanceof Error ? error.cause : undefined;
}

/** Names an error. Hides the message of a SyntaxError, because the message quotes the input, such as a row. */
function linkOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof SyntaxError) return errorName(error);
  const { code } = error as NodeJS.ErrnoException;
  const name = typeof code === "string" ? `${errorName(error)} ${code}` : errorName(error);
  return error.message === "" ? name : `${name}: ${error.message}`;
}

const errorName = (error: unknown): string => (error instanceof Error ? error.name : typeof error);
