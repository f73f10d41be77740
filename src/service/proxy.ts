import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";
import { domainToASCII } from "node:url";
import { ConfigError } from "../base/errors.ts";
import { isLoopback } from "../config/address.ts";
import type { Environment } from "../config/environment.ts";

/** `uri`: without credentials. `token`: for the header of an http proxy. `username`, `password`: for a socks proxy. */
export type Proxy = {
  readonly uri: string;
  readonly credentials?: { readonly token: string; readonly username: Buffer; readonly password: Buffer };
};

const PROXY = /^(?:(https?|socks(?:5h?)?):\/\/)?(?:([^/?#]*)@)?([^\s/?#@\\]+)\/?$/i;

/**
 * The variable that names the proxy for an address. Without HTTPS_PROXY, HTTP_PROXY is also for https.
 * Undefined: no proxy. This machine's own addresses and the addresses in NO_PROXY get no proxy.
 */
export function proxyVariable(address: URL, environment: Environment): string | undefined {
  const exempt = environment["no_proxy"] || environment["NO_PROXY"] || "";
  if (isLoopback(address.hostname)) return undefined;
  if (exempt.split(/[,\s]+/).some((entry) => isNamed(address, entry))) return undefined;
  return [...(address.protocol === "https:" ? ["https_proxy"] : []), "http_proxy"]
    .flatMap((name) => [name, name.toUpperCase()])
    .find((variable) => (environment[variable] ?? "") !== "");
}

/**
 * The proxy for an address. A socks proxy looks the name up itself.
 * @throws ConfigError for a wrong variable, without its value, because the value may contain a password
 */
export function proxyFor(address: URL, environment: Environment): Proxy | undefined {
  const variable = proxyVariable(address, environment);
  if (variable === undefined) return undefined;
  const [, scheme = "http", login = "", host = ""] = PROXY.exec((environment[variable] ?? "").trim()) ?? [];
  const uri = `${scheme.toLowerCase().replace(/^socks.*/, "socks5")}://${host}`;
  if (!URL.canParse(uri))
    throw new ConfigError(
      `Cannot use the environment variable ${variable}: it must be the address of a proxy, such as http://host:port, ` +
        "http://user:password@host:port or socks5://host:port. It has no path. " +
        'Write "/", "?" and "#" in a password as %2F, %3F and %23',
    );
  if (login === "") return { uri };
  const [, user = "", secret = ""] = /^([^:]*):?(.*)$/s.exec(login) ?? [];
  const [username, password] = [decoded(user), decoded(secret)];
  const token = `Basic ${Buffer.concat([username, Buffer.from(":"), password]).toString("base64")}`;
  return { uri, credentials: { token, username, password } };
}

/** Resolves percent escapes. A "%" without two hexadecimal digits does not change. */
const decoded = (text: string): Buffer =>
  Buffer.from(
    Buffer.from(text)
      .toString("latin1")
      .replace(/%([\da-f]{2})/gi, (_, byte: string) => String.fromCharCode(Number.parseInt(byte, 16))),
    "latin1",
  );

/** Whether an entry of NO_PROXY names an address: `*`, a domain with subdomains, an IP address or a range. A port may follow. */
function isNamed({ protocol, hostname, port }: URL, entry: string): boolean {
  const [, name = entry, only] = (isIP(entry) === 0 && /^(.+):(\d+)$/.exec(entry)) || [];
  if (only !== undefined && Number(only) !== Number(port || (protocol === "https:" ? 443 : 80))) return false;
  const host = hostname.replace(/^\[|\]$|\.$/g, "");
  if (name === "*") return true;
  if (isIP(host) !== 0) return isWithin(host, name.replace(/[[\]]/g, ""));
  const domain = name.includes("/") ? "" : domainToASCII(name.replace(/^\*?\./, "").replace(/\.$/, ""));
  return domain !== "" && (host === domain || host.endsWith(`.${domain}`));
}

/** Whether an IP address is equal to another address or in a range (`10.0.0.0/8`). An IPv4 address in IPv6 counts as IPv4. */
function isWithin(address: string, range: string): boolean {
  const [, base = "", bits] = /^([^/]+)(?:\/(\d+))?$/.exec(range) ?? [];
  const length = Number(bits ?? (isIPv4(base) ? 32 : 128));
  // Without this line, "::/0" would contain the IPv4 addresses.
  if (isIP(base) === 0 || (isIPv6(base) && isIPv4(address) && length < 96)) return false;
  if (length > (isIPv4(base) ? 32 : 128)) return false;
  const ranges = new BlockList();
  ranges.addSubnet(base, length, isIPv4(base) ? "ipv4" : "ipv6");
  return ranges.check(address, isIPv4(address) ? "ipv4" : "ipv6");
}
