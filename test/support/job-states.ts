import { createHmac } from "node:crypto";

const SALT = "salt";

/** What stands for items in the states of `verifiedState`. */
export const digestsOf = (items: readonly string[]): readonly string[] =>
  items.map((item) => createHmac("sha256", SALT).update(item).digest().toString("base64url", 0, 12));

/** The state of "email_verifications" that knows these items as done. */
export const verifiedState = (digests: readonly string[]): object => ({
  ...{ version: 2, verified_at: null, salt: SALT, normalization: 1 },
  done: [["2026-01-01", digests.join("")]],
  ...{ jobs: [], older: [], spent: [], prices: [], inputs: [] },
});
