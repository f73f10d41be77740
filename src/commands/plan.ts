import { STREAMS } from "../catalog/streams.ts";
import { ConfigError } from "../errors.ts";
import { readText } from "../files/read.ts";
import { write } from "../protocol/writer.ts";
import { openConfig } from "../run/config-files.ts";
import { runToEnd } from "../run/output.ts";
import { withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Session } from "../run/session.ts";
import { cutRange, shardsFor, shardWindow } from "../shards/cut.ts";
import { isWholePlan, parsePlan, planDigest, type ShardLine } from "../shards/plan.ts";
import type { StreamApi } from "../streams/stream-api.ts";
import { addDays } from "../time.ts";

export type PlanOptions = {
  readonly config: string | undefined;
  readonly stream: string;
  /** Undefined: as many as the account's size asks for. */
  readonly shards: number | undefined;
  /** The file of a plan that was cut off: its lines are printed again, then the rest. */
  readonly resume?: string | undefined;
};

/** Prints the shards into which a stream is cut for several machines, one JSON object a line, each as soon as it is known. */
export async function plan(options: PlanOptions, runtime: Runtime): Promise<number> {
  const speech = { name: "source-contact-intelligence", logs: true };
  return await runToEnd(speech, runtime, async (open) => {
    const output = await open({ kind: "stdout" });
    const config = await openConfig(options.config, runtime.environment);
    // The last line of a plan that was cut off may be a part of one.
    const text =
      options.resume === undefined ? "" : (await readText("plan", options.resume)).replace(/[^\n]*$/, "");
    const known = text === "" ? [] : parsePlan(text, options.stream, config);
    await withRun({ config, runtime, reporter: output }, async ({ session }) => {
      for (const line of known) await write(runtime.stdout, `${JSON.stringify(line)}\n`);
      if (isWholePlan(known, config)) return;
      for await (const line of planRest(session, options, known)) {
        await write(runtime.stdout, `${JSON.stringify(line)}\n`);
      }
    });
    return true;
  });
}

/** The lines after those that are known. */
async function* planRest(
  session: Session,
  { stream, shards: wanted }: PlanOptions,
  known: readonly ShardLine[],
): AsyncGenerator<ShardLine> {
  const { startDate, endDate: to } = session.config;
  const api = await apiOf(session, stream);
  const last = known.at(-1);
  const from = typeof last?.to === "string" ? addDays(last.to, 1) : startDate;
  const size = await api.count(shardWindow(from, to));
  const all = known.reduce((sum, { rows }) => sum + rows, size.rows);
  const shards = shardsFor({ ...size, rows: all }, to, wanted);
  const digest = last?.plan ?? planDigest(session.config, stream, size, shards);
  let shard = known.length;
  for await (const cut of cutRange(api, { from, to }, size, shards - known.length)) {
    yield { version: 2, plan: digest, stream, shard: shard++, ...cut };
  }
}

async function apiOf(session: Session, stream: string): Promise<StreamApi> {
  const spec = STREAMS.find(({ name }) => name === stream);
  if (spec === undefined || spec.reading === "job" || !(await session.readingOf(spec)).dated) {
    throw new ConfigError(
      `Cannot plan "${stream}": only streams whose records have a date can be cut into shards, such as "people"`,
    );
  }
  return session.streamApi(spec, { cursor: spec.cursorField, schema: null });
}
