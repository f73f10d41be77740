import { Ajv } from "ajv";
import { parseAddress } from "./config/address.ts";
import { type Environment, withEnvironment } from "./config/environment.ts";
import { normalize } from "./config/normalize.ts";
import { type Problem, ruleProblems, schemaProblems } from "./config/problems.ts";
import { loadSpec } from "./config/spec.ts";
import { ConfigError } from "./errors.ts";
import { isObject } from "./json.ts";
import type { Day } from "./sync/window.ts";

export { serviceUrl } from "./config/address.ts";

export type Config = {
  readonly baseUrl: URL;
  readonly apiKey: string;
  /** First day to read on a first sync; null: everything, people without a date included. */
  readonly startDate: Day | null;
  /** Last day to read; state never passes it. */
  readonly endDate: Day | null;
  readonly sourceSlug: string | null;
  readonly isUser: IsUser;
  readonly lookbackWindowDays: number;
  readonly maxWindowRows: number;
  readonly numWorkers: number;
  readonly requestsPerMinute: number;
  readonly maxRunSeconds: number | null;
  readonly verifyCounts: boolean;
  readonly ignoreMissingDays: readonly Day[];
  readonly allowInsecureHttp: boolean;
  readonly idleTimeoutSeconds: number;
  readonly endpoints: Endpoints;
  readonly externalApi: ExternalApi | null;
  readonly companyLookup: CompanyLookup | null;
  readonly emailVerification: EmailVerification | null;
  readonly emailCheck: EmailCheck | null;
};

export type IsUser = "all" | "true" | "false";

/** Paths below the base URL that the interface does not fix. */
export type Endpoints = { readonly companies: string; readonly sources: string; readonly emailCheck: string };

export type ExternalApi = { readonly apiUrl: URL; readonly apiKey: string };

/** What every job has. `refreshAfterDays` null: what is done is never asked again. */
export type JobRules = { readonly refreshAfterDays: number | null; readonly retryUnknown: boolean };

/** Domains and e-mails are trimmed, lower-cased and distinct, in the order of the config. */
export type CompanyLookup = JobRules & {
  readonly domains: readonly string[];
  readonly fromCompanies: boolean;
  readonly maxCreditsPerSync: number;
  readonly maxLookupsPerSync: number;
  readonly maxWaitSeconds: number;
  readonly webhookUrl: string | null;
};
export type EmailVerification = JobRules & { readonly emails: readonly string[] };
export type EmailCheck = JobRules & { readonly emails: readonly string[]; readonly maxWaitSeconds: number };

/** A draft that validated: `null` and what counts as absent are gone, defaults are in. */
type RawConfig = {
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

const spec = loadSpec().connectionSpecification;
const isRawConfig = new Ajv({
  allErrors: true,
  strict: false,
  useDefaults: true,
  validateFormats: false,
}).compile<RawConfig>(spec);

/**
 * Turns an untrusted value and the environment, which wins, into a Config. Throws a ConfigError that names every
 * wrong property and holds no secret. Null and undefined stand for a config that was left out.
 */
export function parseConfig(value: unknown, environment: Environment): Config {
  const given = value ?? {};
  if (!isObject(given)) throw new ConfigError(`Cannot use the config: it is not an object of properties`);
  const draft = normalize(withEnvironment(given, environment, spec), spec);
  const problems = ruleProblems(draft, spec);
  // ajv fills defaults only into objects that are there.
  const candidate: unknown = { endpoints: {}, ...draft };
  if (isRawConfig(candidate) && problems.length === 0) return toConfig(candidate);
  const found = [...schemaProblems(isRawConfig.errors ?? [], draft, spec), ...problems];
  throw new ConfigError(`Cannot use the config: ${sentence(found)}`);
}

/** Every value that must not show in any output. */
export function secretsOf(config: Config): readonly string[] {
  const secrets = [config.apiKey, config.externalApi?.apiKey, config.companyLookup?.webhookUrl];
  return [...new Set(secrets.filter((secret) => typeof secret === "string"))];
}

/** One clause a property: the first thing that was found wrong with it. */
function sentence(problems: readonly Problem[]): string {
  const first = new Map<string, string>();
  for (const { path, text } of problems) if (!first.has(path)) first.set(path, text);
  return [...first].map(([path, text]) => `${path} ${text}`).join("; ");
}

function toConfig(raw: RawConfig): Config {
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
