import fc from "fast-check";
import { describe, it, vi } from "vitest";
import { check, ONE_ROW, type Plan, plan } from "../../support/folder-chain.ts";
import { runs } from "../../support/runs.ts";

vi.mock("node:fs/promises", async (original) =>
  (await import("../../support/memory-disk.ts")).standIns(original),
);

describe("a folder over crashes", () => {
  it("contains exactly the records that the state covers, in every chain of runs, kills and power cuts", async () => {
    const numRuns = Number(process.env["FOLDER_CHAINS"] ?? runs(50, 150));
    await fc.assert(
      fc.asyncProperty(
        fc.array(plan, { minLength: 1, maxLength: 4 }),
        async (plans) => void (await check(plans)),
      ),
      { numRuns },
    );
  });

  it("contains them after a power cut at each operation of a run that repairs a killed run", async () => {
    const choices = Array(20).fill(0);
    const one: Plan = { ...ONE_ROW, choices };
    const operations = await check([one]);
    for (let killedAt = 1; killedAt <= operations; killedAt += 1) {
      const killed: Plan = { ...one, end: "kill", crashAt: killedAt };
      for (let crashAt = 1; crashAt <= 30; crashAt += 1)
        await check([killed, { ...one, end: "power", crashAt }]);
    }
  });
});
