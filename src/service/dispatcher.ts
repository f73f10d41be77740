import { existsSync, readFileSync } from "node:fs";
import { createSecureContext, rootCertificates } from "node:tls";
import { type Dispatcher, EnvHttpProxyAgent } from "undici";

const CONNECT_TIMEOUT_MS = 15_000;
/** Where distributions keep the certificates that the machine trusts. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A pool of connections. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are honoured; for https, the CAs of Node,
 * of the machine, and of NODE_EXTRA_CA_CERTS and SSL_CERT_FILE are trusted.
 * @param reuse false: each request has a connection of its own
 */
export function openDispatcher(
  base: URL,
  environment: Environment,
  reuse = true,
): Dispatcher & { close(): Promise<void> } {
  const tls =
    base.protocol === "https:" ? { secureContext: createSecureContext({ ca: trusted(environment) }) } : {};
  const named = (name: string): string => environment[name] ?? environment[name.toUpperCase()] ?? "";
  return new EnvHttpProxyAgent({
    httpProxy: named("http_proxy"),
    httpsProxy: named("https_proxy"),
    noProxy: named("no_proxy"),
    connect: { timeout: CONNECT_TIMEOUT_MS, ...tls },
    requestTls: { timeout: CONNECT_TIMEOUT_MS, ...tls },
    // As every other client does it: only https is tunnelled through a proxy, http is asked of it.
    proxyTunnel: false,
    keepAliveTimeout: 10_000,
    ...(!reuse && { pipelining: 0 }),
    allowH2: false,
  });
}

/** Naming any CA replaces Node's own choice, so all of them are named. */
function trusted(environment: Environment): string[] {
  const named = [environment["NODE_EXTRA_CA_CERTS"], environment["SSL_CERT_FILE"]];
  const system = SYSTEM_BUNDLES.find((file) => existsSync(file));
  const files = [...named, system].filter((file) => file !== undefined && file !== "" && existsSync(file));
  return [...rootCertificates, ...files.map((file) => readFileSync(String(file), "utf8"))];
}
