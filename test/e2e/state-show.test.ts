import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";

const SPANS = [
  ["1970-01-02", "2026-01-01", 3],
  ["2026-01-03", "2026-03-01", 4],
];
const MISSING = [
  ["1970-01-02", "2026-01-01", 3],
  ["2026-01-02", "2026-01-02", null, "missing"],
];

const show = (age: string, path: string) => run(CONNECTOR, ["state", "show", "--max-age", age, path]);

describe("state show --max-age", () => {
  it("exits with 1 once a stream has not been complete for so long", async () => {
    const { config } = await sandboxWith({ people: 20, companies: 0, requestsPerMinute: 0 });
    const state = join(await tempDir(), "state.json");
    const read = ["read", "-c", config, "--stream", "people", "--format", "jsonl", "--state-file", state];
    expect((await run(CONNECTOR, read)).code).toBe(0);
    expect(await show("26h", state)).toMatchObject({ code: 0, stderr: "" });
    expect(await show("0m", state)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Too old: people/),
    });
  });

  it.each([
    ["a day that was never read", SPANS],
    ["a missing day", MISSING],
  ])("counts from %s on", async (_what, days) => {
    const asked = "2026-03-03T00:00:00.000Z";
    const people = { version: 2, discoveredAt: "2026-03-02T01:00:00.000Z", asked, days };
    const { code, stderr } = await show("1d", await file("state.json", { bookmarks: { people } }));
    expect([code, stderr]).toEqual([1, expect.stringContaining("2026-01-02T00:00:00.000Z")]);
  });

  it.each([{}, { bookmarks: { sources: { version: 2, full_refresh: null } } }])(
    "fails for a state of no stream that has dates: %j",
    async (state) => {
      expect((await show("1d", await file("state.json", state))).code).toBe(1);
    },
  );
});
