import { createHash, createHmac, randomBytes } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import type { JobSetting } from "../catalog/streams.ts";
import { isLoopback, serviceDigest } from "../config/address.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { NORMALIZATION } from "../config/items.ts";

/**
 * How items were turned into digests: by HMAC-SHA-256 under a salt, or, in version 0.1.0, by SHA-256 (salt null). A salt
 * keeps two tables from being joined; it hides nothing from someone who has it and can guess the item.
 */
export type Digesting = { readonly salt: string | null; readonly normalization: number };

/** How version 0.1.0 did it. */
export const OLD_DIGESTS: Digesting = { salt: null, normalization: 0 };

export const newDigests = (salt: string = randomBytes(16).toString("base64url")): Digesting => ({
  salt,
  normalization: NORMALIZATION,
});

export const isSameDigesting = (a: Digesting, b: Digesting): boolean =>
  a.salt === b.salt && a.normalization === b.normalization;

/** What stands for an item in state and receipts: 96 bits, 16 characters. */
export function digestOf({ salt }: Digesting, item: string): string {
  const hash = salt === null ? createHash("sha256") : createHmac("sha256", salt);
  return hash.update(item, "utf8").digest("base64url").slice(0, 16);
}

/** The address and the key of the API that jobs use: but for e-mail checks the External API, where there is one. */
const accessOf = ({ externalApi, baseUrl, apiKey }: Config, setting?: JobSetting) =>
  setting === "emailCheck" || externalApi === null
    ? { url: baseUrl, key: apiKey }
    : { url: externalApi.apiUrl, key: externalApi.apiKey };

/** Digest of the address of the API that a setting uses, not of the key: a key may be changed. */
export const serviceOf = (setting: JobSetting, config: Config): string =>
  serviceDigest(accessOf(config, setting).url);

/** Where receipts are kept. `isNamed`: the config says so. Null: nowhere. */
export type ReceiptsPath = { readonly path: string; readonly isNamed: boolean } | null;

/** Where the receipts of a config are, as a path. A service on this machine has none unless the config names them. */
export function receiptsPathOf(config: Config, environment: Environment): ReceiptsPath {
  const { receiptsFile } = config;
  if (receiptsFile === "") return null;
  if (receiptsFile !== null) return { path: receiptsFile, isNamed: true };
  const { url, key } = accessOf(config);
  if (isLoopback(url.hostname)) return null;
  const keyId = key.includes("_") ? key.slice(0, key.lastIndexOf("_")) : key;
  const { XDG_STATE_HOME: folder = "" } = environment;
  const states = folder === "" ? join(environment["HOME"] ?? homedir(), ".local", "state") : folder;
  const digest = createHash("sha256").update(`${url.href}\n${keyId}`).digest("hex").slice(0, 16);
  return { path: join(states, "source-contact-intelligence", `receipts-${digest}.jsonl`), isNamed: false };
}
