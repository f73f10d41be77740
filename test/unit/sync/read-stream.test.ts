import { describe, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { connector } from "../../support/cli.ts";
import { catalogFor, configFor } from "../../support/configs.ts";
import { hurriedClock } from "../../support/in-process.ts";

describe("a stream", () => {
  it("reads a full refresh to its end, however little time the run may take", async () => {
    await using sandbox = await startSandbox({ people: 1_200 });
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
    await using sandbox = await startSandbox({ companies: 7 });
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
});
