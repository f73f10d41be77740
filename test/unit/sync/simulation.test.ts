import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, BEGINNING, type Day, dayOf } from "../../../src/base/time.ts";
import { type Coverage, uncovered } from "../../../src/sync/coverage.ts";
import type { RowState } from "../../../src/sync/state.ts";
import { dice } from "../../support/dice.ts";
import { type Cut, ModelService, type Person, peopleOn, undatedPeople } from "../../support/model-service.ts";
import { runs } from "../../support/runs.ts";
import { byId, type Ran, repeated, runStream } from "../../support/sync-run.ts";

const MIDNIGHT = Date.parse("2026-03-21");
const DAY_MS = 86_400_000;
/** How many worlds each property is tried on. */
const RUNS = Number(process.env["SIMULATION_WORLDS"] ?? runs(20, 60));

const WORLD = fc.record({
  seed: fc.nat(),
  days: fc.integer({ min: 1, max: 40 }),
  perDay: fc.integer({ min: 0, max: 6 }),
  undated: fc.integer({ min: 0, max: 4 }),
  /** Ms before midnight at which the run begins. */
  before: fc.integer({ min: -3_600_000, max: 20_000 }),
  latency: fc.constantFrom(0, 10, 900),
  /** One moment in so many brings a change. */
  pace: fc.constantFrom(3, 10, 40),
  maxWindowRows: fc.constantFrom(3, 10, 40, 1_000),
  numWorkers: fc.integer({ min: 1, max: 8 }),
  onlyUsers: fc.boolean(),
  lookbackWindowDays: fc.constantFrom(1, 3),
});

type World = typeof WORLD extends fc.Arbitrary<infer Value> ? Value : never;

function populate({ days, perDay, undated, before }: World): { now: number; people: Person[] } {
  const now = MIDNIGHT - before;
  const list = Array.from({ length: days }, (_, nth) => addDays("2026-03-21" as Day, nth + 1 - days));
  const people = peopleOn(list, perDay).filter(({ at }) => at === null || at < now - 5_000);
  return { now, people: [...people, ...undatedPeople(undated)] };
}

/** At any moment: someone is checked again, arrives, or changes sides. */
function moving({ seed, pace }: World, from: number, calm: () => boolean): (model: ModelService) => void {
  const roll = dice(seed);
  let arrivals = 0;
  return (model) => {
    if (calm() || roll(pace) > 0 || model.people.length === 0) return;
    const kind = roll(4);
    if (kind === 0) model.people.push({ id: `new${from}-${arrivals++}`, at: model.now, user: roll(2) === 0 });
    const person = model.people[roll(model.people.length)];
    if (person === undefined || kind === 0) return;
    person.at = model.now;
    if (kind === 1) person.user = !person.user;
  };
}

const settingsOf = ({ maxWindowRows, numWorkers, lookbackWindowDays }: World) => ({
  ...{ maxWindowRows, numWorkers, lookbackWindowDays },
});

const isProven = (days: Coverage, day: Day): boolean =>
  days.some(({ from, to, status }) => status === "proven" && day >= from && day <= to);

/** Undated rows are behind a state that says how many there are, unless they came since. */
const isBehind = (at: string | null, { days, undated }: RowState): boolean =>
  at === null ? undated !== null : isProven(days, at.slice(0, 10) as Day);

/**
 * All rows of `before` that are served as they were, and that a state covers, left before that state; and no window that it
 * covers goes on behind it.
 * @param delivered by earlier runs
 */
function expectNotAhead(
  service: ModelService,
  before: ReadonlyMap<string, string>,
  delivered: readonly string[],
  { events }: Ran,
): void {
  const left = new Set(delivered);
  const served = service.served();
  // Yesterday's and today's rows are the next run's to prove.
  const unmoved = [...before].filter(([id, line]) => served.get(id) === line).map(([, line]) => line);
  let windows = 0;
  for (const event of events) {
    if (event.kind === "records") {
      // The last window of a state may go on.
      expect(event.window, `a row of a window behind a state of ${windows}`).toBeGreaterThanOrEqual(
        windows - 1,
      );
      for (const line of event.lines) left.add(line);
    }
    if (event.kind !== "checkpoint") continue;
    windows = event.windows ?? windows;
    const state = event.state as RowState;
    const ahead = unmoved.filter((line) => !left.has(line) && isBehind(JSON.parse(line).discoveredAt, state));
    expect(ahead, `behind the state ${JSON.stringify(state.days)}`).toEqual([]);
  }
}

/** No state has an older cursor than the one before. */
function expectForward(before: RowState | null, { events }: Ran): void {
  let last = before?.discoveredAt ?? "";
  for (const event of events) {
    if (event.kind !== "checkpoint") continue;
    const { discoveredAt } = event.state as RowState;
    expect((discoveredAt ?? "") >= last, `${discoveredAt} after ${last}`).toBe(true);
    last = discoveredAt ?? "";
  }
}

/** A run of a life: after it `pause` ms pass; it is cut after `stopAfter` events; people move and faults happen unless it is calm. */
type Run = { readonly calm?: boolean; readonly pause?: number; readonly stopAfter?: number };

/** Plays runs that go on from one another's states. The last one is calm, and nobody may be missing after it. */
async function live(
  world: World,
  salt: number,
  runs: readonly Run[],
  cut?: () => Cut | undefined,
): Promise<void> {
  let isCalm = false;
  const service = new ModelService({
    ...populate(world),
    filter: ({ user }) => user || !world.onlyUsers,
    latency: world.latency,
    moment: moving(world, salt, () => isCalm),
    cut: () => (isCalm ? undefined : cut?.()),
  });
  const lines: string[] = [];
  let state: RowState | null = null;
  for (const { calm = false, pause = 0, stopAfter = Number.POSITIVE_INFINITY } of runs) {
    isCalm = calm;
    service.asked.length = 0;
    const before = service.served();
    const settings = settingsOf(world);
    const ran: Ran = await runStream(service.api(), { state, settings, stopAfter });
    expectNotAhead(service, before, lines, ran);
    expectForward(state, ran);
    lines.push(...ran.lines);
    state = ran.state;
    expect(repeated(ran.lines)).toEqual([]);
    expect(service.open.size, "exports that were left open").toBe(0);
    expect(service.asked.length).toBeLessThan(4_000);
    if (calm) expect(ran).toMatchObject({ complete: true, error: undefined });
    service.now += pause;
  }
  expectEverybody(service, lines);
}

function expectEverybody(service: ModelService, lines: readonly string[]): void {
  const delivered = byId(lines);
  for (const [id, line] of service.served()) expect(delivered.get(id), id).toBe(line);
}

const HALF_DAY = DAY_MS / 2;
const STOPS = fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 8 });

describe("readRows() while people move", () => {
  it.each<[string, number, readonly Run[]]>([
    ["over two runs", RUNS, [{ pause: 5_000 }, { calm: true }]],
    ["when days pass between runs", RUNS / 2, [...Array(3).fill({ pause: HALF_DAY }), { calm: true }]],
  ])("loses no row %s, repeats none in one, and ends", async (_, numRuns, runs) => {
    await fc.assert(
      fc.asyncProperty(WORLD, (world) => live(world, 1, runs)),
      { numRuns },
    );
  });

  it("is not complete where bodies are cut, or has the days before yesterday; the next run has the rest", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, fc.constantFrom(2, 4, 9), async (world, rate) => {
        const roll = dice(world.seed ^ 0x55aa);
        const cut = (): Cut | undefined =>
          roll(rate) > 0 ? undefined : { rows: roll(6), loud: roll(2) === 0 };
        await live(world, 3, [{ pause: 5_000 }, { calm: true }], cut);
      }),
      { numRuns: RUNS },
    );
  });

  it("loses no row however often it dies", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, STOPS, (world, stops) =>
        live(world, 4, [...stops.map((stopAfter) => ({ stopAfter })), { calm: true }]),
      ),
      { numRuns: RUNS / 2 },
    );
  });
});

/** What a service does wrong, until it is healed. */
const FAULTS = ["none", "cut", "silent cut", "lacking", "broken pages", "random list", "short list"] as const;
const CHAIN = fc.record({
  seed: fc.nat(),
  days: fc.integer({ min: 3, max: 40 }),
  perDay: fc.integer({ min: 1, max: 8 }),
  undated: fc.integer({ min: 0, max: 3 }),
  fault: fc.constantFrom(...FAULTS),
  export: fc.constantFrom("whole", "cut", "silent cut"),
  drain: fc.constantFrom("none", "oldest", "random"),
  /** One moment in so many moves a person. */
  pace: fc.constantFrom(1, 4, 20),
  maxWindowRows: fc.constantFrom(5, 20, 60, 1_000),
  numWorkers: fc.integer({ min: 1, max: 3 }),
  newcomers: fc.boolean(),
  hours: fc.constantFrom(1, 13, 25),
});
type Chain = typeof CHAIN extends fc.Arbitrary<infer Value> ? Value : never;

/** A service of a chain; `isIll` and `moves` say what it does at the moment. */
function serviceOf(chain: Chain): ModelService & { isIll: boolean; moves: boolean } {
  const roll = dice(chain.seed);
  const list = Array.from({ length: chain.days }, (_, nth) =>
    addDays("2026-03-20" as Day, nth + 1 - chain.days),
  );
  const people = [...peopleOn(list, chain.perDay), ...undatedPeople(chain.undated)];
  const cuts = (chain.fault === "none" ? "whole" : chain.export) !== "whole";
  const service = new ModelService({
    now: MIDNIGHT + 36_000_000,
    people,
    latency: 20,
    cut: () =>
      state.isIll && cuts && roll(3) === 0 ? { rows: roll(12), loud: chain.export === "cut" } : undefined,
    omits: () => state.isIll && chain.fault === "lacking" && roll(9) === 0,
    breaks: () => state.isIll && chain.fault === "broken pages" && roll(3) === 0,
    list: (rows) => {
      if (!state.isIll) return rows;
      if (chain.fault === "short list") return rows.slice(0, Math.ceil((rows.length * 2) / 3));
      if (chain.fault !== "random list") return rows;
      return rows
        .map((row) => ({ row, place: roll(999) }))
        .sort((a, b) => a.place - b.place)
        .map(({ row }) => row);
    },
    moment: ({ now }) => {
      if (!state.moves || chain.drain === "none" || roll(chain.pace) > 0) return;
      const dated = people.filter(({ at }) => at !== null);
      dated.sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
      const person = dated[chain.drain === "oldest" ? 0 : roll(dated.length)];
      if (person !== undefined) person.at = now;
    },
  });
  const state = Object.assign(service, { isIll: true, moves: true });
  return state;
}

describe("readRows() over a chain of runs against faults, while days drain", () => {
  it("is whole whenever it says complete, and delivers everything within three runs after the last fault", async () => {
    await fc.assert(
      fc.asyncProperty(CHAIN, async (chain) => {
        const service = serviceOf(chain);
        const { maxWindowRows, numWorkers } = chain;
        const lines: string[] = [];
        let state: RowState | null = null;
        for (let run = 0; run < 6; run++) {
          service.isIll = run < 3;
          service.moves = run < 5;
          const day = dayOf(service.now);
          // Newcomers without a date are looked for once a day only.
          const before = new Map([...service.served()].filter(([id]) => !id.startsWith("new")));
          const ran: Ran = await runStream(service.api(), { state, settings: { maxWindowRows, numWorkers } });
          expect(repeated(ran.lines)).toEqual([]);
          expectNotAhead(service, before, lines, ran);
          expectForward(state, ran);
          lines.push(...ran.lines);
          state = ran.state;
          if (ran.complete) expect(uncovered(state?.days ?? [], [BEGINNING, addDays(day, -2)])).toEqual([]);
          if (run >= 3) expect(ran.error, `run ${run}`).toBeUndefined();
          if (chain.newcomers && run < 3) service.people.push({ id: `new${run}`, at: null, user: false });
          service.now += chain.hours * 3_600_000 + (run === 4 ? DAY_MS : 0);
        }
        expectEverybody(service, lines);
      }),
      { numRuns: RUNS },
    );
  });
});
