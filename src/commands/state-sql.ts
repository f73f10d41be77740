import { basename, join, resolve } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { toLatin1 } from "../base/text.ts";
import { type JsonSchema, loadSchema, TIMESTAMP } from "../catalog/schema.ts";
import { STREAMS, type StreamSpec } from "../catalog/streams.ts";
import { reasonOf } from "../output/files/reason.ts";
import { namesIn, numberOf } from "../output/folder-state.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";

const DIALECTS = {
  duckdb: (streams: readonly StreamRows[]) => streams.map(duckdbView).join(""),
  postgres: (streams: readonly StreamRows[]) => `${BEGIN}${streams.map(postgresTable).join("")}COMMIT;\n`,
};

type Dialect = keyof typeof DIALECTS;

/** Prints SQL that makes a view of each stream with the newest row of each key. @throws ConfigError */
export async function showSql(folder: string, dialect: Dialect, { stdout }: Runtime): Promise<number> {
  const found = await Promise.all(STREAMS.map((spec) => rowsOf(resolve(folder), spec)));
  const streams = found.filter(({ files }) => files.length > 0);
  if (streams.length === 0)
    throw new ConfigError(`Cannot query "${folder}": it has no rows. Name a folder of read --output`);
  await write(stdout, toLatin1(DIALECTS[dialect](streams)));
  return 0;
}

type StreamRows = Awaited<ReturnType<typeof rowsOf>>;

/** The rows of a stream in a folder. `files`: absolute paths. Files of shards are first, then older files. */
async function rowsOf(output: string, spec: StreamSpec) {
  const folder = join(output, spec.name);
  try {
    const names = await namesIn(folder);
    const full = names.sort().findLast((name) => /^full-\d{9}$/.test(name));
    /** The newest folder with all rows. Older folders are out of date. */
    const newest = full && join(folder, full);
    const refreshed = newest === undefined ? [] : pathsOf(newest, await namesIn(newest));
    const shards = (await namesIn(output)).filter((name) => name.startsWith("shard-"));
    const places = shards.map((shard) => join(output, shard, spec.name));
    const inShards = await Promise.all(places.map(async (place) => pathsOf(place, await namesIn(place))));
    const first = inShards.flat();
    const files = [...inOrder(first), ...inOrder([...pathsOf(folder, names), ...refreshed])];
    return { spec, folder, newest, files, patterns: patternsOf(output, spec.name, first, refreshed) };
  } catch (cause) {
    throw new ConfigError(`Cannot read the folder "${folder}": ${reasonOf(cause)}`, { cause });
  }
}

/** Patterns for DuckDB. Each pattern must match at least one file now, and also the files of later runs. */
function patternsOf(output: string, stream: string, first: readonly string[], refreshed: readonly string[]) {
  const escaped = globOf(output);
  if (first.length === 0) return [join(escaped, stream, "**/*.jsonl*")];
  const ofFull = refreshed.length === 0 ? [] : [join(escaped, stream, "full-*/*.jsonl*")];
  return [join(escaped, "**", stream, "[0-9]*.jsonl*"), ...ofFull];
}

/** A pattern that matches one path only. */
const globOf = (path: string): string => path.replace(/[[*?]/g, "[$&]");

const inOrder = (paths: readonly string[]): readonly string[] =>
  paths.toSorted((one, two) => numberOf(basename(one)) - numberOf(basename(two)));
const pathsOf = (folder: string, names: readonly string[]): string[] =>
  names.filter((name) => /^[^.].*\.jsonl(\.gz)?$/.test(name)).map((name) => join(folder, name));
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const name = (text: string): string => `"${text}"`;

/** Without these options, DuckDB loses fields of late rows and reads texts as dates. The view always has the cursor column. */
function duckdbView({ spec, folder, patterns }: StreamRows): string {
  const { cursorField: cursor } = spec;
  const moment = cursor && `TRY_CAST(${name(cursor)}::VARCHAR AS TIMESTAMPTZ)`;
  const withCursor = cursor ? ` UNION ALL BY NAME SELECT NULL AS ${name(cursor)} WHERE false` : "";
  return String.raw`CREATE OR REPLACE VIEW ${spec.name} AS
SELECT * EXCLUDE (_file)${cursor ? ` REPLACE (${moment} AS ${name(cursor)})` : ""}
FROM (FROM read_json([${patterns.map(literal).join(", ")}], format = 'newline_delimited', union_by_name = true,
  sample_size = -1, map_inference_threshold = -1, dateformat = 'none', timestampformat = 'none',
  hive_partitioning = false, filename = '_file')${withCursor})
WHERE regexp_extract(_file, '/(\.?full-[^/]*)/[^/]*$', 1) IN (
  '', (SELECT max(regexp_extract(file, '/(full-\d{9})/[^/]*$', 1))
    FROM glob(${literal(join(globOf(folder), "full-*/*.jsonl*"))})))
QUALIFY row_number() OVER (PARTITION BY ${spec.primaryKey.map(name).join(", ")}
  ORDER BY ${moment ? `${moment} DESC NULLS LAST, ` : ""}_file LIKE '%/shard-%', regexp_extract(_file, '-(\d{9})-[^/]*$', 1) DESC) = 1;
`;
}

/** `moment` returns NULL for a wrong date, because PostgreSQL's cast would make every query fail. */
const BEGIN = String.raw`\set ON_ERROR_STOP on
\set QUIET on
\encoding UTF8
SET client_min_messages = warning;
SET TIME ZONE 'UTC';
BEGIN;
CREATE FUNCTION pg_temp.moment(text) RETURNS timestamptz LANGUAGE plpgsql AS
  $$ BEGIN RETURN $1::timestamptz; EXCEPTION WHEN others THEN RETURN NULL; END $$;
CREATE TEMPORARY TABLE lines (line text);
CREATE TABLE IF NOT EXISTS loaded_files (load serial PRIMARY KEY, file text UNIQUE);
`;

function postgresTable({ spec, newest, folder, files }: StreamRows): string {
  const { cursorField: cursor } = spec;
  const table = `${spec.name}_loads`;
  const keys = spec.primaryKey.map((key) => `record -> ${literal(key)}`).join(", ");
  const fields = { ...loadSchema(spec.name).properties, ...(cursor && { [cursor]: TIMESTAMP }) };
  const columns = Object.entries(fields).map((field) => `  ${columnOf(...field)} AS ${name(field[0])},\n`);
  return `CREATE TABLE IF NOT EXISTS ${table} (load int, record jsonb, moment timestamptz);
${files.map((file) => loadOf(file, table, cursor)).join("")}DELETE FROM ${table} USING loaded_files WHERE ${table}.load = loaded_files.load
  AND starts_with(file, ${literal(join(folder, "full-"))})
  AND NOT starts_with(file, ${literal(join(newest ?? folder, "/"))});
CREATE OR REPLACE VIEW ${spec.name} AS
SELECT DISTINCT ON (${keys})
${columns.join("")}  record
FROM ${table}
ORDER BY ${keys}, moment DESC NULLS LAST, load DESC;
`;
}

/** Loads a new file, without NUL, which jsonb refuses. Control characters are quote and delimiter, because JSON lacks them. */
function loadOf(file: string, table: string, cursor: string | null): string {
  const unpacked = `PROGRAM ${literal(`gzip -dc ${`'${file.replaceAll("'", String.raw`'\''`)}'`}`)}`;
  const source = file.endsWith(".gz") ? unpacked : literal(file);
  const moment = cursor === null ? "NULL" : `pg_temp.moment(record ->> ${literal(cursor)})`;
  return String.raw`SELECT NOT EXISTS (SELECT FROM loaded_files WHERE file = ${literal(file)}) AS is_new \gset
\if :is_new
\copy lines FROM ${source} (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
INSERT INTO loaded_files (file) VALUES (${literal(file)});
INSERT INTO ${table} SELECT lastval(), record, ${moment} FROM (
  SELECT regexp_replace(line, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::jsonb AS record FROM lines) AS rows;
TRUNCATE lines;
\endif
`;
}

/** The column of a field. A value of a wrong type is null, but the column `record` contains it. */
function columnOf(field: string, { type, format }: JsonSchema): string {
  if (format === TIMESTAMP.format) return "moment";
  const kind = [type].flat().find((one) => one !== "null");
  const value = `record -> ${literal(field)}`;
  if (kind === "string") return `record ->> ${literal(field)}`;
  if (kind === "array" || kind === "object") return `NULLIF(${value}, 'null')`;
  const [json, sql] = kind === "boolean" ? ["boolean", "boolean"] : ["number", "numeric"];
  return `CASE jsonb_typeof(${value}) WHEN '${json}' THEN (${value})::${sql} END`;
}
