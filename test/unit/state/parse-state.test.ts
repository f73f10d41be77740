import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BEGINNING, type Day, dayOf } from "../../../src/base/time.ts";
import { parseState } from "../../../src/state/envelopes.ts";
import { parseDatedState } from "../../../src/state/parse-state.ts";
import { type Coverage, type DayStatus, put, spanOf } from "../../../src/sync/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/sync/state.ts";

const moment = "2026-01-02T03:04:05Z";
const minimal = { discoveredAt: moment };

const day = fc.integer({ min: 1, max: 100_000 }).map((days): Day => dayOf(days * 86_400_000));
const cursor = fc
  .tuple(day, fc.constantFrom("T23:59:59.999Z", "T00:00:00Z", "T12:34:56.123456789Z"))
  .map(([date, time]) => date + time);
const orNull = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { nil: null });
const id = orNull(fc.nat());
const texts = fc.array(fc.string(), { maxLength: 3 });
const status = fc.constantFrom<(DayStatus | undefined)[]>("again", "missing", undefined);
const spans = fc.array(fc.tuple(day, day, orNull(fc.nat()), status), { maxLength: 5 });
const blobs: fc.Arbitrary<DatedState> = fc.record({
  version: fc.constant(2 as const),
  discoveredAt: orNull(cursor),
  days: spans.map((list) =>
    list
      .map(([a, b, rows, status]) => spanOf(a < b ? [a, b] : [b, a], rows, status))
      .reduce<Coverage>(put, []),
  ),
  service: orNull(fc.string()),
  witness: orNull(fc.record({ keys: texts, cursor, key: fc.string() })),
  undated: orNull(fc.record({ rows: fc.nat(), seen: orNull(texts) })),
  checked: orNull(day),
  filters: orNull(
    fc.record({ source_slug: orNull(fc.string()), is_user: fc.constantFrom("all", "true", "false") }),
  ),
  plan: orNull(fc.string()),
  sources: orNull(texts),
  asked: orNull(cursor),
  full_refresh: orNull(fc.record({ generation_id: id, sync_id: id, done: fc.boolean() })),
});

describe("parseDatedState()", () => {
  it("gives back a state, through either protocol's envelope", () => {
    fc.assert(
      fc.property(blobs, (written) => {
        const stream = { stream_descriptor: { name: "people" }, stream_state: written };
        const clothes = { replication_key: "discoveredAt", replication_key_value: written.discoveredAt };
        const singer = { bookmarks: { people: { ...clothes, ...written } } };
        for (const saved of [[{ type: "STREAM", stream }], singer]) {
          const savedState = parseState(JSON.parse(JSON.stringify(saved))).streams.get("people");
          const read = parseDatedState("people", savedState);
          expect(read).toEqual(written);
          // Every key every time: platforms merge states.
          expect(Object.keys(read ?? {}).sort()).toEqual(Object.keys(NEW_STATE).sort());
        }
      }),
    );
  });

  it("fills what a state written by hand leaves out", () => {
    expect(parseDatedState("people", minimal)).toStrictEqual({
      ...NEW_STATE,
      discoveredAt: moment,
      days: [[BEGINNING, "2025-12-31", null]],
      undated: { rows: 0, seen: null },
    });
  });

  it("takes nothing, and what Airbyte says in place of a cursor, for no state", () => {
    for (const saved of [null, undefined, {}]) expect(parseDatedState("people", saved)).toBeNull();
    for (const word of ["__ab_full_refresh_sync_complete", "__ab_no_cursor_state_message"])
      expect(parseDatedState("people", { [word]: true })).toBeNull();
  });

  it.each([
    ["2026-01-02", "2026-01-02T00:00:00Z"],
    ["2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z"],
    ["2026-01-02T01:04:05.123456+02:00", "2026-01-01T23:04:05.123456Z"],
    [null, null],
  ])("reads %j as %j", (given, discoveredAt) => {
    expect(parseDatedState("people", { discoveredAt: given })?.discoveredAt).toBe(discoveredAt);
  });

  it.each([
    ["2026-01-02T09:00:00Z", "2026-01-02T10:00:00+02:00", "2026-01-02T08:00:00Z"],
    ["2026-01-02T03:04:05.0009Z", "2026-01-02T03:04:05.00081Z", "2026-01-02T03:04:05.00081Z"],
    [null, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"],
  ])("takes the earlier of %j and Singer's %j", (discoveredAt, replication_key_value, earlier) => {
    const saved = { discoveredAt, replication_key: "discoveredAt", replication_key_value };
    expect(parseDatedState("people", saved)?.discoveredAt).toBe(earlier);
  });

  it("reads the days from Singer's cursor on again where that is the earlier", () => {
    const state = { ...NEW_STATE, discoveredAt: moment, days: [["2025-01-01", "2025-12-30", 5]] };
    const earlier = { replication_key: "discoveredAt", replication_key_value: "2025-06-10T00:00:00Z" };
    expect(parseDatedState("people", { ...state, ...earlier })?.days).toEqual([
      ["2025-01-01", "2025-06-08", null],
    ]);
    const same = { ...earlier, replication_key_value: moment };
    expect(parseDatedState("people", { ...state, ...same })?.days).toEqual(state.days);
  });

  it("puts days in order", () => {
    const days = [
      ["2026-01-03", "2026-01-03", null, "missing"],
      ["2026-01-02", "2026-01-01", 4],
    ];
    expect(parseDatedState("people", { version: 2, ...minimal, days })?.days).toEqual([
      ["2026-01-01", "2026-01-02", 4],
      ["2026-01-03", "2026-01-03", null, "missing"],
    ]);
  });

  it.each([
    ["hunter2", "of type string"],
    [[], "of type array"],
    [{ discovered_at: moment }, "no discoveredAt"],
    [{ replication_key: "updatedAt", replication_key_value: moment }, "no discoveredAt"],
    [{ discoveredAt: "hunter2" }, "discoveredAt is not"],
    [{ discoveredAt: "2026-02-30T00:00:00Z" }, "discoveredAt is not"],
    [{ ...minimal, replication_key_value: "hunter2" }, "replication_key_value is not"],
    [{ ...minimal, version: 3 }, "newer version"],
    [{ ...minimal, version: 0 }, "version is not"],
    [{ ...minimal, filters: { is_user: "hunter2" } }, "filters is not"],
    [{ ...minimal, undated: { rows: -1 } }, "undated is not"],
    [{ ...minimal, days: [["2026-01-01", "2026-01-32", null]] }, "days is not"],
    [{ ...minimal, days: [["2026-01-01", "2026-01-02", 1, "gone"]] }, "days is not"],
    [{ ...minimal, sources: "crm" }, "sources is not"],
    [{ ...minimal, asked: "hunter2" }, "asked is not"],
    [{ ...minimal, full_refresh: { generation_id: 1, sync_id: 1 } }, "full_refresh is not"],
  ])("refuses %j", (savedState, why) => {
    expect(() => parseDatedState("people", savedState)).toThrow(why);
    expect(() => parseDatedState("people", savedState)).toThrow(/^Cannot use the state of "people": /);
    expect(() => parseDatedState("people", savedState)).not.toThrow("hunter2");
  });
});
