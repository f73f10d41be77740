import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, startOf } from "../../../src/base/time.ts";
import type { RowState } from "../../../src/sync/state.ts";
import { dice } from "../../support/dice.ts";
import { peopleOn } from "../../support/model-service.ts";
import { DAY_MS, serviceOf, TODAY } from "../../support/people-sync.ts";
import { runs } from "../../support/runs.ts";
import { byId, type Ran, type RunOptions, runStream } from "../../support/sync-run.ts";

const WORLD = fc.record({
  seed: fc.nat(),
  days: fc.integer({ min: 5, max: 90 }),
  perDay: fc.integer({ min: 1, max: 8 }),
  /** People who are checked again each day. */
  moves: fc.integer({ min: 0, max: 12 }),
  rereadDays: fc.integer({ min: 1, max: 40 }),
  lookbackWindowDays: fc.constantFrom(1, 5),
  maxWindowRows: fc.constantFrom(10, 60, 1_000),
  undated: fc.integer({ min: 0, max: 3 }),
});
type World = typeof WORLD extends fc.Arbitrary<infer Value> ? Value : never;

/** Nobody moves. */
const QUIET: World = {
  ...{ seed: 1, days: 90, perDay: 5, moves: 0, undated: 0 },
  ...{ rereadDays: 30, lookbackWindowDays: 1, maxWindowRows: 60 },
};

/** An account that is read again in turn, by one run after the other. */
class Account {
  readonly service;
  readonly lines: string[] = [];
  state: RowState | null = null;
  readonly #settings: RunOptions["settings"];
  readonly #roll: ReturnType<typeof dice>;
  #late = 0;

  constructor({ seed, days, perDay, undated, moves: _, ...settings }: World) {
    const list = Array.from({ length: days }, (_, nth) => addDays(TODAY, nth - days));
    const people = peopleOn(list, perDay);
    for (let nth = 0; nth < undated; nth++) people.push({ id: `u${nth}`, at: null, user: false });
    this.service = serviceOf(people, { latency: 5 });
    this.#settings = settings;
    this.#roll = dice(seed);
  }

  async run(options: RunOptions = {}): Promise<Ran> {
    const ran = await runStream(this.service.api(), {
      settings: { ...this.#settings },
      ...options,
      state: this.state,
    });
    expect(ran.error).toBeUndefined();
    this.state = ran.state;
    this.lines.push(...ran.lines);
    return ran;
  }

  /** The people whose newest row has not come. */
  get absent(): readonly string[] {
    const delivered = byId(this.lines);
    return [...this.service.served()].filter(([id, line]) => delivered.get(id) !== line).map(([id]) => id);
  }

  /** Checks people again. Those that came late stay as they are. */
  move(count: number): void {
    const { people: all, now } = this.service;
    const people = all.filter(({ id }) => !id.startsWith("late"));
    for (let nth = 0; nth < count; nth++) {
      const person = people[this.#roll(people.length)];
      if (person !== undefined) person.at = now;
    }
  }

  /** A row comes to a day that has another one, before those that the next run reads anyway. */
  arriveLate(): void {
    const before = this.service.people.filter(({ at }) => (at ?? 0) < this.service.now - 3 * DAY_MS);
    const at = before[this.#roll(before.length)]?.at ?? null;
    this.service.people.push({ id: `late${this.#late++}`, at, user: false });
  }

  /** A row comes late into a span, and somebody else leaves the span, so that no number tells. */
  hideOne(): void {
    const { people, now } = this.service;
    const spans = this.state?.days.filter(({ status, rows }) => status === "proven" && rows > 0) ?? [];
    const span = spans[this.#roll(spans.length)];
    if (span === undefined) return;
    const [from, to] = [startOf(span.from), startOf(span.to) + DAY_MS - 1];
    const leaving = people.find(
      ({ id, at }) => !id.startsWith("late") && at !== null && at >= from && at <= to,
    );
    if (leaving === undefined) return;
    people.push({ id: `late${this.#late++}`, at: leaving.at, user: false });
    leaving.at = now;
  }

  pass(days: number): void {
    this.service.now += days * DAY_MS;
  }
}

const rereadOf = ({ events }: Ran): number =>
  events.reduce(
    (rows, event) => rows + (event.kind === "records" && event.why === "turn" ? event.lines.length : 0),
    0,
  );

describe("days that are read again in turn", () => {
  it("find everyone within twice reread_days, even if the numbers hide a late row", async () => {
    const runsOf = fc.array(fc.record({ pause: fc.integer({ min: 0, max: 9 }), stop: fc.nat({ max: 40 }) }), {
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(WORLD, runsOf, async (world, early) => {
        const account = new Account(world);
        await account.run();
        for (const { pause, stop } of early) {
          account.pass(pause);
          account.move(world.moves);
          account.hideOne();
          await account.run(stop > 20 ? {} : { stopAfter: stop + 1 });
          account.hideOne();
        }
        for (let day = 0; day < 2 * world.rereadDays; day++) {
          account.pass(1);
          account.move(world.moves);
          // A run that is killed, and one that ends by its time limit: the next one of the day goes on.
          if (day % 3 === 1) await account.run({ stopAfter: 8 });
          if (day % 3 === 2) await account.run({ endsAt: account.service.now });
          await account.run();
        }
        expect(account.absent).toEqual([]);
      }),
      { numRuns: runs(25, 300) },
    );
  });

  it("are no more than two N-ths of the rows a day, from the first turn on", async () => {
    await fc.assert(
      fc.asyncProperty(WORLD, async (world) => {
        const account = new Account({ ...world, days: world.days + 40 });
        const { rereadDays } = world;
        const turns: number[] = [];
        for (let day = 0; day < 2 * rereadDays + 2; day++) {
          const rows = account.service.people.length;
          turns.push(rereadOf(await account.run()));
          // A day has at most eight rows, and those that come to it.
          const most = Math.max((2 * rows) / rereadDays, world.perDay, world.moves);
          expect(turns.at(-1)).toBeLessThanOrEqual(most);
          const due = (rows * turns.length) / rereadDays;
          expect(turns.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(1.6 * due + most);
          account.pass(1);
          account.move(world.moves);
        }
        expect(turns[0]).toBe(0);
      }),
      { numRuns: runs(15, 200) },
    );
  });

  it("are those whose turn it would have been on the days without a run", async () => {
    const account = new Account(QUIET);
    await account.run();
    account.pass(1);
    const one = rereadOf(await account.run());
    expect(rereadOf(await account.run())).toBe(0);
    account.pass(10);
    expect(rereadOf(await account.run()) / one).toBeGreaterThan(5);
    account.pass(1_000);
    // The window reads the newest two days anyway.
    expect(rereadOf(await account.run())).toBe(88 * 5);
  });

  it("continue after a time limit, and each run reads some", async () => {
    const account = new Account({ ...QUIET, rereadDays: 1 });
    await account.run();
    account.pass(1);
    const turns: number[] = [];
    while (account.state?.days.some(({ status }) => status === "reread") !== false || turns.length === 0)
      turns.push(rereadOf(await account.run({ endsAt: account.service.now })));
    expect(turns.length).toBeGreaterThan(5);
    expect(turns.every((rows) => rows > 0)).toBe(true);
    expect(turns.reduce((sum, rows) => sum + rows, 0)).toBe(88 * 5);
  });

  it("are none with 0 or in a full refresh, and a later setting repeats no earlier day", async () => {
    const account = new Account({ ...QUIET, rereadDays: 10 });
    await account.run();
    for (let day = 0; day < 30; day++) {
      account.pass(1);
      expect(rereadOf(await account.run({ settings: { rereadDays: 0 } }))).toBe(0);
    }
    account.pass(1);
    const rows = rereadOf(await account.run());
    expect(rows).toBeGreaterThan(0);
    expect(rows).toBeLessThanOrEqual(90);
    account.pass(1);
    expect(rereadOf(await account.run({ isFullRefresh: true }))).toBe(0);
  });

  it("are marked in the state until they are read, whatever start_date, end_date and reread_days say then", async () => {
    const account = new Account({ ...QUIET, rereadDays: 1 });
    await account.run();
    account.hideOne();
    account.pass(1);
    // Killed behind its first checkpoint, of the first window.
    await account.run({ stopAfter: 6 });
    expect(account.state?.days.filter(({ status }) => status === "reread").length).toBeGreaterThan(3);
    const startDate = addDays(TODAY, -10);
    await account.run({ settings: { startDate, rereadDays: 0 } });
    expect(account.state?.days.some(({ status }) => status === "reread")).toBe(true);
    await account.run({ settings: { rereadDays: 0 } });
    expect(account.state?.days.some(({ status }) => status === "reread")).toBe(false);
    expect(account.absent).toEqual([]);
  });

  // The figures of docs/reliability.md.
  it.each([
    [0, { never: 90, aDay: 251 }],
    [10, { never: 0, aDay: 428 }],
    [30, { never: 0, aDay: 295 }],
  ])(
    "find within %i days the late rows of an account that moves each month: %j",
    async (rereadDays, found) => {
      const account = new Account({
        ...QUIET,
        days: 200,
        perDay: 10,
        moves: 67,
        rereadDays,
        maxWindowRows: 1_000,
      });
      await account.run();
      const late = 100;
      let rows = 0;
      for (let day = 0; day < late + 60; day++) {
        account.pass(1);
        account.move(67);
        if (day < late) account.arriveLate();
        rows += (await account.run()).lines.length;
      }
      const never = account.absent.filter((id) => id.startsWith("late"));
      expect({ never: never.length, aDay: Math.round(rows / (late + 60)) }).toEqual(found);
    },
  );
});
