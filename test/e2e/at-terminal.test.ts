import { describe, expect, it } from "vitest";
import { CONNECTOR, file, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { atTerminal } from "../support/pty.ts";
import { csvOf, dayOf, people, type Row } from "../support/reconcile.ts";

const QUICK = { people: 20, undated: 2, companies: 3, sources: 2, requestsPerMinute: 0 };

describe("at a terminal", () => {
  it("discover shows how many rows each stream has, and the catalog if it is asked for", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const { code, shown } = await atTerminal([CONNECTOR, "discover", "--config", config]);
    expect(code).toBe(0);
    expect(shown).toMatch(/^stream +rows +fields +read$/m);
    expect(shown).toMatch(new RegExp(`^people +${sandbox.people().length} +\\d+ +what is new$`, "m"));
    expect(shown).not.toContain('"type"');
    const catalog = await atTerminal([CONNECTOR, "discover", "--config", config, "--json"]);
    expect(JSON.parse(catalog.shown)).toMatchObject({ type: "CATALOG" });
  });

  it("tap --test says what came of each stream", async () => {
    const { config } = await sandboxWith(QUICK);
    const { code, shown } = await atTerminal([TAP, "--config", config, "--test"]);
    expect([code, shown.match(/Stream "\w+": a record was read/g)?.length]).toEqual([0, 3]);
  });

  it("discover says what the key cannot read", async () => {
    const { config } = await sandboxWith({ ...QUICK, plan: "agency" });
    const { code, shown } = await atTerminal([CONNECTOR, "discover", "--config", config]);
    expect([code, shown]).toEqual([
      0,
      expect.stringMatching(/^companies +not readable.*\n(?:.*\n)*companies: Cannot /m),
    ]);
  });

  it("a failure is a sentence, and the code tells who must act", async () => {
    const { config } = await sandboxWith({ ...QUICK, faults: ["status=401:times=always"] });
    const { code, shown } = await atTerminal([CONNECTOR, "discover", "--config", config]);
    expect(code).toBe(2);
    expect(shown).toContain("INVALID_API_KEY");
    expect(shown).not.toContain('"type"');
  });

  it("plan shows a table, and the lines of the file if they are asked for", async () => {
    const { config } = await sandboxWith({ ...QUICK, people: 400 });
    const words = [CONNECTOR, "plan", "--config", config, "--shards", "2"];
    const { code, shown } = await atTerminal(words);
    expect(code).toBe(0);
    expect(shown).toMatch(/^shard +from +to +rows$/m);
    expect(shown).toMatch(/^1 +\d{4}-\d\d-\d\d +open +\d+$/m);
    expect(shown).toContain("400 rows with a date. To keep the plan, add: > plan.jsonl");
    const lines = (await atTerminal([...words, "--json"])).shown.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).shard)).toEqual([0, 1]);
  });

  it("reconcile draws how far it is, and ends with a table of days", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 400 });
    const [lost, ...table] = people(sandbox);
    const keys = await file("keys.csv", csvOf(table));
    const { code, shown } = await atTerminal([
      CONNECTOR,
      "reconcile",
      "-c",
      config,
      "--table",
      keys,
      "--full",
    ]);
    expect(code).toBe(1);
    const [progress = "", answer] = shown.split("people: 401 keys in the table\n");
    expect(progress).toMatch(/connecting/);
    expect(answer).toContain(`${dayOf(lost as Row)}: lost 1, stale 0, gone 0\n`);
  });

  it("read asks where the rows shall go before it asks the service for one", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const { code, shown } = await atTerminal([CONNECTOR, "read", "--config", config]);
    expect([code, sandbox.requests.length]).toEqual([2, 0]);
    for (const [end] of [["--output contacts"], ["--stream people > people.jsonl"], ["> messages.jsonl"]])
      expect(shown).toMatch(new RegExp(`read --config \\S+ .*${end}$`, "m"));
    const asked = await atTerminal([CONNECTOR, "read", "--config", config, "--stream", "people", "--json"]);
    expect([asked.code, asked.shown]).toEqual([0, expect.stringContaining(sandbox.people()[0]?.id ?? "?")]);
  });
});
