import fc from "fast-check";
import { expect, it } from "vitest";
import { addDays, dayOf } from "../../../src/base/time.ts";
import { csvOf, ids, type Row } from "../../support/reconcile.ts";
import { runs } from "../../support/runs.ts";
import { compared, NOW } from "./compared.ts";

it("a comparison by counts names each lost row, and reads little more than its day", async () => {
  const account = fc.array(fc.record({ day: fc.nat(199), hour: fc.nat(3) }), {
    minLength: 60,
    maxLength: 400,
  });
  await fc.assert(
    fc.asyncProperty(
      account,
      fc.array(fc.nat(399), { maxLength: 4 }),
      fc.boolean(),
      async (all, picks, isAged) => {
        // The table may end days before the comparison.
        const last = addDays(dayOf(NOW), isAged ? -9 : 0);
        const rows = all.map(({ day, hour }, nth) => ({
          id: `p${nth}`,
          discoveredAt: `${addDays(last, day - 199)}T0${hour}:00:00Z`,
        }));
        rows.push({ id: "newest", discoveredAt: `${last}T04:00:00Z` });
        const lost = new Set(picks.filter((nth) => nth < all.length).map((nth) => `p${nth}`));
        const table = rows.filter(({ id }) => !lost.has(id));
        let requests = 0;
        const within = (from?: string, to?: string): Row[] => {
          requests += 1;
          return rows.filter(
            ({ discoveredAt: at }) => at.slice(0, 10) >= (from ?? "") && at.slice(0, 10) <= (to ?? "9"),
          );
        };
        const found = await compared(csvOf(table), ({ from, to }) => within(from, to), {
          mode: "counts",
          requests: () => requests,
          api: {
            now: () => NOW,
            count: async (window) => ({
              rows: window.kind === "closed" ? within(window.from, window.to).length : rows.length,
              ...{ undated: 0, known: true, asked: NOW, answered: NOW },
            }),
          },
        });
        const lines = (found.lists["lost.jsonl"] ?? "").split("\n").slice(0, -1);
        expect(ids(lines.map((line) => JSON.parse(line) as Row))).toEqual([...lost].sort());
        expect(found).toMatchObject({
          lost: lost.size,
          stale: 0,
          gone: null,
          unanswered: [],
          not_looked_at: [],
        });
        expect(found.rows_read).toBeGreaterThan(0);
        expect(found.rows_read).toBeLessThan(rows.length / 4 + 12 * (lost.size + 3));
        expect(requests).toBeLessThan(80 + 20 * lost.size);
      },
    ),
    { numRuns: runs(12, 2_000) },
  );
});
