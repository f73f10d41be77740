import { createHmac } from "node:crypto";

const SALT = "salt";

/** What stands for items in the states of `verifiedState`. */
export const digestsOf = (items: readonly string[]): readonly string[] =>
  items.map((item) => createHmac("sha256", SALT).update(item).digest().toString("base64url", 0, 12));

const stateOf = (cursorField: string, digests: readonly string[]): object => ({
  version: 2,
  [cursorField]: null,
  salt: SALT,
  normalization: 1,
  jobs: [],
  done: digests.length === 0 ? [] : [["2026-01-01", digests.join("")]],
  older: [],
  spent: [],
  prices: [],
  inputs: [],
});

/** The state of "email_verifications" that knows these items as done. */
export const verifiedState = (digests: readonly string[]): object => stateOf("verified_at", digests);

/** The state of "company_lookups", or of their contacts, that knows these items as done. */
export const lookedUpState = (digests: readonly string[]): object => stateOf("created_at", digests);
