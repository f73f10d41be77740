import type { Client } from "../api/client.ts";
import { envelopeCode } from "../api/error-table.ts";
import type { JobSetting } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { isObject } from "../json.ts";
import { companyLookups, LOOKUP_RESULT } from "./company-lookups.ts";
import { CHECK_RESULT, emailChecks, emailVerifications } from "./email-jobs.ts";
import type { JobType } from "./job-type.ts";
import { probe } from "./requests.ts";

/** The kind of job of a setting. Throws if the config does not have it. */
export function jobTypeOf(
  setting: JobSetting,
  { companyLookup, emailCheck, emailVerification, endpoints }: Config,
): JobType {
  if (setting === "companyLookup" && companyLookup !== null) return companyLookups(companyLookup);
  if (setting === "emailCheck" && emailCheck !== null) return emailChecks(emailCheck, endpoints.emailCheck);
  if (setting === "emailVerification" && emailVerification !== null)
    return emailVerifications(emailVerification);
  throw new Error(`Cannot open the jobs of "${setting}": they are not configured`);
}

/** Throws what keeps the key from checking e-mails. */
export const probePublic = (client: Client): Promise<void> =>
  probe(client, "check e-mails", CHECK_RESULT, (status, value) => {
    const code = envelopeCode(value);
    return code === "JOB_NOT_FOUND" || (status === 200 && isObject(value) && code === undefined);
  });

/**
 * Throws what keeps the key from the External API. The interface does not say what an unknown job is answered, so any
 * answer of the service's own will do but that the key is not valid.
 */
export const probeExternal = (client: Client): Promise<void> =>
  probe(
    client,
    "use the External API",
    LOOKUP_RESULT,
    (status, value) =>
      (status === 202 || isObject(value)) && status !== 401 && (status < 502 || status > 504),
  );
