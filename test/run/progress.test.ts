import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { noUsage } from "../../src/api/usage.ts";
import { openDisplay, progressLog, progressText } from "../../src/run/progress.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import { RunStats } from "../../src/run/stats.ts";
import type { Event } from "../../src/streams/event.ts";
import { checkpoint, close, open, records } from "../support/events.ts";
import { testProcess } from "../support/terminal.ts";

const rows = (count: number): readonly unknown[] => Array.from({ length: count }, (_, id) => ({ id }));
const refused: Event = {
  kind: "retrying",
  what: "count people",
  reason: "the connection was refused",
  attempt: 2,
  attempts: 5,
  waitMs: 900,
};

describe("openDisplay()", () => {
  const pipe = (): Runtime["stdout"] => new PassThrough();

  it("draws only on a terminal that can draw over a line and takes no records", async () => {
    const isOpen = async (changes: Partial<Runtime>, files = false): Promise<boolean> => {
      const display = await openDisplay(
        new RunStats({ now: () => 0, monotonic: () => 0 }),
        testProcess(changes),
        files,
      );
      display?.stop();
      return display !== undefined;
    };
    expect(await isOpen({ stdout: pipe() })).toBe(true);
    expect(await isOpen({})).toBe(false);
    expect(await isOpen({}, true)).toBe(true);
    expect(await isOpen({ stdout: pipe(), stderr: pipe() })).toBe(false);
    for (const environment of [{ TERM: "dumb" }, { CI: "true" }])
      expect(await isOpen({ stdout: pipe(), environment }), JSON.stringify(environment)).toBe(false);
  });
});

describe("progressText()", () => {
  it("shows rows and windows at once, and guesses nothing before rows have come for three seconds", () => {
    let now = 0;
    const stats = new RunStats({ now: () => 0, monotonic: () => now });
    expect(progressText(stats)).toBe("connecting");
    stats.note(open("people"));
    expect(progressText(stats)).toBe("people: 0 rows");
    stats.note({ kind: "estimate", stream: "people", rows: 3000 });
    now = 10_000;
    stats.note(records("people", ...rows(1500)));
    stats.note({ ...checkpoint("people", {}), windows: 1 } as Event);
    now = 12_000;
    expect(progressText(stats)).toBe("people: 1,500 of about 3,000 rows, 1 window done");
    now = 13_000;
    expect(progressText(stats)).toBe(
      "people: 1,500 of about 3,000 rows, 500 rows/s, 1 of about 2 windows done, about 3.0 s left",
    );
  });

  it("says what the run waits for, until records come", () => {
    const stats = new RunStats({ now: () => 0, monotonic: () => 0 });
    stats.note(refused);
    expect(progressText(stats)).toBe("try 2 of 5: the connection was refused");
    stats.note(open("people"));
    stats.note({ kind: "limited", until: Date.UTC(2026, 0, 2, 3, 4, 5) });
    expect(progressText(stats)).toBe(
      "people: 0 rows, waiting for the rate limit until 2026-01-02T03:04:05.000Z",
    );
    stats.note(records("people", { id: 1 }));
    expect(progressText(stats)).toBe("people: 1 row");
  });
});

describe("progressLog()", () => {
  it("counts what the stream that is being read took so far, and only that", () => {
    let now = 0;
    let requests = 3;
    const stats = new RunStats({ now: () => 0, monotonic: () => now });
    stats.measure(() => ({ ...noUsage(), requests }));
    expect(progressLog(stats)).toBeUndefined();
    stats.note(open("people"));
    stats.note({ kind: "estimate", stream: "people", rows: 2_000_003 });
    stats.note(records("people", ...rows(1200)));
    stats.note({ ...checkpoint("people", {}), windows: 1 } as Event);
    requests = 9;
    now = 30_000;
    stats.note(refused);
    expect(progressLog(stats)).toBe(
      'Stream "people": 1,200 of about 2,000,003 rows, 1 window, 6 requests, 30 s, try 2 of 5: the connection was refused',
    );
    stats.note(close("people"));
    expect(progressLog(stats)).toBeUndefined();
  });
});
