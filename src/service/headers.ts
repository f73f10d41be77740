import type { IncomingHttpHeaders } from "node:http";

const LONGEST_MS = 300_000;
const SHORTEST_MS = 1_000;

/** The headers of an answer. A layer may add one to an answer that has it: then its value is a list, with commas. */
export type Headers = Readonly<Record<string, string | undefined>>;

export const toHeaders = (headers: IncomingHttpHeaders): Headers =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(", ")]));

/** The first value of a header of numbers or dates. Dates may have a comma behind the day of the week. */
function firstOf(headers: Headers, name: string): string {
  const [first = ""] = /^(?:\s*[a-z]{3,9},)?[^,]*/i.exec(headers[name] ?? "") ?? [];
  return first.trim();
}

/** The service's time (epoch ms); NaN if the answer does not say it. */
export const dateOf = (headers: Headers): number => Date.parse(firstOf(headers, "date"));

/**
 * Ms to wait by a Retry-After header: seconds, or an HTTP date which is compared with the service's own clock.
 * At least a second and at most five minutes; undefined for anything that is neither.
 */
export function retryAfterMs(headers: Headers, serviceNow: number): number | undefined {
  const value = firstOf(headers, "retry-after");
  const seconds = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1_000 : Number.NaN;
  const asked = /[a-z]/i.test(value) ? Date.parse(value) - serviceNow : seconds;
  return Number.isNaN(asked) ? undefined : Math.min(LONGEST_MS, Math.max(SHORTEST_MS, asked));
}

/** The encodings of a body. Names have no case (RFC 9110, 8.4.1), and `x-gzip` is `gzip`. */
export const encodingsOf = (headers: Headers): readonly string[] =>
  (headers["content-encoding"] ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim().replace(/^x-/, ""))
    .filter((name) => name !== "" && name !== "identity");

/** Whether an answer has the length of its body, or chunks: a cut is then an error. */
export const isFramed = (headers: Headers): boolean =>
  headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
