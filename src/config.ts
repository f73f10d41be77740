import { Ajv } from "ajv";
import { type Environment, withEnvironment } from "./config/environment.ts";
import { normalize } from "./config/normalize.ts";
import { type Problem, ruleProblems, schemaProblems } from "./config/problems.ts";
import { type RawConfig, toConfig } from "./config/raw-config.ts";
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
  /** Singer's ACTIVATE_VERSION after full tables. */
  readonly emitActivateVersion: boolean;
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
