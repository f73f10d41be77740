import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { CountingService } from "../support/counting-service.ts";
import { digestsOf, verifiedState } from "../support/job-states.ts";
import { tempDir } from "../support/temp-dir.ts";

/** What keeps two runs apart: the file that is locked, and how a run is told of it. */
type Shared = {
  readonly name: string;
  readonly locked: (folder: string) => string;
  readonly receipts: (folder: string) => string;
  readonly args: (folder: string) => readonly string[];
};

const SHARED: readonly Shared[] = [
  {
    name: "receipts",
    locked: (folder) => join(folder, "receipts.jsonl"),
    receipts: (folder) => join(folder, "receipts.jsonl"),
    args: () => [],
  },
  {
    name: "--state-file",
    locked: (folder) => join(folder, "state.json"),
    receipts: () => "",
    args: (folder) => ["--state-file", join(folder, "state.json")],
  },
  {
    name: "--output",
    locked: (folder) => join(folder, "out", "state.json"),
    receipts: () => "",
    args: (folder) => ["--output", join(folder, "out")],
  },
];
const EMAILS = Array.from({ length: 8 }, (_, nth) => `e${nth}@x.example`);

async function read(
  { url }: CountingService,
  folder: string,
  shared: Shared,
  { emails = EMAILS, asProcess = false } = {},
): ReturnType<typeof run> {
  const config = await file("config.json", {
    base_url: url,
    api_key: "k",
    requests_per_minute: 6000,
    receipts_file: shared.receipts(folder),
    external_api: { api_url: url, api_key: "k" },
    email_verification: { emails },
  });
  const args = ["read", "--config", config, "--stream", "email_verifications", ...shared.args(folder)];
  return await run(CONNECTOR, args, { asProcess });
}

describe.each(SHARED)("two runs on one file: $name", { timeout: 60_000 }, (shared) => {
  it("refuses the second before any request, with exit 1 and what it found", async () => {
    await using service = await CountingService.start();
    await using other = await CountingService.start();
    const folder = await tempDir();
    let go = (): void => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    service.behaviour = { until: () => held };
    const first = read(service, folder, shared, { asProcess: true });
    await expect.poll(() => service.requests.length, { timeout: 30_000 }).toBeGreaterThan(0);
    const second = await read(other, folder, shared, { asProcess: true });
    go();
    expect(second.code).toBe(1);
    expect(second.stdout + second.stderr).toContain("another run is using it (started ");
    expect(`${second.stdout}${second.stderr}`.replaceAll("\\", "")).toContain(
      `Cannot use "${shared.locked(folder)}"`,
    );
    expect(other.requests).toEqual([]);
    expect((await first).code).toBe(0);
    expect(service.bought.toSorted()).toEqual(EMAILS);
  });

  it("submits nothing more once another run has taken the lock", async () => {
    await using service = await CountingService.start();
    const folder = await tempDir();
    const lock = `${shared.locked(folder)}.lock`;
    service.behaviour = {
      refuse: () => {
        writeFileSync(lock, `${JSON.stringify({ token: "another" })}\n`);
        return undefined;
      },
    };
    const { code, stdout, stderr } = await read(service, folder, shared);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain("because another run took it over or it was removed");
    expect(service.bought).toEqual(["e0@x.example"]);
  });
});

describe("a batch of submissions that one state covers", { timeout: 60_000 }, () => {
  it("ends in its midst when another run has taken the lock", async () => {
    await using service = await CountingService.start();
    const folder = await tempDir();
    const [receipts] = SHARED;
    if (receipts === undefined) throw new Error("no receipts");
    const done = digestsOf(Array.from({ length: 30_000 }, (_, nth) => `done${nth}@x.example`));
    const state = await file("state.json", { email_verifications: verifiedState(done) });
    const shared = { ...receipts, args: () => ["--state", state] };
    const emails = Array.from({ length: 500 }, (_, nth) => `e${nth}@x.example`);
    let taken = 0;
    service.behaviour = {
      refuse: () => {
        taken += 1;
        if (taken === 12) writeFileSync(`${shared.locked(folder)}.lock`, '{"token":"another"}\n');
        return undefined;
      },
    };
    const { code, stdout } = await read(service, folder, shared, { emails });
    expect(code).toBe(1);
    const first = stdout.split("\n").find((line) => line.includes('"STATE"')) ?? "";
    // Until one is answered, a kill leaves one in doubt.
    expect(JSON.parse(first).state.stream.stream_state.jobs).toHaveLength(1);
    // Ten may be under way at once.
    expect(service.bought.length).toBeLessThanOrEqual(12 + 10);
  });
});
