import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { counterOf, cutRange } from "../../src/shards/cut.ts";
import { mergeShards } from "../../src/shards/merge.ts";
import { type ShardLine, type ShardPlan, toShardPlan } from "../../src/shards/plan-file.ts";
import { bringsUndated, markOf } from "../../src/shards/shard.ts";
import { type DatedState, NEW_STATE } from "../../src/streams/dated-state.ts";
import { addDays, type Day } from "../../src/time.ts";
import { dice } from "../support/dice.ts";
import { ModelService, peopleOn, undatedPeople } from "../support/model-service.ts";
import { runs } from "../support/runs.ts";
import { byId, runStream } from "../support/sync-run.ts";

const TODAY = "2026-03-21" as Day;
const DAY_MS = 86_400_000;
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
  /** Days that pass before the merged state is used. */
  later: fc.integer({ min: 0, max: 4 }),
});

type World = typeof WORLD extends fc.Arbitrary<infer Value> ? Value : never;

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

  async plan(): Promise<ShardPlan> {
    const { shards } = this.#runtime;
    const { cuts, asked } = await cutRange(counterOf(this.model.api()), { from: null, to: null }, shards);
    const filters = { source_slug: null, is_user: "all" };
    const settings = { baseUrl: "https://host/", filters, startDate: null, endDate: null };
    return toShardPlan("people", cuts, settings, new Date(asked).toISOString());
  }

  /** Reads a shard in as many tries as it takes; returns the state of the last. */
  async read(line: ShardLine): Promise<DatedState> {
    const fresh: DatedState = { ...NEW_STATE, shard: markOf(line) };
    let state = fresh;
    // A try may be killed, or end incomplete because people move faster than anything can be proven.
    for (let tries = 0; tries < 40; tries++) {
      const isKilled = this.#roll(this.#runtime.kills) === 0;
      const ran = await runStream(this.model.api(), {
        state,
        settings: {
          startDate: line.from,
          endDate: line.to,
          bringsUndated: bringsUndated(line),
          lookbackWindowDays: line.to === null ? 1 : 0,
          maxWindowRows: this.#runtime.maxWindowRows,
        },
        ...(isKilled && { stopAfter: 1 + this.#roll(6) }),
      });
      this.lines.push(...ran.lines);
      state = ran.state ?? fresh;
      // A try that was killed after its last checkpoint is done all the same.
      if (state.shard?.done === true) return state;
      expect(ran.complete, "a shard that is complete says so").toBe(false);
    }
    throw new Error("The shard is never complete");
  }

  /** All shards: the closed ones in any order, some of them twice, then the open one. */
  async readAll(plan: ShardPlan): Promise<readonly DatedState[]> {
    const states = new Map<number, DatedState>();
    const closed = plan.lines.filter(({ to }) => to !== null);
    const order = closed
      .map((line) => ({ line, place: this.#roll(1_000) }))
      .sort((a, b) => a.place - b.place);
    for (const { line } of order) {
      states.set(line.shard, await this.read(line));
      if (this.#roll(this.#runtime.kills) === 0) states.set(line.shard, await this.read(line));
    }
    for (const line of plan.lines.filter(({ to }) => to === null))
      states.set(line.shard, await this.read(line));
    return [...states.values()];
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
  it("brings everyone, in any order, with kills, double runs and people who move, also when it is merged days later", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, async (runtime) => {
        const load = new Load(runtime);
        const plan = await load.plan();
        const states = await load.readAll(plan);
        const merged = mergeShards(
          plan,
          states.map((state) => ({ name: `state of shard ${state.shard?.index}`, state })),
        );
        expect(merged).toMatchObject({ shard: null, gap: null, from: null, undated: "done" });
        expect(Date.parse(merged.discoveredAt ?? "")).toBeLessThanOrEqual(
          Date.parse(states.at(-1)?.shard?.asked ?? ""),
        );
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
});
