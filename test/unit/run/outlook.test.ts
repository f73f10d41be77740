import { describe, expect, it } from "vitest";
import { Privacy } from "../../../src/catalog/privacy.ts";
import { type RowStreamSpec, STREAMS } from "../../../src/catalog/streams.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { outlookOf } from "../../../src/run/outlook.ts";
import { incremental } from "../../../src/run/probe-streams.ts";
import type { Session } from "../../../src/run/session.ts";
import type { Coverage } from "../../../src/streams/coverage.ts";
import { ModelService, peopleOn, undatedPeople } from "../../support/model-service.ts";
import { KEY } from "../../support/session.ts";

const NOW = Date.UTC(2026, 2, 20, 12);
const PEOPLE = peopleOn(["2026-01-05", "2026-02-03", "2026-03-10", "2026-03-20"], 3);

type Given = {
  readonly stream?: string;
  readonly settings?: object;
  readonly mostRows?: number;
  readonly days?: Coverage;
  readonly syncMode?: string;
  readonly state?: object;
  readonly isListed?: boolean;
  readonly total?: (rows: number) => number | null;
};

/** What the next run would read of a stream, and how many requests it took to know. */
async function outlook({ stream = "people", settings = {}, mostRows, days, ...given }: Given = {}) {
  const { syncMode = "incremental", isListed = true, total } = given;
  const model = new ModelService({
    now: NOW,
    people: [...PEOPLE, ...undatedPeople(2)],
    ...(total && { total }),
  });
  const parsed = parseConfig({ base_url: "http://127.0.0.1:1", api_key: KEY, ...settings }, {});
  const config = { ...parsed, maxWindowRows: mostRows ?? parsed.maxWindowRows };
  const spec = STREAMS.find(({ name }) => name === stream) as RowStreamSpec;
  const session = {
    ...{ config, privacy: new Privacy(config), began: 0, service: "s", keyId: "k" },
    // What the session asked before.
    usage: {
      get requests() {
        return 100 + model.asked.length;
      },
    },
    readingOf: async () => ({ isDated: spec.reading === "dated" && isListed, isListed }),
    streamApi: () => model.api(config.verifyCounts),
  } as unknown as Session;
  const discoveredAt = "2026-03-10T00:00:00Z";
  const state = given.state ?? (days && { version: 2, discoveredAt, days, undated: { rows: 2, seen: null } });
  const found = await outlookOf(
    session,
    spec,
    { configured: { ...incremental(stream), syncMode, generationId: 1, syncId: 2 } },
    state,
  );
  return { ...found, asked: model.asked.length, exported: model.asked.some(({ what }) => what === "stream") };
}

describe("outlookOf()", () => {
  it("is one window for a small account, which one request reads", async () => {
    expect(await outlook()).toMatchObject({
      ...{ stream: "people", days: ["all rows up to now"], rows: 14, requests: 3, asked: 2, exported: false },
      minutes: 3 / 60,
    });
  });

  it("names what is read in its order, and nothing that is counted empty", async () => {
    const { days, rows } = await outlook({
      days: [
        ["1970-01-01", "2026-01-01", null],
        ["2026-01-05", "2026-01-05", null, "missing"],
        ["2026-01-06", "2026-02-02", null],
        ["2026-02-03", "2026-02-04", null, "again"],
        ["2026-02-06", "2026-03-09", null],
      ] as unknown as Coverage,
    });
    expect([days, rows]).toEqual([
      ["2026-01-05", "2026-02-03 to 2026-02-04", "rows without a date", "2026-03-09 up to now"],
      14,
    ]);
  });

  it.each([
    [14, 1],
    // Windows are planned to be three quarters full, and each is counted before it is read.
    [13, 2 * Math.ceil(14 / 10)],
    [3, 2 * Math.ceil(14 / 3)],
  ])("takes 14 rows in windows of at most %i for %i requests", async (mostRows, requests) => {
    const said = await outlook({ mostRows });
    expect([said.days, said.rows, said.requests - said.asked]).toEqual([
      ["all rows up to now"],
      14,
      requests,
    ]);
  });

  it("reads a list by its pages of a thousand", async () => {
    const total = () => 2_001;
    const said = await outlook({ stream: "sources", total });
    expect(said).toMatchObject({ days: ["all rows"], rows: 2_001 });
    expect(said.requests).toBe(3);
  });

  it.each([
    ["companies", { isListed: false }, 0],
    ["sources", { total: () => null, settings: { verify_counts: false } }, 1],
  ])("does not know the rows of %s where nothing counts them", async (stream, given, counts) => {
    expect(await outlook({ stream, ...given })).toMatchObject({
      ...{ days: ["all rows"], rows: null, requests: 1, asked: counts, exported: false },
      minutes: 1 / 60,
    });
  });

  it("is nothing of a full refresh that was delivered", async () => {
    const refresh = { generation_id: 1, sync_id: 2, done: true };
    const state = { version: 2, discoveredAt: null, days: [], full_refresh: refresh };
    expect(await outlook({ syncMode: "full_refresh", state })).toMatchObject({
      ...{ stream: "people", days: [], rows: 0, requests: 0, minutes: 0, asked: 0 },
    });
  });

  it.each([1, 4])("takes as long as its rows or its requests, with %i workers", async (num_workers) => {
    const settings = { num_workers, requests_per_minute: 1_000, verify_counts: false };
    const said = await outlook({ stream: "companies", settings, total: () => 600_000 });
    expect(said.minutes).toBeCloseTo(600_000 / (2_500 * num_workers) / 60, 9);
    const slow = { ...settings, requests_per_minute: 1 };
    const patient = await outlook({ stream: "companies", settings: slow, total: () => 600_000 });
    expect(patient.minutes).toBe(patient.requests);
  });
});
