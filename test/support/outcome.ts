import { ConfigError } from "../../src/errors.ts";

/** What comes of a call, as JSON; of one that throws ConfigError the message. */
export function outcome(make: () => unknown): string {
  try {
    return JSON.stringify(make());
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message;
  }
}
