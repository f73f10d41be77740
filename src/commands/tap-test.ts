import { loadSchema } from "../catalog/schema.ts";
import { readConfigs } from "../config/config-files.ts";
import { runToEnd } from "../output/output.ts";
import { logLevelOf } from "../protocol/log.ts";
import { type ProbedStream, probeStreams } from "../run/probe.ts";
import type { Run } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { withGuests } from "./guests.ts";
import type { TapOptions } from "./tap-options.ts";

/** Asks for one record of each stream and says on stderr what came. Sends nothing that could be charged. */
export async function tapTest({ configs, logLevel }: TapOptions, runtime: Runtime): Promise<number> {
  // Its log is its answer, also at a terminal.
  const level = logLevel ?? logLevelOf(runtime.environment);
  return await runToEnd({ audience: "singer", logLevel: level }, runtime, async (open) => {
    const output = await open({});
    const parse = await readConfigs(configs, runtime.environment);
    return await withGuests({ config: parse(), runtime, reporter: output }, testStreams);
  });
}

async function testStreams(run: Run): Promise<boolean> {
  let working = true;
  for await (const probed of probeStreams(run)) {
    try {
      const text = `Stream "${probed.reader.spec.name}": ${await found(probed)}`;
      await run.emit({ kind: "log", level: "info", text });
    } catch (error) {
      run.session.signal.throwIfAborted();
      working = false;
      await run.emit({ kind: "close", stream: probed.reader.spec.name, complete: false, error });
    }
  }
  return working;
}

/** The export of a stream without a list says whether there is a record. */
async function found({ reader, rows, error }: ProbedStream): Promise<string> {
  if (error !== undefined) throw error;
  const { name, setting } = reader.spec;
  if (setting !== undefined) return "can be submitted";
  const count = rows === undefined ? (await reader.sample(loadSchema(name), 1)).length : rows;
  return count === 0 ? "no record yet" : "a record was read";
}
