import { ConfigError } from "../base/errors.ts";
import type { Config, Endpoints } from "../config/config.ts";

type SyncMode = "full_refresh" | "incremental";

/** The facts of a stream that are true for every service. */
export type StreamSpec = {
  /** Also the name of its file in schemas/, which lists the documented fields. */
  readonly name: string;
  readonly primaryKey: readonly string[];
  /** The field with the date of a row. It counts only if the schema has it as a date-time. */
  readonly cursorField: string | null;
  /** Whether a sample of rows shows fields that are not documented. A row may then lack its key. */
  readonly sampled: boolean;
  /** Without `full_refresh` the stream is never read from the start, because its records cost money or hours. */
  readonly modes: readonly SyncMode[];
  /** The stream exists only if this setting is set. Absent: it always exists. */
  readonly setting?: JobSetting;
};

/** A stream of the rows that the service lists. */
export type RowStreamSpec = StreamSpec & {
  /** Whether the documentation says that rows have a date. If sampled rows have a date, the stream is also read by days. */
  readonly isDated: boolean;
  /** The path of the paged list, below the base URL. The setting `endpoint` overrides it. */
  readonly listPath: string;
  readonly endpoint: keyof Endpoints | null;
  /** The path of the export, which sends all rows as lines. Null: there is only the list. */
  readonly exportPath: string | null;
};

/** The settings that turn a job stream on. */
export const JOB_SETTINGS = ["companyLookup", "emailCheck", "emailVerification"] as const;
export type JobSetting = (typeof JOB_SETTINGS)[number];

/** A stream of answers. Each answer is about one item. */
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

/** The streams of a config: all streams of rows, and the streams of its jobs. */
export const streamsOf = (config: StreamSettings): readonly StreamSpec[] => [
  ...ROW_STREAMS,
  ...jobSpecsOf(config),
];

/** Whether a stream can be read from the start. An unknown stream counts as readable. */
export const canRefresh = (name: string): boolean =>
  STREAMS.find((spec) => spec.name === name)?.modes.includes("full_refresh") ?? true;

/** Finds a stream of a config. @param advice for a name that no stream has @throws ConfigError */
export function streamNamed(name: string, config: StreamSettings, advice: string): StreamSpec {
  const streams = streamsOf(config);
  const found = streams.find((stream) => stream.name === name);
  if (found !== undefined) return found;
  const setting = JOB_STREAMS.find((stream) => stream.name === name)?.setting;
  const names = streams.map((stream) => stream.name).join(", ");
  const property = setting?.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const why =
    property === undefined
      ? `there is no such stream, only ${names}. ${advice}`
      : `it needs the setting ${property}. Set ${property}, or remove the stream from the sync`;
  throw new ConfigError(`Cannot read the stream "${name}": ${why}`);
}

/** A stream of rows that is read whole from its list. @param endpoint the setting that overrides the path */
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

/** The path of the list of a stream, as configured. */
export const listPathOf = ({ listPath, endpoint }: RowStreamSpec, endpoints: Endpoints): string =>
  endpoint === null ? listPath : endpoints[endpoint];
