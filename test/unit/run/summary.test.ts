import { readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TransientError } from "../../../src/errors.ts";
import { metricsOf } from "../../../src/run/metrics.ts";
import { RunStats, type StreamSummary } from "../../../src/run/stats.ts";
import {
  checkSummaryPath,
  rowsText,
  runText,
  savedText,
  shownSeconds,
  streamTexts,
  summaryText,
  writeSummary,
} from "../../../src/run/summary.ts";
import { type Event, NO_FACTS, type StreamReport } from "../../../src/streams/event.ts";
import { checkpoint, close, open, records } from "../../support/events.ts";
import { runOf } from "../../support/run-stats.ts";
import { sumsOf } from "../../support/stories.ts";
import { tempDir } from "../../support/temp-dir.ts";

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

/** A stream of five rows, with a request of a second. */
const streamOf = (changes: Partial<StreamSummary>): StreamSummary => ({
  ...{ stream: "people", outcome: "complete", error: null, rows: 5, expected_rows: null, suppressed: 0 },
  ...{ files: null, windows: 0, passes: null, seconds: 1, requests: 1, retries: 0, bytes_received: 0 },
  ...{ waited_seconds: 0, missing_days: [], recheck: [], time_limit_reached: false, saved_up_to: null },
  ...{ state_before: null, state_after: null, spent: null },
  ...changes,
});

describe("streamTexts()", () => {
  const limit = { time_limit_reached: true };
  it.each<[Partial<StreamSummary>, readonly string[]]>([
    [{}, ["complete, 5 rows, 1 request, 1.0 s"]],
    [{ windows: 1, retries: 1 }, ["complete, 5 rows in 1 window, 1 request, 1 retry, 1.0 s"]],
    [{ files: 0, windows: 3 }, ["complete, 5 rows in 0 new files, 1 request, 1.0 s"]],
    [{ files: 1, suppressed: 1_200 }, ["complete, 5 rows in 1 new file, 1,200 suppressed, 1 request, 1.0 s"]],
    [
      { missing_days: ["2026-01-01", "2026-01-02"], outcome: "incomplete" },
      ["incomplete, 5 rows, 1 request, 1.0 s, 2 days missing"],
    ],
    [
      limit,
      [
        "complete, 5 rows, 1 request, 1.0 s",
        "Time limit reached: 5 rows, nothing is saved yet. Run again to continue.",
      ],
    ],
  ])("of %j are %j", (changes, texts) => {
    expect(streamTexts(streamOf(changes))).toEqual(texts);
  });

  it("count rows of what is expected, where that is known", () => {
    const texts = [null, 1, 3_000].map((expected_rows) => rowsText(streamOf({ rows: 1_500, expected_rows })));
    expect(texts).toEqual(["1,500 rows", "1,500 of about 1 row", "1,500 of about 3,000 rows"]);
  });
});

describe("savedText()", () => {
  const until = "2026-01-02T00:00:00Z";
  const saved = streamOf({ state_after: {}, saved_up_to: until });
  const inFiles = streamOf({ stream: "sources", state_after: {}, files: 1, rows: 3 });
  const more = "Run again to continue";
  it.each([
    ["a sample", { saved_to: "s", sample: 3 }, true, [saved], "of a sample no state is saved"],
    [
      "bare records",
      { saved_to: null },
      false,
      [saved],
      "no state is saved. Add --state-file FILE or --output DIR to save it",
    ],
    [
      "messages",
      { saved_to: null },
      true,
      [saved],
      `saved people up to ${until} in the last STATE message on stdout. ${more}`,
    ],
    [
      "a folder",
      { saved_to: "out/state.json" },
      false,
      [saved, streamOf({ stream: "companies" }), inFiles],
      `saved people up to ${until}, sources (3 rows in 1 new file) in "out/state.json". ${more}`,
    ],
    [
      "a run without a checkpoint",
      { saved_to: "s.json" },
      true,
      [streamOf({ saved_up_to: until })],
      "nothing new was ready to be saved. Run again to start where this run did",
    ],
  ])("says of %s what is saved, and where", (_what, run, hasMessages, streams, text) => {
    expect(savedText({ ...summaryOf(), ...run, streams }, hasMessages)).toBe(text);
  });
});

describe("RunStats", () => {
  const ROWS = records("people", { id: 1 }, { id: 2 }, { id: 3 });

  it("counts the rows of published files once a stream has ended, and until then those that came", () => {
    const { stats } = runOf();
    stats.noteSaved("people", {});
    stats.notePublished("people", 1, 1);
    expect([stats.current, stats.summary(false, null).streams]).toEqual([undefined, []]);
    for (const event of [open("people"), ROWS]) stats.note(event);
    for (const [files, rows] of [
      [0, 0],
      [1, 1],
      [2, 1],
    ] as const)
      stats.notePublished("people", files, rows);
    expect(stats.current).toMatchObject({ rows: 3, files: 3 });
    expect(stats.summary(true, null)).toMatchObject({ rows: 2, streams: [{ rows: 2, files: 3 }] });
    stats.note(close("people"));
    expect(stats.current).toMatchObject({ rows: 2, files: 3 });
  });

  it("takes what is saved or said under a name for the last stream of that name", () => {
    const { stats } = runOf();
    for (const event of [open("people"), ROWS, close("people"), open("people")]) stats.note(event);
    stats.noteSaved("people", { discoveredAt: "2" });
    stats.notePublished("people", 1, 1);
    stats.note({ kind: "estimate", stream: "companies", rows: 9 });
    expect(stats.summary(false, null).streams).toMatchObject([
      { rows: 3, files: null, state_after: null, saved_up_to: null },
      { rows: 1, files: 1, state_after: { discoveredAt: "2" }, saved_up_to: "2", expected_rows: null },
    ]);
  });

  it("takes its time from the first row of a stream to now, and that of its requests until its end", () => {
    const { stats, pass } = runOf();
    pass(1);
    stats.note(open("people"));
    pass(2);
    expect(stats.current).toMatchObject({ secondsOfRows: 0, requestSeconds: 2, seconds: 2 });
    stats.note(ROWS);
    pass(3.0006);
    stats.note(ROWS);
    expect(stats.current).toMatchObject({
      secondsOfRows: expect.closeTo(3.0006),
      requestSeconds: 5.001,
      seconds: 5.001,
    });
    stats.note(close("people"));
    pass(4);
    expect(stats.current).toMatchObject({
      requestSeconds: 5.001,
      seconds: 5.001,
      requests: expect.closeTo(10.0012),
    });
  });

  it("adds up what was held back, and keeps what the last checkpoint that said so had", () => {
    const { stats } = runOf();
    const spent = { submitted: 1 } as never;
    for (const event of [
      open("people"),
      { ...TWO_ROWS, facts: { held: 2 } } as Event,
      { ...TWO_ROWS, facts: { held: 3 } } as Event,
      TWO_ROWS,
      { ...checkpoint("people", {}), windows: 4, spent } as Event,
      checkpoint("people", {}),
    ])
      stats.note(event);
    expect(stats.current).toMatchObject({ suppressed: 5, rows: 6, windows: 4, spent });
  });

  it("hands out once what streams say of their ends", () => {
    const { stats } = runOf();
    const log = { kind: "log", level: "info" } as const;
    for (const event of [
      { ...log, text: "a" },
      { ...log, text: "b", endOf: "x" },
      { ...log, text: "c", endOf: "x" },
    ])
      stats.note(event);
    expect([stats.takeEndings(), stats.takeEndings()]).toEqual([["b", "c"], []]);
  });

  it("keeps why the run and its streams did not end well, and says the first of what ended the run", () => {
    const { stats } = runOf();
    const [down, other, unproven] = ["down", "other", "unproven"].map((text) => new TransientError(text));
    for (const event of [
      ...[open("a"), close("a"), open("b"), close("b", true, unproven), open("c"), close("c", false)],
      ...[{ kind: "failed", error: down } as Event, { kind: "failed", error: other } as Event],
    ])
      stats.note(event);
    expect(stats.failures).toEqual([unproven, undefined, down, other]);
    const { error, streams } = stats.summary(false, null);
    expect([error, ...streams.map((stream) => [stream.outcome, stream.error])]).toEqual([
      "down",
      ...[
        ["complete", null],
        ["incomplete", "unproven"],
        ["incomplete", null],
      ],
    ]);
  });

  it("of a sample names its size, and no place of a state", () => {
    const stats = new RunStats({ now: () => 0, monotonic: () => 0 }, 7);
    stats.note(open("people"));
    const summary = stats.summary(false, "state.json");
    expect(summary).toMatchObject({ sample: 7, saved_to: null });
    expect(runText(summary)).toBe(
      "Run incomplete (a sample of at most 7 rows a stream): 0 rows of 1 stream, 0 requests, 0.0 s",
    );
    expect(summaryOf()).not.toHaveProperty("sample");
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

/** A run of a few streams as its events fall, and all that is told of it after each. */
function randomRun(roll: (sides: number) => number): string[] {
  const some = <T>(...list: readonly T[]): T => list[roll(list.length)] as T;
  const { stats, pass } = runOf();
  const days = some(
    [],
    [["2026-01-02", "2026-01-03", null, "missing"]],
    [["2026-01-02", "2026-01-03", 4, "again"]],
  );
  const state = { days, ...some({}, { discoveredAt: "2026-02-01T00:00:00.000Z" }, { discoveredAt: null }) };
  const report: StreamReport = {
    ...{
      windows: roll(3),
      passes: some(null, 2),
      missing_days: some([], ["2026-01-01"], ["2026-01-01", "2026-01-02"]),
    },
    ...{ recheck: some([], [["2026-01-01", "2026-01-09"] as const]), time_limit_reached: roll(2) === 0 },
    saved_up_to: some(null, "2026-02-02T00:00:00Z"),
  };
  const event = (stream: string): Event =>
    some<Event>(
      { kind: "open", stream, ...some({}, { before: { a: 1 } }) },
      { kind: "estimate", stream, rows: roll(3_000) },
      { ...records(stream, ...Array.from({ length: roll(4) }, (_, id) => ({ id }))) },
      { ...records(stream), facts: { ...NO_FACTS, held: roll(2_000) } } as Event,
      {
        kind: "checkpoint",
        stream,
        state,
        ...some({}, { windows: roll(9) }, { spent: { submissions: 2, credits: 7 } }),
      },
      { kind: "checkpoint", stream, state, windows: roll(1_200) },
      { kind: "close", stream, complete: roll(2) === 0, ...some({}, { error: new TransientError("Down") }) },
      { kind: "close", stream, complete: true, report },
      { kind: "failed", error: some(new TransientError("Away"), new Error("A bug")) },
      { kind: "log", level: "info", text: `end of ${stream}`, ...some({}, { endOf: stream }) },
      { kind: "limited", until: 7 },
      { kind: "retrying", what: "count", reason: "down", attempt: 2, attempts: 5, waitMs: 1 },
      { kind: "end" },
    );
  const said: string[] = [];
  const begun = ["people"];
  stats.note({ kind: "open", stream: "people" });
  for (let left = 3 + roll(9); left > 0; left--) {
    const one = event(some("people", begun.at(-1) ?? "", "sources", "companies"));
    stats.note(one);
    if (one.kind === "open") begun.push(one.stream);
    if (one.kind === "checkpoint" && roll(3) > 0) stats.noteSaved(one.stream, one.state);
    if (roll(4) === 0) stats.notePublished(some(...begun, "nobody"), roll(3) * 600, roll(2_000));
    pass(some(0.001, 1, 7, 60, 3_000));
    const { current } = stats;
    said.push(
      JSON.stringify([current, stats.waiting, stats.failures.map(String), current && metricsOf(current, 9)]),
    );
    if (roll(3) === 0) said.push(stats.takeEndings().join());
  }
  const summary = {
    ...stats.summary(roll(3) === 0, some(null, "state.json")),
    ...some({}, {}, { sample: 2 }),
  };
  const texts = [savedText(summary, true), savedText(summary, false), runText(summary), summaryText(summary)];
  return [...said, JSON.stringify(summary), ...texts];
}

/** `TOLD="runs of 3" npx vitest run test/unit/run/summary.test.ts` prints what is told of the runs of a line. */
it("tells of a run, while it lasts and at its end, what these lines sum up", async () => {
  const sums = await sumsOf("runs", [8, 25], randomRun, (said) =>
    ["complete", "incomplete", "failed", "interrupted"]
      .map((end) => `${said.filter((line) => line.startsWith(`Run ${end}`)).length} ${end}`)
      .join(", "),
  );
  await expect(sums).toMatchFileSnapshot("../../golden/summary-sums.txt");
});
