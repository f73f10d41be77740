import { UsageError } from "../base/errors.ts";

/** Each prints a table's key and cursor into keys.csv, the cursor in UTC with microseconds. */
const QUERIES: Readonly<Record<string, (table: string, key: string, cursor: string) => string>> = {
  duckdb: (table, key, cursor) =>
    `SET TimeZone = 'UTC';
COPY (
  SELECT "${key}", strftime("${cursor}"::TIMESTAMPTZ, '%Y-%m-%dT%H:%M:%S.%fZ') AS "${cursor}" FROM ${table}
) TO 'keys.csv' (HEADER);`,
  postgres: (table, key, cursor) =>
    `SET TIME ZONE 'UTC';
\\copy (SELECT "${key}", to_char("${cursor}"::timestamptz, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "${cursor}" FROM ${table}) TO 'keys.csv' WITH (FORMAT csv, HEADER)`,
  bigquery: (table, key, cursor) =>
    `-- bq query --format=csv --max_rows=1000000000 --use_legacy_sql=false '…' > keys.csv
SELECT \`${key}\`, FORMAT_TIMESTAMP('%Y-%m-%dT%H:%M:%E6SZ', TIMESTAMP(\`${cursor}\`), 'UTC') AS \`${cursor}\` FROM ${table};`,
  snowflake: (table, key, cursor) =>
    `-- snowsql -o output_format=csv -o header=true -o friendly=false -o timing=false -o output_file=keys.csv -q '…'
SELECT "${key}", TO_CHAR(CONVERT_TIMEZONE('UTC', "${cursor}"::TIMESTAMP_TZ), 'YYYY-MM-DD"T"HH24:MI:SS.FF6"Z"') AS "${cursor}" FROM ${table};`,
};

/**
 * The query whose result `--table` takes. Throws UsageError for a dialect that nobody wrote a query for.
 * @param table as it is spelt in SQL
 */
export function keysQuery(dialect: string, table: string, key: string, cursor: string): string {
  const query = QUERIES[dialect];
  if (query === undefined)
    throw new UsageError(`--sql must be one of ${Object.keys(QUERIES).join(", ")}, not "${dialect}"`);
  return `${query(table, key, cursor)}\n`;
}
