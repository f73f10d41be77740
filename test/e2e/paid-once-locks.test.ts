import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { CONNECTOR, type Ended, file, run } from "../support/cli.ts";
import { CountingService } from "../support/counting-service.ts";
import { jobConfig } from "../support/job-stage.ts";
import { tempDir } from "../support/temp-dir.ts";

vi.setConfig({ testTimeout: 60_000 });

const EMAILS = Array.from({ length: 8 }, (_, nth) => `e${nth}@x.example`);
const WAIT = { timeout: 30_000 };
const RECEIPTS = "receipts.jsonl";

/** Files that keep two runs apart: the locked file, the receipts, and the option that names the file. */
const SHARED = [
  ["receipts", RECEIPTS, RECEIPTS, []],
  ["--state-file", "state.json", "", ["--state-file", "state.json"]],
  ["--output", join("out", "state.json"), "", ["--output", "out"]],
] as const;

describe.each(SHARED)("two runs on one file: %s", (_, locked, receipts, [option, path]) => {
  it("refuses the second before any request, and the first buys nothing more once another has its lock", async () => {
    await using service = await CountingService.start();
    await using other = await CountingService.start();
    const folder = await tempDir();
    const read = async (at: CountingService, asProcess: boolean): Promise<Ended> => {
      const receipts_file = receipts === "" ? "" : join(folder, receipts);
      const jobs = { receipts_file, email_verification: { emails: EMAILS } };
      const config = await file("config.json", jobConfig(at, jobs));
      const args = option === undefined ? [] : [option, resolve(folder, path)];
      const words = ["read", "--config", config, "--stream", "email_verifications", ...args];
      return await run(CONNECTOR, words, { asProcess });
    };
    let go = (): void => {};
    const released = new Promise<void>((resolve) => {
      go = resolve;
    });
    // The first request asks what time it is, the second is a submission.
    service.behaviour = { until: async () => (service.requests.length > 1 ? await released : undefined) };
    const first = read(service, true);
    await expect.poll(() => service.requests.length, WAIT).toBeGreaterThan(1);
    const second = await read(other, false);
    const said = `${second.stdout}${second.stderr}`.replaceAll("\\", "");
    expect(second.code).toBe(1);
    expect(said).toContain(`Cannot use "${join(folder, locked)}": another run is using it (started `);
    expect(other.requests).toEqual([]);
    await writeFile(join(folder, `${locked}.lock`), '{"token":"another"}\n');
    go();
    const { code, stdout, stderr } = await first;
    expect(code).toBe(1);
    expect(stdout + stderr).toContain("Another run took it over, or a person removed it");
    expect(service.bought).toEqual(["e0@x.example"]);
  });
});
