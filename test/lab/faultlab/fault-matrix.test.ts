import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { IS_LONG, runs } from "../../support/runs.ts";
import { allScenarios, CUTS, uncovered } from "./fault-matrix.ts";
import { runScenario } from "./run-scenario.ts";
import { soak } from "./soak.ts";
import { PAGE, tableNames, toPage, toRow } from "./table.ts";

/** What `npm test` plays of the lab: each cut of a body, and faults of every kind. `npm run test:lab` plays all. */
const SHORT = [
  ...CUTS.map(
    (cut, nth) => `${cut}, ${["first", "open", "undated", "middle"][nth % 4]} window, for ever, moving`,
  ),
  "end, paged window, twice, still",
  "garbage after the last row",
  "companies as one body, end:times=always",
  "midline, once",
  "stall, once",
  "omit=3",
  "cap=20",
  "null-total, verify_counts off",
  "page-repeats, and a day that no export closes",
  "filters-ignored",
  "429=2:times=5",
  "redirect=https://elsewhere.example/:times=always",
  "leak, twice",
  "count-fails:times=always",
  "flip=5, of users only",
  "midnight during the open window",
  "a local clock an hour ahead, moving",
  "eight workers, moving, every fourth export broken off",
  "list-end=20, and every export of one day ends early",
  "keyless=3",
  "three days in a row that are ignored",
  "arrive-undated=2 after 3 requests",
  "date-undated=2 after 2 requests",
  "dates=epoch-ms",
  "redate=0001-01-01:people=3",
  "clock-behind=5",
  "draining fast, oldest first",
  "gzip-bomb=64, an export",
  "endless=row, an export",
  "companies by windows, list-end=50",
  "export-limit=100:how=504, in one window",
  "list-depth=100",
  "twins=2, companies by windows",
  "lag=3, while people move",
  "count=5000000000",
  "endless=row behind the last row",
  "hide=300, nothing is there yet, in one window",
  "hide=100, a source is granted, or an index catches up",
  "clock-behind=-3888000, 45 days ahead",
  "beginning=ignored",
  "beginning=refused",
  "three people get a date, and three others come",
  "one of 2,000 people without a date gets one",
];

describe("the fault lab", async () => {
  const all = await allScenarios();

  it("has a scenario for every fault of the sandbox, and no two of one name", () => {
    expect(uncovered(all)).toEqual([]);
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  });

  it("cuts each body in each window, once, twice and for ever, still and moving", () => {
    expect(all.filter(({ name }) => / window, /.test(name))).toHaveLength(CUTS.length * 5 * 3 * 2);
  });

  // Most of them wait for a clock.
  it.concurrent.each(IS_LONG ? all.map(({ name }) => name) : SHORT)(
    "keeps its promises under: %s",
    async (name) => {
      const scenario = all.find((one) => one.name === name);
      if (scenario === undefined) throw new Error(`There is no scenario "${name}"`);
      expect((await runScenario(scenario)).violations).toEqual([]);
    },
  );

  it("keeps its promises over random faults, kills and movement", async () => {
    const violations: string[] = [];
    const print = (text: string): void => void (text.startsWith("VIOLATED") && violations.push(text));
    const options = { minutes: 1, seed: 1, pipelines: runs(4, 12), processes: false };
    const { runs: played } = await soak({ ...options, print });
    expect(violations).toEqual([]);
    expect(played).toBeGreaterThan(4);
  });

  it("stands in the docs as it is played", () => {
    expect(tableNames(readFileSync(PAGE, "utf8"))).toEqual(all.map(({ name }) => name));
  });
});

describe("toPage()", () => {
  it("has a row for each scenario, in their order", () => {
    const counts = { served: 3, delivered: 3, repeated: 0, requests: 7, violations: [] };
    const rows = ["a|b", "c"].map((name) => toRow({ name, happened: "complete", ...counts }));
    const page = toPage(rows);
    expect(page).toContain("| a\\|b | complete | 3 | 3 | 0 | 7 |\n| c | complete |");
    expect(tableNames(page)).toEqual(["a\\|b", "c"]);
  });
});
