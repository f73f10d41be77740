import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts a text so that only someone who knows the e-mail, and has the salt, can read it: AES-256-GCM, as base64url. */
export function seal(salt: string, email: string, text: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keyOf(salt, email), iv);
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url");
}

/** The text that was sealed; undefined if it was sealed for another e-mail, or is damaged. */
export function unseal(salt: string, email: string, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, "base64url");
  try {
    const decipher = createDecipheriv("aes-256-gcm", keyOf(salt, email), bytes.subarray(0, IV_BYTES));
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const text = [decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()];
    return Buffer.concat(text).toString("utf8");
  } catch {
    return undefined;
  }
}

const keyOf = (salt: string, email: string): Buffer =>
  createHmac("sha256", salt).update(`seal\0${email}`, "utf8").digest();
