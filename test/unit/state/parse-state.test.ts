import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, type Day, dayOf } from "../../../src/base/time.ts";
import { parseState } from "../../../src/state/envelopes.ts";
import { parseRowState } from "../../../src/state/parse-state.ts";
import type { Coverage, Span } from "../../../src/sync/coverage.ts";
import { NEW_STATE, type RowState } from "../../../src/sync/state.ts";

const moment = "2026-01-02T03:04:05Z";
const minimal = { discoveredAt: moment };
const current = { version: 4, ...minimal };

const day = fc.integer({ min: 1, max: 100_000 }).map((days): Day => dayOf(days * 86_400_000));
const cursor = fc
  .tuple(day, fc.constantFrom("T23:59:59.999Z", "T00:00:00Z", "T12:34:56.123456789Z"))
  .map(([date, time]) => date + time);
const orNull = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { nil: null });
const id = orNull(fc.nat());
const status = fc.constantFrom<Span["status"][]>("proven", "again", "missing", "reread");
const spans = fc
  .tuple(day, fc.array(fc.tuple(fc.nat({ max: 9 }), fc.nat({ max: 9 }), status, fc.nat()), { maxLength: 5 }))
  .map(([first, list]): Coverage => {
    let next = first;
    return list.map(([gap, length, of, rows]) => {
      const from = addDays(next, gap);
      const to = addDays(from, length);
      next = addDays(to, 1);
      return { from, to, status: of, rows };
    });
  });
const states: fc.Arbitrary<RowState> = fc.record({
  version: fc.constant(4 as const),
  discoveredAt: orNull(cursor),
  days: spans,
  undated: orNull(fc.record({ rows: fc.nat() })),
  checked: orNull(day),
  sources: orNull(fc.array(fc.string(), { maxLength: 3 })),
  filters: orNull(
    fc.record({ source_slug: orNull(fc.string()), is_user: fc.constantFrom("all", "true", "false") }),
  ),
  service: orNull(fc.string()),
  key: orNull(fc.string()),
  asked: orNull(cursor),
  full_refresh: orNull(fc.record({ generation_id: id, sync_id: id, done: fc.boolean() })),
});

describe("parseRowState()", () => {
  it("gives back a state, through either protocol's envelope", () => {
    fc.assert(
      fc.property(states, (written) => {
        const stream = { stream_descriptor: { name: "people" }, stream_state: written };
        const clothes = { replication_key: "discoveredAt", replication_key_value: written.discoveredAt };
        const singer = { bookmarks: { people: { ...clothes, ...written } } };
        for (const saved of [[{ type: "STREAM", stream }], singer]) {
          const read = parseRowState(
            "people",
            parseState(JSON.parse(JSON.stringify(saved))).streams.get("people"),
          );
          expect(read).toEqual(written);
          // Every key every time: platforms merge states.
          expect(Object.keys(read ?? {}).sort()).toEqual(Object.keys(NEW_STATE).sort());
        }
      }),
    );
  });

  it("knows no day of a state without a version", () => {
    const singer = { replication_key: "discoveredAt", replication_key_value: moment };
    for (const saved of [minimal, singer, { ...minimal, days: [], from: "2025-01-01" }])
      expect(parseRowState("people", saved)).toEqual({ ...NEW_STATE, discoveredAt: moment });
    for (const saved of [{ discoveredAt: null }, { replication_key_value: null }])
      expect(parseRowState("people", saved)).toEqual(NEW_STATE);
  });

  it("takes an empty value, and Airbyte's words in place of a cursor, for no state", () => {
    for (const saved of [null, undefined, {}]) expect(parseRowState("people", saved)).toBeNull();
    for (const word of ["__ab_full_refresh_sync_complete", "__ab_no_cursor_state_message"])
      expect(parseRowState("people", { [word]: true })).toBeNull();
  });

  it.each([
    ["2026-01-02", "2026-01-02T00:00:00Z"],
    ["2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.000Z"],
    ["2026-01-02T01:04:05.123456+02:00", "2026-01-01T23:04:05.123Z"],
    [null, null],
  ])("reads %j as %j", (given, discoveredAt) => {
    expect(parseRowState("people", { discoveredAt: given })?.discoveredAt).toBe(discoveredAt);
  });

  it.each([
    ["2026-01-02T09:00:00Z", "2026-01-02T10:00:00+02:00", "2026-01-02T08:00:00.000Z"],
    ["2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z", "2026-01-02T03:04:05Z"],
    [undefined, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"],
    [null, "2026-01-02T03:04:05Z", null],
    ["2026-01-02T03:04:05Z", null, null],
  ])("takes the earlier of %j and Singer's %j", (discoveredAt, replication_key_value, earlier) => {
    const saved = { ...current, discoveredAt, replication_key: "discoveredAt", replication_key_value };
    expect(parseRowState("people", saved)?.discoveredAt).toBe(earlier);
  });

  const span = { from: "2026-01-01", to: "2026-01-02", status: "proven", rows: 1 };
  it.each([
    ["hunter2", "of type string"],
    [[], "of type array"],
    [{ discoveredAt: "hunter2" }, "discoveredAt is not"],
    [{ discoveredAt: "2026-02-30T00:00:00Z" }, "discoveredAt is not"],
    [{ ...current, replication_key_value: "hunter2" }, "replication_key_value is not"],
    [{ ...current, version: 5 }, "newer version"],
    [
      { ...current, version: 2 },
      "a build before 1.0 wrote it (state version 2). The last build that reads it is tagged 0.1",
    ],
    [{ ...current, version: "hunter2" }, "version is not"],
    [{ ...current, filters: { is_user: "hunter2" } }, "filters is not"],
    [{ ...current, undated: { rows: -1 } }, "undated is not"],
    [{ ...current, days: [{ ...span, to: "2026-01-32" }] }, "days is not"],
    [{ ...current, days: [{ ...span, status: "gone" }] }, "days is not"],
    [{ ...current, days: [["2026-01-01", "2026-01-02", 1]] }, "days is not"],
    [{ ...current, days: [{ ...span, to: "2025-01-01" }] }, "days are not in order"],
    [{ ...current, days: [span, { ...span, from: "2026-01-02" }] }, "or overlap"],
    [{ ...current, sources: "crm" }, "sources is not"],
    [{ ...current, asked: "hunter2" }, "asked is not"],
    [{ ...current, full_refresh: { generation_id: 1, sync_id: 1 } }, "full_refresh is not"],
  ])("refuses %j", (savedState, why) => {
    expect(() => parseRowState("people", savedState)).toThrow(why);
    expect(() => parseRowState("people", savedState)).toThrow(/^Cannot use the state of "people": /);
    expect(() => parseRowState("people", savedState)).not.toThrow("hunter2");
  });
});
