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
/** The time to connect to one address before the next address of a name is tried. Node's 250 ms are too short for distant hosts. */
const ADDRESS_TIMEOUT_MS = 3_000;
setDefaultAutoSelectFamilyAttemptTimeout(
  Math.max(ADDRESS_TIMEOUT_MS, getDefaultAutoSelectFamilyAttemptTimeout()),
);

/** `reuse`: false: each request opens a connection. `insecure`: whether the key may be sent unencrypted to another machine. */
export type DispatcherOptions = { readonly reuse: boolean; readonly insecure: boolean };

/**
 * A pool of connections. It obeys HTTP_PROXY, HTTPS_PROXY and NO_PROXY, except for this machine's own addresses.
 * For https it trusts the CAs of Node, of the machine, and of NODE_EXTRA_CA_CERTS and SSL_CERT_FILE.
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
    // With this option, undici would use TLS with a socks proxy.
    ...(!uri.startsWith("socks5:") && { proxyTls: connect }),
    // Only https uses a tunnel through a proxy, as in other HTTP clients.
    proxyTunnel: false,
  });
}

const LOOPBACK = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** Resolves `*.localhost` to this machine (RFC 6761, 6.3) and not by DNS, so that no unencrypted key is sent elsewhere. */
const lookupLoopback: LookupFunction = (_, { all = false }, callback) => {
  if (all) callback(null, LOOPBACK);
  else callback(null, "127.0.0.1", 4);
};
