import type { Client } from "../api/client.ts";
import { envelopeCode } from "../api/error-table.ts";
import { isObject } from "../json.ts";
import { CHECK_RESULT, isResultStatus, LOOKUP, MADE_UP_JOB } from "./requests.ts";

/** Throws what keeps the key from checking e-mails. Asks for a job that nobody submitted, and so buys nothing. */
export async function probePublic(client: Client): Promise<void> {
  await client.ask("check e-mails", `${CHECK_RESULT}/${MADE_UP_JOB}`, isResultStatus, (status, value) => {
    const isAnswer = status === 200 && isObject(value) && envelopeCode(value) === undefined;
    return isAnswer || envelopeCode(value) === "JOB_NOT_FOUND" ? true : undefined;
  });
}

/**
 * Throws what keeps the key from the External API, in the same way. The interface does not say what an unknown job is
 * answered, so that any answer of the service's own will do but that the key is not valid.
 */
export async function probeExternal(client: Client): Promise<void> {
  await client.ask(
    "use the External API",
    `${LOOKUP}/${MADE_UP_JOB}/result`,
    isResultStatus,
    (status, value) => {
      const isOwn = status === 202 || isObject(value);
      return isOwn && status !== 401 && (status < 502 || status > 504) ? true : undefined;
    },
  );
}
