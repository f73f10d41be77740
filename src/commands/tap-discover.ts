import { ConfigError } from "../base/errors.ts";
import { toSingerCatalog } from "../catalog/singer.ts";
import { ROW_STREAMS } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { readConfigs } from "../config/config-files.ts";
import { runToEnd } from "../output/output.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { warning } from "../sync/event.ts";
import { declaredStream, discoverStreams } from "./discover.ts";
import { withGuests } from "./guests.ts";
import { QUICK } from "./probe.ts";
import type { TapOptions } from "./tap-options.ts";

/** Prints the catalog. Without permission or config, it has declared fields. Other errors end it: fields would be missing. */
export async function tapDiscover(
  { configs, logLevel, logFormat }: TapOptions,
  runtime: Runtime,
): Promise<number> {
  return await runToEnd({ audience: "singer", logLevel, logFormat }, runtime, async (open) => {
    const output = await open({});
    const parse = await readConfigs(configs, runtime.environment);
    let config: Config | undefined;
    try {
      config = parse();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const text = `${error.message}. The catalog shows what is declared`;
      await output.emit(warning(text));
    }
    const streams = config
      ? await withGuests({ config, runtime, reporter: output, pace: QUICK, logLevel }, (run) =>
          discoverStreams(run),
        )
      : ROW_STREAMS.map(declaredStream);
    // Prints many lines, because Meltano hangs on a line of more than 64 KiB.
    const catalog = asciiJson(toSingerCatalog(streams), 2);
    await write(runtime.stdout, `${output.mask.apply(catalog)}\n`);
    return true;
  });
}
