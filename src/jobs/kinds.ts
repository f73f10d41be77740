import { isObject } from "../base/json.ts";
import type { JobSetting } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Client } from "../service/client.ts";
import { envelopeCode } from "../service/error-table.ts";
import { companyLookups, LOOKUP_RESULT } from "./company-lookups.ts";
import { CHECK_RESULT, emailChecks, emailVerifications } from "./email-jobs.ts";
import type { JobType } from "./job-type.ts";

/** The kinds of jobs that a config names. */
export function jobTypesOf(config: Config): readonly JobType[] {
  const { companyLookup, emailCheck, emailVerification, endpoints } = config;
  return [
    companyLookup && companyLookups(companyLookup),
    emailCheck && emailChecks(emailCheck, endpoints.emailCheck),
    emailVerification && emailVerifications(emailVerification),
  ].filter((type) => type !== null);
}

export type JobClients = { readonly publicApi: Client; readonly externalApi: Client };

/** Polls a job that does not exist, which buys nothing. @throws ConnectorError if the key cannot use a setting's jobs */
export async function probeJobs(setting: JobSetting, { publicApi, externalApi }: JobClients): Promise<void> {
  const isCheck = setting === "emailCheck";
  const [client, what] = isCheck ? [publicApi, "check e-mails"] : [externalApi, "use the External API"];
  const path = (isCheck ? CHECK_RESULT : LOOKUP_RESULT).replace("{job}", "job_0_check");
  await client.ask(what, path, (status, value) => {
    const code = envelopeCode(value);
    const isView = code === "JOB_NOT_FOUND" || (status === 200 && isObject(value) && code === undefined);
    // The External API's answer for an unknown job is not documented: any answer proves the key, except "the key is not valid".
    const isOwn = (status === 202 || isObject(value)) && status !== 401 && (status < 502 || status > 504);
    return (isCheck ? isView : isOwn) ? true : undefined;
  });
}
