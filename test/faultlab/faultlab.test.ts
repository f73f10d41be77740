import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { play } from "./scenario.ts";
import { allScenarios, CUTS, uncovered } from "./scenarios.ts";
import { soak } from "./soak.ts";
import { TABLE_BEGIN, TABLE_END, tableNames, withTable } from "./table.ts";

/** What `npm test` plays of the lab: every kind of fault once, the hard ones moving. `npm run faultlab` plays all. */
const SHORT = [
  ...CUTS.map(
    (cut, nth) => `${cut}, ${["first", "open", "undated", "middle"][nth % 4]} window, for ever, moving`,
  ),
  "end, paged window, twice, still",
  "stream-failed, every export, for ever",
  "garbage after the last row",
  "not-object=null before the first row",
  "companies by windows, gzip-cut:times=always",
  "companies as one body, end:times=always",
  "companies as one body, omit=3",
  "midline, once",
  "gzip-trailer, once",
  "stall, once",
  "omit=3",
  "duplicate-omit=5",
  "count=-3",
  "cap=20",
  "null-total",
  "null-total, verify_counts off",
  "page-repeats, and a day that no export closes",
  "filters-ignored",
  "status=503, twice",
  "429=2:times=5",
  "redirect=https://elsewhere.example/:times=always",
  "html, an export",
  "leak, twice",
  "stall-headers, twice",
  "count-fails:times=always",
  "flip=5, of users only",
  "midnight during the fourth export",
  "midnight during the open window",
  "a local clock an hour ahead, moving",
  "eight workers, moving, every fourth export broken off",
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

  it.each(SHORT)("keeps its promises under: %s", async (name) => {
    const scenario = all.find((one) => one.name === name);
    if (scenario === undefined) throw new Error(`There is no scenario "${name}"`);
    expect((await play(scenario)).violations).toEqual([]);
  });

  it("keeps its promises over random faults, kills and movement", async () => {
    const violations: string[] = [];
    const print = (text: string): void => void (text.startsWith("VIOLATED") && violations.push(text));
    const { runs } = await soak({ minutes: 1, seed: 1, pipelines: 6, processes: false, print });
    expect(violations).toEqual([]);
    expect(runs).toBeGreaterThan(6);
  });

  it("stands in the docs as it is played", () => {
    const document = readFileSync(new URL("../../docs/reliability.md", import.meta.url), "utf8");
    expect(tableNames(document)).toEqual(all.map(({ name }) => name));
  });
});

describe("withTable()", () => {
  it("replaces what stands between the markers and nothing else", () => {
    const document = `before\n${TABLE_BEGIN}\nold\n${TABLE_END}\nafter\n`;
    const written = withTable(document, "| new |");
    expect(written).toBe(`before\n${TABLE_BEGIN}\n\n| new |\n\n${TABLE_END}\nafter\n`);
    expect(withTable(written, "| new |")).toBe(written);
  });

  it("refuses a document without them", () => {
    expect(() => withTable("nothing", "")).toThrow("lacks its markers");
  });
});
