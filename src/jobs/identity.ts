import { createHash, createHmac } from "node:crypto";
import { userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import type { JobSetting } from "../catalog/streams.ts";
import { isLoopback, serviceDigest } from "../config/address.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";

/** `key` turns items into digests. State and receipts contain only `id`, which is a digest of the key. */
export type Salt = { readonly key: string; readonly id: string };

/** The salt of a setting. It depends on the service's address and on `hash_salt`. */
export function saltOf(setting: JobSetting, config: Config): Salt {
  const address = serviceDigest(accessOf(config, setting).url);
  const key = createHmac("sha256", config.hashSalt ?? "")
    .update(`jobs\n${address}`)
    .digest("base64url");
  return { key, id: createHash("sha256").update(key).digest("base64url").slice(0, 16) };
}

/** The digest of an item in state and receipts: 96 bits of an HMAC-SHA-256 in 16 characters. */
export const digestOf = ({ key }: Salt, item: string): string =>
  createHmac("sha256", key).update(item, "utf8").digest("base64url").slice(0, 16);

/** The API of a setting: the Public API for e-mail checks, and for all jobs without an External API. */
const accessOf = ({ externalApi, baseUrl, apiKey }: Config, setting?: JobSetting) =>
  setting === "emailCheck" || externalApi === null
    ? { url: baseUrl, key: apiKey }
    : { url: externalApi.apiUrl, key: externalApi.apiKey };

/** The path of the receipts; null: no receipts. A service on this machine has no default path. */
export function receiptsPathOf(config: Config, environment: Environment): string | null {
  const { receiptsFile } = config;
  if (receiptsFile !== null) return receiptsFile || null;
  const { url, key } = accessOf(config);
  if (isLoopback(url.hostname)) return null;
  const keyId = key.includes("_") ? key.slice(0, key.lastIndexOf("_")) : key;
  const { XDG_STATE_HOME: folder = "" } = environment;
  const states = isAbsolute(folder) ? folder : join(homeIn(environment), ".local", "state");
  const address = new URL(url);
  address.hostname = address.hostname.replace(/\.$/, "");
  const digest = createHash("sha256").update(`${address.href}\n${keyId}`).digest("hex").slice(0, 16);
  return join(states, "source-contact-intelligence", `receipts-${digest}.jsonl`);
}

/** The home folder; the root folder for a user without a home (some containers). */
function homeIn({ HOME: home = "" }: Environment): string {
  if (isAbsolute(home)) return home;
  try {
    return userInfo().homedir;
  } catch {
    return "/";
  }
}
