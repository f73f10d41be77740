import {
  getDefaultAutoSelectFamilyAttemptTimeout,
  type LookupFunction,
  setDefaultAutoSelectFamilyAttemptTimeout,
} from "node:net";
import { createSecureContext } from "node:tls";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { isLoopback } from "../config/address.ts";
import type { Environment } from "../config/environment.ts";
import { proxyFor } from "./proxy.ts";
import { trusted } from "./trust.ts";

export type { Dispatcher } from "undici";

const CONNECT_TIMEOUT_MS = 15_000;
/**
 * How long (ms) each address of a name but the last may take to connect. With Node's 250 no host is reached that is farther away
 * and has another address that does not work.
 */
const ADDRESS_TIMEOUT_MS = 3_000;
setDefaultAutoSelectFamilyAttemptTimeout(
  Math.max(ADDRESS_TIMEOUT_MS, getDefaultAutoSelectFamilyAttemptTimeout()),
);

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
  const proxy = proxyFor(base, environment);
  const isSecure = base.protocol === "https:";
  const hasTls = isSecure || proxy?.uri.startsWith("https:") === true;
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    ...(hasTls && { secureContext: createSecureContext({ ca: trusted(environment) }) }),
    ...(isLoopback(base.hostname) && !isSecure && !insecure && { lookup: lookupLoopback }),
  };
  const options = { keepAliveTimeout: 10_000, ...(!reuse && { pipelining: 0 }), allowH2: false };
  if (proxy === undefined) return new Agent({ ...options, connect });
  const { uri, credentials } = proxy;
  return new ProxyAgent({
    ...{ ...options, ...credentials, uri, requestTls: connect },
    // A socks proxy would be asked by TLS.
    ...(!uri.startsWith("socks5:") && { proxyTls: connect }),
    // As every other client does it: only https is tunnelled through a proxy, http is asked of it.
    proxyTunnel: false,
  });
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
