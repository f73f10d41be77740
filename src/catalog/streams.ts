import { ConfigError } from "../base/errors.ts";
import type { Config, Endpoints } from "../config/config.ts";

type SyncMode = "full_refresh" | "incremental";

/** The facts of a stream that are true for every service. */
export type StreamSpec = {
  /** Also the name of its file under schemas/, which has the documented fields. */
  readonly name: string;
  readonly primaryKey: readonly string[];
  /** Null: none. It counts only where the stream's schema has it as a date-time. */
  readonly cursorField: string | null;
  /** Whether a sample of rows shows the fields that are not documented. A row without its key is then no error. */
  readonly sampled: boolean;
  /** Without `full_refresh` the stream is never read from the start: its records cost money or hours. */
  readonly modes: readonly SyncMode[];
  /** The stream is there only where this is set; absent: always. */
  readonly setting?: JobSetting;
};

/** A stream of the rows that the service lists. */
export type RowStreamSpec = StreamSpec & {
  /** Whether rows are documented to carry a date. Sampled ones may, and are read by days where they do. */
  readonly isDated: boolean;
  /** Below the base URL. Paged; `endpoint` names the setting that overrides it. */
  readonly listPath: string;
  readonly endpoint: keyof Endpoints | null;
  /** Below the base URL: one request gives all rows as lines. Null: there is only the list. */
  readonly exportPath: string | null;
};

/** The settings that turn a job stream on. */
export const JOB_SETTINGS = ["companyLookup", "emailCheck", "emailVerification"] as const;
export type JobSetting = (typeof JOB_SETTINGS)[number];

/** A stream of answers that are asked for an item at a time. */
export type JobStreamSpec = StreamSpec & { readonly cursorField: string; readonly setting: JobSetting };

const BOTH: readonly SyncMode[] = ["full_refresh", "incremental"];

export const PEOPLE: RowStreamSpec = {
  name: "people",
  primaryKey: ["id"],
  cursorField: "discoveredAt",
  isDated: true,
  sampled: false,
  modes: BOTH,
  listPath: "/api/v1/public/people",
  endpoint: null,
  exportPath: "/api/v1/public/people/stream",
};

export const COMPANIES: RowStreamSpec = {
  name: "companies",
  primaryKey: ["domain"],
  cursorField: "discoveredAt",
  isDated: false,
  sampled: true,
  modes: BOTH,
  listPath: "/api/v1/public/companies",
  endpoint: "companies",
  exportPath: "/api/v1/public/companies/stream",
};

export const SOURCES = list("sources", "slug", "/api/v1/public/sources", "sources");

export const ROW_STREAMS: readonly RowStreamSpec[] = [PEOPLE, COMPANIES, SOURCES];

export const JOB_STREAMS: readonly JobStreamSpec[] = [
  job("company_lookups", ["job_id"], "created_at", "companyLookup"),
  job("company_lookup_contacts", ["job_id", "position"], "created_at", "companyLookup"),
  job("email_checks", ["email", "source"], "checked_at", "emailCheck"),
  job("email_verifications", ["email"], "verified_at", "emailVerification"),
];

export const STREAMS: readonly StreamSpec[] = [...ROW_STREAMS, ...JOB_STREAMS];

/** The settings that decide which streams there are. */
export type StreamSettings = Pick<Config, JobSetting>;

/** The streams of jobs that a config sets. */
export const jobSpecsOf = (config: StreamSettings): readonly JobStreamSpec[] =>
  JOB_STREAMS.filter(({ setting }) => config[setting] !== null);

/** The streams that a config has: all streams of rows, and those that it sets. */
export const streamsOf = (config: StreamSettings): readonly StreamSpec[] => [
  ...ROW_STREAMS,
  ...jobSpecsOf(config),
];

/** Whether a stream can be read from the start. A name that no stream has counts as one that can. */
export const canRefresh = (name: string): boolean =>
  STREAMS.find((spec) => spec.name === name)?.modes.includes("full_refresh") ?? true;

/** Finds a stream of a config. @throws ConfigError @param advice what to do about a name that no stream has */
export function streamNamed(name: string, config: StreamSettings, advice: string): StreamSpec {
  const streams = streamsOf(config);
  const found = streams.find((stream) => stream.name === name);
  if (found !== undefined) return found;
  const setting = JOB_STREAMS.find((stream) => stream.name === name)?.setting;
  if (setting === undefined) {
    const names = streams.map((stream) => stream.name).join(", ");
    throw new ConfigError(
      `Cannot read the stream "${name}": there is no such stream, only ${names}. ${advice}`,
    );
  }
  const property = setting.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  throw new ConfigError(
    `Cannot read the stream "${name}": it is there only when ${property} is set in the config. Set it, or take the stream out of the sync`,
  );
}

/** A stream of rows that has a list and no export, is sampled, and is read whole. @param endpoint the setting that overrides the path */
function list(name: string, key: string, listPath: string, endpoint: keyof Endpoints): RowStreamSpec {
  const facts = { isDated: false, sampled: true, cursorField: null, exportPath: null } as const;
  return { ...facts, name, primaryKey: [key], modes: ["full_refresh"], listPath, endpoint };
}

function job(
  name: string,
  primaryKey: readonly string[],
  cursorField: string,
  setting: JobSetting,
): JobStreamSpec {
  return { name, primaryKey, cursorField, setting, sampled: false, modes: ["incremental"] };
}

/** Where the pages of a stream are, as the config says. */
export const listPathOf = ({ listPath, endpoint }: RowStreamSpec, endpoints: Endpoints): string =>
  endpoint === null ? listPath : endpoints[endpoint];
