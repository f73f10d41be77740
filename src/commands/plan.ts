import { randomBytes } from "node:crypto";
import { ConfigError } from "../base/errors.ts";
import { plural, shown, table } from "../base/text.ts";
import { ROW_STREAMS } from "../catalog/streams.ts";
import { openConfig } from "../config/config-files.ts";
import { runToEnd } from "../output/output.ts";
import { write } from "../protocol/writer.ts";
import { RowReader } from "../run/row-reader.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Shard } from "../shards/plan.ts";
import { type DateRange, shardWindow, splitRange } from "../shards/split.ts";
import { withGuests } from "./guests.ts";

export type PlanOptions = {
  readonly config: string | undefined;
  readonly stream: string;
  /** Undefined: the number follows from the number of rows. */
  readonly shards: number | undefined;
  /** The number of shards that run at the same time; undefined: all. */
  readonly shardsAtOnce: number | undefined;
  /** Whether a terminal gets JSON, and not a table. */
  readonly json: boolean;
};

/** Prints the shards of a stream for several machines: JSON lines, or a table at a terminal. */
export async function plan(options: PlanOptions, runtime: Runtime): Promise<number> {
  const { stream, shards, shardsAtOnce } = options;
  return await runToEnd({ audience: "person" }, runtime, async (open) => {
    const output = await open({});
    const config = await openConfig(options.config, runtime.environment);
    // A burst of 1, because the shards begin directly after the plan and use the same key.
    await withGuests({ config, runtime, reporter: output, pace: { burst: 1 } }, async ({ session }) => {
      const spec = ROW_STREAMS.find(({ name }) => name === stream);
      if (spec === undefined || !(await new RowReader(spec, session).reading()).isDated) {
        throw new ConfigError(`Cannot plan "${stream}": shards need a stream with dates, such as "people"`);
      }
      const service = session.streamApi(spec, { cursor: spec.cursorField, schema: null });
      const range = { from: config.startDate, to: config.endDate };
      const size = await service.count(shardWindow(range.from, range.to));
      const ranges: DateRange[] = [];
      for await (const part of splitRange(service, range, size, shards)) ranges.push(part);
      const share = 1 / Math.min(shardsAtOnce ?? ranges.length, ranges.length);
      const plan = randomBytes(8).toString("hex");
      const lines = ranges.map((days, shard): Shard => ({ version: 3, plan, stream, shard, ...days, share }));
      const isTable = runtime.stdout.isTTY === true && !options.json;
      const text = isTable ? tableOf(lines) : lines.map((line) => JSON.stringify(line));
      await write(runtime.stdout, `${text.join("\n")}\n`);
    });
    return true;
  });
}

function tableOf(shards: readonly Shard[]): readonly string[] {
  const rows = shards.reduce((sum, shard) => sum + shard.rows, 0);
  const lines = shards.map((one) => [`${one.shard}`, one.from ?? "start", one.to ?? "open", shown(one.rows)]);
  return [
    ...table([["shard", "from", "to", "rows"], ...lines]),
    `${plural(rows, "row")} with a date. To save the plan, add: > plan.jsonl`,
  ];
}
