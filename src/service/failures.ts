import {
  BodyError,
  ConfigError,
  type ConnectorError,
  DataError,
  NotFoundError,
  TransientError,
} from "../errors.ts";
import { isObject } from "../json.ts";

type ErrorClass = new (
  message: string,
  options: { cause?: unknown; code?: string | undefined },
) => ConnectorError;

export type Failure = {
  /** Who must act: ConfigError the operator, TransientError time, DataError nobody (it is the answer for one item). */
  readonly error: ErrorClass;
  /** What is wrong, as the end of "Cannot <do it>: …". */
  readonly wrong: string;
  /** What to do about it. */
  readonly remedy: string;
};

const config = (wrong: string, remedy: string): Failure => ({ error: ConfigError, wrong, remedy });
const transient = (wrong: string, remedy: string): Failure => ({ error: TransientError, wrong, remedy });
const answer = (wrong: string, remedy: string): Failure => ({ error: DataError, wrong, remedy });

const AGAIN = "The service may be unwell: run again later, and tell its owner if it goes on";
const ASK_FOR_ACCESS = "Ask the organization's owner for access, or take the stream out of the sync";

/** Every code of the interface. A new code is a row here. */
export const FAILURES = {
  INVALID_API_KEY: config(
    "the API key is missing, malformed, unknown or revoked",
    "Create a key under Settings, then API and webhooks, and put it into api_key",
  ),
  ENDPOINT_NOT_ON_PLAN: config(
    "the plan of this API key does not include this endpoint (people and companies need Enterprise, e-mail checks need Agency)",
    "Use a key of the right plan, or take the stream out of the sync",
  ),
  SUBSCRIPTION_INACTIVE: config(
    "the workspace has no active subscription",
    "Renew the subscription of the workspace that this key belongs to",
  ),
  SOURCE_NOT_ALLOWED: config(
    "the organization has no access to the requested source",
    "Correct source_slug (the sources stream lists the valid ones), or ask for access to it",
  ),
  ACCESS_DENIED: config("this API key may not read this", ASK_FOR_ACCESS),
  INVALID_PARAMETER: config(
    "the service refuses a parameter",
    "Check source_slug, is_user, start_date and end_date",
  ),
  INVALID_BODY: config("the service refuses the submitted body", "Check the configured items"),
  INVALID_REQUEST: config("the service refuses the request", "Check the configured items"),
  QUOTA_EXCEEDED: config(
    "the quota of this key is used up",
    "Raise the quota or wait for its reset; what was done so far is kept",
  ),
  INSUFFICIENT_CREDITS: config(
    "there are not enough credits",
    "Buy credits or lower max_credits_per_sync; what was done so far is kept",
  ),
  SOURCE_UNAVAILABLE: transient("the requested source is paused for maintenance", "Run again later"),
  RATE_LIMIT_EXCEEDED: transient(
    "the key's requests per minute are used up",
    "Lower requests_per_minute, or stop other programs that use this key",
  ),
  RATE_LIMITED: transient(
    "the key's requests per minute are used up",
    "Lower requests_per_minute, or stop other programs that use this key",
  ),
  INTERNAL_ERROR: transient("the service failed", AGAIN),
  ORG_KIND_UNAVAILABLE: transient("the service could not confirm the plan for a moment", "Run again later"),
  STREAM_FAILED: { error: BodyError, wrong: "the service broke off the export", remedy: AGAIN },
  JOB_NOT_FOUND: answer("there is no such job for this organization", "It is submitted anew once"),
  COMPANY_NOT_FOUND: answer("no company was found for the domain", "Nothing was charged"),
  SOURCE_NOT_VERIFIABLE: answer("this source cannot be checked", "Leave it out"),
} as const satisfies Record<string, Failure>;

export type FailureCode = keyof typeof FAILURES;

/** What a status means where no known code came with it. */
export const STATUSES: ReadonlyMap<number, Failure> = new Map([
  [400, FAILURES.INVALID_PARAMETER],
  [401, FAILURES.INVALID_API_KEY],
  [403, FAILURES.ACCESS_DENIED],
  [
    404,
    {
      error: NotFoundError,
      wrong: "there is nothing at this address",
      remedy: "Check base_url (and endpoints, if you set them)",
    },
  ],
  [407, config("the proxy wants credentials", "Put them into HTTPS_PROXY (http://user:password@host:port)")],
  [408, transient("the service gave up waiting for the request", AGAIN)],
  [423, FAILURES.SOURCE_UNAVAILABLE],
  [429, FAILURES.RATE_LIMITED],
  [502, transient("a gateway could not reach the service", AGAIN)],
  [503, transient("the service is unavailable", AGAIN)],
  [504, transient("a gateway waited too long for the service", AGAIN)],
]);

const OTHER_STATUS = {
  server: transient("the service failed", AGAIN),
  client: config("the service refuses the request", "Check base_url and the other settings"),
} as const;

/** Errors of the connection, by Node's and undici's codes. */
export const NETWORK: ReadonlyMap<string, Failure> = new Map([
  ["ECONNREFUSED", transient("nothing listens there", "Check base_url and whether the service is up")],
  ["ENOTFOUND", transient("the host name is not known", "Check base_url and the DNS of this machine")],
  ["EAI_AGAIN", transient("the host name could not be looked up", "Check the DNS of this machine")],
  ["ENETUNREACH", transient("the network is unreachable", "Check this machine's network")],
  ["EHOSTUNREACH", transient("the host is unreachable", "Check base_url and this machine's network")],
  ["UND_ERR_CONNECT_TIMEOUT", transient("the connection timed out", "Check base_url, firewall and proxy")],
  ["UND_ERR_HEADERS_TIMEOUT", transient("no answer came in time", AGAIN)],
  ["UND_ERR_BODY_TIMEOUT", transient("the answer fell silent", AGAIN)],
  ...[
    "SELF_SIGNED_CERT_IN_CHAIN",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  ].map((code): [string, Failure] => [
    code,
    config(
      "its certificate is signed by nobody this machine trusts",
      "Name the CA's file in NODE_EXTRA_CA_CERTS",
    ),
  ]),
  ["CERT_HAS_EXPIRED", config("its certificate has expired", "Tell the service's owner")],
  ["ERR_TLS_CERT_ALTNAME_INVALID", config("its certificate is for another host", "Check base_url")],
]);

const OTHER_NETWORK = transient("the connection broke", "Check the network between here and the service");

/** Codes look like this; anything else in their place may be anything, so it is never repeated. */
const CODE = /^[A-Z][A-Z_]{2,40}$/;

/** The code of the service's error envelope, if the value is one. */
export function envelopeCode(value: unknown): string | undefined {
  if (!isObject(value) || value["success"] !== false || !isObject(value["error"])) return undefined;
  const { code } = value["error"] as { code?: unknown };
  return typeof code === "string" && CODE.test(code) ? code : "an unknown code";
}

/** An error answer. `what` is the end of "Cannot …", such as "count people". */
export function statusError(what: string, status: number, code: string | undefined): ConnectorError {
  const known = code !== undefined && isFailureCode(code) ? FAILURES[code] : undefined;
  const other = status >= 500 ? OTHER_STATUS.server : OTHER_STATUS.client;
  const failure = known ?? STATUSES.get(status) ?? other;
  const detail = code === undefined ? `status ${status}` : `${code}, status ${status}`;
  return toError(what, failure, { detail, code });
}

/** A request that got no answer. */
export function networkError(what: string, cause: unknown): ConnectorError {
  const detail = codeOf(cause);
  return toError(what, NETWORK.get(detail ?? "") ?? OTHER_NETWORK, { detail, cause });
}

/** Codes of failures that come before the first byte of a request has left. */
const BEFORE_SENDING: ReadonlySet<string> = new Set(
  [...NETWORK.keys()].filter((code) => code !== "UND_ERR_HEADERS_TIMEOUT" && code !== "UND_ERR_BODY_TIMEOUT"),
);

/** Whether a request that got no answer cannot have reached the service. */
export function wasNeverSent(cause: unknown): boolean {
  return BEFORE_SENDING.has(codeOf(cause) ?? "");
}

/** Remedies speak of the Public API's settings; the External API has its own. */
export function inExternalWords(error: Error): Error {
  error.message = error.message
    .replace(FAILURES.INVALID_API_KEY.remedy, EXTERNAL_KEY)
    .replaceAll(/\bbase_url( \(and endpoints, if you set them\))?/g, "external_api.api_url");
  return error;
}

const EXTERNAL_KEY =
  "Ask the organization's administrator for a key of the External API, and put it into external_api.api_key";

/** The service's error line at the end of an export. */
export function streamError(what: string, code: string): ConnectorError {
  return toError(what, FAILURES.STREAM_FAILED, { detail: code, code });
}

export function redirectError(what: string, status: number, location: string | undefined): ConnectorError {
  const target = URL.canParse(location ?? "") ? new URL(location ?? "").origin : "another address";
  return new ConfigError(
    `Cannot ${what}: the service redirects to ${target} (status ${status}), and redirects are not followed because they ` +
      "would carry the API key along. Put the final address into base_url",
  );
}

function toError(
  what: string,
  failure: Failure,
  { detail, code, cause }: { detail?: string | undefined; code?: string | undefined; cause?: unknown },
): ConnectorError {
  const text = detail === undefined ? failure.wrong : `${failure.wrong} (${detail})`;
  return new failure.error(`Cannot ${what}: ${text}. ${failure.remedy}`, {
    code,
    ...(cause !== undefined && { cause }),
  });
}

function codeOf(error: unknown): string | undefined {
  for (let next = error; isObject(next); next = next["cause"]) {
    const { code } = next as { code?: unknown };
    if (typeof code === "string") return code;
  }
  return undefined;
}

function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(FAILURES, code);
}
