import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Progress } from "../../src/sync/frontier.ts";
import type { Day } from "../../src/sync/window.ts";
import { addDays, dayOf } from "../../src/sync/window.ts";
import { type Cut, ModelService, type Person, peopleOn, undatedPeople } from "../support/model-service.ts";
import { byId, type Ran, repeated, runDated } from "../support/sync-run.ts";

const MIDNIGHT = Date.parse("2026-03-21");
const DAY_MS = 86_400_000;

/** A small generator of numbers from a seed, so that a failure can be played again. */
function dice(seed: number): (sides: number) => number {
  let state = seed >>> 0;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

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
  maxRows: fc.constantFrom(3, 10, 40, 1_000),
  concurrency: fc.integer({ min: 1, max: 8 }),
  onlyUsers: fc.boolean(),
  lookbackDays: fc.constantFrom(1, 3),
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

const filterOf = ({ onlyUsers }: World): ((person: Person) => boolean) =>
  onlyUsers ? ({ user }) => user : () => true;

const limitsOf = ({ maxRows, concurrency, lookbackDays }: World) => ({ maxRows, concurrency, lookbackDays });

function expectNotAhead(service: ModelService, before: ReadonlyMap<string, string>, ran: Ran): void {
  const delivered = new Set(ran.lines);
  // Yesterday's and today's rows are the next run's to prove.
  const { discoveredAt = null, missing = [] } = ran.progress ?? {};
  for (const [id, line] of before) {
    const at = JSON.parse(line).discoveredAt as string | null;
    if (at === null || discoveredAt === null || at >= addDays(dayOf(Date.parse(discoveredAt)), -1)) continue;
    const person = service.people.find((one) => one.id === id);
    const stayed = person?.at !== null && new Date(person?.at ?? 0).toISOString() === at;
    if (!stayed || !service.served().has(id) || missing.includes(at.slice(0, 10) as Day)) continue;
    expect(delivered.has(line), `${line} is behind the state ${discoveredAt}`).toBe(true);
  }
}

describe("readDated() while people move", () => {
  it("loses nobody over two runs, repeats nothing in one, and ends", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, async (world) => {
        let calm = false;
        const service = new ModelService({
          ...populate(world),
          filter: filterOf(world),
          latency: world.latency,
          moment: moving(world, 1, () => calm),
        });
        const before = service.served();
        const first = await runDated(service.ports(), { limits: limitsOf(world) });
        expectNotAhead(service, before, first);
        expect(repeated(first.lines)).toEqual([]);
        expect(service.asked.length).toBeLessThan(4_000);
        calm = true;
        service.now += 5_000;
        const second = await runDated(service.ports(), { resume: first.progress, limits: limitsOf(world) });
        expect(second.error).toBeUndefined();
        expect(second.complete).toBe(true);
        expect(repeated(second.lines)).toEqual([]);
        const delivered = byId([...first.lines, ...second.lines]);
        for (const [id, line] of service.served()) expect(delivered.get(id), id).toBe(line);
      }),
      { numRuns: 400 },
    );
  });

  it("loses nobody when days pass between runs that all see movement", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, async (world) => {
        let calm = false;
        const service = new ModelService({
          ...populate(world),
          filter: filterOf(world),
          latency: world.latency,
          moment: moving(world, 2, () => calm),
        });
        const lines: string[] = [];
        let resume: Progress | null = null;
        for (let run = 0; run < 4; run++) {
          calm = run === 3;
          const ran: Ran = await runDated(service.ports(), { resume, limits: limitsOf(world) });
          lines.push(...ran.lines);
          resume = ran.progress;
          service.now += DAY_MS / 2;
        }
        const delivered = byId(lines);
        for (const [id, line] of service.served()) expect(delivered.get(id), id).toBe(line);
      }),
      { numRuns: 200 },
    );
  });
});

describe("readDated() when bodies are cut while people move", () => {
  it("is not green, or has whole days before yesterday; the next whole run has the rest", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, fc.constantFrom(2, 4, 9), async (world, rate) => {
        let calm = false;
        const roll = dice(world.seed ^ 0x55aa);
        const cut = (): Cut | undefined =>
          calm || roll(rate) > 0 ? undefined : { rows: roll(6), loud: roll(2) === 0 };
        const service = new ModelService({
          ...populate(world),
          filter: filterOf(world),
          latency: world.latency,
          moment: moving(world, 3, () => calm),
          cut,
        });
        const before = service.served();
        const first = await runDated(service.ports(), { limits: limitsOf(world) });
        expectNotAhead(service, before, first);
        expect(repeated(first.lines)).toEqual([]);
        calm = true;
        service.now += 5_000;
        const second = await runDated(service.ports(), { resume: first.progress, limits: limitsOf(world) });
        expect(second.complete).toBe(true);
        const delivered = byId([...first.lines, ...second.lines]);
        for (const [id, line] of service.served()) expect(delivered.get(id), id).toBe(line);
      }),
      { numRuns: 400 },
    );
  });
});

describe("readDated() when the process dies", () => {
  it("has every row in the union with what a run from the last checkpoint brings, cut after any event", async () => {
    const world: World = {
      seed: 1,
      days: 30,
      perDay: 3,
      undated: 4,
      before: 3_600_000,
      latency: 10,
      pace: 10,
      maxRows: 10,
      concurrency: 2,
      onlyUsers: false,
      lookbackDays: 1,
    };
    const whole = await runDated(new ModelService(populate(world)).ports(), { limits: limitsOf(world) });
    for (let stopAfter = 1; stopAfter <= whole.events.length; stopAfter++) {
      const service = new ModelService(populate(world));
      const first = await runDated(service.ports(), { limits: limitsOf(world), stopAfter });
      expect(service.open.size, "exports that were left open").toBe(0);
      const rest = await runDated(service.ports(), { resume: first.progress, limits: limitsOf(world) });
      expect(rest.complete).toBe(true);
      expect(byId([...first.lines, ...rest.lines])).toEqual(service.served());
      expect(rest.progress?.undated).toBe("done");
    }
  });

  it("loses nobody however often it dies, while people move", async () => {
    await fc.assert(
      fc.asyncProperty(
        WORLD,
        fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 5 }),
        async (world, stops) => {
          let calm = false;
          const service = new ModelService({
            ...populate(world),
            filter: filterOf(world),
            latency: world.latency,
            moment: moving(world, 4, () => calm),
          });
          const lines: string[] = [];
          let resume: Progress | null = null;
          for (const stopAfter of [...stops, Number.POSITIVE_INFINITY]) {
            calm = stopAfter === Number.POSITIVE_INFINITY;
            const ran: Ran = await runDated(service.ports(), { resume, limits: limitsOf(world), stopAfter });
            lines.push(...ran.lines);
            resume = ran.progress;
            if (calm) expect(ran.complete).toBe(true);
          }
          const delivered = byId(lines);
          for (const [id, line] of service.served()) expect(delivered.get(id), id).toBe(line);
        },
      ),
      { numRuns: 300 },
    );
  });
});
