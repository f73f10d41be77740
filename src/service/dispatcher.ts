import { existsSync, readFileSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { createSecureContext, rootCertificates } from "node:tls";
import { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici";
import { ConfigError } from "../base/errors.ts";
import { isLoopback } from "../config/address.ts";
import type { Environment } from "../config/environment.ts";

export type { Dispatcher } from "undici";

const CONNECT_TIMEOUT_MS = 15_000;
/** The files of the certificates that the machine trusts, by distribution. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

export type DispatcherOptions = {
  /** False: each request has a connection of its own. */
  readonly reuse: boolean;
  /** Whether the key may leave in clear for another machine than this one. */
  readonly insecure: boolean;
};

/**
 * A pool of connections. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are honoured, but no proxy is asked for this very machine.
 * For https, the CAs of Node, of the machine, and of NODE_EXTRA_CA_CERTS and SSL_CERT_FILE are trusted.
 */
export function openDispatcher(
  base: URL,
  environment: Environment,
  { reuse, insecure }: DispatcherOptions,
): Dispatcher & { close(): Promise<void> } {
  const isSecure = base.protocol === "https:";
  const tls = isSecure ? { secureContext: createSecureContext({ ca: trusted(environment) }) } : {};
  const options = {
    keepAliveTimeout: 10_000,
    ...(!reuse && { pipelining: 0 }),
    allowH2: false,
  };
  if (isLoopback(base.hostname)) {
    const lookup = isSecure || insecure ? {} : { lookup: lookupLoopback };
    return new Agent({ ...options, connect: { timeout: CONNECT_TIMEOUT_MS, ...tls, ...lookup } });
  }
  return new EnvHttpProxyAgent({
    ...options,
    // For https as well, because it has none of its own.
    httpProxy: proxyAddress(base, environment),
    httpsProxy: "",
    noProxy: environment["no_proxy"] ?? environment["NO_PROXY"] ?? "",
    connect: { timeout: CONNECT_TIMEOUT_MS, ...tls },
    requestTls: { timeout: CONNECT_TIMEOUT_MS, ...tls },
    // As every other client does it: only https is tunnelled through a proxy, http is asked of it.
    proxyTunnel: false,
  });
}

/**
 * The variable that names a proxy for an address; HTTP_PROXY counts for https where HTTPS_PROXY is not set. NO_PROXY may
 * still exempt the address.
 */
export function proxyVariable({ protocol, hostname }: URL, environment: Environment): string | undefined {
  if (isLoopback(hostname)) return undefined;
  return [...(protocol === "https:" ? ["https_proxy"] : []), "http_proxy"]
    .flatMap((name) => [name, name.toUpperCase()])
    .find((variable) => (environment[variable] ?? "") !== "");
}

/** The address of the proxy, which may be written without `http://`; "" if there is none. Throws ConfigError. */
function proxyAddress(base: URL, environment: Environment): string {
  const variable = proxyVariable(base, environment);
  if (variable === undefined) return "";
  const value = environment[variable] ?? "";
  const address = value.includes("://") ? value : `http://${value}`;
  if (URL.canParse(address)) return address;
  throw new ConfigError(
    `Cannot use the environment variable ${variable}: it must be the address of a proxy, such as http://host:port`,
  );
}

const LOOPBACK = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** `*.localhost` is this machine (RFC 6761, 6.3), whatever a DNS says: no key leaves in clear. */
const lookupLoopback: LookupFunction = (_, { all = false }, callback) => {
  if (all) callback(null, LOOPBACK);
  else callback(null, "127.0.0.1", 4);
};

/** Naming any CA replaces Node's own choice, so all of them are named. */
export function trusted(environment: Environment): string[] {
  const named = [environment["NODE_EXTRA_CA_CERTS"], environment["SSL_CERT_FILE"]];
  const system = SYSTEM_BUNDLES.find((file) => existsSync(file));
  const files = [...named, system].filter((file) => file !== undefined && file !== "" && existsSync(file));
  return [...rootCertificates, ...files.map((file) => readFileSync(String(file), "utf8"))];
}
