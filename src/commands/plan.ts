import { STREAMS } from "../catalog/streams.ts";
import { ConfigError } from "../errors.ts";
import { write } from "../protocol/writer.ts";
import { openConfig } from "../run/config-files.ts";
import { runToEnd } from "../run/output.ts";
import { withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Session } from "../run/session.ts";
import { counterOf, cutRange } from "../shards/cut.ts";
import { type ShardPlan, toShardPlan } from "../shards/plan-file.ts";
import { planSettingsOf } from "../shards/shard.ts";

export type PlanOptions = {
  readonly config: string | undefined;
  readonly stream: string;
  /** Undefined: as many as the account's size asks for. */
  readonly shards: number | undefined;
};

/** Prints the shards into which a stream is cut for several machines, one JSON object a line. */
export async function plan(options: PlanOptions, runtime: Runtime): Promise<number> {
  const speech = { name: "source-contact-intelligence", logs: true };
  return await runToEnd(speech, runtime, async (open) => {
    const output = await open({ kind: "stdout" });
    const config = await openConfig(options.config, runtime.environment);
    const found = await withRun({ config, runtime, reporter: output }, ({ session }) =>
      planStream(session, options),
    );
    await write(runtime.stdout, found.lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return true;
  });
}

async function planStream(session: Session, { stream, shards }: PlanOptions): Promise<ShardPlan> {
  const spec = STREAMS.find(({ name }) => name === stream);
  if (spec === undefined || spec.reading === "job" || !(await session.readingOf(spec)).dated) {
    throw new ConfigError(
      `Cannot plan "${stream}": only streams whose records have a date can be cut into shards, such as "people"`,
    );
  }
  const api = session.streamApi(spec, { cursor: spec.cursorField, schema: null });
  const { config } = session;
  const { startDate, endDate } = config;
  const { cuts, asked } = await cutRange(counterOf(api), { from: startDate, to: endDate }, shards);
  return toShardPlan(stream, cuts, planSettingsOf(config), new Date(asked).toISOString());
}
