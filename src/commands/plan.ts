import { ConfigError } from "../base/errors.ts";
import { plural, shown } from "../base/text.ts";
import { addDays } from "../base/time.ts";
import { hasRows, STREAMS } from "../catalog/streams.ts";
import { readText } from "../output/files/read-file.ts";
import { runToEnd } from "../output/output.ts";
import { write } from "../protocol/writer.ts";
import { openConfig } from "../run/config-files.ts";
import { withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { isWholePlan, parsePlan, planDigest, type ShardLine, wholeLines } from "../shards/plan.ts";
import { cutRange, shardWindow } from "../shards/split.ts";

/** Characters of a column of the table. */
const COLUMN = 12;

export type PlanOptions = {
  readonly config: string | undefined;
  readonly stream: string;
  /** Undefined: as many as the account's size asks for. */
  readonly shards: number | undefined;
  /** The file of a plan that was cut off: its lines are printed again, then the rest. */
  readonly resume?: string | undefined;
  /** Whether a person at a terminal gets the lines of the file too, and no table. */
  readonly json?: boolean;
};

/**
 * Prints the shards into which a stream is cut for several machines, each as soon as it is known: one JSON object a line, or
 * a table at a terminal.
 */
export async function plan(options: PlanOptions, runtime: Runtime): Promise<number> {
  const { stream, shards: wanted, resume } = options;
  const isTable = runtime.stdout.isTTY === true && options.json !== true;
  const shownRow = (...cells: readonly string[]): Promise<void> => {
    const row = cells.map((cell) => cell.padEnd(COLUMN)).join("");
    return write(runtime.stdout, `${row.trimEnd()}\n`);
  };
  let rows = 0;
  const print = async (line: ShardLine): Promise<void> => {
    rows += line.rows;
    if (!isTable) return await write(runtime.stdout, `${JSON.stringify(line)}\n`);
    if (line.shard === 0) await shownRow("shard", "from", "to", "rows");
    await shownRow(String(line.shard), line.from ?? "start", line.to ?? "open", shown(line.rows));
  };
  const speech = { name: "source-contact-intelligence", logs: true, codes: "person" } as const;
  return await runToEnd(speech, runtime, async (open) => {
    const output = await open({ kind: "stdout" });
    const config = await openConfig(options.config, runtime.environment);
    const text = resume === undefined ? "" : wholeLines(await readText("plan", resume));
    const known = text === "" ? [] : parsePlan(text, stream, config);
    // The shards that begin right afterwards have the key's requests too, and know nothing of these.
    await withRun({ config, runtime, reporter: output, pace: { burst: 1 } }, async ({ session }) => {
      for (const line of known) await print(line);
      if (isWholePlan(known, config)) return;
      const spec = STREAMS.find(({ name }) => name === stream);
      if (spec === undefined || !hasRows(spec) || !(await session.readingOf(spec)).isDated) {
        throw new ConfigError(
          `Cannot plan "${stream}": only streams whose records have a date can be cut into shards, such as "people"`,
        );
      }
      const api = session.streamApi(spec, { cursor: spec.cursorField, schema: null });
      const last = known.at(-1);
      const range = { from: last?.to ? addDays(last.to, 1) : config.startDate, to: config.endDate };
      const size = await api.count(shardWindow(range.from, range.to));
      const digest = last?.plan ?? planDigest(config, stream, size, wanted);
      let shard = known.length;
      for await (const cut of cutRange(api, range, size, wanted, known))
        await print({ version: 2, plan: digest, stream, shard: shard++, ...cut });
      if (isTable)
        await write(
          runtime.stdout,
          `${plural(rows, "row")} with a date. To keep the plan, add: > plan.jsonl\n`,
        );
    });
    return true;
  });
}
