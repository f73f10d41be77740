import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bounds, Frontier, type Progress } from "../../src/sync/frontier.ts";
import { closedReading, lostReading, NOTHING_READ } from "../../src/sync/reading.ts";
import { addDays, type Day, endOf, type Window } from "../../src/sync/window.ts";

const FIRST = "2026-01-01" as Day;
const LATEST = "2026-03-20T10:00:00.000Z";
const day = (offset: number): Day => addDays(FIRST, offset);
const closed = (from: number, to = from): Extract<Window, { kind: "closed" }> => ({
  kind: "closed",
  from: day(from),
  to: day(to),
});
const OPEN: Window = { kind: "open", from: "2026-03-19" as Day, undated: false };
const WHOLE: Window = { kind: "open", from: "1970-01-01" as Day, undated: true };

const NONE: Progress = { discoveredAt: null, missing: [], from: null, undated: "pending", gap: null };

const frontier = (resume: Partial<Progress> = {}, bounds: Partial<Bounds> = {}): Frontier =>
  new Frontier(
    { ...NONE, ...resume },
    { start: null, rangeFrom: FIRST, latest: LATEST, ignored: new Set(), ...bounds },
  );

describe("Frontier", () => {
  it("passes only what the contiguous prefix has ended, in whatever order windows end", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 8 }), (order) => {
        const front = frontier();
        const ended = new Set<number>();
        for (const index of order) {
          ended.add(index);
          const progress = front.close(index, "range", closed(index), closedReading());
          let prefix = 0;
          while (ended.has(prefix)) prefix += 1;
          expect(front.progress.discoveredAt).toBe(prefix === 0 ? null : endOf(day(prefix - 1)));
          expect(progress !== undefined).toBe(index < prefix);
        }
      }),
    );
  });

  it("keeps days that could not be closed, and drops those of the state that were", () => {
    const front = frontier({ discoveredAt: endOf(day(9)), missing: [day(2), day(4)] }, { rangeFrom: day(9) });
    front.close(0, "missing", closed(2), closedReading());
    expect(front.progress.missing).toEqual([day(4)]);
    front.close(1, "missing", closed(4), lostReading(closed(4), "cause"));
    expect(front.progress.missing).toEqual([day(4)]);
    front.close(2, "range", closed(9, 12), lostReading(closed(10), "cause"));
    expect(front.progress).toMatchObject({ missing: [day(4), day(10)], discoveredAt: endOf(day(12)) });
  });

  it("drops missing days that lie in the range, even those that the planner skipped as empty", () => {
    const front = frontier(
      { discoveredAt: endOf(day(20)), missing: [day(3), day(5), day(8), day(14)] },
      { rangeFrom: day(4) },
    );
    front.close(0, "range", closed(7, 9), closedReading());
    expect(front.progress.missing).toEqual([day(3), day(14)]);
    front.close(1, "range", closed(10, 12), lostReading(closed(11), "cause"));
    expect(front.progress.missing).toEqual([day(3), day(11), day(14)]);
    expect(front.finish(endOf(day(15)), true).missing).toEqual([day(3), day(11)]);
  });

  it("forgets days that it is told to ignore", () => {
    const front = frontier({}, { ignored: new Set([day(1)]) });
    front.close(0, "range", closed(1), lostReading(closed(1), "cause"));
    expect(front.progress).toMatchObject({ missing: [], discoveredAt: endOf(day(1)) });
  });

  it("throws at the third lost day in a row, over any borders of windows, and no sooner", () => {
    const lost = lostReading(closed(0), "cause");
    const front = frontier();
    front.close(0, "range", closed(0), lost);
    front.close(1, "range", closed(1), lost);
    front.close(2, "range", closed(2), closedReading());
    front.close(3, "range", closed(3), lost);
    front.close(4, "range", closed(4), NOTHING_READ);
    front.close(5, "range", closed(5), lost);
    expect(() => front.close(6, "range", closed(6), lost)).toThrow("3 days in a row");
  });

  it("does not hold days of earlier runs against the service", () => {
    const missing = [day(1), day(2), day(3), day(4)];
    const front = frontier({ missing }, { rangeFrom: day(9) });
    missing.forEach((one, index) => {
      front.close(index, "missing", closed(index + 1), lostReading(closed(index + 1), one));
    });
    expect(front.progress.missing).toEqual(missing);
  });

  it("never goes backwards and never past its latest moment", () => {
    const front = frontier({ discoveredAt: "2026-03-18T00:00:00Z" });
    front.close(0, "range", closed(1, 5), closedReading());
    expect(front.progress.discoveredAt).toBe("2026-03-18T00:00:00Z");
    front.close(1, "range", OPEN, closedReading("2026-03-21T00:00:00Z"));
    expect(front.progress.discoveredAt).toBe(LATEST);
  });

  it.each([
    ["2026-03-20T09:00:00.123456Z", "2026-03-20T09:00:00.123456Z"],
    ["2026-03-20T10:00:00+02:00", "2026-03-20T08:00:00.000Z"],
    ["2026-03-20 09:00:00", "2026-03-20T09:00:00.000Z"],
    ["2026-03-19T23:59:60Z", "2026-03-20T00:00:00.000Z"],
  ])("writes a newest row of %s as %s", (newest, written) => {
    const front = frontier();
    front.close(0, "range", OPEN, closedReading(newest));
    expect(front.progress.discoveredAt).toBe(written);
  });

  it("counts days before yesterday as done when an open window shows nothing", () => {
    const front = frontier();
    front.close(0, "range", OPEN, closedReading());
    expect(front.progress.discoveredAt).toBe("2026-03-18T23:59:59.999Z");
  });

  it("has the undated once their window, or one that brings them, has closed", () => {
    const own = frontier();
    own.close(0, "range", { kind: "undated" }, closedReading());
    expect(own.progress).toMatchObject({ undated: "done", discoveredAt: null });
    const whole = frontier();
    whole.close(0, "range", WHOLE, closedReading("2026-03-20T09:00:00Z"));
    expect(whole.progress.undated).toBe("done");
  });

  it("has the undated still to come while they are missing", () => {
    const missing = { ...NOTHING_READ, missing: [{ kind: "undated" } as const] };
    const own = frontier();
    own.close(0, "range", { kind: "undated" }, missing);
    expect(own.progress.undated).toBe("pending");
    const whole = frontier();
    whole.close(0, "range", WHOLE, { ...missing, closed: true });
    expect(whole.progress.undated).toBe("pending");
  });

  it("remembers how far a gap has come, and closes it with the range", () => {
    const front = frontier(
      { discoveredAt: "2026-03-01T00:00:00Z", from: day(30) },
      { start: FIRST, rangeFrom: day(58) },
    );
    front.close(0, "gap", closed(0, 9), closedReading());
    expect(front.progress).toMatchObject({ from: day(30), gap: { from: FIRST, to: day(9) } });
    front.close(1, "gap", closed(10, 29), closedReading());
    front.close(2, "range", OPEN, closedReading());
    expect(front.progress).toMatchObject({ from: FIRST, gap: null, discoveredAt: "2026-03-01T00:00:00Z" });
  });

  it("leaves a gap open that the run could not read whole", () => {
    const front = frontier({ discoveredAt: "2026-03-01T00:00:00Z", from: day(30) }, { start: FIRST });
    front.close(0, "gap", closed(0, 9), closedReading());
    expect(front.finish(undefined, false)).toMatchObject({ from: day(30), gap: { from: FIRST, to: day(9) } });
  });
});
