import { describe, expect, it } from "vitest";
import {
  expectSameSettings,
  type PlanSettings,
  parsePlans,
  toShardPlan,
} from "../../src/shards/plan-file.ts";
import type { Day } from "../../src/time.ts";

const SETTINGS: PlanSettings = {
  baseUrl: "https://contacts.example.com/",
  filters: { source_slug: null, is_user: "all" },
  startDate: null,
  endDate: null,
};
const CUTS = [
  { from: null, to: "2019-03-02" as Day, rows: 10 },
  { from: "2019-03-03" as Day, to: "2022-01-01" as Day, rows: 12 },
  { from: "2022-01-02" as Day, to: null, rows: 11 },
];
const plan = toShardPlan("people", CUTS, SETTINGS, "2026-11-21T10:00:00.000Z");
const text = plan.lines.map((line) => JSON.stringify(line)).join("\n");

describe("a plan file", () => {
  it("is read as it was written, lines in any order", () => {
    const shuffled = [plan.lines[2], plan.lines[0], plan.lines[1]].map((line) => JSON.stringify(line));
    expect(parsePlans(`${text}\n`)).toEqual([plan]);
    expect(parsePlans(shuffled.join("\r\n"))).toEqual([plan]);
  });

  it("may hold the plans of several streams", () => {
    const companies = toShardPlan("companies", CUTS, SETTINGS, "2026-11-21T10:00:00.000Z");
    const both = `${text}\n${companies.lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
    expect(parsePlans(both).map(({ stream }) => stream)).toEqual(["people", "companies"]);
    expect(companies.digest).not.toBe(plan.digest);
  });

  it("fits the settings that made it, and names every setting that differs", () => {
    expect(() => expectSameSettings(plan, SETTINGS)).not.toThrow();
    const other = {
      ...SETTINGS,
      startDate: "2020-01-01" as Day,
      filters: { source_slug: "crm", is_user: "all" },
    };
    expect(() => expectSameSettings(plan, other)).toThrow(
      "start_date was not set and is 2020-01-01, source_slug was not set and is crm",
    );
    expect(() => expectSameSettings(plan, { ...SETTINGS, baseUrl: "https://other.example.com/" })).toThrow(
      "base_url",
    );
  });

  it("is refused once a day or a number in it was changed", () => {
    const changed = parsePlans(text.replaceAll('"rows":12', '"rows":13'));
    expect(() => expectSameSettings(changed[0] ?? plan, SETTINGS)).toThrow("the file was changed");
  });

  it.each([
    ["", "it is empty"],
    ["{", "line 1 is not JSON"],
    ['{"version":2}', "line 1 is not a shard"],
    [text.split("\n").slice(1).join("\n"), "has 2 of its 3 lines"],
    [`${text}\n${text.split("\n")[0]}`, "has 4 of its 3 lines"],
    [
      text.replace('"from":"2019-03-03"', '"from":"2019-03-04"'),
      'shard 1 of "people" does not begin after shard 0',
    ],
  ])("is refused when it is not whole (%#)", (broken, why) => {
    expect(() => parsePlans(broken)).toThrow(why);
  });
});
