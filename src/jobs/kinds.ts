import type { Client } from "../api/client.ts";
import type { JobSetting } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { companyLookups } from "./company-lookups.ts";
import { emailChecks } from "./email-checks.ts";
import { emailVerifications } from "./email-verifications.ts";
import type { JobType } from "./job-type.ts";

/** The kind of job of a setting. `client` undefined: to know its rules, not to work. */
export function jobTypeOf(setting: JobSetting, config: Config, client: Client | undefined): JobType {
  const { companyLookup, emailCheck, emailVerification, endpoints } = config;
  switch (setting) {
    case "companyLookup":
      return companyLookups(configured(companyLookup), client);
    case "emailCheck":
      return emailChecks(configured(emailCheck), endpoints.emailCheck, client);
    case "emailVerification":
      return emailVerifications(configured(emailVerification), client);
  }
}

type Lists = {
  /** Such as `company_lookup.domains`. */
  readonly listName: string;
  readonly list: readonly string[];
  readonly file: string | null;
  /** The streams whose rows name more items. */
  readonly froms: readonly ("people" | "companies")[];
};

/** Where the items of a setting come from. */
export function listsOf(
  setting: JobSetting,
  { companyLookup, emailCheck, emailVerification }: Config,
): Lists {
  if (setting === "companyLookup") {
    const { domains, domainsFile, fromCompanies, fromPeople } = configured(companyLookup);
    const froms = [
      ...(fromCompanies ? (["companies"] as const) : []),
      ...(fromPeople ? (["people"] as const) : []),
    ];
    return { listName: "company_lookup.domains", list: domains, file: domainsFile, froms };
  }
  const isCheck = setting === "emailCheck";
  const { emails, emailsFile, fromPeople } = configured(isCheck ? emailCheck : emailVerification);
  const listName = isCheck ? "email_check.emails" : "email_verification.emails";
  return { listName, list: emails, file: emailsFile, froms: fromPeople ? ["people"] : [] };
}

function configured<Settings>(settings: Settings | null): Settings {
  if (settings === null) throw new Error("Cannot open a job stream: it is not configured");
  return settings;
}
