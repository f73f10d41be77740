import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { CountingService } from "../support/counting-service.ts";
import { jobConfig } from "../support/job-stage.ts";
import { tempDir } from "../support/temp-dir.ts";

vi.setConfig({ testTimeout: 60_000 });

const EMAILS = Array.from({ length: 8 }, (_, nth) => `e${nth}@x.example`);
const RECEIPTS = "receipts.jsonl";

/** What keeps two runs apart: the file that is locked, the receipts, and how a run is told of the file. */
const SHARED = [
  ["receipts", RECEIPTS, RECEIPTS, []],
  ["--state-file", "state.json", "", ["--state-file", "state.json"]],
  ["--output", join("out", "state.json"), "", ["--output", "out"]],
] as const;

async function read(
  service: CountingService,
  folder: string,
  receipts: string,
  [option, path]: readonly string[],
  asProcess = false,
): ReturnType<typeof run> {
  const receipts_file = receipts === "" ? "" : join(folder, receipts);
  const config = await file(
    "config.json",
    jobConfig(service, { receipts_file, email_verification: { emails: EMAILS } }),
  );
  const args = option === undefined ? [] : [option, resolve(folder, path ?? "")];
  return await run(CONNECTOR, ["read", "--config", config, "--stream", "email_verifications", ...args], {
    asProcess,
  });
}

describe.each(SHARED)("two runs on one file: %s", (_, locked, receipts, args) => {
  it("refuses the second before any request, with exit 1 and what it found", async () => {
    await using service = await CountingService.start();
    await using other = await CountingService.start();
    const folder = await tempDir();
    let go = (): void => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    service.behaviour = { until: () => held };
    const first = read(service, folder, receipts, args, true);
    await expect.poll(() => service.requests.length, { timeout: 30_000 }).toBeGreaterThan(0);
    const { code, stdout, stderr } = await read(other, folder, receipts, args, true);
    go();
    expect(code).toBe(1);
    expect(stdout + stderr).toContain("another run is using it (started ");
    expect(`${stdout}${stderr}`.replaceAll("\\", "")).toContain(`Cannot use "${join(folder, locked)}"`);
    expect(other.requests).toEqual([]);
    expect((await first).code).toBe(0);
    expect(service.bought.toSorted()).toEqual(EMAILS);
  });

  it("submits nothing more once another run has taken the lock", async () => {
    await using service = await CountingService.start();
    const folder = await tempDir();
    const refuse = () => {
      writeFileSync(join(folder, `${locked}.lock`), '{"token":"another"}\n');
      return undefined;
    };
    service.behaviour = { refuse };
    const { code, stdout, stderr } = await read(service, folder, receipts, args);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain("because another run took it over or it was removed");
    expect(service.bought).toEqual(["e0@x.example"]);
  });
});
