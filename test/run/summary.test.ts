import { readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { noUsage, type Usage } from "../../src/api/usage.ts";
import { TransientError } from "../../src/errors.ts";
import { RunStats } from "../../src/run/stats.ts";
import { checkSummaryPath, runText, shownSeconds, summaryText, writeSummary } from "../../src/run/summary.ts";
import type { Event, StreamReport } from "../../src/streams/event.ts";
import { checkpoint, close, open, records } from "../support/events.ts";
import { tempDir } from "../support/temp-dir.ts";

const report = (timeLimit: StreamReport["timeLimit"], more: Partial<StreamReport> = {}): StreamReport => ({
  ...{ windows: 3, passes: 4, missingDays: [], recheck: [], timeLimit },
  ...more,
});

const noLimit = { reached: false, savedUpTo: "2026-01-02T00:00:00Z" };

/** Stats of events that come a second apart; each takes two requests. */
function statsOf(...events: readonly Event[]): RunStats {
  let now = 0;
  const usage = (): Usage => ({
    ...noUsage(),
    ...{ requests: now / 500, retries: 1, bytesReceived: now, waitedMs: now / 2 },
  });
  const stats = new RunStats({ now: () => now, monotonic: () => now });
  stats.measure(usage);
  for (const event of events) {
    stats.note(event);
    if (event.kind === "checkpoint") stats.noteSaved(event.stream, event.state);
    now += 1000;
  }
  return stats;
}

describe("RunStats.summary", () => {
  it("says of each stream and of the run what was delivered and what it took", () => {
    const days = [["2025-03-04", "2025-03-04", null, "missing"]];
    const state = { discoveredAt: "2026-01-02T00:00:00Z", days };
    const recheck = [["2025-01-01", "2025-01-09"]] as const;
    const before = { discoveredAt: "2025-12-31T23:59:59.999Z" };
    const stats = statsOf(
      { kind: "open", stream: "people", before },
      { kind: "estimate", stream: "people", rows: 3 },
      records("people", { id: 1 }, { id: 2 }),
      checkpoint("people", state),
      { ...close("people"), report: report(noLimit, { recheck }) } as Event,
    );
    expect(stats.summary(false, "state.json")).toEqual({
      version: 1,
      started_at: "1970-01-01T00:00:00.000Z",
      ended_at: "1970-01-01T00:00:05.000Z",
      outcome: "complete",
      error: null,
      time_limit_reached: false,
      rows: 2,
      ...{ seconds: 5, requests: 10, retries: 1, bytes_received: 5000, waited_seconds: 2.5 },
      saved_to: "state.json",
      streams: [
        {
          stream: "people",
          outcome: "complete",
          error: null,
          rows: 2,
          expected_rows: 3,
          files: null,
          windows: 3,
          passes: 4,
          ...{ seconds: 4, requests: 8, retries: 0, bytes_received: 4000, waited_seconds: 2 },
          missing_days: [],
          recheck,
          time_limit_reached: false,
          saved_up_to: "2026-01-02T00:00:00Z",
          state_before: before,
          state_after: state,
          spent: null,
        },
      ],
    });
  });

  it("says what a stream that failed saved", () => {
    const days = [
      ["2025-03-04", "2025-03-05", null, "missing"],
      ["2025-03-06", "2025-03-09", null, "again"],
    ];
    const stats = statsOf(
      open("people"),
      checkpoint("people", { discoveredAt: null, days }),
      close("people", false),
    );
    expect(stats.summary(false, "state.json").streams).toMatchObject([
      { missing_days: ["2025-03-04", "2025-03-05"], recheck: [["2025-03-06", "2025-03-09"]] },
    ]);
  });

  it.each([
    ["complete", [open("a"), close("a")], false],
    ["incomplete", [open("a"), close("a", false), open("b"), close("b")], false],
    ["failed", [open("a"), close("a"), { kind: "failed", error: new TransientError("no") }], false],
    ["interrupted", [open("a"), { kind: "failed", error: new TransientError("no") }], true],
  ] as const)("calls a run %s", (outcome, events, interrupted) => {
    const summary = statsOf(...events).summary(interrupted, null);
    expect(summary.outcome).toBe(outcome);
    expect(summary.error).toBe(events.some(({ kind }) => kind === "failed") ? "no" : null);
  });
});

describe("summaryText() and runText()", () => {
  it("say in a line each how streams and run ended", () => {
    const stats = statsOf(
      open("people"),
      records("people", { id: 1 }, { id: 2 }),
      {
        ...close("people"),
        report: report(noLimit, { missingDays: ["2025-01-01"], recheck: [["a", "b"]] }),
      } as Event,
      open("sources"),
      close("sources", false, new TransientError("x")),
      open("companies"),
    );
    const summary = stats.summary(false, "state.json");
    expect(summaryText(summary)).toBe(
      "people: complete, 2 rows in 3 windows, 4 requests, 2.0 s, 1 day missing, the next run checks 1 range of days again, because rows moved meanwhile\n" +
        "sources: incomplete, 0 rows, 2 requests, 1.0 s\n" +
        "companies: interrupted, 0 rows, 2 requests, 1.0 s\n",
    );
    expect(runText(summary)).toBe("Run incomplete: 2 rows of 3 streams, 12 requests, 6.0 s");
    expect(summary.streams.map((stream) => stream.waited_seconds)).toEqual([1, 0.5, 0.5]);
    expect(summary.streams.map((stream) => stream.bytes_received)).toEqual([2_000, 1_000, 1_000]);
  });

  it.each([
    [0.04, "0.0 s"],
    [9.94, "9.9 s"],
    [10.4, "10 s"],
    [119.4, "119 s"],
    [120, "2 min"],
    [7_199, "120 min"],
    [7_200, "2 h"],
    [90_000, "25 h"],
  ])("say %d seconds as %s", (seconds, text) => {
    expect(shownSeconds(seconds)).toBe(text);
  });

  it("say that the time limit ended a stream, how far it came, and what to do", () => {
    const limit = { reached: true, savedUpTo: "2018-11-22T23:59:59.999Z" };
    const stats = statsOf(
      open("people"),
      { kind: "estimate", stream: "people", rows: 2_000_003 },
      records("people", { id: 1 }, { id: 2 }),
      { ...close("people"), report: report(limit) } as Event,
    );
    const summary = stats.summary(false, "state.json");
    expect(summary).toMatchObject({ outcome: "complete", time_limit_reached: true });
    expect(summaryText(summary)).toContain(
      "\n  Time limit reached: 2 of about 2,000,003 rows, saved up to 2018-11-22. Run again to continue.\n",
    );
  });
});

describe("writeSummary()", () => {
  it("replaces the file at once, with secrets masked, and leaves nothing else", async () => {
    const folder = await tempDir();
    const path = join(folder, "summary.json");
    await checkSummaryPath(path);
    const failed = statsOf({ kind: "failed", error: new TransientError("the key hunter2") });
    await writeSummary(path, statsOf().summary(false, "state.json"), (text) => text);
    await writeSummary(path, failed.summary(false, "state.json"), (text) =>
      text.replaceAll("hunter2", "***"),
    );
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({
      outcome: "failed",
      error: "the key ***",
    });
    expect(await readdir(folder)).toEqual(["summary.json"]);
  });

  it("refuses before the run what it could not write after it", async () => {
    const folder = await tempDir();
    await expect(checkSummaryPath(join(folder, "absent", "s.json"))).rejects.toThrow("there is no folder");
    await expect(checkSummaryPath(folder)).rejects.toThrow("a folder");
    await symlink("elsewhere", join(folder, "link"));
    await expect(checkSummaryPath(join(folder, "link"))).rejects.toThrow("link");
  });
});
