import { describe, expect, it } from "vitest";
import {
  envelopeCode,
  isPlainRedirect,
  NETWORK,
  networkError,
  PUBLIC_API,
  retryWhen,
  STATUSES,
  statusError,
  wasNeverSent,
} from "../../../src/service/error-table.ts";
import { KEY } from "../../support/session.ts";

const PLACE = { host: "api.example.com:443", settings: PUBLIC_API };
const ALL_STATUSES = Array.from({ length: 1_000 }, (_, status) => status);

/** Refusals by HTTP's own words (RFC 9110, 6585, 7725): nothing was done. Before a 408 or a 5xx something may have been. */
const NOT_DONE = [
  ...[400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 412, 413, 414, 415, 417, 421, 422, 423],
  ...[426, 428, 429, 431, 451],
];

const coded = (code: unknown): Error => Object.assign(new Error("x"), { code });

/** Every message has this form: what could not be done and where, what is wrong, what to do. */
const SENTENCE = /^Cannot read people at api.example.com:443: [a-z].+\. [A-Z].+[^.]$/;

/** A code of the interface, the class of its error, and when a submission that it refused may be made again. */
const CODES = [
  ["INVALID_API_KEY", "ConfigError", "operator"],
  ["ENDPOINT_NOT_ON_PLAN", "ConfigError", "operator"],
  ["SUBSCRIPTION_INACTIVE", "ConfigError", "operator"],
  ["SOURCE_NOT_ALLOWED", "ConfigError", "operator"],
  ["ACCESS_DENIED", "ConfigError", "operator"],
  ["INVALID_PARAMETER", "ConfigError", "other-item"],
  ["INVALID_BODY", "ConfigError", "other-item"],
  ["INVALID_REQUEST", "ConfigError", "other-item"],
  ["QUOTA_EXCEEDED", "ConfigError", "operator"],
  ["INSUFFICIENT_CREDITS", "ConfigError", "operator"],
  ["SOURCE_UNAVAILABLE", "TransientError", "time"],
  ["RATE_LIMIT_EXCEEDED", "TransientError", "time"],
  ["RATE_LIMITED", "TransientError", "time"],
  ["INTERNAL_ERROR", "TransientError", undefined],
  ["ORG_KIND_UNAVAILABLE", "TransientError", "time"],
  ["STREAM_FAILED", "BodyError", undefined],
  ["JOB_NOT_FOUND", "DataError", undefined],
  ["COMPANY_NOT_FOUND", "DataError", "is-answer"],
  ["SOURCE_NOT_VERIFIABLE", "DataError", "is-answer"],
] as const;

describe("an error answer", () => {
  it.each(CODES)("with the code %s is a %s, and its submission waits for %s", (code, name, when) => {
    // The status contradicts the code: the code decides.
    const error = statusError("read people", PLACE, 500, code);
    expect(error).toMatchObject({ name, code, message: expect.stringMatching(SENTENCE) });
    expect(error.message).toContain(`(${code}, status 500)`);
    expect(retryWhen(500, code)).toBe(when);
  });

  it.each([
    [400, "ConfigError", "other-item"],
    [401, "ConfigError", "operator"],
    [402, "ConfigError", "operator"],
    [403, "ConfigError", "operator"],
    [404, "NotFoundError", "operator"],
    [408, "TransientError", undefined],
    [413, "ConfigError", "other-item"],
    [418, "ConfigError", undefined],
    [422, "ConfigError", "other-item"],
    [423, "TransientError", "time"],
    [429, "TransientError", "time"],
    [599, "TransientError", undefined],
  ])("with status %i and a code that is not known is a %s, waits for %s", (status, name, when) => {
    for (const code of [undefined, "SOMETHING_NEW", "toString", "__proto__"]) {
      const error = statusError("read people", PLACE, status, code);
      expect(error).toMatchObject({ name, message: expect.stringMatching(SENTENCE) });
      expect(error.message).toContain(code === undefined ? `(status ${status})` : `(${code}, status`);
      expect(retryWhen(status, code)).toBe(when);
    }
  });

  it("allows a submission to be made again only after a status by which nothing was done", () => {
    expect(ALL_STATUSES.filter((status) => retryWhen(status, undefined) !== undefined)).toEqual(NOT_DONE);
    expect([...STATUSES.keys()].filter((status) => !ALL_STATUSES.includes(status))).toEqual([]);
  });
});

describe("a request without an answer", () => {
  const SENT = ["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ANSWER_TIMEOUT"];
  /** These need a person; time heals the others. */
  const CONFIG = /CERT|ISSUER|LEAF|SSL|PROXY_407/;

  it.each([...NETWORK.keys()])("says what is wrong, what to do and whether it was sent: %s", (code) => {
    const error = networkError("read people", PLACE, coded(code));
    expect(error.message).toMatch(SENTENCE);
    expect(error.message).toContain(`(${code})`);
    expect(error.name).toBe(CONFIG.test(code) ? "ConfigError" : "TransientError");
    expect(wasNeverSent(coded(code))).toBe(!SENT.includes(code));
  });

  it.each([new Error("x"), coded("E_OTHER"), coded(7), "ENOTFOUND", undefined])(
    "may have been sent if its failure is unknown: %o",
    (cause) => {
      expect(wasNeverSent(cause)).toBe(false);
      expect(networkError("read people", PLACE, cause)).toMatchObject({ name: "TransientError" });
    },
  );

  it("was sent or not by the system's call that failed, at one address or at each", () => {
    const failed = (syscall: string) => Object.assign(coded("EHOSTUNREACH"), { syscall });
    const all = new AggregateError([failed("connect"), failed("connect")]);
    expect([failed("connect"), Object.assign(all, { code: "ETIMEDOUT" })].map(wasNeverSent)).toEqual([
      true,
      true,
    ]);
    expect([failed("read"), failed("write")].map(wasNeverSent)).toEqual([false, false]);
  });
});

describe("what a service says", () => {
  it("means that nothing was done only if it is a redirect with status 301, 307 or 308", () => {
    expect(ALL_STATUSES.filter(isPlainRedirect)).toEqual([301, 307, 308]);
  });

  it("is repeated only if it has the form of a code", () => {
    const error = { code: "RATE_LIMITED", message: "for people" };
    expect(envelopeCode({ success: false, error })).toBe("RATE_LIMITED");
    for (const none of [{ success: true, error }, { error }, { success: false }, null, []])
      expect(envelopeCode(none)).toBeUndefined();
    for (const code of [KEY, "lower_case", "A", "WITH SPACE", 7, null, ["RATE_LIMITED"]])
      expect(envelopeCode({ success: false, error: { code } })).toBe("an unknown code");
  });
});
