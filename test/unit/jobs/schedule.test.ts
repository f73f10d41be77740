import { describe, expect, it } from "vitest";
import { newSub, type Sub, UNBOUGHT } from "../../../src/jobs/lattice.ts";
import { dueAt, nextAt, nextPolls } from "../../../src/jobs/schedule.ts";
import type { Day } from "../../../src/time.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const AT = Date.parse("2026-03-02T10:00:00Z");

const sub = (fields: Partial<Sub>): Sub => ({ ...newSub("r.0", AT, "2026-03-02" as Day, "s"), ...fields });

describe("dueAt()", () => {
  it("is at once for a job that nothing is said of", () => {
    expect(dueAt(sub({}))).toBe(Number.NEGATIVE_INFINITY);
  });

  it("is for an item when the first of its jobs is", () => {
    const subs = { a: sub({ step: "open", notBefore: AT + HOUR }), b: sub({ step: "open", notBefore: AT }) };
    const rules = { refreshAfterDays: null, retryUnknown: false };
    expect(nextAt({ ...UNBOUGHT, subs }, rules)).toBe(AT);
    expect(nextAt({ ...UNBOUGHT, subs: { a: sub({}) } }, rules)).toBe(Number.POSITIVE_INFINITY);
  });

  it("is when the service says, but within a day of the last question", () => {
    expect(dueAt(sub({ notBefore: AT + HOUR }))).toBe(AT + HOUR);
    expect(dueAt(sub({ notBefore: AT + 9 * DAY }))).toBe(AT + DAY);
    expect(dueAt(sub({ notBefore: AT + 9 * DAY, asked: AT + HOUR }))).toBe(AT + HOUR + DAY);
  });

  it.each([
    [1, 0, HOUR],
    [2, 0, DAY],
    [3, 90 * DAY, 7 * DAY],
    [3, 90 * DAY + 1, 30 * DAY],
  ])(
    "after %i questions in vain, %i ms after the submission, is %i ms after the last",
    (misses, age, wait) => {
      expect(dueAt(sub({ misses, asked: AT + age, notBefore: AT }))).toBe(AT + age + wait);
    },
  );
});

describe("nextPolls()", () => {
  const POLLING = { first: 5_000, longest: 60_000, total: 300_000 };

  it("makes each pause half as long again up to the longest, and ends with the last poll at the end of the total", () => {
    const waits: number[] = [];
    let now = AT;
    for (let polls = nextPolls(undefined, null, POLLING, AT); polls.next !== null; ) {
      waits.push((polls.next - now) / 1_000);
      now = polls.next;
      polls = nextPolls(polls, null, POLLING, now);
    }
    const pauses = [5, 7.5, 11.25, 16.875, 25.312_5, 37.968_75, 56.953_125, 60, 60];
    expect(waits).toEqual([...pauses, 300 - pauses.reduce((sum, pause) => sum + pause)]);
    expect(now).toBe(AT + POLLING.total);
  });

  it("begins no sooner than the quickest answer came, which no later pause depends on", () => {
    const polls = nextPolls(undefined, null, POLLING, AT, 45_000);
    expect(polls).toEqual({ next: AT + 45_000, pause: 5_000, until: AT + POLLING.total });
    expect(nextPolls(undefined, null, POLLING, AT, 1_000).next).toBe(AT + POLLING.first);
    expect(nextPolls(undefined, null, POLLING, AT, 250_000).next).toBe(AT + 60_000);
    expect(nextPolls(undefined, AT + 9_000, POLLING, AT, 65_000).next).toBe(AT + 9_000);
    expect(nextPolls(polls, null, POLLING, AT + 45_000, 45_000).next).toBe(AT + 52_500);
  });

  it("asks no more within a service's clock step of the end", () => {
    const polls = nextPolls(undefined, null, POLLING, AT);
    expect(nextPolls(polls, null, POLLING, polls.until - 2_000).next).toBeNull();
    expect(nextPolls(polls, null, POLLING, polls.until - 2_001).next).toBe(polls.until);
  });

  it("begins again at a moment that the service names, if it is to come", () => {
    const named = { next: AT + HOUR, pause: 5_000, until: AT + HOUR + 300_000 };
    expect(nextPolls(undefined, AT + HOUR, POLLING, AT)).toEqual(named);
    expect(nextPolls({ next: AT, pause: 40_000, until: AT }, AT + HOUR, POLLING, AT)).toEqual(named);
    expect(nextPolls(undefined, AT, POLLING, AT)).toEqual({
      next: AT + 5_000,
      pause: 5_000,
      until: AT + 300_000,
    });
    expect(nextPolls({ next: AT, pause: 5_000, until: AT + HOUR }, AT, POLLING, AT).pause).toBe(7_500);
  });

  it("keeps the pauses, and their end, where the service names a moment that is sooner, again and again", () => {
    const waits: number[] = [];
    let now = AT;
    for (let polls = nextPolls(undefined, AT + 1_000, POLLING, AT); polls.next !== null; ) {
      waits.push((polls.next - now) / 1_000);
      now = polls.next;
      polls = nextPolls(polls, now + 1_000, POLLING, now);
    }
    expect(waits.slice(0, 3)).toEqual([1, 7.5, 11.25]);
    expect(now).toBe(AT + 1_000 + POLLING.total);
  });
});
