import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Person } from "../../../sandbox/data/people.ts";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { runs } from "../../support/runs.ts";
import { COMPANIES, list, stream, totalOf } from "./http.ts";

const NOW = "2026-03-15T10:00:00.000Z";
const TODAY = "2026-03-15";
const DAY_MS = 86_400_000;

const dayBefore = (days: number): string =>
  new Date(Date.parse(TODAY) - days * DAY_MS).toISOString().slice(0, 10);

type Window = { readonly from: string | undefined; readonly to: string | undefined };

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

  it("narrow companies by date in the same way", async () => {
    await using sandbox = await startSandbox({ now: NOW, companies: 90, days: 30, requestsPerMinute: 0 });
    const everything = sandbox.companies();
    await fc.assert(
      fc.asyncProperty(windows, async (window) => {
        const expected = everything.filter((company) => isInside(company, window));
        const query = queryOf({ ...window, isUser: "all" });
        expect(await totalOf(sandbox, `&${query}`, COMPANIES)).toBe(expected.length);
        expect(await stream(sandbox, `?${query}`, `${COMPANIES}/stream`)).toEqual(expected);
      }),
      { numRuns: 20 },
    );
  });

  it("split the people checked for a source into its users and the others", async () => {
    await using sandbox = await moved();
    for (const { slug } of sandbox.sources()) {
      const all = await stream(sandbox, `?source=${slug}`);
      const users = await stream(sandbox, `?source=${slug}&is_user=true`);
      const others = await stream(sandbox, `?source=${slug}&is_user=false`);
      expect(users).toEqual(sandbox.people().filter(({ sources }) => sources.includes(slug)));
      expect(others.some(({ sources }) => sources.includes(slug))).toBe(false);
      expect(users.length + others.length).toBe(all.length);
      expect(all.length).toBeLessThan(sandbox.people().length);
      expect(others.length).toBeGreaterThan(0);
      expect(await totalOf(sandbox, `&source=${slug}&is_user=false`)).toBe(others.length);
    }
  });

  it("count discovered_days back from today", async () => {
    await using sandbox = await startSandbox({ now: NOW, people: 400, days: 40 });
    const two = sandbox.people().filter(({ discoveredAt }) => (discoveredAt ?? "") >= dayBefore(1));
    expect(two.length).toBeGreaterThan(5);
    expect(await stream(sandbox, "?discovered_days=2")).toEqual(two);
    sandbox.advance(DAY_MS);
    expect((await stream(sandbox, "?discovered_days=2")).length).toBeLessThan(two.length);
  });
});

describe("recheck()", () => {
  it("moves people to now and changes nothing else about them", async () => {
    await using sandbox = await startSandbox({ now: NOW, people: 100, undated: 2 });
    const before = new Map(sandbox.people().map((person) => [person.id, person]));
    sandbox.advance(DAY_MS);
    sandbox.recheck(10);
    const after = sandbox.people();
    expect(after).toHaveLength(102);
    const changed = after.filter(({ id, discoveredAt }) => before.get(id)?.discoveredAt !== discoveredAt);
    expect(changed).toEqual(after.slice(0, 10));
    for (const { discoveredAt, ...rest } of changed) {
      expect(discoveredAt?.slice(0, 10)).toBe("2026-03-16");
      expect(before.get(rest.id)).toEqual({ ...rest, discoveredAt: expect.any(String) });
    }
    expect(await totalOf(sandbox, "&discovered_to=2026-03-15")).toBe(90);
  });

  it("says what the new check found", async () => {
    await using sandbox = await startSandbox({ people: 100, undated: 0 });
    sandbox.recheck(100, { isUser: false });
    expect(await stream(sandbox, "?is_user=true")).toEqual([]);
    sandbox.recheck(30, { isUser: true });
    expect(await stream(sandbox, "?is_user=true")).toHaveLength(30);
  });
});

describe("arrive()", () => {
  it("brings new people, first in line", async () => {
    await using sandbox = await startSandbox({ people: 10, undated: 2 });
    const known = new Set(sandbox.people().map(({ id }) => id));
    sandbox.arrive(3);
    const rows = await stream(sandbox);
    expect(rows.map(({ id }) => known.has(id))).toEqual([false, false, false, ...Array(12).fill(true)]);
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

  it("shows rows as they are by then if they are still inside", async () => {
    await using sandbox = await startSandbox(MOVING);
    const rows = await stream(sandbox, "?discovered_from=2020-01-01");
    expect(new Set(rows.map(({ id }) => id)).size).toBe(1000);
    expect(rows).toHaveLength(1000);
    const fresh = rows.slice(500).filter(({ discoveredAt }) => discoveredAt?.startsWith(TODAY));
    expect(fresh.length).toBeGreaterThan(40);
  });

  it("can turn answers round, bring people and pass midnight", async () => {
    await using sandbox = await startSandbox({ now: NOW, people: 200, days: 40, requestsPerMinute: 0 });
    const users = await totalOf(sandbox, "&is_user=true");
    sandbox.fault("flip=10:after=0", "arrive=7:after=all", "midnight");
    expect(await stream(sandbox, "?is_user=true")).toHaveLength(users - 10);
    expect(await totalOf(sandbox, "&is_user=false")).toBeGreaterThanOrEqual(203 - users + 10);
    expect(sandbox.people()).toHaveLength(210);
    const { headers } = await fetch(sandbox.url);
    expect(headers.get("date")).toMatch(/^Mon, 16 Mar 2026 00:01/);
  });
});
