import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { read } from "../../src/commands/read.ts";
import { connector } from "../support/cli.ts";
import { catalogFor, configFor } from "../support/configs.ts";
import { hurriedClock, readOptions, runtimeWith } from "../support/in-process.ts";

describe("streamEvents() of companies without a list", () => {
  it("says in every run that they cannot be counted, and what to do", async () => {
    await using sandbox = await startSandbox({
      ...{ people: 5, companies: 7, companyList: false, requestsPerMinute: 0 },
    });
    let written = "";
    const runtime = runtimeWith(sandbox, (text) => {
      written += text;
    });
    expect(await read(readOptions("companies"), runtime)).toBe(0);
    const messages = written
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
    expect(messages.filter(({ type }) => type === "RECORD")).toHaveLength(7);
    const warnings = messages
      .filter(({ log }) => log?.level === "WARN")
      .map(({ log }) => String(log.message));
    expect(warnings).toEqual([expect.stringMatching(/cannot .*counted|Cannot count/i)]);
    expect(warnings[0]).toContain("endpoints.companies");
    expect(warnings[0]).toContain("verify_counts");
  });
});

describe("streamEvents()", () => {
  it("reads a full refresh to its end, however little time the run may take", async () => {
    await using sandbox = await startSandbox({ people: 3_000, requestsPerMinute: 0 });
    const config = await configFor(sandbox, {
      ...{ max_window_rows: 1_000, max_run_seconds: 1, requests_per_minute: 6_000 },
    });
    const read = async (settings: object): Promise<readonly [number | null, number]> => {
      const catalog = await catalogFor({ people: settings });
      const args = ["read", "--config", config, "--catalog", catalog];
      // The time is up before the second window.
      const { code, messages } = await connector(args, { clock: hurriedClock(1_000) });
      return [code, messages.filter(({ type }) => type === "RECORD").length];
    };
    const refresh = { sync_mode: "full_refresh", generation_id: 1, sync_id: 1 };
    expect(await read(refresh)).toEqual([0, sandbox.people().length]);
    expect((await read({}))[1]).toBeLessThan(sandbox.people().length);
  });

  it("leaves rows without a key out only where the destination merges by key", async () => {
    await using sandbox = await startSandbox({ companies: 7, requestsPerMinute: 0 });
    const config = await configFor(sandbox);
    for (const [mode, rows] of [
      ["append_dedup", 6],
      ["overwrite_dedup", 6],
      ["append", 7],
    ] as const) {
      sandbox.fault("keyless=1:times=always");
      const catalog = await catalogFor({ companies: { destination_sync_mode: mode } });
      const { code, messages } = await connector(["read", "--config", config, "--catalog", catalog]);
      expect([code, messages.filter(({ type }) => type === "RECORD").length], mode).toEqual([0, rows]);
    }
  });
});

describe("streamEvents() of a stream that fails", () => {
  it("says all the same what differs from the schema", async () => {
    await using sandbox = await startSandbox({ people: 12, undated: 0, requestsPerMinute: 0 });
    sandbox.fault(
      "no-key=1:path=/people/stream:after=3",
      "status=401:code=INVALID_API_KEY:path=/people/stream",
    );
    let written = "";
    const runtime = runtimeWith(sandbox, (text) => {
      written += text;
    });
    expect(await read(readOptions("people"), runtime)).toBe(1);
    expect(written).toContain("INVALID_API_KEY");
    const lines = written.split("\n");
    const report = lines.findIndex((line) => line.includes("differ from its schema: no key in 1 row"));
    const end = lines.findIndex((line) => line.includes('"INCOMPLETE"'));
    expect(report).toBeGreaterThan(0);
    expect(report).toBeLessThan(end);
  });
});

describe("streamEvents() of people whose dates no rule can read", () => {
  it("says so in the report of what differs from the schema, without a value", async () => {
    await using sandbox = await startSandbox({ people: 12, undated: 0, requestsPerMinute: 0 });
    sandbox.fault("dates=unreadable");
    let written = "";
    const runtime = runtimeWith(sandbox, (text) => {
      written += text;
    });
    await read(readOptions("people"), runtime);
    const reports = written.split("\n").filter((line) => line.includes("differ from its schema"));
    expect(reports).toHaveLength(1);
    expect(reports[0]).toMatch(
      /a cursor that no rule can read in \d+ rows?, which count as rows without a date/,
    );
  });
});
