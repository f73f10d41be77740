import { beforeAll, describe, expect, it } from "vitest";
import type { Sandbox } from "../../sandbox/server.ts";
import { aheadOfDelivery, Destination } from "../lab/faultlab/invariants.ts";
import {
  type ProcessOutcome,
  type ProcessSettings,
  readInProcess,
  readProcess,
} from "../lab/faultlab/process.ts";
import { withSandbox } from "../lab/faultlab/read-once.ts";
import { runs } from "../support/runs.ts";
import { tempDir } from "../support/temp-dir.ts";

const CONFIG = { maxWindowRows: 1_000, numWorkers: 2, lookbackWindowDays: 1, isUser: "all" } as const;
const SANDBOX = { people: 2_400, undated: 4, days: 100, requestsPerMinute: 0, now: "2026-03-20T10:00:00Z" };

/** At how many places in its output a run is killed. */
const KILLS = runs(2, 8);
const LINES = [1_201, 2, 2_000, 50, 800, 4, 1, 2_408].slice(0, KILLS);
const BYTES = [700_001, 70_000, 10].slice(0, KILLS);

let directory = "";
beforeAll(async () => {
  directory = await tempDir();
});

type How = Partial<Pick<ProcessSettings, "killAfterLines" | "killAfterBytes" | "signal" | "closeInstead">>;

/** Runs, is killed, and runs again from the last whole STATE; returns the first run. */
async function killAndResume(sandbox: Sandbox, how: How): Promise<ProcessOutcome> {
  const base = { sandbox, config: CONFIG, directory };
  const served = sandbox.people();
  const destination = new Destination();
  const first = await readProcess({ ...base, state: null, ...how });
  expect(aheadOfDelivery(first, destination, served, true)).toEqual([]);
  destination.take(first.records);
  const rest = await readInProcess({ ...base, state: first.checkpoints.at(-1)?.state ?? null });
  expect(rest.code, rest.stderr).toBe(0);
  destination.take(rest.records);
  expect(destination.lacks(served)).toEqual([]);
  return first;
}

describe("read, killed", () => {
  it("has all rows in the union after SIGKILL at any line", async () => {
    await withSandbox(SANDBOX, async (sandbox) => {
      let struck = 0;
      for (const line of LINES) {
        const { endedBy } = await killAndResume(sandbox, { killAfterLines: line });
        if (endedBy === "SIGKILL") struck += 1;
      }
      expect(struck).toBeGreaterThan(KILLS / 3);
    });
  });

  it("has all rows in the union after SIGKILL in the middle of a line", async () => {
    await withSandbox(SANDBOX, async (sandbox) => {
      for (const bytes of BYTES) await killAndResume(sandbox, { killAfterBytes: bytes });
    });
  });

  it.each(["SIGTERM", "SIGINT"] as const)(
    "ends by %s before everything is read, with whole lines, and goes on from there",
    async (signal) => {
      await withSandbox({ ...SANDBOX, bytesPerSecond: 600_000 }, async (sandbox) => {
        // One window after the other, so that the first is complete by then.
        const base = { sandbox, config: { ...CONFIG, numWorkers: 1 }, directory };
        const first = await readProcess({ ...base, state: null, killAfterLines: 1_300, signal });
        expect(first.endedBy).toBe(signal);
        expect(first.records.length).toBeLessThan(sandbox.people().length);
        expect(first.stdout.endsWith("\n") || first.stdout === "").toBe(true);
        expect(first.stderr).toBe("");
        expect(first.checkpoints.length).toBeGreaterThan(0);
        const rest = await readInProcess({ ...base, state: first.checkpoints.at(-1)?.state ?? null });
        const destination = new Destination();
        destination.take([...first.records, ...rest.records]);
        expect(destination.lacks(sandbox.people())).toEqual([]);
      });
    },
  );

  it("goes on with a full refresh under the same ids after SIGKILL, and starts over under others", async () => {
    await withSandbox(SANDBOX, async (sandbox) => {
      const base = { sandbox, config: CONFIG, directory };
      const served = sandbox.people();
      const ids = { generation_id: 4, sync_id: 9 };
      const first = await readProcess({ ...base, state: null, fullRefresh: ids, killAfterLines: 1_600 });
      expect(first.endedBy).toBe("SIGKILL");
      const state = first.checkpoints.at(-1)?.state ?? null;
      expect(state).not.toBeNull();

      const rest = await readInProcess({ ...base, state, fullRefresh: ids });
      expect(rest.code, rest.stderr).toBe(0);
      expect(rest.records.length).toBeLessThan(served.length);
      const destination = new Destination();
      destination.take([...first.records, ...rest.records]);
      expect(destination.lacks(served)).toEqual([]);

      const other = await readInProcess({ ...base, state, fullRefresh: { ...ids, sync_id: 10 } });
      expect(other.code, other.stderr).toBe(0);
      expect(other.records).toHaveLength(served.length);
    });
  });

  it("ends in silence and not with 0 when nobody reads its output any more", async () => {
    await withSandbox({ ...SANDBOX, bytesPerSecond: 600_000 }, async (sandbox) => {
      const first = await killAndResume(sandbox, { killAfterLines: 600, closeInstead: true });
      expect(first.code).toBe(1);
      expect(first.stderr).toBe("");
    });
  });

  it("ends when nobody reads its output and the service has fallen silent, before that is a failure", async () => {
    await withSandbox({ ...SANDBOX, faults: ["stall:after=20"] }, async (sandbox) => {
      const base = { sandbox, config: CONFIG, directory, idleSeconds: 600, mostMs: 60_000 };
      const first = await readProcess({ ...base, state: null, killAfterLines: 100, closeInstead: true });
      expect(first.code).toBe(1);
    });
  });
});
