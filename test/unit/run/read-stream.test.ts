import { describe, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { type ConfiguredStream, parseConfiguredCatalog } from "../../../src/catalog/airbyte.ts";
import { type RowStreamSpec, STREAMS } from "../../../src/catalog/streams.ts";
import { type Asked, type StreamRun, streamRun } from "../../../src/run/read-stream.ts";
import { connector } from "../../support/cli.ts";
import { catalogFor, configFor } from "../../support/configs.ts";
import { hurriedClock } from "../../support/in-process.ts";
import { openSession } from "../../support/session.ts";

describe("streamRun()", () => {
  const REFRESH = { sync_mode: "full_refresh", generation_id: 1, sync_id: 2 };
  const SHARD = { plan: "a plan", bringsUndated: false };
  const DATED = { version: 2, discoveredAt: "2026-03-01T00:00:00.000Z", days: [], full_refresh: null };
  const DONE = { version: 2, full_refresh: { generation_id: 1, sync_id: 2, done: true } };

  /** How a stream is read that goes on from a state: nothing is asked for it. */
  async function runOf(
    name: string,
    mode: object,
    saved?: unknown,
    more: Partial<Asked> = {},
  ): Promise<StreamRun> {
    const { session } = openSession("http://127.0.0.1:1");
    const spec = STREAMS.find((one) => one.name === name) as RowStreamSpec;
    const streams = [{ stream: { name }, ...{ sync_mode: "incremental", ...mode } }];
    const [configured] = parseConfiguredCatalog({ streams });
    return await streamRun(session, spec, { configured: configured as ConfiguredStream, ...more }, saved);
  }

  it.each([
    ["people", {}, undefined],
    ["people", REFRESH, '"people"'],
    ["sources", {}, '"sources"'],
    ["sources", REFRESH, '"sources"'],
  ])("of a shard of %s, read as %j, needs days and goes on from a state: %s", async (name, mode, refused) => {
    const run = runOf(name, mode, undefined, { shard: SHARD });
    if (refused === undefined)
      expect(await run).toMatchObject({
        settings: { bringsUndated: false },
        saved: { state: { plan: "a plan" } },
      });
    else await expect(run).rejects.toThrow(`Cannot read a shard of ${refused}`);
  });

  it.each([
    ["people", {}, DATED, { kind: "read", state: { discoveredAt: DATED.discoveredAt } }],
    ["people", {}, undefined, { kind: "read", state: { discoveredAt: null } }],
    ["people", REFRESH, { ...DATED, ...DONE }, { kind: "delivered" }],
    ["sources", {}, DATED, { kind: "read", state: { discoveredAt: null, full_refresh: null } }],
    ["sources", REFRESH, DONE, { kind: "delivered", state: DONE }],
    ["sources", REFRESH, { ...DONE, full_refresh: { ...DONE.full_refresh, sync_id: 3 } }, { kind: "read" }],
  ])("of %s, read as %j, goes on from %j", async (name, mode, saved, resumed) => {
    const { source, saved: found, endsAt, keyId, settings } = await runOf(name, mode, saved);
    expect(found).toMatchObject(resumed);
    const isDated = name === "people";
    const onMissingKey = isDated ? "reject" : "pass";
    expect(source).toEqual({ isDated, isListed: true, isExported: isDated, onMissingKey });
    expect([endsAt, settings.bringsUndated, keyId.length]).toEqual([undefined, undefined, 16]);
  });
});

describe("streamEvents()", () => {
  it("reads a full refresh to its end, however little time the run may take", async () => {
    await using sandbox = await startSandbox({ people: 1_200, requestsPerMinute: 0 });
    const config = await configFor(sandbox, {
      ...{ max_window_rows: 1_000, max_run_seconds: 1, requests_per_minute: 6_000 },
    });
    const rowsOf = async (settings: object): Promise<readonly [number | null, number]> => {
      const args = ["read", "--config", config, "--catalog", await catalogFor({ people: settings })];
      // The time is up before the second window.
      const { code, messages } = await connector(args, { clock: hurriedClock(1_000) });
      return [code, messages.filter(({ type }) => type === "RECORD").length];
    };
    const refresh = { sync_mode: "full_refresh", generation_id: 1, sync_id: 1 };
    expect(await rowsOf(refresh)).toEqual([0, sandbox.people().length]);
    expect((await rowsOf({}))[1]).toBeLessThan(sandbox.people().length);
  });

  it("leaves rows without a key out only where the destination merges by key", async () => {
    await using sandbox = await startSandbox({ companies: 7, requestsPerMinute: 0 });
    const config = await configFor(sandbox);
    const rows = { append_dedup: 6, overwrite_dedup: 6, append: 7 };
    for (const [destination_sync_mode, count] of Object.entries(rows)) {
      sandbox.fault("keyless=1:times=always");
      const catalog = await catalogFor({ companies: { destination_sync_mode } });
      const { code, messages } = await connector(["read", "--config", config, "--catalog", catalog]);
      const records = messages.filter(({ type }) => type === "RECORD").length;
      expect([code, records], destination_sync_mode).toEqual([0, count]);
    }
  });

  it("says in every run that companies without a list cannot be counted, and what to do", async () => {
    const options = { people: 5, companies: 7, companyList: false, requestsPerMinute: 0 };
    await using sandbox = await startSandbox(options);
    const config = await configFor(sandbox);
    const args = ["read", "--config", config, "--stream", "companies", "--format", "airbyte"];
    const { code, messages } = await connector(args);
    expect([code, messages.filter(({ type }) => type === "RECORD").length]).toEqual([0, 7]);
    const warnings = messages.flatMap(({ log }) => (log?.level === "WARN" ? [log.message] : []));
    expect(warnings).toEqual([expect.stringMatching(/Cannot count.*endpoints\.companies.*verify_counts/)]);
  });
});
