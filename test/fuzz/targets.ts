import type { Target } from "./target.ts";
import { answers } from "./targets/answers.ts";
import { catalogs } from "./targets/catalogs.ts";
import { configs } from "./targets/configs.ts";
import { lines } from "./targets/lines.ts";
import { states } from "./targets/states.ts";

/** Everything that can be thrown at. Open targets are closed by their user. */
export const TARGETS: Readonly<Record<string, () => Promise<Target>>> = {
  configs,
  catalogs,
  states,
  answers,
  lines,
};
