import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../src/errors.ts";
import { type DatedState, parseDatedState } from "../../src/state/dated.ts";
import { parseState } from "../../src/state/envelopes.ts";
import { NEW_STATE } from "../../src/streams/dated-state.ts";
import { type Day, dayOf } from "../../src/time.ts";

const moment = "2026-01-02T03:04:05Z";
const minimal = { discoveredAt: moment };

const day = fc.integer({ min: 0, max: 100_000 }).map((days): Day => dayOf(days * 86_400_000));
const cursor = fc
  .tuple(day, fc.constantFrom("T23:59:59.999Z", "T00:00:00Z", "T12:34:56.123456789Z"))
  .map(([date, time]) => date + time);
const orNull = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { nil: null });
const id = orNull(fc.nat());
const blobs: fc.Arbitrary<DatedState> = fc.record({
  version: fc.constant(1 as const),
  discoveredAt: orNull(cursor),
  missing_days: fc.uniqueArray(day, { maxLength: 4 }).map((days) => days.sort()),
  filters: orNull(
    fc.record({ source_slug: orNull(fc.string()), is_user: fc.constantFrom("all", "true", "false") }),
  ),
  from: orNull(day),
  undated: fc.constantFrom("pending" as const, "done" as const),
  undated_checked: orNull(day),
  undated_rows: fc.nat(),
  recheck: fc.array(
    fc.tuple(day, day).filter(([first, last]) => first <= last),
    { maxLength: 3 },
  ),
  gap: orNull(fc.record({ from: orNull(day), to: day })),
  shard: orNull(
    fc.record({
      ...{ plan: fc.string(), index: fc.nat(), done: fc.boolean() },
      ...{ asked: orNull(cursor), ended: orNull(cursor) },
    }),
  ),
  full_refresh: orNull(fc.record({ generation_id: id, sync_id: id, done: fc.boolean() })),
});

describe("parseDatedState()", () => {
  it("gives back a state, through either protocol's envelope", () => {
    fc.assert(
      fc.property(blobs, (written) => {
        const state = written;
        const airbyte = [
          { type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: state } },
        ];
        const clothes = { replication_key: "discoveredAt", replication_key_value: written.discoveredAt };
        const singer = { bookmarks: { people: { ...clothes, ...state } } };
        for (const saved of [airbyte, singer]) {
          const read = parseState(JSON.parse(JSON.stringify(saved))).streams.get("people");
          expect(parseDatedState("people", read)).toEqual(written);
        }
      }),
    );
  });

  it("fills what a state written by hand leaves out", () => {
    expect(parseDatedState("people", minimal)).toEqual({
      version: 1,
      discoveredAt: moment,
      missing_days: [],
      filters: null,
      from: null,
      undated: "done",
      undated_checked: null,
      undated_rows: 0,
      recheck: [],
      gap: null,
      shard: null,
      full_refresh: null,
    });
  });

  it.each([
    [null],
    [undefined],
    [{}],
    [{ __ab_full_refresh_sync_complete: true }],
    [{ __ab_no_cursor_state_message: true }],
  ])("takes %j for no state", (savedState) => {
    expect(parseDatedState("people", savedState)).toBeNull();
  });

  it("ignores keys that it does not know", () => {
    expect(parseDatedState("people", { ...minimal, __ab_x: 1, note: "mine", progress_markers: {} })).toEqual(
      parseDatedState("people", minimal),
    );
  });

  it.each([
    ["2026-01-02", "2026-01-02T00:00:00Z"],
    ["2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z"],
    ["2026-01-02T01:04:05.123456+02:00", "2026-01-01T23:04:05.123456Z"],
    ["2026-01-02T03:04:05.100Z", "2026-01-02T03:04:05.100Z"],
    [null, null],
  ])("reads %j as %j", (given, discoveredAt) => {
    expect(parseDatedState("people", { discoveredAt: given })?.discoveredAt).toBe(discoveredAt);
  });

  it.each([
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:04Z", "2026-01-02T03:04:04Z"],
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", "2026-01-02T03:04:05Z"],
    ["2026-01-02T09:00:00Z", "2026-01-02T10:00:00+02:00", "2026-01-02T08:00:00Z"],
    ["2026-01-02T03:04:05.0009Z", "2026-01-02T03:04:05.00081Z", "2026-01-02T03:04:05.00081Z"],
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05Z"],
    ["2026-01-02T03:04:05Z", null, null],
    [null, "2026-01-02T03:04:05Z", null],
    [undefined, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"],
    ["2026-01-02T03:04:05Z", undefined, "2026-01-02T03:04:05Z"],
  ])("takes the earlier of %j and Singer's %j", (discoveredAt, replication_key_value, earlier) => {
    const read = parseDatedState("people", {
      discoveredAt,
      replication_key: "discoveredAt",
      replication_key_value,
    });
    expect(read?.discoveredAt).toBe(earlier);
  });

  it("ignores Singer's value of another replication key", () => {
    const savedState = {
      ...minimal,
      replication_key: "updatedAt",
      replication_key_value: "1999-01-01T00:00:00Z",
    };
    expect(parseDatedState("people", savedState)?.discoveredAt).toBe(moment);
  });

  it("puts missing days in order, once each", () => {
    const missing_days = ["2026-01-03", "2026-01-01", "2026-01-03"];
    expect(parseDatedState("people", { ...minimal, missing_days })?.missing_days).toEqual([
      "2026-01-01",
      "2026-01-03",
    ]);
  });

  it.each([
    ["hunter2", "of type string"],
    [[], "of type array"],
    [{ discovered_at: moment }, "no discoveredAt"],
    [{ missing_days: [] }, "no discoveredAt"],
    [{ replication_key: "updatedAt", replication_key_value: moment }, "no discoveredAt"],
    [{ discoveredAt: "hunter2" }, "discoveredAt is not"],
    [{ discoveredAt: "2026-02-30T00:00:00Z" }, "discoveredAt is not"],
    [{ discoveredAt: 1767323045 }, "discoveredAt is not"],
    [{ ...minimal, replication_key_value: "hunter2" }, "replication_key_value is not"],
    [{ ...minimal, version: 2 }, "newer version"],
    [{ ...minimal, version: "1" }, "version is not"],
    [{ ...minimal, version: 0 }, "version is not"],
    [{ ...minimal, missing_days: "2026-01-01" }, "missing_days is not"],
    [{ ...minimal, missing_days: ["2026-02-30"] }, "missing_days is not"],
    [{ ...minimal, filters: "hunter2" }, "filters is not"],
    [{ ...minimal, filters: { is_user: "hunter2" } }, "filters is not"],
    [{ ...minimal, filters: { source_slug: 1 } }, "filters is not"],
    [{ ...minimal, from: moment }, "from is not"],
    [{ ...minimal, undated: true }, "undated is neither"],
    [{ ...minimal, full_refresh: { generation_id: 1, sync_id: 1 } }, "full_refresh is not"],
    [{ ...minimal, full_refresh: { generation_id: "1", sync_id: 1, done: true } }, "full_refresh is not"],
    [{ ...minimal, gap: { from: "2026-01-01" } }, "gap is not"],
    [{ ...minimal, gap: true }, "gap is not"],
    [{ ...minimal, gap: { from: null, to: "2026-02-30" } }, "gap is not"],
    [{ ...minimal, recheck: ["2026-01-01"] }, "recheck is not"],
    [{ ...minimal, recheck: [["2026-01-01", "2026-01-32"]] }, "recheck is not"],
    [{ ...minimal, undated_checked: "today" }, "undated_checked is not"],
    [{ ...minimal, undated_rows: -1 }, "undated_rows is not"],
    [{ ...minimal, shard: { plan: "x", index: 0 } }, "shard is not"],
  ])("refuses %j", (savedState, why) => {
    expect(() => parseDatedState("people", savedState)).toThrow(ConfigError);
    expect(() => parseDatedState("people", savedState)).toThrow(why);
    expect(() => parseDatedState("people", savedState)).toThrow(/^Cannot use the state of "people": /);
    expect(() => parseDatedState("people", savedState)).not.toThrow("hunter2");
  });

  it("is a state or a ConfigError for any JSON at all", () => {
    const keys = fc.constantFrom(
      "discoveredAt",
      "version",
      "filters",
      "gap",
      "full_refresh",
      "undated",
      "missing_days",
      "recheck",
      "undated_checked",
      "undated_rows",
      "shard",
    );
    fc.assert(
      fc.property(fc.dictionary(keys, fc.jsonValue()), (savedState) => {
        try {
          const read = parseDatedState("people", savedState);
          if (read !== null) expect(parseDatedState("people", read)).toEqual(read);
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError);
        }
      }),
    );
  });
});

describe("DatedState", () => {
  it("has every key every time, whatever was read: platforms merge states", () => {
    const keys = Object.keys(NEW_STATE).sort();
    fc.assert(
      fc.property(blobs, (written) => {
        expect(Object.keys(Object(parseDatedState("people", written))).sort()).toEqual(keys);
      }),
    );
    expect(Object.keys(Object(parseDatedState("people", minimal))).sort()).toEqual(keys);
  });

  it("understands a state of version 0.1.0", () => {
    const old = {
      ...{ version: 1, discoveredAt: moment, missing_days: ["2026-01-01"] },
      ...{ filters: { source_slug: null, is_user: "all" }, from: null, undated: "done" },
      ...{ full_refresh: null, gap: null },
    };
    expect(parseDatedState("people", old)).toEqual({
      ...old,
      ...{ undated_checked: null, undated_rows: 0, recheck: [], shard: null },
    });
  });
});
