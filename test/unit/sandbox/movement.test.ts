import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Person } from "../../../sandbox/data/people.ts";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { runs } from "../../support/runs.ts";
import { list, stream, totalOf } from "./http.ts";

const NOW = "2026-03-15T10:00:00.000Z";
const TODAY = "2026-03-15";
const DAY_MS = 86_400_000;

const dayBefore = (days: number): string =>
  new Date(Date.parse(TODAY) - days * DAY_MS).toISOString().slice(0, 10);

type Window = Readonly<Record<"from" | "to", string | undefined>>;

function isInside({ discoveredAt }: { discoveredAt?: string | null }, { from, to }: Window): boolean {
  if (from === undefined && to === undefined) return true;
  const day = discoveredAt?.slice(0, 10);
  return day !== undefined && (from === undefined || day >= from) && (to === undefined || day <= to);
}

const isWanted = ({ sources }: Person, isUser: string): boolean =>
  isUser === "all" || sources.length > 0 === (isUser === "true");

const days = fc.option(fc.integer({ min: -2, max: 45 }).map(dayBefore), { nil: undefined });

const windows = fc.record({ from: days, to: days, isUser: fc.constantFrom("all", "true", "false") });

function queryOf({ from, to, isUser }: Window & { readonly isUser: string }): string {
  const query = new URLSearchParams({ is_user: isUser });
  if (from !== undefined) query.set("discovered_from", from);
  if (to !== undefined) query.set("discovered_to", to);
  return query.toString();
}

async function moved(): Promise<Sandbox> {
  const sandbox = await startSandbox({ now: NOW, people: 400, undated: 5, days: 40, requestsPerMinute: 0 });
  sandbox.recheck(7);
  sandbox.advance(DAY_MS);
  sandbox.recheck(20, { isUser: true });
  sandbox.recheck(5, { isUser: false });
  sandbox.arrive(6);
  sandbox.advance(-DAY_MS / 2);
  sandbox.recheck(9);
  return sandbox;
}

describe("filters", () => {
  it("agree between the count, the stream, the pages and everyone there is", async () => {
    await using sandbox = await moved();
    const everyone = sandbox.people();
    await fc.assert(
      fc.asyncProperty(windows, fc.integer({ min: 3, max: 90 }), async (window, limit) => {
        const expected = everyone.filter(
          (person) => isInside(person, window) && isWanted(person, window.isUser),
        );
        const query = queryOf(window);
        expect(await totalOf(sandbox, `&${query}`)).toBe(expected.length);
        expect(await stream(sandbox, `?${query}`)).toEqual(expected);
        const page = 1 + (limit % Math.max(1, Math.ceil(expected.length / limit)));
        const { data } = await list(sandbox, `?${query}&limit=${limit}&page=${page}`);
        expect(data).toEqual(expected.slice((page - 1) * limit, page * limit));
      }),
      { numRuns: runs(20, 60) },
    );
  });
});

describe("a stream while people move", () => {
  const MOVING = { now: NOW, people: 1000, days: 40, faults: ["recheck=100:after=500"] };

  it("drops rows that left its window before their turn came", async () => {
    await using sandbox = await startSandbox(MOVING);
    const window = `&discovered_to=${dayBefore(1)}`;
    const total = await totalOf(sandbox, window);
    const rows = await stream(sandbox, `?${window}`);
    expect(rows.length).toBeLessThan(total - 30);
    expect(rows.length).toBeGreaterThan(total - 100);
    expect(await totalOf(sandbox, window)).toBe(total - 100);
    expect(await stream(sandbox, `?discovered_from=${TODAY}`)).toHaveLength(1000 - total + 100);
  });
});
