import { describe, expect, it } from "vitest";
import { history } from "../../support/histories.ts";
import { runs } from "../../support/runs.ts";

describe("reconcile", () => {
  const HISTORIES = Number(process.env["TEST_SEEDS"] ?? runs(12, 24));

  it(`calls nobody alive gone and misses no lost row, in ${HISTORIES} histories`, {
    timeout: 3_600_000,
  }, async () => {
    const answers: Record<string, number> = {};
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const codes = await history(seed);
      answers[codes] = (answers[codes] ?? 0) + 1;
    }
    expect(Object.keys(answers)).toContain("1 1");
  });
});
