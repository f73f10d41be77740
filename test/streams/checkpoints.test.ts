import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Checkpoints } from "../../src/streams/checkpoints.ts";
import { type DatedState, NEW_STATE } from "../../src/streams/dated-state.ts";
import type { Event } from "../../src/streams/event.ts";
import type { Range } from "../../src/streams/range.ts";
import type { Window } from "../../src/streams/window.ts";
import type { Outcome, Planned, Purpose, WindowResult } from "../../src/streams/window-result.ts";
import { addDays, BEGINNING, type Day, endOf } from "../../src/time.ts";

const FIRST = "2026-01-01" as Day;
const YESTERDAY = "2026-03-19" as Day;
const ASKED = Date.parse("2026-03-20T10:00:00Z");
const LATEST = "2026-03-20T10:00:00.000Z";
const day = (offset: number): Day => addDays(FIRST, offset);
const closed = (from: number, to = from): Extract<Window, { kind: "closed" }> => ({
  ...{ kind: "closed", from: day(from), to: day(to) },
});
const OPEN: Window = { kind: "open", from: YESTERDAY, undated: false };
const WHOLE: Window = { kind: "open", from: BEGINNING, undated: true };
const UNDATED: Window = { kind: "undated" };

/** Drives checkpoints as a run does. */
class Run {
  readonly checkpoints: Checkpoints;
  #next = 0;

  constructor(state: Partial<DatedState> = {}, range: Partial<Range> = {}, ignored: readonly Day[] = []) {
    const whole: Range = {
      ...{ kind: "days", state: { ...NEW_STATE, ...state }, yesterday: YESTERDAY },
      count: { rows: 9, undated: 0, known: true, asked: ASKED, answered: ASKED },
      ...{ window: { kind: "open", from: FIRST, undated: false }, start: null, gap: undefined },
      ...{ isGapWhole: true, missingDays: [], recheck: [], undated: "pending", latest: LATEST },
      ...{ reached: undefined, until: Number.POSITIVE_INFINITY },
      ...range,
    };
    this.checkpoints = new Checkpoints("people", whole, ignored);
  }

  get state(): DatedState {
    return this.checkpoints.state;
  }

  finishAt(index: number, window: Window, result: WindowResult, purpose: Purpose = "range"): Event[] {
    const planned: Planned = { window, purpose };
    return [...this.checkpoints.finish(index, planned, result)];
  }

  finish(window: Window, outcome: Partial<Outcome> | null = {}, purpose: Purpose = "range"): Event[] {
    const result = outcome === null ? [] : [{ window, kind: "proven" as const, ...outcome }];
    return this.finishAt(this.#next++, window, result, purpose);
  }

  close(isTimeUp = false): Event[] {
    return [...this.checkpoints.close({ isTimeUp, passes: 0, rows: 0, now: 0 })];
  }
}

describe("Checkpoints", () => {
  it("passes only what the contiguous prefix has ended, in whatever order windows end", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 8 }), (order) => {
        const run = new Run();
        const ended = new Set<number>();
        for (const index of order) {
          ended.add(index);
          const window = closed(index);
          const events = run.finishAt(index, window, [{ window, kind: "proven" }]);
          let prefix = 0;
          while (ended.has(prefix)) prefix += 1;
          expect(run.state.discoveredAt).toBe(prefix === 0 ? null : endOf(day(prefix - 1)));
          expect(events.length).toBe(index < prefix ? 1 : 0);
          if (events[0]?.kind === "checkpoint") expect(events[0].windows).toBe(prefix);
        }
      }),
    );
  });

  it("follows every window with a checkpoint, although the state says nothing new", () => {
    const run = new Run({ discoveredAt: "2026-03-20T09:00:00Z", undated: "done", undated_checked: null });
    const kinds = (events: readonly Event[]): string[] => events.map(({ kind }) => kind);
    expect(kinds(run.finish(UNDATED, { undatedRows: 3 }))).toEqual(["checkpoint"]);
    const newest = "2026-03-20T09:00:00Z";
    expect(kinds(run.finish(OPEN, { newest }))).toEqual(["checkpoint"]);
    expect(kinds(run.close())).toEqual(["close"]);
  });

  it("keeps days that could not be proven, and drops those of the state that were", () => {
    const run = new Run(
      { discoveredAt: endOf(day(9)), missing_days: [day(2), day(4)] },
      { window: { kind: "open", from: day(9), undated: false } },
    );
    run.finish(closed(2), {}, "missing");
    expect(run.state.missing_days).toEqual([day(4)]);
    run.finish(closed(4), { kind: "missing", cause: "cause" }, "missing");
    expect(run.state.missing_days).toEqual([day(4)]);
    run.finish(closed(9, 12), { window: closed(10), kind: "missing", cause: "cause" });
    expect(run.state).toMatchObject({ missing_days: [day(4), day(10)], discoveredAt: endOf(day(12)) });
    expect(run.close().at(-1)).toMatchObject({
      ...{ kind: "close", complete: false, error: { cause: "cause" } },
      report: { missingDays: [day(4), day(10)] },
    });
  });

  it("drops missing days and rechecks that lie in the range, even where the planner skipped days as empty", () => {
    const run = new Run(
      {
        discoveredAt: endOf(day(20)),
        missing_days: [day(3), day(5), day(8), day(14)],
        recheck: [
          [day(2), day(5)],
          [day(14), day(14)],
        ],
      },
      { window: closed(4, 15), reached: endOf(day(15)) },
    );
    run.finish(closed(7, 9));
    expect(run.state).toMatchObject({
      missing_days: [day(3), day(14)],
      recheck: [
        [day(2), day(3)],
        [day(14), day(14)],
      ],
    });
    run.finish(closed(10, 12), { window: closed(11), kind: "missing" });
    expect(run.state.missing_days).toEqual([day(3), day(11), day(14)]);
    run.close();
    expect(run.state).toMatchObject({ missing_days: [day(3), day(11)], recheck: [[day(2), day(3)]] });
  });

  it("does not move past windows that the time limit kept from being read", () => {
    const run = new Run({}, { window: closed(0, 15), reached: endOf(day(15)) });
    run.finish(closed(0, 3));
    const events = run.close(true);
    expect(run.state.discoveredAt).toBe(endOf(day(3)));
    expect(events.at(-1)).toMatchObject({
      complete: true,
      report: { timeLimit: { reached: true, expectedRows: 9, savedUpTo: endOf(day(3)) } },
    });
  });

  it("leaves a gap open that the time limit kept from being read", () => {
    const run = new Run({ discoveredAt: "2026-03-01T00:00:00Z", from: day(30) }, { start: FIRST });
    run.finish(closed(0, 9), {}, "gap");
    run.close(true);
    expect(run.state).toMatchObject({ from: day(30), gap: { from: FIRST, to: day(9) } });
  });

  it("writes the end of its range, and that a refresh is done, at the end", () => {
    const full_refresh = { generation_id: 1, sync_id: 2, done: false };
    const run = new Run({ full_refresh }, { window: closed(0, 5), reached: endOf(day(5)) });
    expect(run.close()).toMatchObject([
      {
        kind: "checkpoint",
        state: { discoveredAt: endOf(day(5)), full_refresh: { ...full_refresh, done: true } },
      },
      { kind: "close", complete: true },
    ]);
  });

  it("never says that a refresh with a missing day is done", () => {
    const full_refresh = { generation_id: 1, sync_id: 2, done: false };
    const run = new Run({ full_refresh });
    run.finish(closed(0), { kind: "missing" });
    run.close();
    expect(run.state.full_refresh?.done).toBe(false);
  });

  it.each([
    [[day(0)], `Cannot prove the day ${day(0)} of "people" complete`],
    [[day(0), day(1)], `Cannot prove the days ${day(0)}, ${day(1)} of "people" complete`],
  ])("names the days that are missing, and the way out: %j", (days, text) => {
    const run = new Run();
    for (const [nth] of days.entries()) run.finish(closed(nth), { kind: "missing", cause: new Error("why") });
    const closing = run.close().at(-1);
    const error = closing?.kind === "close" ? (closing.error as Error) : undefined;
    expect(error?.message).toContain(text);
    expect(error?.message).toContain("ignore_missing_days");
    expect(error?.cause).toMatchObject({ message: "why" });
  });

  it("notes ranges that drained, and is complete with them", () => {
    const run = new Run();
    run.finish(closed(0, 4), { kind: "draining" });
    run.finish(closed(5, 9));
    run.finish(OPEN);
    const events = run.close();
    expect(run.state).toMatchObject({ recheck: [[day(0), day(4)]], missing_days: [] });
    expect(events.at(-1)).toMatchObject({ complete: true, report: { recheck: [[day(0), day(4)]] } });
    expect(events.at(-2)).toMatchObject({ kind: "log", text: expect.stringContaining("1 range of days") });
  });

  it("makes a missing day that drains one to check again, and drops a range that was checked", () => {
    const run = new Run(
      { missing_days: [day(1)], recheck: [[day(3), day(5)]] },
      { window: { kind: "open", from: day(20), undated: false } },
    );
    run.finish(closed(1), { kind: "draining" }, "missing");
    expect(run.state).toMatchObject({
      missing_days: [],
      recheck: [
        [day(1), day(1)],
        [day(3), day(5)],
      ],
    });
    run.finish(closed(3, 5), {}, "recheck");
    expect(run.state.recheck).toEqual([[day(1), day(1)]]);
  });

  it("forgets days that it is told to ignore", () => {
    const run = new Run({}, {}, [day(1)]);
    run.finish(closed(1), { kind: "missing", cause: "cause" });
    expect(run.state).toMatchObject({ missing_days: [], discoveredAt: endOf(day(1)) });
  });

  it("throws at the third missing day in a row, over any borders of windows, and no sooner", () => {
    const run = new Run();
    run.finish(closed(0), { kind: "missing" });
    run.finish(closed(1), { kind: "missing" });
    run.finish(closed(2));
    run.finish(closed(3), { kind: "missing" });
    run.finish(closed(4), null);
    run.finish(closed(5), { kind: "ignored" });
    run.finish(closed(6), { kind: "missing" });
    expect(() => run.finish(closed(7), { kind: "missing" })).toThrow("3 days in a row");
    expect(run.state.discoveredAt).toBe(endOf(day(6)));
  });

  it("does not hold days of earlier runs against the service", () => {
    const missing_days = [day(1), day(2), day(3), day(4)];
    const run = new Run({ missing_days }, { window: { kind: "open", from: day(9), undated: false } });
    for (let nth = 1; nth <= 4; nth++) run.finish(closed(nth), { kind: "missing" }, "missing");
    expect(run.state.missing_days).toEqual(missing_days);
  });

  it("never goes backwards and never past its latest moment", () => {
    const run = new Run({ discoveredAt: "2026-03-18T00:00:00Z" });
    run.finish(closed(1, 5));
    expect(run.state.discoveredAt).toBe("2026-03-18T00:00:00Z");
    run.finish(OPEN, { newest: "2026-03-21T00:00:00Z" });
    expect(run.state.discoveredAt).toBe(LATEST);
  });

  it("never passes the end_date", () => {
    const run = new Run({}, { latest: endOf(YESTERDAY) });
    run.finish(OPEN, { newest: "2026-03-20T09:00:00Z" });
    expect(run.state.discoveredAt).toBe(endOf(YESTERDAY));
  });

  it("counts days before yesterday as done when an open window shows nothing", () => {
    const run = new Run();
    run.finish(OPEN);
    expect(run.state.discoveredAt).toBe("2026-03-18T23:59:59.999Z");
  });

  it.each([
    ["their own window", UNDATED],
    ["one that brings them", WHOLE],
  ])("has the people without a date after %s", (_, window) => {
    const run = new Run();
    run.finish(window, { undatedRows: 7 });
    expect(run.state).toMatchObject({ undated: "done", undated_rows: 7, undated_checked: "2026-03-20" });
  });

  it("has them still to come, and is not complete, while they are missing", () => {
    const run = new Run({ undated: "done" }, { undated: 3 });
    run.finish(UNDATED, { kind: "missing", cause: "cause" });
    run.finish(OPEN);
    expect(run.close().at(-1)).toMatchObject({ complete: false });
    expect(run.state.undated).toBe("pending");
  });

  it("remembers how far a gap has come, and closes it with the range", () => {
    const run = new Run(
      { discoveredAt: "2026-03-01T00:00:00Z", from: day(30) },
      { start: FIRST, window: { kind: "open", from: day(58), undated: false } },
    );
    run.finish(closed(0, 9), {}, "gap");
    expect(run.state).toMatchObject({ from: day(30), gap: { from: FIRST, to: day(9) } });
    run.finish(closed(10, 29), {}, "gap");
    run.finish(OPEN);
    expect(run.state).toMatchObject({ from: FIRST, gap: null, discoveredAt: "2026-03-01T00:00:00Z" });
  });

  it("leaves a gap open that the run's end_date did not let it read", () => {
    const run = new Run(
      { discoveredAt: "2026-03-01T00:00:00Z", from: day(30) },
      { start: FIRST, isGapWhole: false },
    );
    run.finish(closed(0, 9), {}, "gap");
    run.close();
    expect(run.state).toMatchObject({ from: day(30), gap: { from: FIRST, to: day(9) } });
  });
});
