import type { IncomingHttpHeaders } from "node:http";

const MAX_RETRY_AFTER_MS = 300_000;
const MIN_RETRY_AFTER_MS = 1_000;

/** The headers of an answer. A repeated header has a list as its value, with commas. */
export type Headers = Readonly<Record<string, string | undefined>>;

export const toHeaders = (headers: IncomingHttpHeaders): Headers =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(", ")]));

/** The first value of a header of numbers or dates. A date may have a comma after the day of the week. */
function firstOf(headers: Headers, name: string): string {
  const [first = ""] = /^(?:\s*[a-z]{3,9},)?[^,]*/i.exec(headers[name] ?? "") ?? [];
  return first.trim();
}

/** The service's time (epoch ms); NaN if the answer does not contain the time. */
export const dateOf = (headers: Headers): number => Date.parse(firstOf(headers, "date"));

/** The wait (ms) of a Retry-After header with seconds or a date by the service's clock; undefined for other headers. */
export function retryAfterMs(headers: Headers, serviceNow: number): number | undefined {
  const value = firstOf(headers, "retry-after");
  const seconds = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1_000 : Number.NaN;
  const asked = /[a-z]/i.test(value) ? Date.parse(value) - serviceNow : seconds;
  return Number.isNaN(asked) ? undefined : Math.min(MAX_RETRY_AFTER_MS, Math.max(MIN_RETRY_AFTER_MS, asked));
}

/** The encodings of a body. Names are not case-sensitive (RFC 9110, 8.4.1), and `x-gzip` means `gzip`. */
export const encodingsOf = (headers: Headers): readonly string[] =>
  (headers["content-encoding"] ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim().replace(/^x-/, ""))
    .filter((name) => name !== "" && name !== "identity");

/** Whether an answer has a length or chunks, so that a cut of its body is an error. */
export const isFramed = (headers: Headers): boolean =>
  headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
