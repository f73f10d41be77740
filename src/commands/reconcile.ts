import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, UsageError } from "../base/errors.ts";
import { objectOf } from "../base/json.ts";
import { plural, toLatin1 } from "../base/text.ts";
import type { Day } from "../base/time.ts";
import { dayOf } from "../base/time.ts";
import { hasRows, type RowStreamSpec, STREAMS } from "../catalog/streams.ts";
import { readText } from "../output/files/read-file.ts";
import { reasonOf, writeFailure } from "../output/files/reason.ts";
import { runToEnd } from "../output/output.ts";
import { StateFile } from "../output/state-file.ts";
import { SUPPRESSED_BY } from "../privacy/suppress.ts";
import { write } from "../protocol/writer.ts";
import { compare, MOST_REQUESTS } from "../reconcile/reconcile.ts";
import { type Report, Results } from "../reconcile/results.ts";
import { keysQuery } from "../reconcile/sql.ts";
import { openConfig } from "../run/config-files.ts";
import { incremental } from "../run/probe.ts";
import { type Run, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { cannotBeCounted, statesByName } from "../run/session.ts";
import { parseStateText, streamOfKey } from "../state/envelopes.ts";
import { parseRowState } from "../state/parse-state.ts";
import { filtersOf, resumeRows } from "../state/resume.ts";
import { readRows } from "../sync/read-stream.ts";
import { NEW_STATE, type RowState } from "../sync/state.ts";

export type ReconcileOptions = {
  readonly config: string | undefined;
  /** The file with key and cursor of every row, `-` for stdin; with `sql`, the table's name. */
  readonly table: string | undefined;
  readonly stream: string;
  readonly state: string | undefined;
  /** The folder that takes what differs. */
  readonly output: string | undefined;
  readonly full: boolean;
  readonly timezone: string | undefined;
  readonly yesGone: number | undefined;
  /** A state file in which the days of lost rows are marked to be read again. */
  readonly recheck: string | undefined;
  /** Prints the query that makes the file, in this dialect. */
  readonly sql: string | undefined;
};

/**
 * Says whether a table in a warehouse holds what the service holds.
 * @returns 0 if nothing is lost or stale, 1 if something is, 2 if the question cannot be answered
 */
export async function reconcile(options: ReconcileOptions, runtime: Runtime): Promise<number> {
  const spec = STREAMS.find(({ name }) => name === options.stream);
  if (spec === undefined || !hasRows(spec))
    throw new UsageError(`--stream must be people, companies or sources, not "${options.stream}"`);
  const { sql, table, stream } = options;
  const [key = ""] = spec.primaryKey;
  if (sql !== undefined) {
    await write(runtime.stdout, keysQuery(sql, table ?? stream, key, spec.cursorField ?? key));
    return 0;
  }
  if (table === undefined)
    throw new UsageError(
      "--table is missing: name a file with key and cursor of every row. --sql prints the query for it",
    );
  let answer = 2;
  let said = "";
  const speech = { name: "source-contact-intelligence", logs: true, endsFirst: true };
  const code = await runToEnd(speech, runtime, async (open) => {
    const config = await openConfig(options.config, runtime.environment);
    const reporter = await open({ kind: "stdout" }, config);
    await withRun({ config, runtime, reporter }, async (run) => {
      const found = await compared(options, spec, table, run).catch((error: unknown) => {
        throw writeFailure(options.output ?? tmpdir(), error);
      });
      await run.emit({ kind: "close", stream, complete: true });
      said = runtime.stdout.isTTY === true ? inWords(found) : `${JSON.stringify(found)}\n`;
      if (options.recheck !== undefined) said += await markAgain(options.recheck, found, runtime);
      for (const why of found.unanswered) await run.emit({ kind: "log", level: "warn", text: why });
      if (found.unanswered.length === 0) answer = found.lost + found.stale > 0 ? 1 : 0;
    });
    return true;
  });
  await write(runtime.stdout, toLatin1(said));
  return code === 0 ? answer : 2;
}

async function compared(
  options: ReconcileOptions,
  spec: RowStreamSpec,
  table: string,
  { session, emit }: Run,
): Promise<Report> {
  const { config, privacy } = session;
  const { name: stream } = spec;
  const [key = ""] = spec.primaryKey;
  const reading = await session.readingOf(spec);
  const onMissingKey = spec.sampled ? ("pass" as const) : ("reject" as const);
  const source = { ...reading, isExported: spec.exportPath !== null, onMissingKey };
  const cursor = source.isDated ? spec.cursorField : null;
  if (!config.verifyCounts)
    throw new ConfigError('Cannot compare without proof: set "verify_counts" to true');
  if (!source.isListed) throw new ConfigError(`Cannot compare. ${cannotBeCounted(spec)}`);
  if (cursor === null && !options.full)
    throw new ConfigError(`Cannot compare "${stream}" by counts: its rows have no date. Add --full`);
  await emit({ kind: "open", stream });
  const minutes = Math.ceil(MOST_REQUESTS / config.requestsPerMinute);
  const text = `Compares "${stream}" by counts: at most ${MOST_REQUESTS} requests, about ${plural(minutes, "minute")}`;
  if (!options.full) await emit({ kind: "log", level: "info", text });
  const filters = filtersOf(config);
  const api = session.streamApi(spec, { cursor, schema: null }, undefined, false);
  const everyone = session.streamApi(spec, { cursor, schema: null }, {}, false);
  const fields = SUPPRESSED_BY.get(stream) ?? [];
  const rewrite = privacy.rewriter(stream);
  const state = await stateOf(options, stream, session);
  const results = options.output === undefined ? undefined : await Results.open(options.output);
  const { path, remove } = await seekable(table);
  try {
    return await compare({
      ...{ stream, table: path, form: { key, cursor, zone: options.timezone }, state, api, emit, results },
      ...{ startDate: config.startDate, endDate: config.endDate, mostGone: options.yesGone },
      isFiltered: filters.source_slug !== null || filters.is_user !== "all",
      mode: options.full ? "full" : "counts",
      requests: () => session.usage.requests,
      keyOf: privacy.echoOf(stream, key) ?? ((value) => value),
      leave: (line) => rewrite?.(line) ?? line,
      isSuppressed: (row) => fields.some((field) => config.suppressed.has(field, row[field])),
      read: ({ from = null, to = null, state: known, everyone: isWide }) =>
        readRows({
          ...{ stream, source, key: session.keyId, service: isWide ? everyone : api },
          state: known ?? { ...NEW_STATE, filters, checked: dayOf(session.client.now()) },
          settings: {
            ...{ ...config, startDate: from, endDate: to },
            ...{ ignoreMissingDays: [], lookbackWindowDays: 1 },
          },
        }),
    });
  } finally {
    await results?.discard();
    await remove();
  }
}

/** A file that can be read twice: what comes through a pipe is kept in a private folder meanwhile. */
async function seekable(path: string): Promise<{ path: string; remove: () => Promise<void> }> {
  const isFile = path !== "-" && ((await stat(path).catch(() => undefined))?.isFile() ?? true);
  if (isFile) return { path, remove: async () => undefined };
  const folder = await mkdtemp(join(tmpdir(), "reconcile-"));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const copy = join(folder, "table");
  const from = path === "-" ? createReadStream("", { fd: 0, autoClose: false }) : createReadStream(path);
  try {
    await writeFile(copy, from);
    return { path: copy, remove };
  } catch (cause) {
    await remove();
    throw new ConfigError(`Cannot read the table "${path}": ${reasonOf(cause)}`, { cause });
  }
}

async function stateOf(
  { state: path }: ReconcileOptions,
  stream: string,
  { config, service }: Run["session"],
): Promise<RowState | undefined> {
  if (path === undefined) return undefined;
  const saved = statesByName(parseStateText(await readText("state", path)).streams).get(stream);
  const resumed = resumeRows(incremental(stream), saved, filtersOf(config), service);
  if (resumed.kind === "read" && resumed.why === undefined && saved !== undefined) return resumed.state;
  const why = (resumed.kind === "read" && resumed.why) || `it holds nothing of "${stream}"`;
  throw new ConfigError(`Cannot use the state "${path}": ${why}`);
}

/** Marks the days of what is lost or stale in a state file, so that the next sync reads them again. @returns its text */
async function markAgain(path: string, { stream, days }: Report, runtime: Runtime): Promise<string> {
  const lacking = Object.keys(days).filter((day) => isLacking(days[day])) as (Day | "none")[];
  const file = await StateFile.open(path, runtime);
  try {
    const own = [...file.saved.streams].flatMap(([key, saved]) => {
      const state = streamOfKey(key) === stream ? parseRowState(stream, saved) : null;
      return state === null ? [] : [{ key, saved, state }];
    });
    if (own.length === 0)
      throw new ConfigError(`Cannot use the state file "${path}": it holds nothing of "${stream}"`);
    for (const { key, saved, state } of own) {
      // A span is never cut: the one that contains the day is read again.
      const marked = state.days.filter(({ from, to }) => !lacking.some((day) => from <= day && day <= to));
      const undated = lacking.includes("none") ? null : state.undated;
      await file.save(key, { ...objectOf(saved), ...state, days: marked, undated });
    }
    return await readText("state", path);
  } finally {
    await file.release();
  }
}

const isLacking = (day: Report["days"][string] | undefined): boolean =>
  (day?.lost ?? 0) + (day?.stale ?? 0) > 0;

function inWords(found: Report): string {
  const { stream, table_rows, lost, stale, gone, later, unclear, suppressed, days, more_in_table } = found;
  const parts = [`lost ${lost}`, `stale ${stale}`, `gone ${gone ?? "not looked for (--full does)"}`];
  const more = [`newer in the table ${later}`, `unclear ${unclear}`, `suppressed ${suppressed}`];
  const lines = [
    `${stream}: ${plural(table_rows, "key")} in the table`,
    `  ${[...parts, ...more].join(", ")}`,
    ...Object.entries(days).map(
      ([day, of]) => `  ${day}: lost ${of.lost}, stale ${of.stale}, gone ${of.gone}`,
    ),
    ...more_in_table.map(
      ({ from, to, rows }) => `  ${from} to ${to}: ${plural(rows, "row")} more in the table, moved or gone`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}
