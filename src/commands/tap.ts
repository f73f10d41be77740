import type { Process } from "../run/runtime.ts";
import { about } from "./about.ts";
import { tapDiscover } from "./tap-discover.ts";
import type { TapOptions } from "./tap-options.ts";
import { tapSync } from "./tap-sync.ts";
import { tapTest } from "./tap-test.ts";

/** The Singer face. */
export async function tap(options: TapOptions, world: Process): Promise<number> {
  switch (options.face) {
    case "discover":
      return await tapDiscover(options, world);
    case "about":
      return await about(options.format, world);
    case "test":
      return await tapTest(options, world);
    case "sync":
      return await tapSync(options, world);
  }
}
