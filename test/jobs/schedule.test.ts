import { describe, expect, it } from "vitest";
import { type Job, newJob } from "../../src/jobs/job.ts";
import { dueAt, firstPolls, isSlow, nextAt, nextPolls, retryAt, wantOf } from "../../src/jobs/schedule.ts";
import type { Day } from "../../src/time.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const AT = Date.parse("2026-03-02T10:00:00Z");
const ON = "2026-03-02" as Day;
const MIDNIGHT = Date.parse("2026-03-03T00:00:00Z");
const PLAIN = { refreshAfterDays: null, retryUnknown: false };

const job = (fields: Partial<Job>): Job => ({ ...newJob(AT, ON, []), ...fields });

describe("wantOf()", () => {
  it("wants what nothing is known of", () => {
    expect(wantOf(undefined, undefined, PLAIN, AT)).toBe("new");
  });

  it.each([
    ["open", PLAIN],
    ["answered", { refreshAfterDays: 1, retryUnknown: true }],
    ["unknown", PLAIN],
  ] as const)("never wants an item again that is %s", (step, wishes) => {
    expect(wantOf(job({ step }), undefined, wishes, AT + 1_000 * DAY)).toBeUndefined();
  });

  it("wants an unknown item again three times, if it is wished", () => {
    const wishes = { ...PLAIN, retryUnknown: true };
    const wants = [0, 1, 2, 3].map((unknowns) => wantOf(job({ unknowns }), undefined, wishes, AT));
    expect(wants).toEqual(["new", "new", "new", undefined]);
  });

  it("wants an answered item again so many days after the end of its day, if it is wished", () => {
    const wishes = { ...PLAIN, refreshAfterDays: 7 };
    expect(wantOf(undefined, ON, wishes, MIDNIGHT + 7 * DAY - 1)).toBeUndefined();
    expect(wantOf(undefined, ON, wishes, MIDNIGHT + 7 * DAY)).toBe("refresh");
    expect(wantOf(undefined, ON, PLAIN, MIDNIGHT + 1_000 * DAY)).toBeUndefined();
    expect(nextAt(undefined, ON, wishes)).toBe(MIDNIGHT + 7 * DAY);
    expect(nextAt(undefined, ON, PLAIN)).toBe(Number.POSITIVE_INFINITY);
    expect(nextAt(undefined, undefined, wishes)).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([
    [1, HOUR],
    [2, DAY],
    [3, 7 * DAY],
    [9, 7 * DAY],
  ])("wants an item whose job failed for the %ith time after %i ms", (tries, wait) => {
    const failed = job({ step: "failed", tries, ended: AT + HOUR });
    expect(wantOf(failed, undefined, PLAIN, AT + HOUR + wait - 1)).toBeUndefined();
    expect(wantOf(failed, undefined, PLAIN, AT + HOUR + wait)).toBe("new");
    expect(nextAt(failed, undefined, PLAIN)).toBe(AT + HOUR + wait);
    expect(retryAt({ ...failed, ended: null })).toBe(AT + wait);
  });

  it.each(["INSUFFICIENT_CREDITS", "QUOTA_EXCEEDED"])("wants an item at once that failed for %s", (code) => {
    expect(wantOf(job({ step: "failed", tries: 1, ended: AT, code }), undefined, PLAIN, AT)).toBe("new");
  });

  it("wants a refused item after thirty days, and a doubted one in the next run", () => {
    const refused = job({ step: "refused" });
    expect(wantOf(refused, undefined, PLAIN, AT + 30 * DAY - 1)).toBeUndefined();
    expect(wantOf(refused, undefined, PLAIN, AT + 30 * DAY)).toBe("new");
    expect(nextAt(refused, undefined, PLAIN)).toBe(AT + 30 * DAY);
    expect(wantOf(job({ step: "doubted" }), undefined, PLAIN, AT)).toBe("doubted");
  });
});

describe("dueAt()", () => {
  it("is at once for a job that nothing is said of", () => {
    expect(dueAt(job({ step: "open" }))).toBe(Number.NEGATIVE_INFINITY);
    expect(nextAt(job({ step: "open" }), undefined, PLAIN)).toBe(Number.NEGATIVE_INFINITY);
    expect(nextAt(job({ step: "answered" }), undefined, PLAIN)).toBe(Number.POSITIVE_INFINITY);
  });

  it("is when the service says, but within a day of the last question", () => {
    expect(dueAt(job({ notBefore: AT + HOUR }))).toBe(AT + HOUR);
    expect(dueAt(job({ notBefore: AT + 9 * DAY }))).toBe(AT + DAY);
    expect(dueAt(job({ notBefore: AT + 9 * DAY, asked: AT + HOUR }))).toBe(AT + HOUR + DAY);
  });

  it.each([
    [1, 0, HOUR],
    [2, 0, DAY],
    [3, 90 * DAY, 7 * DAY],
    [3, 90 * DAY + 1, 30 * DAY],
  ])(
    "after %i questions in vain, %i ms after the submission, is %i ms after the last",
    (misses, age, wait) => {
      expect(dueAt(job({ misses, asked: AT + age, notBefore: AT }))).toBe(AT + age + wait);
    },
  );
});

describe("isSlow()", () => {
  it("takes a job for slow two days after its submission", () => {
    expect(isSlow(job({}), AT + 2 * DAY - 1)).toBe(false);
    expect(isSlow(job({}), AT + 2 * DAY)).toBe(true);
  });
});

describe("nextPolls()", () => {
  const POLLING = { first: 5_000, longest: 60_000, total: 300_000 };

  it("doubles the pause up to the longest, and ends with the last poll at the end of the total", () => {
    const waits: number[] = [];
    let now = AT;
    for (let polls = firstPolls(null, POLLING, AT); polls.next !== null; ) {
      waits.push((polls.next - now) / 1_000);
      now = polls.next;
      polls = nextPolls(polls, null, POLLING, now);
    }
    expect(waits).toEqual([5, 10, 20, 40, 60, 60, 60, 45]);
    expect(now).toBe(AT + POLLING.total);
  });

  it("asks no more within a service's clock step of the end", () => {
    const polls = firstPolls(null, POLLING, AT);
    expect(nextPolls(polls, null, POLLING, polls.until - 2_000).next).toBeNull();
    expect(nextPolls(polls, null, POLLING, polls.until - 2_001).next).toBe(polls.until);
  });

  it("begins again at a moment that the service names, if it is to come", () => {
    const named = { next: AT + HOUR, pause: 5_000, until: AT + HOUR + 300_000 };
    expect(firstPolls(AT + HOUR, POLLING, AT)).toEqual(named);
    expect(nextPolls({ next: AT, pause: 40_000, until: AT }, AT + HOUR, POLLING, AT)).toEqual(named);
    expect(firstPolls(AT, POLLING, AT)).toEqual({ next: AT + 5_000, pause: 5_000, until: AT + 300_000 });
    expect(nextPolls(undefined, null, POLLING, AT)).toEqual(firstPolls(null, POLLING, AT));
    expect(nextPolls({ next: AT, pause: 5_000, until: AT + HOUR }, AT, POLLING, AT).pause).toBe(10_000);
  });
});
