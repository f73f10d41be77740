import { describe, expect, it } from "vitest";
import { allScenarios } from "./fault-matrix.ts";
import { runScenario } from "./run-scenario.ts";
import { playPipeline } from "./soak.ts";

/** What `npm test` plays of the lab; `npm run test:lab` plays all of it. */
const SHORT = [
  "close, first window, for ever, moving",
  "gzip-cut, undated window, for ever, moving",
  "length, middle window, for ever, moving",
  "end, paged window, twice, still",
  "garbage after the last row",
  "companies as one body, end:times=always",
  "null-total, verify_counts off",
  "count-fails:times=always",
  "midnight during the open window",
  "arrive-undated=2 after 3 requests",
  "draining fast, oldest first",
  "hide=100, a source is granted, or an index catches up",
  "export-limit=0",
  "list-depth=100",
  "lag=3, while people move",
  "omit=20:lists=too, erased people",
  "twins=2, companies as one body",
];

describe("a sync under a fault", async () => {
  const all = await allScenarios();

  it.each(SHORT)("loses no row and repeats none, or says so: %s", async (name) => {
    const scenario = all.find((one) => one.name === name);
    if (scenario === undefined) throw new Error(`There is no scenario "${name}"`);
    expect((await runScenario(scenario)).violations).toEqual([]);
  });

  it.each([2, 3])("keeps its promises over random faults, kills and movement: seed %i", async (seed) => {
    expect(await playPipeline(seed)).toEqual([]);
  });
});
