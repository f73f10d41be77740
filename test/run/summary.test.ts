import { readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TransientError } from "../../src/errors.ts";
import { metricsOf } from "../../src/run/metrics.ts";
import type { RunStats, StreamSummary } from "../../src/run/stats.ts";
import { checkSummaryPath, runText, shownSeconds, summaryText, writeSummary } from "../../src/run/summary.ts";
import type { Event, StreamReport } from "../../src/streams/event.ts";
import { checkpoint, close, open, records } from "../support/events.ts";
import { runOf } from "../support/run-stats.ts";
import { tempDir } from "../support/temp-dir.ts";

/** Stats of events that come a second apart; each takes two requests. */
function statsOf(...events: readonly Event[]): RunStats {
  const { stats, pass } = runOf();
  for (const event of events) {
    stats.note(event);
    if (event.kind === "checkpoint") stats.noteSaved(event.stream, event.state);
    pass(1);
  }
  return stats;
}

const summaryOf = (...events: readonly Event[]) => statsOf(...events).summary(false, "state.json");

const closeWith = (report: Partial<StreamReport>): Event => {
  const limit = { time_limit_reached: false, saved_up_to: "2026-01-02T00:00:00Z" };
  const all = { windows: 3, passes: 4, missing_days: [], recheck: [], ...limit, ...report };
  return { kind: "close", stream: "people", complete: true, report: all };
};

const TWO_ROWS = records("people", { id: 1 }, { id: 2 });

describe("RunStats.summary()", () => {
  it("says of each stream and of the run what was delivered and what it took", () => {
    const days = [["2025-03-04", "2025-03-04", null, "missing"]];
    const state = { discoveredAt: "2026-01-02T00:00:00Z", days };
    const recheck = [["2025-01-01", "2025-01-09"]] as const;
    const before = { discoveredAt: "2025-12-31T23:59:59.999Z" };
    const people: StreamSummary = {
      stream: "people",
      outcome: "complete",
      error: null,
      rows: 2,
      expected_rows: 3,
      suppressed: 0,
      files: null,
      windows: 3,
      passes: 4,
      ...{ seconds: 4, requests: 8, retries: 4, bytes_received: 4000, waited_seconds: 2 },
      missing_days: [],
      recheck,
      time_limit_reached: false,
      saved_up_to: "2026-01-02T00:00:00Z",
      state_before: before,
      state_after: state,
      spent: null,
    };
    expect(
      summaryOf(
        { kind: "open", stream: "people", before },
        { kind: "estimate", stream: "people", rows: 3 },
        TWO_ROWS,
        checkpoint("people", state),
        closeWith({ recheck }),
      ),
    ).toEqual({
      version: 1,
      started_at: "1970-01-01T00:00:00.000Z",
      ended_at: "1970-01-01T00:00:05.000Z",
      outcome: "complete",
      error: null,
      time_limit_reached: false,
      rows: 2,
      ...{ seconds: 5, requests: 10, retries: 5, bytes_received: 5000, waited_seconds: 2.5 },
      saved_to: "state.json",
      streams: [people],
    });
  });

  it("says what a stream that failed saved", () => {
    const missing = ["2025-03-04", "2025-03-05", null, "missing"];
    const state = { discoveredAt: null, days: [missing, ["2025-03-06", "2025-03-09", null, "again"]] };
    const { streams } = summaryOf(open("people"), checkpoint("people", state), close("people", false));
    expect(streams).toMatchObject([
      { missing_days: ["2025-03-04", "2025-03-05"], recheck: [["2025-03-06", "2025-03-09"]] },
    ]);
  });

  const failed: Event = { kind: "failed", error: new TransientError("no") };
  it.each([
    ["complete", null, [open("a"), close("a")], false],
    ["incomplete", null, [open("a"), close("a", false), open("b"), close("b")], false],
    ["failed", "no", [open("a"), close("a"), failed], false],
    ["interrupted", "no", [open("a"), failed], true],
  ] as const)("calls a run %s", (outcome, error, events, interrupted) => {
    expect(statsOf(...events).summary(interrupted, null)).toMatchObject({ outcome, error });
  });
});

describe("summaryText() and runText()", () => {
  it("say in a line each how streams and run ended", () => {
    const summary = summaryOf(
      open("people"),
      TWO_ROWS,
      closeWith({ missing_days: ["2025-01-01"], recheck: [["a", "b"]] }),
      open("sources"),
      close("sources", false, new TransientError("x")),
      open("companies"),
    );
    expect(summaryText(summary)).toBe(
      "people: complete, 2 rows in 3 windows, 4 requests, 2 retries, 2.0 s, 1 day missing, the next run checks 1 range of days again, because rows moved meanwhile\n" +
        "sources: incomplete, 0 rows, 2 requests, 1 retry, 1.0 s\n" +
        "companies: interrupted, 0 rows, 2 requests, 1 retry, 1.0 s\n",
    );
    expect(runText(summary)).toBe("Run incomplete: 2 rows of 3 streams, 12 requests, 6.0 s");
    expect(summary.streams.map((stream) => stream.waited_seconds)).toEqual([1, 0.5, 0.5]);
    expect(summary.streams.map((stream) => stream.bytes_received)).toEqual([2_000, 1_000, 1_000]);
  });

  it("say seconds, minutes or hours", () => {
    const seconds = [0.04, 9.94, 10.4, 119.4, 120, 7_199, 7_200, 90_000];
    expect(seconds.map(shownSeconds).join(", ")).toBe("0.0 s, 9.9 s, 10 s, 119 s, 2 min, 120 min, 2 h, 25 h");
  });

  it("say that the time limit ended a stream, how far it came, and what to do", () => {
    const limit = { time_limit_reached: true, saved_up_to: "2018-11-22T23:59:59.999Z" };
    const estimate: Event = { kind: "estimate", stream: "people", rows: 2_000_003 };
    const summary = summaryOf(open("people"), estimate, TWO_ROWS, closeWith(limit));
    expect(summary).toMatchObject({ outcome: "complete", time_limit_reached: true });
    expect(summaryText(summary)).toContain(
      "\n  Time limit reached: 2 of about 2,000,003 rows, saved up to 2018-11-22. Run again to continue.\n",
    );
  });
});

describe("metricsOf()", () => {
  it.each([
    ["a complete stream", [open("people"), TWO_ROWS, close("people")], [2, 4, 2, "succeeded"]],
    ["an incomplete stream", [open("people"), close("people", false)], [0, 2, 1, "failed"]],
    ["a stream that fails", [open("people"), close("people", true, "down")], [0, 2, 1, "failed"]],
    ["a stream that has not ended", [open("people"), TWO_ROWS], [2, 4, 2, "failed"]],
  ] as const)(
    "counts rows and requests of %s, and says in seconds how long they took",
    (_, events, counts) => {
      const [rows, requests, seconds, status] = counts;
      const { current } = statsOf(...events);
      const tags = { stream: "people", pid: 7 };
      expect(current && metricsOf(current, 7).map((event) => event.kind === "log" && event.metric)).toEqual([
        { type: "counter", metric: "record_count", value: rows, tags },
        { type: "counter", metric: "http_request_count", value: requests, tags },
        { type: "timer", metric: "http_request_duration", value: requests / 2, tags },
        { type: "timer", metric: "sync_duration", value: seconds, tags: { ...tags, status } },
      ]);
    },
  );
});

describe("writeSummary()", () => {
  it("replaces the file at once, with secrets masked, and leaves nothing else", async () => {
    const folder = await tempDir();
    const path = join(folder, "summary.json");
    await checkSummaryPath(path);
    const failed = summaryOf({ kind: "failed", error: new TransientError("the key hunter2") });
    await writeSummary(path, summaryOf(), (text) => text);
    await writeSummary(path, failed, (text) => text.replaceAll("hunter2", "***"));
    const written = JSON.parse(await readFile(path, "utf8"));
    expect(written).toMatchObject({ outcome: "failed", error: "the key ***" });
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
