import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, quoted, valueAt } from "../base/json.ts";
import { schemaCompiler } from "../base/json-schema.ts";
import type { Day } from "../base/time.ts";
import { readSuppression, type Suppression } from "../privacy/suppress.ts";
import { parseAddress } from "./address.ts";
import { type Environment, OUR_PREFIXES, type Prefixes, withEnvironment, withPaths } from "./environment.ts";
import { normalize } from "./normalize.ts";
import { type Problem, receiptsProblems, ruleProblems, schemaProblems } from "./problems.ts";
import {
  configSpec,
  isDayProperty,
  isItemList,
  isRoot,
  type SpecProperty,
  settingsIn,
  typeOf,
  variableOf,
} from "./spec.ts";
import { typoProblems, unknownSettings, unknownVariables, unknownWarnings, VARIABLE } from "./typos.ts";

/** A valid config. */
export type Config = Settings & {
  /** Sentences for a person, for example about unknown settings. */
  readonly warnings: readonly string[];
  /** The origin of a setting's value, by its dotted name in spec.json: "the environment variable X". */
  readonly origins: ReadonlyMap<string, string>;
  /** The people, companies and items that `suppressFile` names. */
  readonly suppressed: Suppression;
  /** A sentence for the log about the origin of the settings, if the command line does not name it. */
  readonly note?: string;
};

/** The settings of spec.json in camel case. Null: not set. Lists have no duplicates, except lists of domains and e-mails. */
type Settings = {
  readonly baseUrl: URL;
  readonly apiKey: string;
  readonly externalApi: { readonly apiUrl: URL; readonly apiKey: string } | null;
  readonly allowInsecureHttp: boolean;
  readonly startDate: Day | null;
  readonly endDate: Day | null;
  readonly sourceSlug: string | null;
  readonly isUser: "all" | "true" | "false";
  readonly onlyFields: readonly string[];
  readonly suppressFile: string | null;
  readonly dropFields: readonly string[];
  readonly hashFields: readonly string[];
  readonly hashSalt: string | null;
  readonly companyLookup: CompanyLookup | null;
  readonly emailVerification: EmailVerification | null;
  readonly emailCheck: EmailCheck | null;
  readonly lookbackWindowDays: number;
  readonly rereadDays: number;
  readonly maxWindowRows: number;
  readonly numWorkers: number;
  readonly requestsPerMinute: number;
  readonly maxRunSeconds: number | null;
  readonly idleTimeoutSeconds: number;
  readonly verifyCounts: boolean;
  readonly ignoreMissingDays: readonly Day[];
  readonly emitActivateVersionMessages: boolean;
  readonly endpoints: Endpoints;
  /** Null: the default place. Empty: no receipts. */
  readonly receiptsFile: string | null;
};

/** Paths below the base URL. */
export type Endpoints = { readonly companies: string; readonly sources: string; readonly emailCheck: string };

/** The settings of every job. */
type JobRules = { readonly refreshAfterDays: number | null; readonly retryUnknown: boolean };

export type CompanyLookup = JobRules & {
  readonly domains: readonly string[];
  readonly domainsFile: string | null;
  readonly fromCompanies: boolean;
  readonly fromPeople: boolean;
  readonly maxLookupsPerSync: number;
  readonly maxCreditsPerSync: number;
  readonly maxCreditsPerDay: number | null;
  readonly maxCreditsPerMonth: number | null;
  readonly maxWaitSeconds: number;
  readonly webhookUrl: string | null;
};

export type EmailVerification = JobRules & {
  readonly emails: readonly string[];
  readonly emailsFile: string | null;
  readonly fromPeople: boolean;
  readonly maxPerSync: number;
  readonly maxPerDay: number | null;
};

export type EmailCheck = EmailVerification & { readonly maxWaitSeconds: number };

/** The origin of a config. */
export type ConfigPlace = {
  /** The name of the place in messages. */
  readonly name?: string;
  /** The line of each setting, by its dotted name. */
  readonly lines?: ReadonlyMap<string, number> | undefined;
  readonly prefixes?: Prefixes;
  /** The folder in which relative paths begin. Paths from variables begin in the working folder. */
  readonly folder?: string;
  /** Whether a platform may remove the folder, so that receipts need an absolute path. */
  readonly isTemporary?: boolean;
};

const isValid = schemaCompiler({ fill: true })<JsonObject>(configSpec());

/** Makes a Config of a value and of variables, which win. @throws ConfigError, which quotes no secret */
export function parseConfig(value: unknown, environment: Environment, place: ConfigPlace = {}): Config {
  const { name = "the config", prefixes = OUR_PREFIXES } = place;
  const given = value ?? {};
  if (!isObject(given)) throw new ConfigError(`Cannot use ${name}: it is not an object of properties`);
  const { merged, variables } = withEnvironment(given, environment, prefixes);
  const unknown = [...unknownSettings(merged), ...unknownVariables(environment, prefixes)];
  const draft = normalize(merged);
  const located = withPaths(draft, variables, place.folder ?? "");
  const problems = [...ruleProblems(draft), ...typoProblems(unknown)];
  if (place.isTemporary === true) problems.push(...receiptsProblems(draft, located));
  // ajv fills in defaults only in objects that exist.
  const candidate: unknown = { endpoints: {}, ...located };
  if (isValid(candidate) && problems.length === 0) {
    const settings = toShape(candidate, configSpec()) as Settings;
    const suppressed = readSuppression(settings.suppressFile);
    const isShort = settings.hashSalt !== null && [...settings.hashSalt].length < SAFE_SALT;
    return {
      ...settings,
      warnings: [...unknownWarnings(unknown, name), ...(isShort ? [SHORT_SALT] : []), ...suppressed.warnings],
      origins: originsOf(merged, variables, name),
      suppressed,
    };
  }
  const names = Object.keys(given);
  const isForeign = names.length > 0 && unknownWarnings(unknownSettings(given), name).length === names.length;
  const found = [...schemaProblems(isValid.errors ?? []), ...problems];
  const why = isForeign
    ? `it has no setting of this program, only ${names.slice(0, 3).map(quoted).join(", ")}`
    : clausesOf(found, variables, place.lines).join("; ");
  throw new ConfigError(`Cannot use ${name}: ${why}`);
}

/** The number of characters of a salt that no one can guess. */
const SAFE_SALT = 16;
const SHORT_SALT =
  `hash_salt has less than ${SAFE_SALT} characters, and its hashes can be guessed. Choose a longer salt. Then ` +
  "all hashes change, and hashed keys do not match the rows that were loaded before";

/** The origin of the value of each given setting, in words. */
function originsOf(
  merged: JsonObject,
  variables: ReadonlyMap<string, string>,
  file: string,
): ReadonlyMap<string, string> {
  const given = [...settingsIn()].filter(({ path }) => valueAt(merged, path) !== undefined);
  const names = given.map(({ path }) => path.join("."));
  return new Map(names.map((name) => [name, variables.has(name) ? VARIABLE + variables.get(name) : file]));
}

/** Every value that no output may show. */
export function secretsOf({ apiKey, externalApi, companyLookup, hashSalt }: Config): readonly string[] {
  const secrets = [apiKey, externalApi?.apiKey, companyLookup?.webhookUrl, hashSalt];
  return [...new Set(secrets.filter((secret) => typeof secret === "string"))];
}

/** The settings that decide which rows and fields are sent. Contains no values and no names of people. */
export const privacyOf = ({ onlyFields, dropFields, hashFields, suppressed }: Config): JsonObject => ({
  only_fields: onlyFields.toSorted(),
  drop_fields: dropFields.toSorted(),
  hash_fields: hashFields.toSorted(),
  suppressed: suppressed.entries,
});

/** Gives a valid object the shape of Config, with exactly the properties of the spec. */
function toShape(value: JsonObject, { properties = {} }: SpecProperty): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const given = value[name];
      return [camelCase(name), isItemList(name) ? (given ?? []) : toValue(name, given, property)];
    }),
  );
}

function toValue(name: string, value: unknown, property: SpecProperty): unknown {
  if (typeOf(property) === "array") return distinct(Array.isArray(value) ? value : [], property);
  if (isObject(value)) return toShape(value, property);
  if (typeof value === "string" && isRoot(name)) return parseAddress(value);
  return value ?? null;
}

function distinct(list: readonly unknown[], { items }: SpecProperty): readonly unknown[] {
  const values = [...new Set(list)];
  return items && isDayProperty(items) ? values.sort() : values;
}

const camelCase = (name: string): string =>
  name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

/** The first problem of each property, with its variable or its line. */
function clausesOf(
  problems: readonly Problem[],
  variables: ReadonlyMap<string, string>,
  lines: ReadonlyMap<string, number> | undefined,
): readonly string[] {
  const first = problems.filter(({ path }, nth) => problems.findIndex((one) => one.path === path) === nth);
  return first.map(({ path, text }) => {
    const name = path.replace(/\.\d+$/, "");
    const [variable, line] = [variables.get(name), lines?.get(name)];
    if (variable?.endsWith(variableOf(path.split("."), "")) === true) return `${variable} ${text}`;
    if (variable !== undefined) return `${path} ${text} (in ${variable})`;
    return line === undefined ? `${path} ${text}` : `${path} ${text} (line ${line})`;
  });
}
