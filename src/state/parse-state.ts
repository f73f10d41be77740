import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, kindOf } from "../base/json.ts";
import { type SchemaCheck, schemaCompiler } from "../base/json-schema.ts";
import { cursorToUtc, instant, isDay, isInstant } from "../base/time.ts";
import { configSpec } from "../config/spec.ts";
import type { Span } from "../sync/coverage.ts";
import { FILTER_NAMES, NEW_STATE, NO_FILTERS, type RowState } from "../sync/state.ts";

const text = { type: "string" };
const day = { type: "string", format: "date" };
const rows = { type: "integer", minimum: 0 };
const id = { type: ["integer", "null"] };
const listOf = (items: object): object => ({ type: "array", items });
const recordOf = (required: object, optional = {}): object => ({
  ...{ type: "object", properties: { ...required, ...optional }, required: Object.keys(required) },
});

const span = { from: day, to: day, status: { enum: ["proven", "again", "missing", "reread"] }, rows };
const filters = Object.fromEntries(FILTER_NAMES.map((name) => [name, configSpec().properties?.[name]]));

/** The schema of each key of a state. Every key may also be null. */
const SCHEMA = {
  properties: {
    days: listOf(recordOf(span, { read: day })),
    undated: recordOf({ rows }, { read: day }),
    checked: day,
    sources: listOf(text),
    filters: { type: "object", properties: filters },
    service: text,
    key: text,
    full_refresh: recordOf({ generation_id: id, sync_id: id, done: { type: "boolean" } }),
  },
};
let checkOfKeys: SchemaCheck | undefined;

/** Reads the state of a stream of rows. Null for an empty state or marks of other sources. @throws ConfigError for other states */
export function parseRowState(stream: string, saved: unknown): RowState | null {
  if (saved === null || saved === undefined) return null;
  if (!isObject(saved)) throw unusable(stream, `it is of type ${kindOf(saved)}, not an object`);
  if (Object.keys(saved).every((key) => key.startsWith("__ab_"))) return null;
  // Without a version there is only a cursor, and everything is read.
  if (saved["version"] === undefined) return { ...NEW_STATE, discoveredAt: cursorOf(stream, saved) };
  refuseOtherVersion(stream, saved);
  refuseOtherShape(stream, saved);
  const known = Object.entries(NEW_STATE).map(([key, none]) => [key, saved[key] ?? none]);
  const read = Object.fromEntries(known) as RowState;
  return {
    ...{ ...read, filters: read.filters && { ...NO_FILTERS, ...read.filters } },
    discoveredAt: cursorOf(stream, saved),
    asked: momentOf(stream, saved["asked"], "asked"),
  };
}

function refuseOtherVersion(stream: string, { version }: JsonObject): void {
  if (version === NEW_STATE.version) return;
  if (typeof version !== "number") throw unusable(stream, "version is not a number");
  const why =
    version > NEW_STATE.version
      ? `a newer version of this program wrote it (state version ${version}). Update the program`
      : `a build before 1.0 wrote it (state version ${version}). The last build that reads it is tagged 0.1. Use that build, ` +
        "or remove the state to read the stream from the start";
  throw new ConfigError(`Cannot use the state of "${stream}": ${why}`);
}

function refuseOtherShape(stream: string, saved: JsonObject): void {
  checkOfKeys ??= schemaCompiler({ fill: false, formats: { date: isDay } })(SCHEMA);
  const present = Object.fromEntries(Object.entries(saved).filter(([, value]) => value !== null));
  if (!checkOfKeys(present)) {
    const [{ instancePath = "", message = "" } = {}] = checkOfKeys.errors ?? [];
    const place = instancePath.slice(1);
    throw unusable(stream, `${place.split("/", 1)[0]} is not as this program writes it: ${place} ${message}`);
  }
  const days = (present["days"] ?? []) as readonly Span[];
  const isInOrder = days.every(({ from, to }, nth) => from <= to && from > (days[nth - 1]?.to ?? ""));
  if (!isInOrder) throw unusable(stream, "days are not in order, or overlap");
}

/** The earlier of the stream's cursor and Singer's cursor. A person may have set back one cursor to read again. */
function cursorOf(stream: string, saved: JsonObject): string | null {
  const { discoveredAt, replication_key = "discoveredAt", replication_key_value } = saved;
  const own = momentOf(stream, discoveredAt, "discoveredAt");
  if (replication_key !== "discoveredAt") return own;
  const singer = momentOf(stream, replication_key_value, "replication_key_value");
  if (discoveredAt === null || replication_key_value === null) return null;
  if (own === null || singer === null) return own ?? singer;
  return instant(singer) < instant(own) ? singer : own;
}

/** A moment in UTC. A day without a time is its first moment. */
function momentOf(stream: string, value: unknown, name: string): string | null {
  if (value === undefined || value === null) return null;
  const written = typeof value === "string" && isDay(value) ? `${value}T00:00:00Z` : value;
  if (typeof written !== "string" || !isInstant(written))
    throw unusable(stream, `${name} is not a date-time such as 2026-01-02T03:04:05Z`);
  return cursorToUtc(written);
}

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. Correct it, or remove it to read the stream from the start`,
  );
