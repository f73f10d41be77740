import { loadSchema } from "../catalog/schema.ts";
import type { StreamSpec } from "../catalog/streams.ts";
import { NotFoundError } from "../errors.ts";
import { parseDraft, readConfigs } from "../run/config-files.ts";
import { openTapOutput, runToEnd } from "../run/output.ts";
import { isWrongKey, type Run, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Session } from "../run/session.ts";
import { sample } from "./discover.ts";
import type { TapOptions } from "./tap-options.ts";

/** Asks for one record of each stream and says on stderr what came. Sends nothing that could be charged. */
export async function tapTest({ configs, logLevel }: TapOptions, runtime: Runtime): Promise<number> {
  const output = await openTapOutput(logLevel, runtime);
  return await runToEnd(output, runtime, async () => {
    const draft = await readConfigs(configs, runtime.environment);
    const run = { config: parseDraft(draft), runtime, reporter: output };
    return await withRun(run, testStreams);
  });
}

async function testStreams({ session, emit }: Run): Promise<boolean> {
  let working = true;
  for (const spec of session.streams) {
    try {
      const text = `Stream "${spec.name}": ${await found(spec, session)}`;
      await emit({ kind: "log", level: "info", text });
    } catch (error) {
      session.signal.throwIfAborted();
      if (isWrongKey(error, spec)) throw error;
      working = false;
      await emit({ kind: "close", stream: spec.name, complete: false, error });
    }
  }
  return working;
}

async function found(spec: StreamSpec, session: Session): Promise<string> {
  try {
    const rows = await session.probe(spec);
    if (spec.reading === "job") return "can be submitted";
    return rows === 0 ? "no record yet" : "a record was read";
  } catch (error) {
    if (!(error instanceof NotFoundError) || spec.reading === "job" || spec.exportPath === null) throw error;
    const rows = await sample(spec, loadSchema(spec.schemaFile), session, 1);
    return rows.length === 0 ? "no record yet" : "a record was read";
  }
}
