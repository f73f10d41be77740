import type { Runtime } from "../run/runtime.ts";
import { about } from "./about.ts";
import { tapDiscover } from "./tap-discover.ts";
import type { TapOptions } from "./tap-options.ts";
import { tapSync } from "./tap-sync.ts";
import { tapTest } from "./tap-test.ts";

/** The Singer face. */
export async function tap(options: TapOptions, runtime: Runtime): Promise<number> {
  switch (options.mode) {
    case "discover":
      return await tapDiscover(options, runtime);
    case "about":
      return await about(options.format, runtime);
    case "test":
      return await tapTest(options, runtime);
    case "sync":
      return await tapSync(options, runtime);
  }
}
