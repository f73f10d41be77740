import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planSteps, planWindows } from "../../src/sync/plan.ts";
import type { Count, Ports } from "../../src/sync/ports.ts";
import type { Planned, Run } from "../../src/sync/reading.ts";
import {
  addDays,
  BEGINNING,
  type Day,
  halves,
  splitAtYesterday,
  startOf,
  type Window,
} from "../../src/sync/window.ts";

const YESTERDAY = "2026-03-19" as Day;
const day = (offset: number): Day => addDays(YESTERDAY, offset);

const counted = (rows: number): Count => ({ rows, undated: 0, known: true, asked: 0, answered: 0 });

function runWith(ports: Partial<Ports>, yesterday: Day = YESTERDAY): Run {
  const absent = (): never => {
    throw new Error("Not asked for");
  };
  const all: Ports = {
    count: absent,
    stream: absent,
    holdsAny: absent,
    peek: absent,
    page: absent,
    rest: absent,
    now: () => 0,
    note: () => {},
    ...ports,
  };
  return {
    ports: all,
    yesterday,
    verify: true,
    listed: true,
    until: Number.POSITIVE_INFINITY,
    shortWalks: 0,
  };
}

async function collect(plan: AsyncGenerator<Planned>): Promise<Planned[]> {
  const all: Planned[] = [];
  for await (const planned of plan) all.push(planned);
  return all;
}

/** Days from `from` to the last that any window covers, with how often each is covered. */
function coverage(windows: readonly Window[], from: Day, to: Day): Map<Day, number> {
  const times = new Map<Day, number>();
  for (let at = from; at <= to; at = addDays(at, 1)) {
    const holding = windows.filter(
      (window) => "from" in window && window.from <= at && (window.kind === "open" || window.to >= at),
    );
    times.set(at, holding.length);
  }
  return times;
}

const RANGE = fc
  .record({
    from: fc.integer({ min: -400, max: 3 }),
    length: fc.integer({ min: 0, max: 300 }),
    open: fc.boolean(),
    undated: fc.boolean(),
  })
  .map(({ from, length, open, undated }): Window & { from: Day } =>
    open || from + length >= 0
      ? { kind: "open", from: day(from), undated }
      : { kind: "closed", from: day(from), to: day(from + length) },
  );

const endOf = (window: Window): Day => (window.kind === "closed" ? window.to : day(2));

describe("planWindows()", () => {
  it("covers every day that is not counted as empty exactly once, whatever the counts say", async () => {
    await fc.assert(
      fc.asyncProperty(
        RANGE,
        fc.infiniteStream(fc.integer({ min: 0, max: 50 })),
        fc.integer({ min: 1, max: 30 }),
        async (window, answers, maxRows) => {
          const empty: Window[] = [];
          const count = async (asked: Window): Promise<Count> => {
            const rows = answers.next().value ?? 0;
            if (rows === 0) empty.push(asked);
            return counted(rows);
          };
          const first = answers.next().value ?? 0;
          const range = { window, count: counted(first) };
          const plan = await collect(planWindows(range, maxRows, runWith({ count })));
          const windows = plan.map((planned) => planned.window);
          const end = endOf(window);
          const before = coverage(empty, window.from, end);
          const skippedWhole = first === 0 && window.kind === "closed";
          for (const [at, times] of coverage(windows, window.from, end)) {
            if (times === 0) expect(skippedWhole || (before.get(at) ?? 0) > 0, at).toBe(true);
            else expect(times, at).toBe(1);
          }
          expect(windows.filter(({ kind }) => kind === "open")).toHaveLength(window.kind === "open" ? 1 : 0);
          const starts = windows.map((one) => ("from" in one ? one.from : ""));
          expect(starts).toEqual([...starts].sort());
        },
      ),
    );
  });

  it("keeps a range whole that is small enough", async () => {
    const window: Window = { kind: "open", from: BEGINNING, undated: true };
    const count = counted(10);
    expect(await collect(planWindows({ window, count }, 10, runWith({})))).toMatchObject([{ window, count }]);
  });

  const evenly = (rows: number, days: number) => {
    const oldest = startOf(day(1)) - days * 86_400_000;
    const perMs = rows / (days * 86_400_000);
    const within = (from: number, to: number): number =>
      Math.max(0, Math.round((Math.min(to, startOf(day(2))) - Math.max(from, oldest)) * perMs));
    return async (window: Window): Promise<Count> =>
      counted("from" in window ? within(startOf(window.from), startOf(addDays(endOf(window), 1))) : rows);
  };

  it("comes to the first record of ten million over ten years within twelve requests", async () => {
    const ask = evenly(10_000_000, 3_650);
    let requests = 2;
    const count = async (window: Window): Promise<Count> => {
      requests += 1;
      return await ask(window);
    };
    const window: Window = { kind: "open", from: BEGINNING, undated: true };
    const plan = planWindows({ window, count: await ask(window) }, 250_000, runWith({ count }));
    const first = await plan.next();
    expect(first.value?.count?.rows).toBeGreaterThan(0);
    expect(requests + 1).toBeLessThanOrEqual(12);
  });

  it("takes about one count a window", async () => {
    const ask = evenly(1_000_000, 3_650);
    let requests = 0;
    const count = async (window: Window): Promise<Count> => {
      requests += 1;
      return await ask(window);
    };
    const window: Window = { kind: "open", from: BEGINNING, undated: true };
    const plan = await collect(planWindows({ window, count: await ask(window) }, 20_000, runWith({ count })));
    const uncounted = plan.filter((planned) => planned.count === undefined).length;
    expect(requests + uncounted).toBeLessThan(plan.length * 2 + 12);
  });
});

describe("planSteps()", () => {
  it("covers every day from the oldest that holds a row exactly once", async () => {
    await fc.assert(
      fc.asyncProperty(RANGE, fc.integer({ min: -450, max: 5 }), async (window, first) => {
        const oldest = day(first);
        let probes = 0;
        const holdsAny = async (asked: Window): Promise<boolean> => {
          probes += 1;
          return endOf(asked) >= oldest;
        };
        const windows = (await collect(planSteps(window, runWith({ holdsAny })))).map((one) => one.window);
        const end = endOf(window);
        for (const [at, times] of coverage(windows, window.from, end)) {
          if (at >= oldest) expect(times, at).toBe(1);
          else expect(times, at).toBeLessThanOrEqual(1);
        }
        expect(probes).toBeLessThan(18);
      }),
    );
  });
});

describe("halves() and splitAtYesterday()", () => {
  const halvesOf = (window: Window): readonly Window[] => halves(window, YESTERDAY) ?? [];

  it("give parts that together cover each day once, none of them open before yesterday ends", () => {
    fc.assert(
      fc.property(RANGE, (window) => {
        for (const parts of [halvesOf(window), splitAtYesterday(window, YESTERDAY) ?? []]) {
          if (parts.length === 0) continue;
          for (const times of coverage(parts, window.from, endOf(window)).values()) expect(times).toBe(1);
          const kinds = parts.map(({ kind }) => kind);
          const undated = window.kind === "open" && window.undated;
          expect(kinds.filter((kind) => kind === "undated")).toHaveLength(undated ? 1 : 0);
          for (const part of parts) if (part.kind === "closed") expect(part.to < YESTERDAY).toBe(true);
        }
      }),
    );
  });

  it("end at single days and at yesterday", () => {
    expect(halves({ kind: "closed", from: day(-3), to: day(-3) }, YESTERDAY)).toBeUndefined();
    expect(halves({ kind: "open", from: YESTERDAY, undated: false }, YESTERDAY)).toBeUndefined();
    expect(halves({ kind: "undated" }, YESTERDAY)).toBeUndefined();
    expect(splitAtYesterday({ kind: "closed", from: day(-9), to: day(-3) }, YESTERDAY)).toBeUndefined();
    expect(halves({ kind: "open", from: day(-1), undated: true }, YESTERDAY)).toEqual([
      { kind: "closed", from: day(-1), to: day(-1) },
      { kind: "undated" },
      { kind: "open", from: YESTERDAY, undated: false },
    ]);
  });

  it("halve any range to single days in a bounded number of steps", () => {
    let window: Window | undefined = { kind: "open", from: BEGINNING, undated: true };
    let steps = 0;
    for (; window !== undefined; steps++) window = halves(window, YESTERDAY)?.at(-1);
    expect(steps).toBeLessThan(18);
  });
});
