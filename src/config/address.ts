import { createHash } from "node:crypto";

/** The problem of the root of an API, or undefined. Quotes nothing of the address: it may carry a password. */
export function addressProblem(text: string, insecure: boolean): string | undefined {
  if (/\s/.test(text) || !URL.canParse(text))
    return "must be an address such as https://host or https://host/path";
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") return "must begin with https:// or http://";
  if (url.username !== "" || url.password !== "") return "must not contain a user name or password";
  if (/[?#]/.test(text)) return "must not contain a query or a fragment: only host and path";
  if (url.protocol === "http:" && !insecure && !isLoopback(url.hostname)) {
    return "must begin with https://, since http:// sends the key in clear: set allow_insecure_http to true if that is meant";
  }
  return undefined;
}

/** `hostname` as URL gives it: lower case, IPv4 in four parts, IPv6 in brackets and short. */
export function isLoopback(hostname: string): boolean {
  const name = hostname.replace(/\.$/, "");
  return (
    name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127(\.\d+){3}$/.test(name)
  );
}

/** The root of an API: without closing slashes, and without the beginning of every path. */
export function parseAddress(text: string): URL {
  const url = new URL(text);
  url.pathname = url.pathname.replace(/\/+$/, "").replace(/\/api\/v1\/(public|external)$/, "");
  return url;
}

/** An address below the root of an API. */
export function serviceUrl(base: URL, path: string): URL {
  const url = new URL(base);
  url.pathname = `${base.pathname.replace(/\/+$/, "")}/${path.replace(/^\/+/, "")}`;
  return url;
}

/** Digest of the root of an API as `parseAddress` gives it: the service by which states and receipts go. 16 hexadecimal characters. */
export const serviceDigest = ({ protocol, host, pathname }: URL): string =>
  shortHash(`${protocol}//${host.replace(/\.(?=:|$)/, "")}${pathname.replace(/\/+$/, "")}`);

/** Digest of the part of a key that identifies it and is no secret: all before its last "_", or all of it. */
export const keyDigest = (key: string): string => shortHash(/^(.+)_[^_]*$/s.exec(key)?.[1] ?? key);

const shortHash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);
