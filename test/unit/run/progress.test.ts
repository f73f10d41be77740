import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { leftOf, openDisplay, progressLog, progressText } from "../../../src/run/progress.ts";
import type { Runtime } from "../../../src/run/runtime.ts";
import type { Event } from "../../../src/streams/event.ts";
import { checkpoint, close, open, records } from "../../support/events.ts";
import { runOf } from "../../support/run-stats.ts";
import { Terminal, testProcess } from "../../support/terminal.ts";

const rows = (count: number): Event =>
  records("people", ...Array.from({ length: count }, (_, id) => ({ id })));
const estimate = (count: number): Event => ({ kind: "estimate", stream: "people", rows: count });
const ONE_WINDOW = { ...checkpoint("people", {}), windows: 1 } as Event;
const REFUSED: Event = {
  ...{ kind: "retrying", what: "count people", reason: "the connection was refused" },
  ...{ attempt: 2, attempts: 5, waitMs: 900 },
};

describe("openDisplay()", () => {
  const stdout = new PassThrough();
  const stderr = new PassThrough();

  it.each<[boolean, Partial<Runtime>, boolean]>([
    [true, { stdout }, false],
    [false, {}, false],
    [true, {}, true],
    [false, { stdout, stderr }, false],
    [false, { stdout, environment: { TERM: "dumb" } }, false],
    [false, { stdout, environment: { CI: "true" } }, false],
  ])(
    "draws (%s) only on a terminal that can draw over a line and takes no records",
    async (isOpen, changes, files) => {
      const display = await openDisplay(runOf().stats, testProcess(changes), files);
      display?.stop();
      expect(display !== undefined).toBe(isOpen);
    },
  );
});

describe("Display.show()", () => {
  it("draws at most ten times a second, and nothing after it was stopped", async () => {
    const { stats } = runOf();
    const [stdout, stderr] = [new PassThrough(), new Terminal()];
    let now = 5_000;
    const clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };
    const display = await openDisplay(stats, testProcess({ stdout, stderr, clock }), true);
    const drawn: boolean[] = [];
    for (const [at, name] of [
      [5_000, "one"],
      [5_099, "two"],
      [5_100, "three"],
      [5_150, "four"],
    ] as const) {
      now = at;
      stats.note(open(name));
      stderr.text = "";
      display?.show();
      drawn.push(stderr.text.includes(`${name}: 0 rows`));
    }
    display?.stop();
    expect(drawn).toEqual([true, false, true, false]);
  });
});

describe("leftOf()", () => {
  it.each([
    [{ rows: 10, expected_rows: null }, 5, ""],
    [{ rows: 10, expected_rows: 20 }, 0, ""],
    [{ rows: 10, expected_rows: 20 }, 10, "about 1.0 s left"],
    [{ rows: 11, expected_rows: 20 }, 10, ""],
    [{ rows: 30, expected_rows: 20 }, 1, ""],
    [{ rows: 0, expected_rows: 36_000 }, 2, "about 5 h left"],
  ])("of %j at %i rows a second is %j", (current, rate, text) => {
    expect(leftOf(current, rate)).toBe(text);
  });
});

describe("progressText()", () => {
  it.each([
    ["no rows are expected", [rows(30)], "people: 30 rows, 10 rows/s, 2 windows done"],
    [
      "more came than were expected",
      [estimate(30), rows(30)],
      "people: 30 of about 30 rows, 10 rows/s, 2 windows done",
    ],
    [
      "a few are left",
      [estimate(31), rows(30)],
      "people: 30 of about 31 rows, 10 rows/s, 2 of about 3 windows done",
    ],
    [
      "many are left",
      [estimate(75), rows(30)],
      "people: 30 of about 75 rows, 10 rows/s, 2 of about 5 windows done, about 4.5 s left",
    ],
  ])("counts windows where %s", (_what, events, text) => {
    const { stats, pass } = runOf();
    stats.note(open("people"));
    for (const event of [...events, { ...ONE_WINDOW, windows: 2 } as Event]) stats.note(event);
    pass(3);
    expect(progressText(stats)).toBe(text);
  });

  it("shows rows and windows at once, and guesses nothing before rows have come for three seconds", () => {
    const { stats, pass } = runOf();
    expect(progressText(stats)).toBe("connecting");
    stats.note(open("people"));
    expect(progressText(stats)).toBe("people: 0 rows");
    stats.note(estimate(6000));
    pass(10);
    stats.note(rows(1500));
    stats.note(ONE_WINDOW);
    pass(2);
    expect(progressText(stats)).toBe("people: 1,500 of about 6,000 rows, 1 window done");
    pass(1);
    expect(progressText(stats)).toBe(
      "people: 1,500 of about 6,000 rows, 500 rows/s, 1 of about 4 windows done, about 9.0 s left",
    );
    stats.note(rows(4400));
    expect(progressText(stats)).toContain("5,900 of about 6,000 rows");
    expect(progressText(stats)).toContain("1 of about 2 windows done");
  });

  it("says what the run waits for, until records come", () => {
    const { stats } = runOf();
    stats.note(REFUSED);
    expect(progressText(stats)).toBe("try 2 of 5: the connection was refused");
    stats.note(open("people"));
    stats.note({ kind: "limited", until: Date.UTC(2026, 0, 2, 3, 4, 5) });
    expect(progressText(stats)).toBe(
      "people: 0 rows, waiting for the rate limit until 2026-01-02T03:04:05.000Z",
    );
    stats.note(rows(1));
    expect(progressText(stats)).toBe("people: 1 row");
  });
});

describe("progressLog()", () => {
  it("counts what the stream that is being read took so far, and only that", () => {
    const { stats, pass } = runOf();
    pass(5);
    expect(progressLog(stats)).toBeUndefined();
    for (const event of [open("people"), estimate(2_000_003), rows(1200), ONE_WINDOW]) stats.note(event);
    pass(30);
    expect(progressLog(stats)).toBe(
      'Stream "people": 1,200 of about 2,000,003 rows, 1 window, 60 requests, 30 s',
    );
    stats.note(REFUSED);
    expect(progressLog(stats)).toBe(
      'Stream "people": 1,200 of about 2,000,003 rows, 1 window, 60 requests, 30 s, try 2 of 5: the connection was refused',
    );
    stats.note(close("people"));
    expect(progressLog(stats)).toBeUndefined();
    stats.note(open("sources"));
    expect(progressLog(stats)).toBe(
      'Stream "sources": 0 rows, 0 requests, 0.0 s, try 2 of 5: the connection was refused',
    );
  });
});
