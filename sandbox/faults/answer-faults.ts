import { type Answer, errorBody, jsonAnswer, textAnswer } from "./answer.ts";
import type { Fault, FaultTable, Visit } from "./fault.ts";

const LOGIN_PAGE = "<!doctype html><html><title>Sign in</title><form><input name=user></form></html>\n";

/** Statuses that the interface gives a code. Others are answered the way a proxy does. */
const CODES: ReadonlyMap<number, string> = new Map([
  [400, "INVALID_PARAMETER"],
  [401, "INVALID_API_KEY"],
  [403, "SOURCE_NOT_ALLOWED"],
  [423, "SOURCE_UNAVAILABLE"],
  [429, "RATE_LIMIT_EXCEEDED"],
  [500, "INTERNAL_ERROR"],
  [503, "ORG_KIND_UNAVAILABLE"],
]);

/** Faults that answer in the place of the endpoint. */
export const ANSWER_FAULTS: FaultTable = {
  status: {
    kind: "answer",
    description: "answers this HTTP status instead, with its error code, or with code= or body=",
    argument: { label: "CODE", type: "number" },
    options: ["code", "body"],
    answer: statusAnswer,
  },
  "429": {
    kind: "answer",
    description: "answers 429 with Retry-After in seconds; date=1 as a date, header=none without it",
    argument: { label: "SECONDS", type: "number", fallback: "1" },
    options: ["date", "header"],
    answer: tooManyAnswer,
  },
  redirect: {
    kind: "answer",
    description: "answers 302 with this Location",
    argument: { label: "URL", type: "text" },
    answer: ({ text }) => ({ ...textAnswer(302, "text/plain", "Found\n"), headers: { location: text } }),
  },
  html: {
    kind: "answer",
    description: "answers 200 with the HTML page of a login form",
    answer: () => textAnswer(200, "text/html; charset=utf-8", LOGIN_PAGE),
  },
  "wrong-content": {
    kind: "answer",
    description: "answers 200 with the JSON body {}",
    answer: () => jsonAnswer(200, "{}"),
  },
  leak: {
    kind: "answer",
    description: "answers 500 with an error message that repeats the client's API key",
    answer: (_, { key }) => jsonAnswer(500, errorBody("INTERNAL_ERROR", `Unhandled: key ${key} in request`)),
  },
  "stall-headers": { kind: "answer", description: "never answers", answer: () => "silence" },
  "early-hints": {
    kind: "answer",
    description: "sends 103 Early Hints each second for ever, and never an answer",
    answer: () => "hints",
  },
  "gzip-bomb": {
    kind: "answer",
    description: "answers 200 with a JSON body that is small until it is decompressed to MB megabytes",
    argument: { label: "MB", type: "number", fallback: "1024" },
    answer: ({ value }) => ({ ...jsonAnswer(200, ""), pieces: bomb(value), gzip: "always" }),
  },
  "no-company-list": {
    kind: "answer",
    description: "the list of companies answers 404, their stream is there",
    path: "/companies$",
    lasts: true,
    answer: () => jsonAnswer(404, errorBody("NOT_FOUND", "No such endpoint")),
  },
  "export-limit": {
    kind: "limit",
    description: "exports of more than ROWS rows answer 504, or how= another status or silence",
    argument: { label: "ROWS", type: "number" },
    options: ["how"],
    lasts: true,
    answer: ({ options }) => {
      const how = options.get("how") ?? "504";
      return how === "silence" ? how : gatewayAnswer(Number(how));
    },
  },
  "count-fails": {
    kind: "answer",
    only: "counts",
    lasts: true,
    description: "answers 500 to list requests with limit=1",
    answer: () => jsonAnswer(500, errorBody("INTERNAL_ERROR", "The count failed")),
  },
};

function statusAnswer({ value, options }: Fault): Answer {
  const text = options.get("body");
  if (text !== undefined) return textAnswer(value, "text/plain; charset=utf-8", text);
  const code = options.get("code") ?? CODES.get(value);
  if (code !== undefined) return jsonAnswer(value, errorBody(code, `The service answers ${value} for now`));
  return gatewayAnswer(value);
}

const gatewayAnswer = (status: number): Answer =>
  textAnswer(status, "text/html", `<html><body><h1>${status}</h1></body></html>\n`);

function tooManyAnswer({ value, options }: Fault, { account }: Visit): Answer {
  const retryAt = new Date(account.clock.now() + value * 1000).toUTCString();
  const wait = options.has("date") ? retryAt : String(value);
  const headers: Record<string, string> = options.get("header") === "none" ? {} : { "retry-after": wait };
  return jsonAnswer(429, errorBody("RATE_LIMIT_EXCEEDED", "Too many requests"), headers);
}

const MEGABYTE = " ".repeat(1_000_000);

function* bomb(megabytes: number): Generator<string> {
  yield '{"success":true,"data":[';
  for (let nth = 0; nth < megabytes; nth++) yield MEGABYTE;
  yield '],"pagination":{"page":1,"limit":1,"total":0,"totalPages":0}}';
}
