import fc from "fast-check";
import { expect, it } from "vitest";
import { addDays, BEGINNING, type Day } from "../../../src/base/time.ts";
import { mergeStates } from "../../../src/shards/merge.ts";
import type { DateRange } from "../../../src/shards/split.ts";
import { uncovered } from "../../../src/sync/coverage.ts";
import { NEW_STATE, type RowState } from "../../../src/sync/state.ts";
import { dice } from "../../support/dice.ts";
import { ModelService, peopleOn, undatedPeople } from "../../support/model-service.ts";
import { runs } from "../../support/runs.ts";
import { splitAll } from "../../support/split-all.ts";
import { byId, type Ran, type RunOptions, runStream } from "../../support/sync-run.ts";

const TODAY = "2026-03-21" as Day;
const DAY_MS = 86_400_000;

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

it("merged shards have everyone: in any order, killed, lost, read twice or days later, while people move", async () => {
  await fc.assert(
    fc.asyncProperty(WORLD, async (world) => {
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
      const run = async (options: RunOptions): Promise<Ran> => {
        const ran = await runStream(model.api(), options);
        lines.push(...ran.lines);
        return ran;
      };
      /** A try may be killed, or end incomplete because people move faster than anything can be proven. */
      const readShard = async (
        { from, to }: DateRange,
        before: RowState | null = null,
      ): Promise<RowState> => {
        let state = before ?? NEW_STATE;
        const { maxWindowRows } = world;
        const dates = { startDate: from, endDate: to, lookbackWindowDays: to === null ? 1 : 0 };
        const settings = { ...dates, maxWindowRows, readsUndated: to === null };
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
      const goOn = async (state: RowState): Promise<RowState> => {
        const ran = await run({ state });
        if (isCalm) expect(ran.error).toBeUndefined();
        return ran.state ?? state;
      };

      const cuts = await splitAll(model.api(), { from: null, to: null }, world.shards);
      // All shards but the lost one in any order, some of them twice and some from the state of another.
      const states: RowState[] = [];
      const order = cuts.map((cut, nth) => ({ cut, nth, place: roll(1_000) }));
      for (const { cut, nth } of order.sort((a, b) => a.place - b.place)) {
        if (nth === world.lost) continue;
        const isShared = roll(3) === 0;
        states.push(await readShard(cut, isShared ? states.at(-1) : null));
        if (roll(world.kills) === 0) states.push(await readShard(cut));
        model.now += roll(2) * world.pause * DAY_MS;
      }
      const parts = states.map((state, nth) => ({ name: `${nth}`, state }));
      const merged = mergeStates("people", parts, true);
      model.now += world.later * DAY_MS;
      const first = await goOn(merged);
      isCalm = true;
      model.now += 60_000;
      await goOn(await goOn(first));
      expect(byId(lines)).toEqual(model.served());
    }),
    { numRuns: runs(60, 200) },
  );
});
