import { stat } from "node:fs/promises";
import { ConfigError, DataError, UsageError } from "../base/errors.ts";
import { objectOf } from "../base/json.ts";
import { table as inColumns, oneOf, plural, shown, toLatin1 } from "../base/text.ts";
import { dayOf } from "../base/time.ts";
import { incremental } from "../catalog/airbyte.ts";
import { ROW_STREAMS, type RowStreamSpec } from "../catalog/streams.ts";
import { openConfig } from "../config/config-files.ts";
import { readText } from "../output/files/read-file.ts";
import { reasonOf, writeFailure } from "../output/files/reason.ts";
import { forgetFiles } from "../output/folder-state.ts";
import { type OutputOptions, runToEnd } from "../output/output.ts";
import { readState, StateFile } from "../output/state-file.ts";
import { SUPPRESSED_BY } from "../privacy/suppress.ts";
import { write } from "../protocol/writer.ts";
import { compare, expectedBy } from "../reconcile/compare.ts";
import { openResults, type Report, withoutFolder } from "../reconcile/results.ts";
import { cannotBeCounted, RowReader } from "../run/row-reader.ts";
import type { Run } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { statesByName, streamOfKey } from "../state/envelopes.ts";
import { parseRowState } from "../state/parse-state.ts";
import { withoutSpansOf } from "../sync/coverage.ts";
import { type Lines, warning } from "../sync/event.ts";
import { readRows } from "../sync/read-stream.ts";
import { NEW_STATE } from "../sync/state.ts";
import { withGuests } from "./guests.ts";

export type ReconcileOptions = {
  readonly config: string | undefined;
  /** A file with the key and the date of every row; `-` is stdin. */
  readonly table: string;
  readonly stream: string;
  readonly state: string | undefined;
  /** The folder for the differences. */
  readonly output: string | undefined;
  readonly timezone: string | undefined;
  readonly yesGone: number | undefined;
  /** A state file. The next run with this file reads days with lost rows again. */
  readonly recheck: string | undefined;
  /** Whether a terminal gets JSON, and not sentences. */
  readonly json: boolean;
  readonly logFormat?: OutputOptions["logFormat"];
};

/** Compares a table with the service. Returns 0, 1 if a row is lost or stale, or 2 without a result. */
export async function reconcile(options: ReconcileOptions, runtime: Runtime): Promise<number> {
  const { stream, table, recheck } = options;
  const spec = ROW_STREAMS.find(({ name }) => name === stream);
  if (spec === undefined)
    throw new UsageError(`--stream must be ${oneOf(ROW_STREAMS.map(({ name }) => name))}, not "${stream}"`);
  if (table !== "-")
    await stat(table).catch((cause: unknown) => {
      throw new UsageError(`Cannot read the table "${table}": ${reasonOf(cause)}`);
    });
  let answer = 2;
  let answerText = "";
  const { logFormat } = options;
  const outputOptions: OutputOptions = { audience: "person", flushBeforeAnswer: true, logFormat };
  const code = await runToEnd(outputOptions, runtime, async (open) => {
    const config = await openConfig(options.config, runtime.environment);
    const reporter = await open({}, config);
    // The lock keeps syncs out until the comparison ends.
    const again = recheck === undefined ? undefined : await StateFile.open(recheck, runtime);
    try {
      if (again !== undefined && statesIn(again, stream).length === 0) throw hasNothing(again.path, stream);
      await withGuests({ config, runtime, reporter }, async (run) => {
        const found = await compared(options, spec, run).catch((error: unknown) => {
          throw writeFailure(options.output ?? "", error);
        });
        await run.emit({ kind: "close", stream, complete: true });
        if (again !== undefined) await markAgain(again, found);
        const isForPerson = runtime.stdout.isTTY === true && !options.json;
        const state = again === undefined ? "" : await readText("state", again.path);
        answerText = isForPerson ? inWords(found, options) : `${JSON.stringify(found)}\n${state}`;
        for (const why of found.unanswered) await run.emit(warning(why));
        if (found.unanswered.length === 0) answer = found.lost + found.stale > 0 ? 1 : 0;
      });
    } finally {
      await again?.lock.release();
    }
    return true;
  });
  await write(runtime.stdout, toLatin1(answerText));
  return code === 0 ? answer : 2;
}

async function compared(
  { table, state: path, output, timezone, yesGone }: ReconcileOptions,
  spec: RowStreamSpec,
  { session, privacy, emit }: Run,
): Promise<Report> {
  const { config, client } = session;
  const { name: stream } = spec;
  const [key = ""] = spec.primaryKey;
  if (!config.verifyCounts)
    throw new ConfigError('Cannot compare without proof: set "verify_counts" to true');
  const states = path === undefined ? new Map() : (await readState(path)).streams;
  const own = statesByName(states).get(stream);
  const { saved, open } = await new RowReader(spec, session).resume(incremental(stream), own);
  // Without days, every row would count as new.
  const state = saved.kind === "read" && saved.state.days.length > 0 ? saved.state : undefined;
  if (path !== undefined && state === undefined) throw hasNothing(path, stream);
  const { isDated, isListed } = open(NEW_STATE).source;
  if (!isListed) throw new ConfigError(`Cannot compare. ${cannotBeCounted(spec)}`);
  const cursor = isDated ? spec.cursorField : null;
  const serviceOf = (isFiltered: boolean) =>
    session.streamApi(spec, { cursor, schema: null }, isFiltered ? undefined : {}, false);
  let rowsRead = 0;
  let opened: Promise<void> | undefined;
  /** Opens the summary after the table is read, because a wrong table needs no summary. */
  const begin = (): Promise<void> => (opened ??= emit({ kind: "open", stream }));
  async function* read(isFiltered: boolean): AsyncGenerator<Lines | number> {
    await begin();
    const before = rowsRead;
    const events = readRows({
      // Skips the daily check, because the comparison saves nothing.
      ...open({ ...NEW_STATE, checked: dayOf(client.now()) }),
      ...{ service: serviceOf(isFiltered), endsAt: undefined },
      settings: { ...config, startDate: null, endDate: null, ignoreMissingDays: [], lookbackWindowDays: 1 },
    });
    for await (const event of events) {
      if (event.kind === "close" && !event.complete) throw unproven(stream, event.error);
      if (event.kind === "close") continue;
      // A comparison saves no state, so a checkpoint only shows progress.
      if (event.kind === "checkpoint") await emit({ ...event, state: {} });
      else await emit(event.kind === "estimate" ? { ...event, rows: before + event.rows } : event);
      if (event.kind === "estimate") yield event.rows;
      if (event.kind !== "records") continue;
      rowsRead += event.lines.length;
      yield event.lines;
    }
  }
  const fields = SUPPRESSED_BY.get(stream) ?? [];
  const rewrite = privacy.rewriter(stream);
  return await compare({
    ...{ stream, table, form: { key, cursor, zone: timezone }, read },
    ...{ mostGone: yesGone, began: client.now() },
    publish: output === undefined ? withoutFolder : await openResults(output),
    hasFilters: Object.keys(session.filters(spec)).length > 0,
    isExpected: expectedBy(state, config.startDate, config.endDate),
    count:
      isDated && !spec.sampled ? (by) => begin().then(() => serviceOf(by).count({ kind: "all" })) : undefined,
    requests: () => session.usage.requests,
    keyOf: privacy.replacementFor(stream, key) ?? ((value) => value),
    mask: (line) => rewrite?.(line) ?? line,
    isSuppressed: (row) => fields.some((field) => config.suppressed.has(field, row[field])),
  });
}

function unproven(stream: string, error: unknown): DataError {
  const why = error instanceof Error ? `. ${error.message}` : "";
  return new DataError(`Cannot compare the table with "${stream}": not all days could be proven${why}`);
}

const statesIn = ({ saved }: StateFile, stream: string) =>
  [...saved.streams].flatMap(([key, value]) => {
    const state = streamOfKey(key) === stream ? parseRowState(stream, value) : null;
    return state === null ? [] : [{ key, value, state }];
  });

/** Marks the days of lost and stale rows, so that the next sync reads them again. */
async function markAgain(file: StateFile, { stream, days }: Report): Promise<void> {
  const lacking = Object.keys(days).filter((day) => (days[day]?.lost ?? 0) + (days[day]?.stale ?? 0) > 0);
  for (const { key, value, state } of statesIn(file, stream)) {
    const undated = lacking.includes("none") ? null : state.undated;
    // Other keys of the state are kept.
    const marked = { ...objectOf(value), ...state, undated, days: withoutSpansOf(state.days, lacking) };
    await file.save(key, marked, forgetFiles(file.path, file.saved.rest, stream));
  }
}

const hasNothing = (path: string, stream: string): ConfigError =>
  new ConfigError(`Cannot use the state "${path}": it does not have the stream "${stream}"`);

/** The number of days that a terminal shows. */
const MAX_DAYS = 20;

function inWords(found: Report, { output, recheck }: ReconcileOptions): string {
  const { stream, table_rows, lost, stale, later, suppressed, days } = found;
  const counts = (of: Pick<Report, "lost" | "stale" | "gone">) => [of.lost, of.stale, of.gone].map(shown);
  const differs = Object.entries(days).map(([day, of]) => [day, ...counts(of)]);
  const table = inColumns([["day", "lost", "stale", "gone"], ...differs.slice(0, MAX_DAYS)]);
  const more = differs.length - MAX_DAYS;
  const [lostRows, staleRows, goneKeys] = counts(found);
  const again =
    recheck === undefined
      ? "To read lost and stale rows again, add: --recheck STATE-FILE"
      : `The next run with "${recheck}" reads lost and stale rows again`;
  const lines = [
    `${stream}: ${plural(table_rows, "key")} in the table`,
    `  lost ${lostRows}, stale ${staleRows}, gone ${goneKeys}, newer in the table ${shown(later)}, suppressed ${shown(suppressed)}`,
    ...(differs.length === 0 ? [] : table.map((line) => `  ${line}`)),
    ...(more > 0 ? [`  and ${plural(more, "day")} more. --output DIR writes them all`] : []),
    ...(lost + stale === 0 ? [] : [again]),
    ...(output === undefined ? [] : [`The rows and keys that differ are in "${output}"`]),
  ];
  return `${lines.join("\n")}\n`;
}
