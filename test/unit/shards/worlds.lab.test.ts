import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Cut } from "../../../src/shards/cut.ts";
import { type ShardState, unite } from "../../../src/shards/unite.ts";
import { uncovered } from "../../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import { addDays, BEGINNING, type Day, instant } from "../../../src/time.ts";
import { cutAll } from "../../support/cut-all.ts";
import { dice } from "../../support/dice.ts";
import { ModelService, peopleOn, undatedPeople } from "../../support/model-service.ts";
import { runs } from "../../support/runs.ts";
import { byId, runStream } from "../../support/sync-run.ts";

const TODAY = "2026-03-21" as Day;
const DAY_MS = 86_400_000;
const PLAN = "0123456789abcdef".repeat(2);
const RUNS = Number(process.env["SHARD_WORLDS"] ?? runs(60, 200));

const WORLD = fc.record({
  seed: fc.nat(),
  days: fc.integer({ min: 1, max: 50 }),
  perDay: fc.integer({ min: 0, max: 5 }),
  undated: fc.integer({ min: 0, max: 3 }),
  shards: fc.integer({ min: 1, max: 6 }),
  /** One moment in so many moves a person. */
  pace: fc.constantFrom(4, 20, 1_000),
  /** One try of a shard in so many is killed, and one shard in so many is read twice. */
  kills: fc.constantFrom(2, 4, 1_000),
  maxWindowRows: fc.constantFrom(5, 40, 1_000),
  /** Days that pass between two shards, and before the merged state is used. */
  pause: fc.constantFrom(0, 0, 1, 2),
  later: fc.integer({ min: 0, max: 4 }),
  /** The shard that is lost, if there is one of this number: its days are left to the next run. */
  lost: fc.constantFrom(-1, -1, 0, 1, 2),
});

const partsOf = (states: readonly DatedState[]): readonly ShardState[] =>
  states.map((state, nth) => ({ name: `${nth}`, state }));

type Read = Awaited<ReturnType<typeof runStream>>;

describe("shards that are read apart and joined", () => {
  it("brings everyone: any order, kills, lost shards, shards read twice or days later, while people move", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, fc.nat(), async (world, seed) => {
        const roll = dice(world.seed);
        const lines: string[] = [];
        let isCalm = false;
        let arrivals = 0;
        const move = (): void => {
          if (isCalm || roll(world.pace) > 0) return;
          const { people, now } = model;
          if (roll(4) === 0) people.push({ id: `new${arrivals++}`, at: now, user: true });
          const person = people[roll(Math.max(1, people.length))];
          if (person !== undefined) person.at = now;
        };
        const days = Array.from({ length: world.days }, (_, nth) => addDays(TODAY, nth + 1 - world.days));
        const now = Date.parse(TODAY) + 30_000_000;
        const dated = peopleOn(days, world.perDay).filter(({ at }) => at === null || at < now - 5_000);
        const people = [...dated, ...undatedPeople(world.undated)];
        const model = new ModelService({ now, people, latency: 10, moment: move });
        const run = async (options: Parameters<typeof runStream>[1]): Promise<Read> => {
          const ran = await runStream(model.api(), options);
          lines.push(...ran.lines);
          return ran;
        };
        /** A try may be killed, or end incomplete because people move faster than anything can be proven. */
        const readShard = async (
          { from, to }: Cut,
          before: DatedState | null = null,
        ): Promise<DatedState> => {
          let state = before ?? { ...NEW_STATE, plan: PLAN };
          const { maxWindowRows } = world;
          const dates = { startDate: from, endDate: to, lookbackWindowDays: to === null ? 1 : 0 };
          const settings = { ...dates, bringsUndated: to === null, maxWindowRows };
          for (let tries = 0; tries < 40; tries++) {
            const isKilled = roll(world.kills) === 0;
            const ran = await run({ state, settings, ...(isKilled && { stopAfter: 1 + roll(6) }) });
            state = ran.state ?? state;
            if (!ran.complete) continue;
            const left = uncovered(state.days, [from ?? BEGINNING, to ?? addDays(TODAY, -2)]);
            expect(left, "a shard that is complete holds its days").toEqual([]);
            return state;
          }
          throw new Error("The shard is never complete");
        };
        /** A usual run, from a state of the shards on. */
        const goOn = async (state: DatedState): Promise<DatedState> => {
          const ran = await run({ state });
          if (isCalm) expect(ran.error).toBeUndefined();
          return ran.state ?? state;
        };

        const cuts = await cutAll(model.api(), { from: null, to: null }, world.shards);
        // All shards but the lost one in any order, some of them twice and some from the state of another.
        const states: DatedState[] = [];
        const order = cuts.map((cut, nth) => ({ cut, nth, place: roll(1_000) }));
        for (const { cut, nth } of order.sort((a, b) => a.place - b.place)) {
          if (nth === world.lost) continue;
          const isShared = roll(3) === 0;
          states.push(await readShard(cut, isShared ? states.at(-1) : null));
          if (roll(world.kills) === 0) states.push(await readShard(cut));
          model.now += roll(2) * world.pause * DAY_MS;
        }
        const parts = partsOf(states);
        const merged = unite("people", parts, true);
        const other = parts.toSorted(
          (a, b) => dice(seed + Number(a.name))(9) - dice(seed + Number(b.name))(9),
        );
        expect(unite("people", other, true)).toEqual(merged);
        for (const { asked } of states)
          expect(instant(merged.discoveredAt ?? "1970-01-01")).toBeLessThanOrEqual(instant(asked ?? ""));
        model.now += world.later * DAY_MS;
        const first = await goOn(merged);
        isCalm = true;
        model.now += 60_000;
        await goOn(await goOn(first));
        expect(byId(lines)).toEqual(model.served());
      }),
      { numRuns: RUNS },
    );
  });

  it("brings whoever moves from a closed day to today after the open shard was read", async () => {
    const people = peopleOn([addDays(TODAY, -9), addDays(TODAY, -3), TODAY], 4);
    const model = new ModelService({ now: Date.parse(TODAY) + 80_000_000, people, latency: 10 });
    const read = async (startDate: Day | null, endDate: Day | null): Promise<DatedState> => {
      const settings = { startDate, endDate, bringsUndated: endDate === null, lookbackWindowDays: 1 };
      const { state, lines: came, complete } = await runStream(model.api(), { settings });
      expect(complete).toBe(true);
      lines.push(...came);
      return state as DatedState;
    };
    const lines: string[] = [];
    const open = await read(addDays(TODAY, -1), null);
    model.now += DAY_MS;
    for (const person of people.slice(0, 2)) person.at = model.now;
    model.now += 3 * DAY_MS;
    const closed = await read(null, addDays(TODAY, -2));
    const state = unite("people", partsOf([closed, open]), false);
    model.now += 60_000;
    lines.push(...(await runStream(model.api(), { state })).lines);
    expect(byId(lines)).toEqual(model.served());
  });
});
