import { describe, expect, it } from "vitest";
import type { ConfiguredStream } from "../../../src/catalog/airbyte.ts";
import { resume } from "../../../src/state/resume.ts";
import { NO_FILTERS as FILTERS, type Filters, NEW_STATE } from "../../../src/sync/state.ts";

type Arguments = readonly [
  configured: ConfiguredStream,
  saved: unknown,
  filters: Filters,
  service?: string | null,
];

const resumeRows = (...[configured, saved, ...rest]: Arguments) => resume(configured, saved, true, ...rest);
const resumeWhole = (...[configured, saved, ...rest]: Arguments) => resume(configured, saved, false, ...rest);

const asked = (syncMode: string): ConfiguredStream => ({
  ...{ name: "companies", syncMode, destinationSyncMode: null },
  ...{ generationId: 1, syncId: 1, schema: null },
});

it("a stream whose records had no date when the state was made is read from the start", () => {
  const nulls = { replication_key: null, replication_key_value: null };
  for (const full_refresh of [null, { generation_id: 1, sync_id: 1, done: true }])
    for (const words of [{}, nulls]) {
      const saved = { version: NEW_STATE.version, full_refresh, ...words };
      const fresh = { kind: "read", state: { discoveredAt: null, days: [], full_refresh: null } };
      expect(resumeRows(asked("incremental"), saved, FILTERS)).toMatchObject(fresh);
    }
});

const SAVED = {
  ...NEW_STATE,
  discoveredAt: "2026-03-01T00:00:00Z",
  filters: FILTERS,
  undated: { rows: 0 },
  days: [{ from: "1970-01-02", to: "2026-02-27", status: "proven", rows: 1 }],
} as const;

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
    expect(resumeRows(asked("full_refresh"), saved, FILTERS)).toMatchObject(dated);
    expect(resumeWhole(asked("full_refresh"), saved, FILTERS)).toMatchObject(whole);
  });

  it("whose catalog has no ids starts from the beginning, whatever the state says", () => {
    const configured = { ...asked("full_refresh"), generationId: null, syncId: null };
    expect(resumeRows(configured, refresh(null, null, true), FILTERS)).toMatchObject(fresh);
    expect(resumeWhole(configured, refresh(null, null, true), FILTERS)).toMatchObject(fresh);
  });

  it("changes nothing for an incremental read, whether the refresh is done or not", () => {
    for (const done of [true, false]) {
      expect(resumeRows(asked("incremental"), refresh(1, 1, done), FILTERS)).toMatchObject({
        ...goesOn,
        state: { full_refresh: null },
      });
      expect(resumeWhole(asked("incremental"), refresh(1, 1, done), FILTERS)).toMatchObject({ kind: "read" });
    }
  });
});
