import { readConfigs } from "../config/config-files.ts";
import { runToEnd } from "../output/output.ts";
import { logLevelOf } from "../protocol/log.ts";
import type { Runtime } from "../run/runtime.ts";
import { info } from "../sync/event.ts";
import { whatCanBeRead } from "./check.ts";
import { withGuests } from "./guests.ts";
import { QUICK } from "./probe.ts";
import type { TapOptions } from "./tap-options.ts";

/** Tests the config as `check`, and writes the result to stderr. */
export async function tapTest(
  { configs, logLevel, logFormat }: TapOptions,
  runtime: Runtime,
): Promise<number> {
  // The log is the answer, also at a terminal.
  const level = logLevel ?? logLevelOf(runtime.environment);
  return await runToEnd({ audience: "singer", logLevel: level, logFormat }, runtime, async (open) => {
    const reporter = await open({});
    const config = (await readConfigs(configs, runtime.environment))();
    const text = await withGuests({ config, runtime, reporter, pace: QUICK, logLevel }, (run) =>
      whatCanBeRead(run, runtime),
    );
    await reporter.emit(info(text));
    return true;
  });
}
