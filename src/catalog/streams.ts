import type { Config, Endpoints } from "../config/config.ts";

/** A stream is a row. */
export type StreamSpec = RowStreamSpec | JobStreamSpec;

type AnyStreamSpec = {
  /** Also that of the file under schemas/ with what is documented. */
  readonly name: string;
  readonly primaryKey: readonly string[];
  /** Null: none. It counts only where the stream's schema has it as a date-time. */
  readonly cursorField: string | null;
  /** Whether live records tell more fields than are documented. */
  readonly sampled: boolean;
  /** Whether a full refresh that broke off goes on from its last checkpoint. */
  readonly resumable: boolean;
};

/** Rows of the service. */
export type RowStreamSpec = AnyStreamSpec & {
  /** `dated`: in windows of days, with a state. `list`: all rows, each time. */
  readonly reading: "dated" | "list";
  /** Below the base URL. Paged; `endpoint` names the setting that overrides it. */
  readonly listPath: string;
  readonly endpoint: keyof Endpoints | null;
  /** Below the base URL: one request gives all rows as lines. Null: there is only the list. */
  readonly exportPath: string | null;
};

/** The settings that turn a job stream on. */
export const JOB_SETTINGS = ["companyLookup", "emailCheck", "emailVerification"] as const;
export type JobSetting = (typeof JOB_SETTINGS)[number];

/** Answers that are asked for an item at a time, for money or with patience. Incremental only: nothing is asked twice. */
export type JobStreamSpec = AnyStreamSpec & {
  readonly reading: "job";
  readonly cursorField: string;
  /** The stream is there only where this is set. */
  readonly setting: JobSetting;
};

const JOB = { reading: "job", sampled: false, resumable: false } as const;

export const STREAMS = [
  {
    name: "people",
    primaryKey: ["id"],
    cursorField: "discoveredAt",
    reading: "dated",
    listPath: "/api/v1/public/people",
    endpoint: null,
    exportPath: "/api/v1/public/people/stream",
    sampled: false,
    resumable: true,
  },
  {
    name: "companies",
    primaryKey: ["domain"],
    cursorField: "discoveredAt",
    reading: "dated",
    listPath: "/api/v1/public/companies",
    endpoint: "companies",
    exportPath: "/api/v1/public/companies/stream",
    sampled: true,
    resumable: false,
  },
  {
    name: "sources",
    primaryKey: ["slug"],
    cursorField: null,
    reading: "list",
    listPath: "/api/v1/public/sources",
    endpoint: "sources",
    exportPath: null,
    sampled: true,
    resumable: false,
  },
  {
    ...JOB,
    name: "company_lookups",
    primaryKey: ["job_id"],
    cursorField: "created_at",
    setting: "companyLookup",
  },
  {
    ...JOB,
    name: "company_lookup_contacts",
    primaryKey: ["job_id", "position"],
    cursorField: "created_at",
    setting: "companyLookup",
  },
  {
    ...JOB,
    name: "email_checks",
    primaryKey: ["email", "source"],
    cursorField: "checked_at",
    setting: "emailCheck",
  },
  {
    ...JOB,
    name: "email_verifications",
    primaryKey: ["email"],
    cursorField: "verified_at",
    setting: "emailVerification",
  },
] as const satisfies readonly StreamSpec[];

/** Which streams a config asks for. */
export type StreamSettings = Pick<Config, JobSetting>;

/** The streams that a config has: all rows, and what it sets. Without a config there is no more. */
export function streamsOf(config: StreamSettings | undefined): readonly StreamSpec[] {
  return STREAMS.filter((spec) => !("setting" in spec) || Boolean(config?.[spec.setting]));
}

/** Whether a stream has rows of the service. */
export const hasRows = (spec: StreamSpec): spec is RowStreamSpec =>
  spec.reading === "dated" || spec.reading === "list";

/** Streams that are never read from the start: their records cannot be read again, or cost money. */
export const ONWARD: ReadonlySet<string> = new Set(
  STREAMS.flatMap((spec) => (hasRows(spec) ? [] : [spec.name])),
);

/** The streams of jobs that the config has. */
export const jobSpecsOf = (config: Pick<Config, JobSetting>): readonly JobStreamSpec[] =>
  streamsOf(config).filter((spec) => spec.reading === "job");

/** Where the pages of a stream are, as the config says. */
export function listPathOf({ listPath, endpoint }: RowStreamSpec, endpoints: Endpoints): string {
  return endpoint === null ? listPath : endpoints[endpoint];
}
