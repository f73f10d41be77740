import { expect, it } from "vitest";
import {
  EXTERNAL_API,
  FAILURES,
  isPlainRedirect,
  NETWORK,
  networkError,
  PUBLIC_API,
  redirectError,
  retryWhen,
  STATUSES,
  statusError,
  streamError,
  wasNeverSent,
} from "../../../src/api/error-table.ts";
import type { ConnectorError } from "../../../src/errors.ts";

/** Refusals by HTTP's own words (RFC 9110, 6585, 7725): nothing was done. Before a 408 something may have been. */
const NOT_DONE = [
  ...[400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 412, 413, 414, 415, 417, 421, 422, 423],
  ...[426, 428, 429, 431, 451],
];

const ALL_STATUSES = Array.from({ length: 1_000 }, (_, status) => status);

it("a submission may be made again after a status by which nothing was done, and after no other", () => {
  expect(ALL_STATUSES.filter((status) => retryWhen(status, undefined) !== undefined)).toEqual(NOT_DONE);
});

const PUBLIC = { host: "api:443", settings: PUBLIC_API };
const EXTERNAL = { host: "enrich:1", settings: EXTERNAL_API };
const coded = (code: string): Error => Object.assign(new Error("x"), { code });

/** What an error says to programs, and to a person; its reason in brackets. */
const told = ({ name, failureType, code, reason = "", message }: ConnectorError): string =>
  `${name} ${failureType} ${JSON.stringify(code)} ${message.replace(reason, `[${reason}]`)}`;

it("says of every answer, and of every broken connection, who must act, what is wrong and what to do", async () => {
  const { proxy, ...direct } = { ...PUBLIC, proxy: "HTTPS_PROXY" };
  const codes = [...Object.keys(FAILURES), "SOMETHING_NEW"];
  const statuses = [...STATUSES.keys(), 402, 418, 500, 599, 200];
  const broken = [...NETWORK.keys(), "E_OTHER", undefined];
  const locations = [
    "https://b.example:8443/path?key=x",
    "/path",
    "https://a\u001b/",
    undefined,
    ["https://b/"],
  ];
  const groups = {
    "codes, with a status that says another thing; when a submission is made again": codes.map(
      (code) => `${told(statusError("x", direct, 500, code))} (${retryWhen(500, code)})`,
    ),
    "the same of the other interface, with a status that is refused": codes.map(
      (code) => `${told(statusError("x", EXTERNAL, 401, code))} (${retryWhen(401, code)})`,
    ),
    "statuses without a code": statuses.map(
      (status) => `${told(statusError("x", EXTERNAL, status, undefined))} (${retryWhen(status, undefined)})`,
    ),
    "no answer": broken.map((code) => {
      const cause = code === undefined ? new Error("x") : coded(code);
      const place = code === "ECONNREFUSED" ? { ...direct, proxy } : EXTERNAL;
      return `${told(networkError("x", place, cause))}${wasNeverSent(cause) ? " (never sent)" : ""}`;
    }),
    redirects: locations.map((location) => told(redirectError("x", direct, 302, location))),
    "redirects that say that nothing was done": ALL_STATUSES.filter(isPlainRedirect),
    "an export that the service breaks off": ["STREAM_FAILED", "odd\u001b[2J"].map((code) =>
      told(streamError("x", code)),
    ),
  };
  const parts = Object.entries(groups).map(([name, lines]) => `# ${name}\n${lines.join("\n")}\n`);
  await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/api-errors.txt");
});

it("keeps the cause of an error of the connection, and finds its code however deep it lies", () => {
  const inner = coded("ENOTFOUND");
  const outer = new Error("outer", { cause: new Error("between", { cause: inner }) });
  const error = networkError("x", PUBLIC, outer);
  expect(error.cause).toBe(outer);
  expect(error.reason).toBe("the host name is not known (ENOTFOUND)");
  // The outermost code is the one that says what happened.
  expect(networkError("x", PUBLIC, Object.assign(outer, { code: "EAI_AGAIN" })).reason).toContain(
    "EAI_AGAIN",
  );
  expect([inner, outer].map(wasNeverSent)).toEqual([true, true]);
  expect([undefined, "ENOTFOUND", Object.assign(new Error("x"), { code: 7 })].map(wasNeverSent)).toEqual([
    false,
    false,
    false,
  ]);
});

it("names no status for a code that is no own word of the table", () => {
  for (const code of ["toString", "constructor", "__proto__"])
    expect(statusError("x", PUBLIC, 503, code).message).toContain(
      `the service is unavailable (${code}, status 503)`,
    );
});
