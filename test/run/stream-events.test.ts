import { describe, expect, it } from "vitest";
import { read } from "../../src/commands/read.ts";
import { startSandbox } from "../../src/sandbox/server.ts";
import { readOptions, worldWith } from "../support/in-process.ts";

describe("streamEvents() of companies without a list", () => {
  it("says in every run that they cannot be counted, and what to do", async () => {
    await using sandbox = await startSandbox({
      ...{ people: 5, companies: 7, companyList: false, requestsPerMinute: 0 },
    });
    let written = "";
    const world = worldWith(sandbox, (text) => {
      written += text;
    });
    expect(await read(readOptions("companies"), world)).toBe(0);
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

describe("streamEvents() of a stream that fails", () => {
  it("says all the same what differs from the schema", async () => {
    await using sandbox = await startSandbox({ people: 12, undated: 0, requestsPerMinute: 0 });
    sandbox.fault(
      "no-key=1:path=/people/stream:after=3",
      "status=401:code=INVALID_API_KEY:path=/people/stream",
    );
    let written = "";
    const world = worldWith(sandbox, (text) => {
      written += text;
    });
    expect(await read(readOptions("people"), world)).toBe(1);
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
    const world = worldWith(sandbox, (text) => {
      written += text;
    });
    await read(readOptions("people"), world);
    const reports = written.split("\n").filter((line) => line.includes("differ from its schema"));
    expect(reports).toHaveLength(1);
    expect(reports[0]).toMatch(
      /a cursor that no rule can read in \d+ rows?, which count as rows without a date/,
    );
  });
});
