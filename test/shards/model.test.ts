import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Cut } from "../../src/shards/cut.ts";
import { type ShardState, unite } from "../../src/shards/unite.ts";
import { uncovered } from "../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../src/streams/dated-state.ts";
import { addDays, BEGINNING, type Day, instant } from "../../src/time.ts";
import { cutAll } from "../support/cut-all.ts";
import { dice } from "../support/dice.ts";
import { ModelService, peopleOn, undatedPeople } from "../support/model-service.ts";
import { runs } from "../support/runs.ts";
import { byId, runStream } from "../support/sync-run.ts";

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

type World = typeof WORLD extends fc.Arbitrary<infer Value> ? Value : never;

const partsOf = (states: readonly DatedState[]): readonly ShardState[] =>
  states.map((state, nth) => ({ name: `${nth}`, state }));

/** A first load of an account in shards, while people move. */
class Load {
  readonly model: ModelService;
  readonly lines: string[] = [];
  isCalm = false;
  readonly #runtime: World;
  readonly #roll: ReturnType<typeof dice>;
  #arrivals = 0;

  constructor(runtime: World) {
    this.#runtime = runtime;
    this.#roll = dice(runtime.seed);
    const list = Array.from({ length: runtime.days }, (_, nth) => addDays(TODAY, nth + 1 - runtime.days));
    const now = Date.parse(TODAY) + 30_000_000;
    const dated = peopleOn(list, runtime.perDay).filter(({ at }) => at === null || at < now - 5_000);
    const people = [...dated, ...undatedPeople(runtime.undated)];
    this.model = new ModelService({ now, people, latency: 10, moment: () => this.#move() });
  }

  async plan(): Promise<readonly Cut[]> {
    return await cutAll(this.model.api(), { from: null, to: null }, this.#runtime.shards);
  }

  /** Reads a shard in as many tries as it takes; returns the state of the last. */
  async read({ from, to }: Cut, before: DatedState | null = null): Promise<DatedState> {
    let state = before ?? { ...NEW_STATE, plan: PLAN };
    const end = to ?? addDays(TODAY, -2);
    // A try may be killed, or end incomplete because people move faster than anything can be proven.
    for (let tries = 0; tries < 40; tries++) {
      const isKilled = this.#roll(this.#runtime.kills) === 0;
      const ran = await runStream(this.model.api(), {
        state,
        settings: {
          startDate: from,
          endDate: to,
          bringsUndated: to === null,
          lookbackWindowDays: to === null ? 1 : 0,
          maxWindowRows: this.#runtime.maxWindowRows,
        },
        ...(isKilled && { stopAfter: 1 + this.#roll(6) }),
      });
      this.lines.push(...ran.lines);
      state = ran.state ?? state;
      if (!ran.complete) continue;
      expect(
        uncovered(state.days, [from ?? BEGINNING, end]),
        "a shard that is complete holds its days",
      ).toEqual([]);
      return state;
    }
    throw new Error("The shard is never complete");
  }

  /** All shards but the lost one in any order, some of them twice and some from the state of another. */
  async readAll(cuts: readonly Cut[]): Promise<readonly DatedState[]> {
    const { kills, lost, pause } = this.#runtime;
    const states: DatedState[] = [];
    const order = cuts.map((cut, nth) => ({ cut, nth, place: this.#roll(1_000) }));
    for (const { cut, nth } of order.sort((a, b) => a.place - b.place)) {
      if (nth === lost) continue;
      const isShared = this.#roll(3) === 0;
      states.push(await this.read(cut, isShared ? states.at(-1) : null));
      if (this.#roll(kills) === 0) states.push(await this.read(cut));
      this.model.now += this.#roll(2) * pause * DAY_MS;
    }
    return states;
  }

  /** A usual run, from a state of the shards on. */
  async goOn(state: DatedState): Promise<DatedState> {
    const ran = await runStream(this.model.api(), { state });
    if (this.isCalm) expect(ran.error).toBeUndefined();
    this.lines.push(...ran.lines);
    return ran.state ?? state;
  }

  #move(): void {
    if (this.isCalm || this.#roll(this.#runtime.pace) > 0) return;
    const { people, now } = this.model;
    if (this.#roll(4) === 0) people.push({ id: `new${this.#arrivals++}`, at: now, user: true });
    const person = people[this.#roll(Math.max(1, people.length))];
    if (person !== undefined) person.at = now;
  }
}

describe("a first load in shards", () => {
  it("brings everyone: any order, kills, lost shards, shards read twice or days later, while people move", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, fc.nat(), async (runtime, seed) => {
        const load = new Load(runtime);
        const states = await load.readAll(await load.plan());
        const parts = partsOf(states);
        const merged = unite("people", parts, true);
        const other = parts.toSorted(
          (a, b) => dice(seed + Number(a.name))(9) - dice(seed + Number(b.name))(9),
        );
        expect(unite("people", other, true)).toEqual(merged);
        for (const { asked } of states)
          expect(instant(merged.discoveredAt ?? "1970-01-01")).toBeLessThanOrEqual(instant(asked ?? ""));
        load.model.now += runtime.later * DAY_MS;
        const first = await load.goOn(merged);
        load.isCalm = true;
        load.model.now += 60_000;
        await load.goOn(await load.goOn(first));
        expect(byId(load.lines)).toEqual(load.model.served());
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
