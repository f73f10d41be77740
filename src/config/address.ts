import { createHash } from "node:crypto";

/** The problem of the root of an API, or undefined. Never quotes the address, because it may contain a password. */
export function addressProblem(text: string, insecure: boolean): string | undefined {
  const url = /[\s?#]/.test(text) || !URL.canParse(text) ? undefined : new URL(text);
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  if (!isWeb || url.username + url.password !== "")
    return "must be https://host or https://host/path, without a user, a password or a query";
  return url.protocol === "https:" || insecure || isLoopback(url.hostname)
    ? undefined
    : "must begin with https://, because http:// sends the key unencrypted. In a closed network, set allow_insecure_http to true";
}

/** Whether a host name means this machine. @param hostname in the normal form of a URL */
export function isLoopback(hostname: string): boolean {
  const name = hostname.replace(/\.$/, "");
  return (
    name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127(\.\d+){3}$/.test(name)
  );
}

/** The root of an API: without slashes at the end, and without /api/v1. */
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

/** Digest of an API root, in 16 hexadecimal characters. States and receipts name their service by this digest. */
export const serviceDigest = ({ protocol, host, pathname }: URL): string =>
  shortHash(`${protocol}//${host.replace(/\.(?=:|$)/, "")}${pathname.replace(/\/+$/, "")}`);

/** Digest of the public part of a key, which ends before the last "_". */
export const keyDigest = (key: string): string => shortHash(/^(.+)_[^_]*$/s.exec(key)?.[1] ?? key);

const shortHash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);
