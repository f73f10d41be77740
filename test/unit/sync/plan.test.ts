import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BEGINNING } from "../../../src/base/time.ts";
import type { Window } from "../../../src/sync/window.ts";
import { type ModelOptions, type ModelService, peopleOn } from "../../support/model-service.ts";
import { expectAll, lastDays, NOW, serviceOf, sync } from "../../support/people-sync.ts";
import { runs } from "../../support/runs.ts";

/** The windows whose exports a service was asked for. */
const exportsOf = ({ asked }: ModelService): Window[] =>
  asked.filter(({ what }) => what === "stream").map(({ window }) => window);

const accountOf = (amounts: readonly number[], options: Partial<ModelOptions> = {}): ModelService => {
  const people = lastDays(amounts.length).flatMap((one, nth) =>
    peopleOn([one], amounts[nth] ?? 0).map((person) => ({ ...person, id: `${one} ${person.id}` })),
  );
  return serviceOf(
    people.filter(({ at }) => (at ?? 0) < NOW - 5_000),
    options,
  );
};

describe("the windows of a first sync", () => {
  it("contain each row once, oldest first, and at most the rows of one read", async () => {
    const amounts = fc.array(fc.constantFrom(0, 0, 0, 1, 2, 9, 40), { maxLength: 80 });
    await fc.assert(
      fc.asyncProperty(amounts, fc.constantFrom(10, 45, 1_000), async (given, maxWindowRows) => {
        const service = accountOf(given);
        const ran = await sync(service, { maxWindowRows, numWorkers: 1 });
        expectAll(service, ran);
        expect(ran.covered).toEqual([[BEGINNING, "2026-03-18"]]);
        const windows = exportsOf(service);
        const froms = windows.map((window) => ("from" in window ? window.from : ""));
        expect(froms).toEqual([...froms].sort());
        expect(windows.at(-1)?.kind).toBe("open");
        for (const window of windows) {
          if (window.kind !== "closed" || window.from === window.to) continue;
          const rows = ran.lines.filter((line) => {
            const one = String(JSON.parse(line).discoveredAt).slice(0, 10);
            return one >= window.from && one <= window.to;
          });
          expect(rows.length).toBeLessThanOrEqual(maxWindowRows);
        }
      }),
      { numRuns: runs(8, 200) },
    );
  });

  it.each<[string, Partial<ModelOptions>]>([
    ["the list shows nothing so deep", { list: (rows) => rows.slice(0, 20) }],
    ["the last in the list is not the oldest", { list: (rows) => rows.toReversed() }],
  ])("begin with a single oldest row, years before the others, where %s", async (_, options) => {
    const amounts = [1, ...Array<number>(1_200).fill(0), ...Array<number>(60).fill(3)];
    const service = accountOf(amounts, options);
    const ran = await sync(service, { maxWindowRows: 30 });
    expectAll(service, ran);
    expect(exportsOf(service)[0]).toMatchObject({ kind: "closed" });
  });

  it("are read by at most as many exports at once as there are workers", async () => {
    let most = 0;
    const service = accountOf(Array(60).fill(5), {
      moment: ({ open }) => {
        most = Math.max(most, open.size);
      },
    });
    await sync(service, { maxWindowRows: 20, numWorkers: 3 });
    expect(most).toBe(3);
  });
});
