import { describe, expect, it } from "vitest";
import type { StreamState } from "../../../src/streams/event.ts";
import { aheadOfDelivery, Destination, isPending, lackedByComplete, repeatedIn } from "./invariants.ts";
import { type Delivered, type Outcome, toDelivered } from "./read-once.ts";

const NOW = Date.parse("2026-03-20T10:00:00Z");
const at = (id: string, day: string): Delivered => ({ id, discoveredAt: `${day}T08:00:00.000Z` });

function outcome(records: readonly Delivered[], state: object, after = records.length): Outcome {
  const checkpoint = { state: state as StreamState, after };
  return { records, checkpoints: [checkpoint], complete: true, killed: false, error: undefined };
}

const STATE = { days: [["0001-01-01", "2026-03-18", 9]], undated: { rows: 0, seen: null } };

function lackedWith(state: object, still: readonly Delivered[], bringsUndated = false): readonly string[] {
  const lacked = lackedByComplete(new Destination(), outcome([], state), still, { now: NOW, bringsUndated });
  return lacked.map(({ id }) => id);
}

describe("lackedByComplete()", () => {
  const still = [at("old", "2026-03-01"), at("older", "2026-02-01"), at("yesterday", "2026-03-19")];

  it("holds a complete run to every row of a day before yesterday", () => {
    expect(lackedWith(STATE, still)).toEqual(["old", "older"]);
  });

  it("lets it off for days that its state lists as missing or to be checked again", () => {
    expect(lackedWith({ ...STATE, days: [["2026-03-01", "2026-03-01", null, "missing"]] }, still)).toEqual([
      "older",
    ]);
    expect(lackedWith({ ...STATE, days: [["2026-01-30", "2026-02-01", null, "again"]] }, still)).toEqual([
      "old",
    ]);
  });

  it("asks for people without a date only a run that brings them", () => {
    expect([null, { undated: null }, STATE].map(isPending)).toEqual([true, true, false]);
    const undated = [{ id: "nobody", discoveredAt: null, content: "{}" }];
    expect(lackedWith(STATE, undated, true)).toEqual(["nobody"]);
    expect(lackedWith(STATE, undated)).toEqual([]);
  });
});

describe("aheadOfDelivery()", () => {
  const person = at("a", "2026-03-01");

  it("finds a state that covers a row which had not gone out before it", () => {
    expect(aheadOfDelivery(outcome([person], STATE, 0), new Destination(), [person], true)).toHaveLength(1);
    expect(aheadOfDelivery(outcome([person], STATE, 1), new Destination(), [person], true)).toEqual([]);
    const pending = { ...STATE, days: [["0001-01-01", "2026-02-28", 9]] };
    expect(aheadOfDelivery(outcome([person], pending, 0), new Destination(), [person], true)).toEqual([]);
  });

  it("takes what an earlier run brought for delivered", () => {
    const earlier = new Destination();
    earlier.take([person]);
    expect(aheadOfDelivery(outcome([], STATE), earlier, [person], true)).toEqual([]);
    expect(repeatedIn(outcome([person, person], STATE))).toBe(1);
  });
});

describe("toDelivered()", () => {
  it.each([
    '"2026-03-20T10:00:00.123Z"',
    '"2026-03-20T15:30:00.123+05:30"',
    '"2026-03-20T10:00:00.123+00"',
    '"2026-03-20 10:00:00,123z"',
    "1774000800123",
    "1774000800.123",
  ])("knows a date by its moment: %s", (date) => {
    const { discoveredAt } = toDelivered(`{"id":"a","discoveredAt":${date}}`);
    expect(discoveredAt).toBe("2026-03-20T10:00:00.123Z");
  });
});
