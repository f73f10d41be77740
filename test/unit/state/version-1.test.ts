import { describe, expect, it } from "vitest";
import { BEGINNING } from "../../../src/base/time.ts";
import { parseDatedState } from "../../../src/state/parse-state.ts";

const moment = "2026-01-02T03:04:05Z";

describe("parseDatedState() of version 1", () => {
  const old = {
    ...{
      version: 1,
      discoveredAt: moment,
      missing_days: [],
      recheck: [],
      from: null,
      gap: null,
      shard: null,
    },
    ...{ filters: { source_slug: null, is_user: "all" }, undated: "done", full_refresh: null },
    ...{ undated_checked: "2026-01-01", undated_rows: 3 },
  };
  const shard = { plan: "p", index: 0, done: true, asked: moment, ended: moment };
  const none = undefined;
  const undated = { rows: 3, seen: null };
  const earlier = { undated_checked: none, undated_rows: none, recheck: none };
  const past: readonly string[] = [BEGINNING, "2025-12-31"];
  const ended = { discoveredAt: "2025-06-30T23:59:59.999Z", from: "2025-01-01", shard };
  it.each<[string, object, readonly (readonly (string | null)[])[], object]>([
    ["all of it", {}, [past], { undated, checked: "2026-01-01" }],
    ["of 0.1.0", earlier, [past], { undated: { rows: 0, seen: null }, checked: null }],
    ["with a start", { from: "2025-11-01" }, [["2025-11-01", "2025-12-31"]], { undated: null }],
    ["that had begun", { discoveredAt: null, undated: "pending" }, [], { undated: null }],
    ["with an inverted range", { from: "2026-01-02" }, [], {}],
    [
      "with a gap and holes",
      {
        ...{ from: "2025-11-01", gap: { from: "2025-01-01", to: "2025-01-31" } },
        ...{ recheck: [["2025-12-03", "2025-12-02"]], missing_days: ["2025-12-02", "2025-11-09"] },
      },
      [
        ["2025-01-01", "2025-01-31"],
        ["2025-11-01", "2025-11-08"],
        ["2025-11-09", "2025-11-09", "missing"],
        ["2025-11-10", "2025-12-01"],
        ["2025-12-02", "2025-12-02", "missing"],
        ["2025-12-03", "2025-12-03", "again"],
        ["2025-12-04", "2025-12-31"],
      ],
      {},
    ],
    ["of a shard that is done", ended, [["2025-01-01", "2025-06-30"]], { plan: "p", asked: moment }],
  ])("understands a state of version 1: %s", (_, given, ranges, expected) => {
    const days = ranges.map(([from, to, ...status]) => [from, to, null, ...status]);
    expect(parseDatedState("people", { ...old, ...given })).toMatchObject({ version: 2, days, ...expected });
  });

  it.each<[string, unknown]>([
    ["from", moment],
    ["gap", { from: "2026-01-01" }],
    ["recheck", [["2026-01-01", "2026-01-32"]]],
    ["shard", { plan: "x", index: 0 }],
  ])("refuses a %s that it did not write: %j", (key, value) => {
    expect(() => parseDatedState("people", { ...old, [key]: value })).toThrow(`${key} is not`);
  });
});
