import { createHash, createHmac, randomBytes } from "node:crypto";
import { DIGEST_BYTES } from "./finished-items.ts";
import { NORMALIZATION } from "./items.ts";

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

/** Whether a text can stand for an item. */
export const isDigest = (text: unknown): text is string =>
  typeof text === "string" && /^[\w-]{16}$/.test(text);

/** What stands for an item in state and receipts: 96 bits, 16 characters. */
export function digestOf({ salt }: Digesting, item: string): string {
  const hash = salt === null ? createHash("sha256") : createHmac("sha256", salt);
  return hash
    .update(item, "utf8")
    .digest("base64url")
    .slice(0, (DIGEST_BYTES * 4) / 3);
}
