import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Coverage, type DayRange, put, type Span, spanOf } from "../../../src/streams/coverage.ts";
import { NEW_STATE } from "../../../src/streams/dated-state.ts";
import { planWindows } from "../../../src/streams/plan.ts";
import { measureDays, type Range } from "../../../src/streams/range.ts";
import type { Count, StreamApi } from "../../../src/streams/stream-api.ts";
import { closedWindow, type DatedWindow, type Window } from "../../../src/streams/window.ts";
import type { Planned } from "../../../src/streams/window-result.ts";
import { WindowSize } from "../../../src/streams/window-size.ts";
import { addDays, BEGINNING, type Day, daysBetween, earlier, startOf } from "../../../src/time.ts";
import { apiWith, rulesWith } from "../../support/run-rules.ts";
import { sumsOf } from "../../support/stories.ts";
import { SETTINGS } from "../../support/sync-run.ts";

const TODAY = "2026-03-20" as Day;
const YESTERDAY = "2026-03-19" as Day;
const NOW = startOf(TODAY) + 36_000_000;

type Request = { readonly what: string; readonly window: Window };

/** A service that knows only how many rows each day holds, and the requests that it was asked for. */
function accountOf(
  rowsOn: (day: Day) => number,
  days: readonly Day[],
): { api: StreamApi; requests: Request[] } {
  const requests: Request[] = [];
  const rowsIn = (window: Window): number => {
    const from = "from" in window ? window.from : BEGINNING;
    const to = window.kind === "closed" ? window.to : TODAY;
    return days.reduce((sum, day) => sum + (day >= from && day <= to ? rowsOn(day) : 0), 0);
  };
  const api = apiWith({
    count: async (window) => {
      const both = window.kind === "undated" || (window.kind === "open" && window.undated);
      for (const _ of both ? [1, 2] : [1]) requests.push({ what: "count", window });
      return { rows: rowsIn(window), undated: 0, known: true, asked: NOW, answered: NOW };
    },
    rowAt: async (window, place) => {
      requests.push({ what: "rowAt", window });
      const oldest = days.find((day) => rowsOn(day) > 0);
      const isLast = oldest !== undefined && place === rowsIn(window);
      const row = { raw: "{}" as never, key: '"x"', cursor: `${oldest}T12:00:00Z` };
      return { row: isLast ? row : undefined, total: rowsIn(window) };
    },
    now: () => NOW,
  });
  return { api, requests };
}

async function planOf(api: StreamApi, windowSize = new WindowSize(250_000)): Promise<Planned[]> {
  const range = await measureDays(NEW_STATE, SETTINGS, api);
  const plan: Planned[] = [];
  for await (const planned of planWindows(range, rulesWith({ api, windowSize }))) plan.push(planned);
  return plan;
}

const lastDays = (count: number): Day[] =>
  Array.from({ length: count }, (_, nth) => addDays(TODAY, nth + 1 - count));

describe("planWindows()", () => {
  it("covers every day that holds rows exactly once, oldest first, with its very count", async () => {
    const amounts = fc.array(fc.constantFrom(0, 0, 0, 1, 7, 900, 26_000, 130_000), { maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(amounts, async (amounts) => {
        const days = lastDays(amounts.length);
        const rowsOn = (day: Day): number => amounts[days.indexOf(day)] ?? 0;
        const { api } = accountOf(rowsOn, days);
        const plan = await planOf(api);
        const dated = plan.flatMap(({ window, count }) =>
          "from" in window && (window.kind === "open" || count?.rows !== 0) ? [window] : [],
        );
        const covered = plan.flatMap(({ window, days }) =>
          days !== undefined ? [days] : window.kind === "closed" ? [[window.from, window.to] as const] : [],
        );
        const open = plan.at(-1)?.window;
        expect(covered[0]?.[0] ?? BEGINNING).toBe(BEGINNING);
        for (const [nth, [, to]] of covered.entries()) {
          expect(addDays(to, 1)).toBe(covered[nth + 1]?.[0] ?? (open?.kind === "open" ? open.from : ""));
        }
        for (const day of days) {
          const holding = dated.filter(
            (window) => window.from <= day && (window.kind === "open" || window.to >= day),
          );
          expect(holding.length, day).toBe(rowsOn(day) > 0 || holding.length > 0 ? 1 : 0);
        }
        expect(dated.map(({ from }) => from)).toEqual(dated.map(({ from }) => from).sort());
        expect(dated.at(-1)?.kind).toBe("open");
        for (const { window, count } of plan) {
          if (window.kind !== "closed" || count?.rows === 0) continue;
          if (window.from < window.to && dated.length > 1) expect(count?.rows).toBeLessThanOrEqual(50_000);
          expect(window.to < YESTERDAY).toBe(true);
        }
      }),
    );
  });

  it("reads a small account as one open window with the people without a date, after two requests", async () => {
    const { api, requests } = accountOf(() => 10, lastDays(1000));
    expect(await planOf(api)).toMatchObject([{ window: { kind: "open", from: BEGINNING, undated: true } }]);
    expect(requests).toHaveLength(2);
  });

  it("has the first window of ten million people over ten years within five requests", async () => {
    const { api, requests } = accountOf(() => 2_740, lastDays(3_650));
    const range = await measureDays(NEW_STATE, SETTINGS, api);
    const plan = planWindows(range, rulesWith({ api }));
    expect((await plan.next()).value?.window.kind).toBe("closed");
    expect(requests.map(({ what }) => what)).toEqual(["count", "count", "rowAt", "count", "count"]);
  });

  it("takes about one count a window, and guesses at most four times the days of the span before", async () => {
    for (const rowsOn of [() => 2_740, (day: Day) => (day < "2020-01-01" ? 200 : 4_000)]) {
      const { api, requests } = accountOf(rowsOn, lastDays(3_650));
      const plan = await planOf(api);
      expect(plan.length).toBeGreaterThan(100);
      expect(requests.length).toBeLessThan(plan.length * 1.1 + 8);
    }
    const { api } = accountOf((day) => (day < "2024" ? 1 : 3_000), lastDays(3_650));
    const spans = (await planOf(api)).flatMap(({ window }) =>
      window.kind === "closed" ? [daysBetween(window.from, window.to)] : [],
    );
    const growth = spans.slice(1).map((span, nth) => span / (spans[nth] ?? span));
    expect(Math.max(...growth)).toBe(4);
  });

  it("asks for few counts where all people are of one old day, or of today", async () => {
    for (const only of [lastDays(1000)[0], YESTERDAY, TODAY]) {
      const { api, requests } = accountOf((day) => (day === only ? 1_000_000 : 0), lastDays(1000));
      await planOf(api);
      expect(requests.length).toBeLessThanOrEqual(7);
    }
  });

  it("finds the oldest day by counts where the list does not tell it", async () => {
    const days = lastDays(3_650);
    const { api, requests } = accountOf(() => 100, days);
    const plan = await planOf({ ...api, rowAt: async () => undefined });
    expect(plan[0]?.window).toMatchObject({ kind: "closed", from: days[0] });
    expect(requests.length).toBeLessThan(plan.length * 1.1 + 30);
  });

  it("finds an oldest day that holds one row alone, years before the others", async () => {
    const days = lastDays(3_650);
    const { api } = accountOf((day) => (day === days[7] ? 1 : day > "2025" ? 500 : 0), days);
    const plan = await planOf({ ...api, rowAt: async () => undefined });
    expect(plan.reduce((sum, { count }) => sum + (count?.rows ?? 0), 0)).toBeGreaterThan(1);
    expect(plan[0]).toMatchObject({ window: { kind: "closed", from: days[7] } });
  });

  it("believes no last place of the list before which rows are counted", async () => {
    const days = lastDays(3_650);
    const { api } = accountOf(() => 100, days);
    const row = { raw: "{}" as never, key: '"x"', cursor: "2026-03-01T00:00:00Z" };
    const plan = await planOf({ ...api, rowAt: async () => ({ row, total: null }) });
    expect(plan[0]?.window).toMatchObject({ kind: "closed", from: days[0] });
  });

  it("plans by fixed steps from the oldest day where the service does not count", async () => {
    const oldest = "2025-06-03" as Day;
    let probes = 0;
    const api = apiWith({
      count: async () => ({ rows: 0, undated: 0, known: false, asked: NOW, answered: NOW }),
      hasRows: async (window) => {
        probes += 1;
        return window.kind === "closed" && window.to >= oldest;
      },
    });
    const windows = (await planOf(api)).map(({ window }) => window);
    expect(windows[0]).toEqual({ kind: "closed", from: oldest, to: "2025-07-03" });
    expect(windows.at(-1)).toEqual({ kind: "open", from: YESTERDAY, undated: false });
    expect(windows.at(-2)).toEqual({ kind: "undated" });
    expect(probes).toBeLessThan(22);
  });
});

describe("WindowSize", () => {
  it("is what the service streams in ten seconds, within bounds and what the operator set", () => {
    const size = new WindowSize(250_000);
    const sizes = (
      [
        [0, 1],
        [4_999, 1],
        [20_000, 4_000],
        [20_000, 100],
        [5_000, 1_000_000],
      ] as const
    ).map(([rows, ms]) => {
      size.measure(rows, ms);
      return size.rows;
    });
    expect(sizes).toEqual([25_000, 25_000, 50_000, 100_000, 5_000]);
    const small = new WindowSize(1_000);
    small.measure(20_000, 100);
    expect([small.rows, small.smallRange, small.most]).toEqual([750, 1_000, 1_000]);
  });

  it("is halved by exports that fail, unless others brought as many rows", () => {
    const size = new WindowSize(250_000);
    const mostOnce = (act: () => void): number => {
      act();
      return size.most;
    };
    expect(mostOnce(() => size.tooLarge(6_000))).toBe(3_000);
    expect(mostOnce(() => size.tooLarge(9_000))).toBe(3_000);
    expect(mostOnce(() => size.measure(2_000, 100))).toBe(3_000);
    expect(mostOnce(() => size.tooLarge(3_000))).toBe(2_000);
    expect(mostOnce(() => size.measure(20_000, 100))).toBe(20_000);
    expect(mostOnce(() => size.tooLarge(100))).toBe(20_000);
    expect(mostOnce(() => size.dayFailed(50_000))).toBe(20_000);
    // A day of no more rows than that fails too: its rows are to blame.
    expect(mostOnce(() => size.dayFailed(900))).toBe(250_000);
  });
});

type Roll = (sides: number) => number;

/** An account that holds rows on a few of its days, and all that the planner asks of it and makes of the answers. */
async function randomPlan(roll: Roll): Promise<string[]> {
  const some = <T>(...list: readonly T[]): T => list[roll(list.length)] as T;
  const asked: string[] = [];
  const day = (most: number): Day => addDays(YESTERDAY, -roll(most));
  const length = some(9, 60, 700);
  const rows = new Map(Array.from({ length: roll(some(4, 60)) }, () => [day(length), 1 + roll(some(2, 30))]));
  const known = roll(8) > 0;
  const isIn = (window: Window, one: Day): boolean =>
    window.kind === "closed"
      ? one >= window.from && one <= window.to
      : window.kind !== "open" || one >= window.from;
  const rowsIn = (window: Window): number =>
    [...rows].reduce((sum, [one, many]) => sum + (isIn(window, one) ? many : 0), 0);
  const countOf = (window: Window): Count => ({
    ...{ rows: known ? rowsIn(window) : 0, undated: 0, known, asked: NOW, answered: NOW },
  });
  const oldest = [...rows.keys()].sort()[0];
  const cursor = some(`${oldest}T12:00:00Z`, `${oldest}T12:00:00Z`, null, "soon", `${day(length)}T00:00:00Z`);
  const api = apiWith({
    count: async (window) => {
      asked.push(`count ${JSON.stringify(window)}`);
      return countOf(window);
    },
    hasRows: async (window) => {
      asked.push(`any ${JSON.stringify(window)}`);
      return rowsIn(window) > 0;
    },
    rowAt: async (window, place) => {
      asked.push(`row ${place} ${JSON.stringify(window)}`);
      return cursor === "soon" ? undefined : { row: { raw: "{}" as never, key: '"x"', cursor }, total: null };
    },
    now: () => NOW,
  });
  const status = (): Span => {
    const from = day(length);
    const kind = some("again" as const, "missing" as const);
    return spanOf([from, addDays(from, kind === "missing" ? 0 : roll(9))], null, kind);
  };
  const from = some(BEGINNING, day(length), YESTERDAY, TODAY);
  const window = some<DatedWindow | undefined>(
    undefined,
    closedWindow(earlier(from, addDays(YESTERDAY, -1)), addDays(YESTERDAY, -1 - roll(3))),
    { kind: "open", from, undated: false },
    { kind: "open", from: BEGINNING, undated: true },
  );
  const hole = day(length);
  const most = 10 + roll(60);
  const plan = planWindows(
    {
      ...{ kind: roll(12) === 0 ? "all" : "days", yesterday: YESTERDAY, window, lookbackDays: 1 },
      count: countOf(window ?? { kind: "all" }),
      state: { ...NEW_STATE, days: Array.from({ length: roll(3) }, status).reduce<Coverage>(put, []) },
      holes: some<readonly DayRange[]>([], [[addDays(hole, -roll(40)), hole]]),
      granted: some([], [{ ...closedWindow(addDays(hole, -roll(9)), hole), source: "ads" }]),
      undated: some<Range["undated"]>("none", "pending", { ...countOf({ kind: "all" }), undated: 3 }),
      ...{ latest: NOW, until: Number.POSITIVE_INFINITY },
    },
    {
      api,
      yesterday: YESTERDAY,
      windowSize: { rows: Math.ceil(most * 0.75), most, smallRange: some(most, 0) },
    },
  );
  for await (const planned of plan) asked.push(JSON.stringify(planned));
  return asked;
}

/** `TOLD="plans of 3" npx vitest run test/unit/streams/plan.test.ts` prints the plans of a line. */
it("plans accounts of a few days of rows by the requests that these lines sum up", async () => {
  const sums = await sumsOf("plans", [8, 40], randomPlan, (said) => {
    const windows = said.filter((line) => line.startsWith('{"window"')).length;
    return `${windows} windows, ${said.length - 40 - windows} requests`;
  });
  await expect(sums).toMatchFileSnapshot("../../golden/plan-sums.txt");
});
