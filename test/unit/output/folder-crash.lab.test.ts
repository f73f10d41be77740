import fc from "fast-check";
import { describe, it, vi } from "vitest";
import { check, plan } from "../../support/folder-chain.ts";
import { runs } from "../../support/runs.ts";

vi.mock("node:fs/promises", async (original) =>
  (await import("../../support/memory-disk.ts")).standIns(original),
);

describe("a folder over crashes", () => {
  it("holds exactly the records that the state covers, in every chain of runs, kills and power cuts", async () => {
    const numRuns = Number(process.env["FOLDER_CHAINS"] ?? runs(50, 150));
    await fc.assert(
      fc.asyncProperty(
        fc.array(plan, { minLength: 1, maxLength: 4 }),
        async (plans) => void (await check(plans)),
      ),
      { numRuns },
    );
  });
});
