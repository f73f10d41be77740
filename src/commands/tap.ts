import type { Runtime } from "../run/runtime.ts";
import { about } from "./about.ts";
import { tapDiscover } from "./tap-discover.ts";
import type { TapOptions } from "./tap-options.ts";
import { tapSync } from "./tap-sync.ts";
import { tapTest } from "./tap-test.ts";

/** The Singer face. */
export const tap = (options: TapOptions, runtime: Runtime): Promise<number> =>
  MODES[options.mode](options, runtime);

const MODES = { discover: tapDiscover, about, test: tapTest, sync: tapSync };
