import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { allContestants } from "../../../storm/contestant.ts";
import type { Verdict } from "../../../storm/judge.ts";
import { compared } from "../../../storm/main.ts";
import { type Entry, section, toPage, toStable } from "../../../storm/page.ts";
import { SITUATIONS } from "../../../storm/situations.ts";
import { ROOT } from "../../support/run.ts";

const VERDICT: Verdict = {
  lost: 7,
  lostForGood: 7,
  twice: 0,
  exit: 0,
  told: false,
  met: true,
  notes: [],
  requests: 3,
  seconds: 4,
};
const contestants = allContestants();

const entries = (change: Partial<Verdict> = {}, skipped?: string): readonly Entry[] =>
  contestants.map((contestant, nth) => ({
    contestant,
    verdicts:
      nth === 1 && skipped !== undefined
        ? new Map()
        : new Map(SITUATIONS.map(({ name }) => [name, { ...VERDICT, ...change }])),
    skipped: nth === 1 ? skipped : undefined,
  }));

/** The exit code of a comparison with a page that says VERDICT everywhere, and what is printed. */
function comparison(now: readonly Entry[]): { readonly code: number; readonly said: string } {
  const said: string[] = [];
  const page = (of: readonly Entry[]): string => toPage(SITUATIONS, of);
  const code = compared(page(entries()), page(now), (text) => said.push(text));
  return { code, said: said.join("\n") };
}

describe("docs/storm.md", () => {
  const page = readFileSync(`${ROOT}docs/storm.md`, "utf8");

  it("has every situation with its reason, and every contestant in each", () => {
    const lines = toStable(page);
    const expected = SITUATIONS.flatMap(({ name }) => [
      `### ${name}`,
      ...contestants.map((contestant) => `| ${contestant.name}`),
    ]);
    expect(lines.map((line) => line.split(" | ")[0])).toEqual(expected);
    for (const { why } of SITUATIONS) expect(page).toContain(`\n${why}\n`);
  });

  it("names what was chosen for each contestant, with versions", () => {
    for (const { choice, versions } of contestants) {
      expect(page).toContain(choice);
      for (const version of versions) expect(page).toContain(version);
    }
  });
});

describe("compared()", () => {
  it("finds no difference in requests, seconds and notes", () => {
    expect(comparison(entries({ requests: 9, seconds: 1, notes: ["x"] })).code).toBe(0);
  });

  it.each([
    { lost: 8 },
    { lostForGood: 6 },
    { twice: 1 },
    { exit: 1 },
    { told: true },
    { met: false },
  ] as const)("finds a difference: %o", (change) => {
    const { code, said } = comparison(entries(change));
    expect(code).toBe(1);
    expect(said).toContain("DIFFERENT ### calm | this connector");
  });

  it("leaves out who is skipped, and names them on the page", () => {
    const now = entries({}, "no Python on the path");
    expect(comparison(now)).toMatchObject({ code: 0 });
    expect(section(SITUATIONS[0] ?? { name: "", why: "", faults: [] }, now)).toContain(
      "| skipped: no Python on the path |",
    );
    expect(toPage(SITUATIONS, now)).toContain("*Skipped: no Python on the path.*");
  });
});

describe("toPage()", () => {
  it("says where this connector does worse than another", () => {
    const [ours, other, ...rest] = entries({ lost: 0, lostForGood: 0 });
    if (ours === undefined || other === undefined) throw new Error("There are no contestants");
    const worse = new Map([...ours.verdicts, ["calm", { ...VERDICT, requests: 99 }] as const]);
    const page = toPage(SITUATIONS, [{ ...ours, verdicts: worse }, other, ...rest]);
    expect(page).toMatch(
      /- calm: LOST, where .*did better; 99 requests; of the others nobody needed more than 3\n/,
    );
  });
});
