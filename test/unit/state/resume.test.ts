import { describe, expect, it } from "vitest";
import type { ConfiguredStream } from "../../../src/catalog/airbyte.ts";
import { resumeDated, resumeWhole, wholeState } from "../../../src/state/resume.ts";
import { NEW_STATE } from "../../../src/streams/dated-state.ts";

const FILTERS = { source_slug: null, is_user: "all" } as const;

const asked = (syncMode: string): ConfiguredStream => ({
  ...{ name: "companies", syncMode, destinationSyncMode: null },
  ...{ generationId: 1, syncId: 1, schema: null },
});

describe("resumeDated()", () => {
  it.each(["incremental", "full_refresh"])(
    "%s: reads anew a stream whose records had no date when the state was made",
    (syncMode) => {
      for (const before of ["incremental", "full_refresh"]) {
        const resume = resumeDated(asked(syncMode), wholeState(asked(before)), FILTERS);
        expect(resume).toMatchObject({ kind: "read", state: { discoveredAt: null } });
      }
    },
  );

  it("knows such a state in Singer's words, and says why it is not used", () => {
    const nulls = { replication_key: null, replication_key_value: null };
    const bookmark = { ...wholeState(asked("incremental")), ...nulls };
    for (const saved of [bookmark, wholeState(asked("incremental"))]) {
      const resume = resumeDated(asked("incremental"), saved, FILTERS);
      const why = expect.stringContaining('"companies"');
      expect(resume).toMatchObject({ kind: "read", state: { discoveredAt: null }, why });
    }
  });
});

const SAVED = {
  ...NEW_STATE,
  discoveredAt: "2026-03-01T00:00:00Z",
  filters: FILTERS,
  undated: { rows: 0, seen: null },
} as const;

describe("resumeDated() under other settings", () => {
  it("goes on from a state that was made under the same filters", () => {
    const resume = resumeDated(asked("incremental"), SAVED, FILTERS);
    expect(resume).toMatchObject({ kind: "read", state: { discoveredAt: SAVED.discoveredAt } });
    expect(resume).not.toHaveProperty("why");
  });

  it.each([[{ ...FILTERS, is_user: "true" }], [{ ...FILTERS, source_slug: "crm" }]])(
    "reads from the start, and says why, under %j",
    (filters) => {
      const resume = resumeDated(asked("incremental"), SAVED, filters);
      const why = expect.stringContaining("read from the start");
      expect(resume).toMatchObject({ kind: "read", state: { discoveredAt: null, filters }, why });
    },
  );
});

describe("a full refresh", () => {
  const refresh = (generation_id: number | null, sync_id: number | null, done: boolean): object => ({
    ...SAVED,
    full_refresh: { generation_id, sync_id, done },
  });
  const fresh = { kind: "read", state: { discoveredAt: null } };
  const goesOn = { kind: "read", state: { discoveredAt: SAVED.discoveredAt } };

  const delivered = {
    kind: "delivered",
    state: { full_refresh: { generation_id: 1, sync_id: 1, done: true } },
  };

  it.each<[string, object, object, object]>([
    ["of the same ids, unfinished", refresh(1, 1, false), goesOn, fresh],
    ["of the same ids, done", refresh(1, 1, true), delivered, delivered],
    ["of another generation", refresh(2, 1, true), fresh, fresh],
    ["of another sync", refresh(1, 2, true), fresh, fresh],
    ["without ids", refresh(null, null, true), fresh, fresh],
    ["of an incremental read", SAVED, fresh, fresh],
  ])("with a state %s", (_, saved, dated, whole) => {
    expect(resumeDated(asked("full_refresh"), saved, FILTERS)).toMatchObject(dated);
    expect(resumeWhole(asked("full_refresh"), saved, FILTERS)).toMatchObject(whole);
  });

  it("whose catalog has no ids begins again, whatever the state says", () => {
    const configured = { ...asked("full_refresh"), generationId: null, syncId: null };
    expect(resumeDated(configured, refresh(null, null, true), FILTERS)).toMatchObject(fresh);
    expect(resumeWhole(configured, refresh(null, null, true), FILTERS)).toMatchObject(fresh);
  });

  it("leaves an incremental read its state, done or not, and delivers it nothing less", () => {
    for (const done of [true, false]) {
      expect(resumeDated(asked("incremental"), refresh(1, 1, done), FILTERS)).toMatchObject({
        ...goesOn,
        state: { full_refresh: null },
      });
      expect(resumeWhole(asked("incremental"), refresh(1, 1, done), FILTERS)).toMatchObject({ kind: "read" });
    }
  });
});
