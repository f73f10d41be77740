import type { Endpoints } from "../config.ts";

/** A stream is a row. */
export type StreamSpec = {
  readonly name: string;
  readonly primaryKey: readonly string[];
  /** Null: none. It counts only where the stream's schema has it as a date-time. */
  readonly cursorField: string | null;
  /** `dated`: in windows of days, with a state. `list`: whole, each time. */
  readonly reading: "dated" | "list";
  /** Below the base URL. Paged; `endpoint` names the setting that overrides it. */
  readonly listPath: string;
  readonly endpoint: keyof Endpoints | null;
  /** Below the base URL: one request gives all rows as lines. Null: there is only the list. */
  readonly exportPath: string | null;
  /** File under schemas/ with what is documented. */
  readonly schemaFile: string;
  /** Whether live records tell more fields than are documented. */
  readonly sampled: boolean;
  /** Whether a full refresh that broke off goes on from its last checkpoint. */
  readonly resumable: boolean;
};

export const STREAMS = [
  {
    name: "people",
    primaryKey: ["id"],
    cursorField: "discoveredAt",
    reading: "dated",
    listPath: "/api/v1/public/people",
    endpoint: null,
    exportPath: "/api/v1/public/people/stream",
    schemaFile: "people.json",
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
    schemaFile: "companies.json",
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
    schemaFile: "sources.json",
    sampled: true,
    resumable: false,
  },
] as const satisfies readonly StreamSpec[];

export type StreamName = (typeof STREAMS)[number]["name"];

/** Where the pages of a stream are, as the config says. */
export function listPathOf({ listPath, endpoint }: StreamSpec, endpoints: Endpoints): string {
  return endpoint === null ? listPath : endpoints[endpoint];
}
