import type { CompanyLookup, Config, IsUser, JobRules } from "../config.ts";
import type { Day } from "../sync/window.ts";
import { parseAddress } from "./address.ts";

/** A draft that validated: `null` and what counts as absent are gone, defaults are in. */
export type RawConfig = {
  base_url: string;
  api_key: string;
  start_date?: Day;
  end_date?: Day;
  source_slug?: string;
  is_user: IsUser;
  lookback_window_days: number;
  max_window_rows: number;
  num_workers: number;
  requests_per_minute: number;
  max_run_seconds?: number;
  verify_counts: boolean;
  ignore_missing_days?: Day[];
  allow_insecure_http: boolean;
  idle_timeout_seconds: number;
  emit_activate_version_messages: boolean;
  endpoints: { companies: string; sources: string; email_check: string };
  external_api?: { api_url: string; api_key: string };
  company_lookup?: RawCompanyLookup;
  email_verification?: RawRules & { emails: string[] };
  email_check?: RawRules & { emails: string[]; max_wait_seconds: number };
};
type RawRules = { refresh_after_days?: number; retry_unknown: boolean };
type RawCompanyLookup = RawRules & {
  domains?: string[];
  from_companies: boolean;
  max_credits_per_sync: number;
  max_lookups_per_sync: number;
  max_wait_seconds: number;
  webhook_url?: string;
};

/** The names and shapes that the rest of the program uses. */
export function toConfig(raw: RawConfig): Config {
  return {
    baseUrl: parseAddress(raw.base_url),
    apiKey: raw.api_key,
    startDate: raw.start_date ?? null,
    endDate: raw.end_date ?? null,
    sourceSlug: raw.source_slug ?? null,
    isUser: raw.is_user,
    lookbackWindowDays: raw.lookback_window_days,
    maxWindowRows: raw.max_window_rows,
    numWorkers: raw.num_workers,
    requestsPerMinute: raw.requests_per_minute,
    maxRunSeconds: raw.max_run_seconds ?? null,
    verifyCounts: raw.verify_counts,
    ignoreMissingDays: [...new Set(raw.ignore_missing_days ?? [])].sort(),
    allowInsecureHttp: raw.allow_insecure_http,
    idleTimeoutSeconds: raw.idle_timeout_seconds,
    emitActivateVersion: raw.emit_activate_version_messages,
    endpoints: {
      companies: raw.endpoints.companies,
      sources: raw.endpoints.sources,
      emailCheck: raw.endpoints.email_check,
    },
    externalApi: raw.external_api
      ? { apiUrl: parseAddress(raw.external_api.api_url), apiKey: raw.external_api.api_key }
      : null,
    companyLookup: raw.company_lookup ? toCompanyLookup(raw.company_lookup) : null,
    emailVerification: raw.email_verification
      ? { ...toRules(raw.email_verification), emails: distinct(raw.email_verification.emails) }
      : null,
    emailCheck: raw.email_check
      ? {
          ...toRules(raw.email_check),
          emails: distinct(raw.email_check.emails),
          maxWaitSeconds: raw.email_check.max_wait_seconds,
        }
      : null,
  };
}

function toCompanyLookup(raw: RawCompanyLookup): CompanyLookup {
  return {
    ...toRules(raw),
    domains: distinct(raw.domains ?? []),
    fromCompanies: raw.from_companies,
    maxCreditsPerSync: raw.max_credits_per_sync,
    maxLookupsPerSync: raw.max_lookups_per_sync,
    maxWaitSeconds: raw.max_wait_seconds,
    webhookUrl: raw.webhook_url ?? null,
  };
}

const toRules = (raw: RawRules): JobRules => ({
  refreshAfterDays: raw.refresh_after_days ?? null,
  retryUnknown: raw.retry_unknown,
});

const distinct = (texts: readonly string[]): readonly string[] => [
  ...new Set(texts.map((text) => text.trim().toLowerCase())),
];
