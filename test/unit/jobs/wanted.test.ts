import { describe, expect, it } from "vitest";
import { type Item, joinItems, newSub, type Step, type Sub, UNBOUGHT } from "../../../src/jobs/lattice.ts";
import { failedTimes, type ResubmitRules, reasonToSubmit, retryAt } from "../../../src/jobs/wanted.ts";
import { DAY_MS, type Day, dayOf } from "../../../src/time.ts";

const HOUR = 3_600_000;
const AT = Date.parse("2026-03-02T10:00:00Z");
const MIDNIGHT = Date.parse("2026-03-03T00:00:00Z");
const PLAIN: ResubmitRules = { refreshAfterDays: null, retryUnknown: false };
const EACH_DAY: ResubmitRules = { refreshAfterDays: 1, retryUnknown: true };
const every = (refreshAfterDays: number): ResubmitRules => ({ ...PLAIN, refreshAfterDays });

/** An item with some submissions of a step, one after the other. */
const item = (step: Step, count = 1, fields: Partial<Sub> = {}): Item => ({
  ...UNBOUGHT,
  subs: Object.fromEntries(
    Array.from({ length: count }, (_, nth) => {
      const sub = newSub(`r.${nth}`, AT + nth, dayOf(AT), "s");
      return [sub.id, { ...sub, step, job: step === "open" ? "j" : null, ...fields }];
    }),
  ),
});
const failed = (count: number): Item => item("failed", count, { ended: AT + HOUR });
const ANSWERED: Item = { ...UNBOUGHT, day: dayOf(AT) };
/** The same with an answer long before. */
const refreshed = (known: Item): Item => ({ ...known, day: "2026-01-01" as Day });

describe("reasonToSubmit()", () => {
  it("submits what nothing is known of, and what was taken back or lacked credits", () => {
    for (const known of [UNBOUGHT, item("void"), item("unpaid", 4)])
      expect(reasonToSubmit(known, PLAIN, AT)).toBe("new");
  });

  it.each<[string, Item, ResubmitRules]>([
    ["that is open", item("open"), EACH_DAY],
    ["that is open beside a failure", joinItems(item("failed", 3), item("open", 4)), EACH_DAY],
    ["whose answer was lost", item("unknown"), PLAIN],
    ["whose answer was lost four times", item("unknown", 4), EACH_DAY],
    ["that failed four times", item("failed", 4), EACH_DAY],
    ["that was answered", ANSWERED, PLAIN],
    ["whose refresh is open", refreshed(item("open")), EACH_DAY],
    ["whose refresh was lost", refreshed(item("unknown")), every(1)],
  ])("never submits an item again %s", (_what, known, rules) => {
    expect(reasonToSubmit(known, rules, AT + 1_000 * DAY_MS)).toBeUndefined();
    expect(retryAt(known, rules)).toBe(Number.POSITIVE_INFINITY);
  });

  it("submits an item whose answer was lost three times more, if that is asked for", () => {
    const reasons = [1, 2, 3, 4].map((lost) => reasonToSubmit(item("unknown", lost), EACH_DAY, AT));
    expect(reasons).toEqual(["new", "new", "new", undefined]);
  });

  it.each<[string, Item, number, ResubmitRules, string]>([
    ["an answered item days after the end of its day", ANSWERED, MIDNIGHT + 7 * DAY_MS, every(7), "refresh"],
    ["a first failure after an hour", failed(1), AT + 2 * HOUR, PLAIN, "new"],
    ["a second failure after a day", failed(2), AT + HOUR + DAY_MS, PLAIN, "new"],
    ["a third failure after a week", failed(3), AT + HOUR + 7 * DAY_MS, PLAIN, "new"],
    ["a refused item after thirty days", item("refused"), AT + 30 * DAY_MS, PLAIN, "new"],
    ["a refused refresh later", refreshed(item("refused")), AT + 3 * DAY_MS, every(3), "refresh"],
  ])("submits %s, and not before", (_what, known, at, rules, reason) => {
    const reasons = [at - 1, at].map((now) => reasonToSubmit(known, rules, now));
    expect([...reasons, retryAt(known, rules)]).toEqual([undefined, reason, at]);
  });

  it("lets others go before an item whose request the service did not like, until it takes another", () => {
    const doubted = item("void", 1, { code: "INVALID_BODY" });
    expect(reasonToSubmit(doubted, PLAIN, AT)).toBe("doubted");
    expect(reasonToSubmit(joinItems(doubted, item("void", 2)), PLAIN, AT)).toBe("new");
  });

  it("counts failures, and not what lacked credits", () => {
    expect([failedTimes(item("failed", 2)), failedTimes(item("unpaid", 2))]).toEqual([2, 0]);
  });
});
