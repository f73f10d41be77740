import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { openDisplay, progressLog, progressText } from "../../src/run/progress.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import type { Event } from "../../src/streams/event.ts";
import { checkpoint, close, open, records } from "../support/events.ts";
import { runOf } from "../support/run-stats.ts";
import { testProcess } from "../support/terminal.ts";

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

describe("progressText()", () => {
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
    stats.note(REFUSED);
    expect(progressLog(stats)).toBe(
      'Stream "people": 1,200 of about 2,000,003 rows, 1 window, 60 requests, 30 s, try 2 of 5: the connection was refused',
    );
    stats.note(close("people"));
    expect(progressLog(stats)).toBeUndefined();
  });
});
