import {
  BodyError,
  ConfigError,
  type ConnectorError,
  DataError,
  type ErrorScope,
  NotFoundError,
  TransientError,
} from "../base/errors.ts";
import { isObject, printable } from "../base/json.ts";
import { FILTER_NAMES } from "../sync/state.ts";

type ErrorClass = new (...args: ConstructorParameters<typeof ConnectorError>) => ConnectorError;

/**
 * The time when a refused submission may be made again.
 * - `limit`: when the rate limit allows a request. `time`: later. `operator`: after the operator has acted.
 * - `other-item`: at once for another item. `is-answer`: never, because the refusal is the item's answer.
 */
export type RetryWhen = "limit" | "time" | "other-item" | "is-answer" | "operator";

export type Failure = {
  /** ConfigError: the operator must act. TransientError: a later attempt may succeed. DataError: the service's owner must act. */
  readonly error: ErrorClass;
  /** The problem, as the end of "Cannot <do it> at <host>: …". */
  readonly wrong: string;
  /** The remedy, in which `worded` replaces `{url}`, `{address}` and `{newKey}`. */
  readonly remedy: string;
  /** When a refused submission may be made again; undefined: the service may have accepted the submission. */
  readonly submission?: RetryWhen | undefined;
  /** "stream": the key cannot read this stream. "run": the key can read nothing. Undefined: not known. */
  readonly scope?: ErrorScope | undefined;
};

/** The names of an API's settings in messages. */
export type SettingNames = {
  readonly url: string;
  /** All settings that an address consists of. */
  readonly address: string;
  /** How to get a new key, and where to put the key. `{key}` becomes `key`. */
  readonly newKey: string;
  readonly key: string;
};

export const PUBLIC_API: SettingNames = {
  url: "base_url",
  address: "base_url (and endpoints, if you set them)",
  newKey: "Create a key under Settings, then API and webhooks, and put it into {key}",
  key: "api_key",
};

export const EXTERNAL_API: SettingNames = {
  url: "external_api.api_url",
  address: "external_api.api_url",
  newKey: "Ask the organization's administrator for a key of the External API, and put it into {key}",
  key: "external_api.api_key",
};

/** The address of a request. */
export type Place = {
  /** The host name, with the port if the port is unusual. */
  readonly host: string;
  readonly settings: SettingNames;
  /** The variable that names a proxy for the address. */
  readonly proxy?: string | undefined;
  /** Describes the CA files that variables name and that cannot be used. */
  readonly caProblems?: () => readonly string[];
};

const failures =
  (error: ErrorClass, usually?: RetryWhen, scope?: ErrorScope) =>
  (wrong: string, remedy: string, submission = usually): Failure => ({
    ...{ error, wrong, remedy, submission, scope },
  });

const config = failures(ConfigError, "operator");
/** A failure of all requests of the key. */
const keyFailure = failures(ConfigError, "operator", "run");
/** A failure of every connection until the operator acts. */
const noConnection = failures(ConfigError, "operator", "service");
const transient = failures(TransientError);
/** A refusal that is the answer about one item. If the request names no item, the service contradicts its interface. */
const answer = failures(DataError);

const AGAIN = "The service may be unwell: run again later, and tell its owner if it continues";
const ASK_FOR_ACCESS = "Ask the organization's owner for access, or take the stream out of the sync";

const RATE_LIMITED = transient(
  "the key's requests per minute are used up",
  "Lower requests_per_minute, or stop other programs that use this key",
  "time",
);

const REFUSED_ITEM = config("the service refuses the request", "Check the configured items", "other-item");

const UNANSWERED = transient("the service or its gateway could not answer", AGAIN);

/** The codes of the interface. */
export const FAILURES = {
  INVALID_API_KEY: keyFailure("the API key is missing, malformed, unknown or revoked", "{newKey}"),
  ENDPOINT_NOT_ON_PLAN: failures(
    ConfigError,
    "operator",
    "stream",
  )(
    "the plan of this API key does not include this endpoint (people and companies need Enterprise, e-mail checks need Agency)",
    "Use a key of the right plan, or take the stream out of the sync",
  ),
  SUBSCRIPTION_INACTIVE: keyFailure(
    "the workspace has no active subscription",
    "Renew the subscription of the key's workspace",
  ),
  SOURCE_NOT_ALLOWED: config(
    "the organization has no access to the requested source",
    "Correct source_slug (the sources stream lists the valid ones), or ask for access to it",
  ),
  ACCESS_DENIED: config("this API key may not read this", ASK_FOR_ACCESS),
  INVALID_PARAMETER: config(
    "the service refuses a parameter",
    `Check ${FILTER_NAMES.join(", ")}, start_date and end_date`,
    "other-item",
  ),
  INVALID_BODY: REFUSED_ITEM,
  INVALID_REQUEST: REFUSED_ITEM,
  QUOTA_EXCEEDED: config(
    "the quota of this key is used up",
    "Raise the quota or wait for its reset; what was done so far is kept",
  ),
  INSUFFICIENT_CREDITS: config(
    "there are not enough credits",
    "Buy credits or lower max_credits_per_sync; what was done so far is kept",
  ),
  SOURCE_UNAVAILABLE: transient("the requested source is paused for maintenance", "Run again later", "time"),
  RATE_LIMIT_EXCEEDED: RATE_LIMITED,
  RATE_LIMITED,
  INTERNAL_ERROR: transient("the service failed", AGAIN),
  ORG_KIND_UNAVAILABLE: transient("the service could not confirm the plan now", "Run again later", "time"),
  STREAM_FAILED: { error: BodyError, wrong: "the service broke off the export", remedy: AGAIN },
  JOB_NOT_FOUND: answer("there is no such job for this organization", "The next runs ask again"),
  COMPANY_NOT_FOUND: answer("no company was found for the domain", "Nothing was charged", "is-answer"),
  SOURCE_NOT_VERIFIABLE: answer("this source cannot be checked", "Leave it out", "is-answer"),
} as const satisfies Record<string, Failure>;

const UNTRUSTED = noConnection(
  "its certificate is signed by no authority that this machine trusts",
  "Name the CA's file in NODE_EXTRA_CA_CERTS",
);

const PROXY_CREDENTIALS = noConnection(
  "the proxy wants credentials",
  "Put name and password into HTTPS_PROXY (http://user:password@host:port)",
);

/** The meaning of a status without a known code. */
export const STATUSES: ReadonlyMap<number, Failure> = new Map<number, Failure>([
  [400, FAILURES.INVALID_PARAMETER],
  [401, FAILURES.INVALID_API_KEY],
  [403, FAILURES.ACCESS_DENIED],
  [404, failures(NotFoundError, "operator")("there is nothing at this address", "Check {address}")],
  [407, PROXY_CREDENTIALS],
  [408, UNANSWERED],
  [413, REFUSED_ITEM],
  [422, REFUSED_ITEM],
  [423, FAILURES.SOURCE_UNAVAILABLE],
  [429, FAILURES.RATE_LIMITED],
  [502, UNANSWERED],
  [503, UNANSWERED],
  [504, UNANSWERED],
]);

const REFUSED = config("the service refuses the request", "Check {url} and the other settings");

/** Other statuses after which the service has done nothing. */
const DONE_NOTHING = [402, 405, 406, 410, 411, 412, 414, 415, 417, 421, 426, 428, 431, 451];

/** Whether a redirect asks for the request at another address. Before a 302 or 303, the service may have done the work. */
export const isPlainRedirect = (status: number): boolean => [301, 307, 308].includes(status);

/** The code of a request that was not answered within its time. */
export const DEADLINE = "ANSWER_TIMEOUT";

/** Errors of the connection by the codes of Node and undici, and refusals of proxies. */
export const NETWORK: ReadonlyMap<string, Failure> = new Map([
  ["ECONNREFUSED", transient("the connection was refused", "Check {url} and whether the service is up")],
  ["ENOTFOUND", transient("the host name is not known", "Check {url} and the DNS of this machine")],
  ["EAI_AGAIN", transient("the host name could not be looked up", "Check {url} and the DNS of this machine")],
  ["ENETUNREACH", transient("the network is unreachable", "Check {url} and this machine's network")],
  ["EHOSTUNREACH", transient("the host is unreachable", "Check {url} and this machine's network")],
  ["UND_ERR_CONNECT_TIMEOUT", transient("the connection timed out", "Check {url}, firewall and proxy")],
  ["UND_ERR_HEADERS_TIMEOUT", transient("no answer arrived in time", AGAIN)],
  ["UND_ERR_BODY_TIMEOUT", transient("the answer stopped before its end", AGAIN)],
  [DEADLINE, transient("the answer did not end in time", AGAIN)],
  ...[
    "SELF_SIGNED_CERT_IN_CHAIN",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "UNABLE_TO_GET_ISSUER_CERT",
  ].map((code): [string, Failure] => [code, UNTRUSTED]),
  [
    "ERR_SSL_WRONG_VERSION_NUMBER",
    noConnection("it answers in http, not in https", "Write http:// in {url}, or the port that speaks https"),
  ],
  ["CERT_HAS_EXPIRED", noConnection("its certificate has expired", "Tell the service's owner")],
  ["ERR_TLS_CERT_ALTNAME_INVALID", noConnection("its certificate is for another host", "Check {url}")],
  ["PROXY_407", PROXY_CREDENTIALS],
  ["PROXY_REFUSED", transient("the proxy refused to connect to the host", "Check {url}, firewall and proxy")],
]);

const OTHER_NETWORK = transient("the connection broke", "Check the network between here and the service");

/** The form of a code. Messages do not quote other text, because it may contain a secret. */
const CODE = /^[A-Z][A-Z_]{2,40}$/;

/** The code of the service's error envelope; undefined for another value. */
export function envelopeCode(value: unknown): string | undefined {
  if (!isObject(value) || value["success"] !== false || !isObject(value["error"])) return undefined;
  return knownCode((value["error"] as { code?: unknown }).code);
}

/** A code in the service's form, or "an unknown code" for any text without this form. */
export const knownCode = (code: unknown): string =>
  typeof code === "string" && CODE.test(code) ? code : "an unknown code";

/** Codes of an account without credits or quota. Waiting does not help, and another item does not help. */
export const OUT_OF_CREDITS: ReadonlySet<string> = new Set(["INSUFFICIENT_CREDITS", "QUOTA_EXCEEDED"]);

/** An error answer. `what` is the end of "Cannot …", such as "count people". */
export function statusError(what: string, place: Place, status: number, code?: string): ConnectorError {
  const failure = failureOfCode(code) ?? failureOfStatus(status);
  const detail = `${code === undefined ? "" : `${printable(code)}, `}status ${status}`;
  return toError(what, place, failure, { detail, code });
}

/** The time when a refused submission may be made again; undefined: the service may have accepted the submission. */
export function retryWhen(status: number, code: string | undefined): RetryWhen | undefined {
  const byStatus = status < 400 ? undefined : failureOfStatus(status).submission;
  return failureOfCode(code)?.submission ?? byStatus;
}

function failureOfCode(code = ""): Failure | undefined {
  return Object.hasOwn(FAILURES, code) ? FAILURES[code as keyof typeof FAILURES] : undefined;
}

function failureOfStatus(status: number): Failure {
  const known = STATUSES.get(status);
  if (known !== undefined) return known;
  if (status >= 500) return FAILURES.INTERNAL_ERROR;
  return DONE_NOTHING.includes(status) ? REFUSED : { ...REFUSED, submission: undefined };
}

/** The error of a request without an answer. */
export function networkError(what: string, place: Place, cause: unknown): ConnectorError {
  const detail = codeInChain(cause);
  const failure = NETWORK.get(detail ?? "") ?? OTHER_NETWORK;
  const remedies = [
    failure.remedy,
    ...(failure === UNTRUSTED ? (place.caProblems?.() ?? []) : []),
    ...(place.proxy === undefined ? [] : [`${place.proxy} is set: check that proxy, too`]),
  ];
  return toError(what, place, { ...failure, remedy: remedies.join(". ") }, { detail, cause });
}

/** Codes of failures that may occur after the program has sent a part of a request. */
const AFTER_SENDING = ["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", DEADLINE];

/** Whether a request without an answer cannot have reached the service. */
export function wasNeverSent(cause: unknown): boolean {
  const code = codeInChain(cause) ?? "";
  const call = callInChain(cause);
  if (call !== undefined) return call === "connect" || call === "getaddrinfo";
  return NETWORK.has(code) && !AFTER_SENDING.includes(code);
}

/** Whether a failure is a bug of this program. Failures of connections and bodies have a code. */
export const isBug = (error: unknown): boolean =>
  [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind) &&
  codeInChain(error) === undefined;

/** The code for an answer that does not have the form of the interface. */
export const WITHOUT_FORM = "ANSWER_WITHOUT_FORM";

/**
 * The error of an answer without a result and without an error code.
 * @param value JSON, or text that is not JSON
 * @param isFirst whether no earlier answer had the form of the interface
 */
export function answerWithoutForm(what: string, place: Place, value: unknown, isFirst: boolean) {
  const text = typeof value === "string" ? value : "";
  const isPage = /^\s*</.test(text);
  // The rest of a title may name a person.
  const [, title] = /<title[^>]*>[^<]{0,80}?\b((?:sign|log)[ -]?(?:in|on))\b/i.exec(text) ?? [];
  const page = title === undefined ? "a web page" : `a web page ("${title}")`;
  const wrong = isPage ? `this is ${page}, not the API` : "the answer is not JSON of the interface's form";
  const remedy = isFirst ? "Check {url}" : "If it stays so, check {address}, and tell the service's owner";
  const scope = isFirst && isPage ? "service" : undefined;
  return toError(what, place, { ...transient(wrong, remedy), scope }, { code: WITHOUT_FORM });
}

/** The error of a base URL without the interface. @param path the paths of the request and of the base URL */
export function addressError(what: string, place: Place, [path, base]: readonly string[], cause: unknown) {
  const wrong = `the service has nothing at ${path}`;
  const remedy = base === "/" ? "Check {url}" : `Check {url} (${base})`;
  return toError(what, place, noConnection(wrong, remedy), { detail: "status 404", cause });
}

/** Whether an error has a code of the interface, so that the service has answered. */
export const isOfInterface = ({ code = "" }: ConnectorError): boolean => Object.hasOwn(FAILURES, code);

/** The error for the service's error line at the end of an export. */
export function streamError(what: string, code: string): ConnectorError {
  const { error, wrong, remedy } = FAILURES.STREAM_FAILED;
  return new error(`Cannot ${what}: ${wrong} (${printable(code)}). ${remedy}`, { code });
}

/** The error of a redirect. The connector follows no redirect, because the request has the API key. */
export function redirectError(what: string, place: Place, status: number, to = "", scope?: ErrorScope) {
  const target = URL.canParse(to) ? printable(new URL(to).origin) : "another address";
  const wrong = `the service redirects to ${target}, and the connector does not send the API key there`;
  const failure = config(wrong, "Put the final address into {url}");
  return toError(what, place, { ...failure, scope }, { detail: `status ${status}` });
}

type Details = { readonly detail?: string | undefined; readonly code?: string | undefined; cause?: unknown };

function toError(what: string, place: Place, failure: Failure, { detail, ...options }: Details) {
  const { error: Class, wrong, remedy, scope } = failure;
  const reason = detail === undefined ? wrong : `${wrong} (${detail})`;
  const text = `Cannot ${what} at ${place.host}: ${reason}. ${worded(remedy, place.settings)}`;
  return new Class(text, { ...options, reason, scope });
}

/** A remedy with the names of the settings. */
export const worded = (remedy: string, { url, address, newKey, key }: SettingNames): string =>
  remedy
    .replace("{url}", url)
    .replace("{address}", address)
    .replace("{newKey}", () => newKey.replace("{key}", key));

/** The error of the system that caused an error. A connection to several addresses fails with one error for each address. */
function callInChain(error: unknown): unknown {
  for (let next = error; isObject(next); next = next["cause"] ?? Object(next["errors"])[0])
    if (next["syscall"] !== undefined) return next["syscall"];
  return undefined;
}

function codeInChain(error: unknown): string | undefined {
  for (let next = error; isObject(next); next = next["cause"]) {
    const { code, message } = next as { code?: unknown; message?: unknown };
    // undici has no code for this failure.
    const [, status] = /^Proxy response \((\d+)\)/.exec(String(message)) ?? [];
    if (status !== undefined) return status === "407" ? "PROXY_407" : "PROXY_REFUSED";
    if (typeof code === "string")
      return code
        .replace(/^UND_ERR_SOCKS5_AUTH.*/, "PROXY_407")
        .replace(/^UND_ERR_SOCKS5.*/, "PROXY_REFUSED");
  }
  return undefined;
}
