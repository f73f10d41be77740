import { describe, expect, it } from "vitest";
import { type Coverage, put, spanOf } from "../../../src/streams/coverage.ts";
import { checkDay } from "../../../src/streams/daily-check.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import type { ReadSettings } from "../../../src/streams/range.ts";
import type { StreamApi } from "../../../src/streams/stream-api.ts";
import { addDays, DAY_MS, type Day, daysBetween, startOf } from "../../../src/time.ts";
import { dice } from "../../support/dice.ts";
import {
  type ModelOptions,
  ModelService,
  type Person,
  peopleOn,
  undatedPeople,
} from "../../support/model-service.ts";
import { apiWith } from "../../support/run-rules.ts";
import { sumsOf } from "../../support/stories.ts";
import { byId, type Ran, runStream } from "../../support/sync-run.ts";

const TODAY = "2026-03-20" as Day;
const NOON = startOf(TODAY) + DAY_MS / 2;
const lastDays = (count: number): Day[] =>
  Array.from({ length: count }, (_, nth) => addDays(TODAY, nth - count));
const person = (id: string, at: number | null): Person => ({ id, at, user: false });

/** An account of which a run is made each noon. */
class Life {
  readonly service: ModelService;
  readonly lines: string[] = [];
  readonly #settings: Partial<ReadSettings>;
  #state: DatedState | null = null;

  constructor(people: Person[], settings: Partial<ReadSettings> = {}, options: Partial<ModelOptions> = {}) {
    this.service = new ModelService({ now: NOON, people, latency: 20, ...options });
    this.#settings = settings;
  }

  get people(): Person[] {
    return this.service.people;
  }

  /** Rows that are served now and were never delivered as they are. */
  get lost(): string[] {
    const delivered = new Set(this.lines);
    return [...this.service.served().values()].filter((line) => !delivered.has(line));
  }

  async run(api: StreamApi = this.service.api()): Promise<Ran> {
    this.service.asked.length = 0;
    const ran = await runStream(api, { state: this.#state, settings: this.#settings });
    expect(ran).toMatchObject({ complete: true, error: undefined });
    this.#state = ran.state;
    this.lines.push(...ran.lines);
    return ran;
  }

  /** The run of the next day. */
  async next(api?: StreamApi): Promise<Ran> {
    this.service.now += DAY_MS;
    return await this.run(api);
  }

  /** How many requests the last run made. */
  get requests(): number {
    return this.service.asked.length;
  }

  /** Some people are checked again, now. */
  move(...people: readonly (Person | undefined)[]): void {
    for (const one of people) if (one !== undefined) one.at = this.service.now;
  }
}

/** `one`: all in one window; `several`: the account is too large for that. */
const SIZES = [
  ["of one window", { maxWindowRows: 250_000 }],
  ["of several windows", { maxWindowRows: 60 }],
] as const;

describe.each(SIZES)("rows that come late into an account %s", (_, settings) => {
  it.each([
    ["the first sync shows nothing", 0],
    ["the first sync shows two people of today", 2],
  ])("are found: %s, and then history appears", async (_, shown) => {
    let isVisible = false;
    const newest = Array.from({ length: shown }, (_, nth) => person(`n${nth}`, NOON - 60_000 - nth));
    const life = new Life([...newest, ...peopleOn(lastDays(99), 2)], settings, {
      filter: ({ id }) => isVisible || id.startsWith("n"),
    });
    await life.run();
    life.people.push(person("n9", NOON + 60_000));
    await life.next();
    isVisible = true;
    await life.next();
    expect(life.lost).toEqual([]);
  });

  it("are found behind those who left, when an index that stood still catches up", async () => {
    const roll = dice(7);
    const life = new Life(peopleOn(lastDays(60), 10), settings, {
      filter: ({ id }) => !isStill || !id.startsWith("late"),
    });
    let isStill = true;
    await life.run();
    const came = life.service.now;
    for (let nth = 0; nth < 94; nth++) life.people.push(person(`late${nth}`, came - nth * 1_800_000));
    for (let day = 0; day < 3; day++) {
      await life.next();
      for (let nth = 0; nth < 40; nth++) life.move(life.people[roll(600)]);
    }
    isStill = false;
    for (let day = 0; day < 4; day++) {
      await life.next();
      expect(life.requests).toBeLessThanOrEqual(100);
      life.move(life.people[roll(600)]);
    }
    await life.next();
    expect(life.lost).toEqual([]);
  });

  it("cost what the account's counts cost: 2 requests, 5 on a new day, at most 21 where people move", async () => {
    const life = new Life(peopleOn(lastDays(400), 5), settings);
    life.service.sources = ["crm"];
    await life.run();
    await life.next();
    await life.run();
    expect(life.requests).toBe(2);
    await life.next();
    expect(life.requests).toBe(5);
    const roll = dice(3);
    for (let nth = 0; nth < 40; nth++) life.move(life.people[roll(1_500)]);
    await life.next();
    expect(life.requests).toBeLessThanOrEqual(21);
    await life.next();
    expect(life.lost).toEqual([]);
  });
});

describe("the spans of a stretch", () => {
  const DAYS = lastDays(32).reduce<Coverage>((days, day) => put(days, spanOf([day, day], 2)), []);
  const BEHIND: [Day, Day] = [addDays(TODAY, -32), addDays(TODAY, -1)];

  /** What a check of a day finds where some days hold more rows than were proven, or fewer, and which days it counted. */
  async function checked(
    off: Record<number, number>,
    days = DAYS,
    at = NOON,
  ): Promise<{ without: Day[]; counted: string[] }> {
    const counted: string[] = [];
    const api = apiWith({
      count: async (window) => {
        const [from, to] = window.kind === "closed" ? [window.from, window.to] : BEHIND;
        counted.push(...(from === to ? [from] : []));
        const each = days.filter(([day]) => day >= from && day <= to);
        const rows = each.reduce(
          (sum, [day]) => sum + 2 + (off[daysBetween(BEHIND[0], day as Day) - 1] ?? 0),
          0,
        );
        return { rows, undated: 0, known: true, asked: at, answered: at };
      },
      sources: async () => undefined,
    });
    const open = { rows: 0, undated: 0, known: true, asked: at, answered: at };
    const { state } = await checkDay({ ...NEW_STATE, days }, BEHIND, open, false, api);
    const left = new Set(state.days.flatMap(([from, to]) => (from === to ? [from] : [])));
    return { without: days.map(([day]) => day as Day).filter((day) => !left.has(day)), counted };
  }

  it("are all counted where one grew, as late rows may stand beside days of which as many left", async () => {
    const late = [addDays(TODAY, -27), addDays(TODAY, -2)];
    await expect(checked({ 5: 1, 29: -1, 30: 1 })).resolves.toMatchObject({ without: late });
    const turns = [0, 1, 2].map((day) => NOON + day * DAY_MS);
    const found = await Promise.all(turns.map((at) => checked({ 5: 1, 10: -3, 29: -1, 30: 1 }, DAYS, at)));
    expect(new Set(found.map((one) => one.without.join(" ")))).toEqual(new Set(["", late.join(" ")]));
  });

  it("are each counted within three days, also where their number differs from day to day", async () => {
    for (let first = 0; first < 30; first++) {
      const counted = new Set<string>();
      for (let day = 0; day < 3; day++) {
        const days = DAYS.slice(0, 32 - ((first * 7 + day * 5) % 3));
        for (const one of (await checked({ 1: -1 }, days, NOON + (first + day) * DAY_MS)).counted)
          counted.add(one);
      }
      expect(counted.size).toBeGreaterThanOrEqual(30);
    }
  });
});

describe("a source that is granted", () => {
  it("is read from the first covered day on, once, although as many people have left", async () => {
    const old = peopleOn(lastDays(50), 8);
    const granted = peopleOn(lastDays(50), 2).map(({ id, at }) => ({
      id: `g${id}`,
      at,
      user: false,
      source: "erp",
    }));
    const life = new Life(
      [...old, ...granted],
      {},
      {
        filter: ({ source }) => source === undefined || life.service.sources?.includes(source) === true,
      },
    );
    life.service.sources = ["crm"];
    await life.run();
    const second = await life.next();
    expect(second.state?.sources).toEqual(["crm"]);
    life.move(...old.slice(0, 120));
    life.service.sources = ["crm", "erp"];
    const third = await life.next();
    expect(life.lost).toEqual([]);
    expect(third.state?.sources).toEqual(["crm", "erp"]);
    // Numbers that nobody counted since are too low, so their days come once more.
    await life.next();
    const fifth = await life.next();
    expect(fifth.lines.filter((line) => line.includes('"g'))).toEqual([]);
  });
});

describe("the cursor", () => {
  it("outlives a service whose clock is 45 days ahead for a run", async () => {
    const life = new Life(peopleOn(lastDays(30), 3));
    await life.run();
    const api = life.service.api();
    const ahead: StreamApi = {
      ...api,
      count: async (window) => {
        const count = await api.count(window);
        return { ...count, asked: count.asked + 45 * DAY_MS, answered: count.answered + 45 * DAY_MS };
      },
    };
    await life.next(ahead);
    for (let day = 0; day < 6; day++) {
      life.people.push(person(`new${day}`, life.service.now + 1_000));
      await life.next();
      expect(life.lost).toEqual([]);
    }
  });

  it("is not that of a row whose year was typed", async () => {
    const life = new Life([...peopleOn(lastDays(30), 3), person("typed", Date.parse("2062-03-01"))]);
    const { state } = await life.run();
    expect(state?.discoveredAt?.slice(0, 10)).toBe("2026-03-19");
    for (let day = 0; day < 3; day++) {
      life.people.push(person(`new${day}`, life.service.now + 1_000));
      await life.next();
      expect(life.lost).toEqual([]);
    }
  });

  it("warns of a state that is ahead of the clock, and reads", async () => {
    const life = new Life(peopleOn(lastDays(30), 3));
    const { state } = await life.run();
    life.people.push(person("new", NOON - 60_000));
    const days = [...(state?.days ?? []), ["2026-03-19" as Day, "2026-05-01" as Day, 0] as const];
    const ran = await runStream(life.service.api(), {
      state: { ...(state as DatedState), discoveredAt: "2026-05-04T00:00:00Z", days },
    });
    expect(ran.events).toContainEqual(expect.objectContaining({ kind: "log", level: "warn" }));
    expect(byId(ran.lines).has("new")).toBe(true);
    expect(ran.state?.discoveredAt?.slice(0, 10)).toBe("2026-03-20");
  });
});

describe("people without a date", () => {
  it("are found when three get a date and three others come without one", async () => {
    const life = new Life([...peopleOn(lastDays(30), 3), ...undatedPeople(5)]);
    await life.run();
    life.move(...life.people.filter(({ id }) => ["u0", "u1", "u2"].includes(id)));
    life.people.push(person("u7", null), person("u8", null), person("u9", null));
    const { lines } = await life.next();
    expect(life.lost).toEqual([]);
    expect(lines.filter((line) => line.includes("null")).length).toBe(3);
  });

  it.each([
    [2_000, 15],
    [900, 15],
  ])("%i of them, of whom one is checked a day, are not all delivered again", async (many, most) => {
    const life = new Life([...peopleOn(lastDays(30), 3), ...undatedPeople(many)]);
    await life.run();
    for (let day = 0; day < 4; day++) {
      life.service.now += 1_000;
      life.move(life.people.find(({ at }) => at === null));
      const { lines } = await life.next();
      expect(lines.length).toBeLessThanOrEqual(most);
      expect(life.lost).toEqual([]);
    }
  });

  it("more than a run remembers are not read again while there are no more of them", async () => {
    const life = new Life([...peopleOn(lastDays(30), 3), ...undatedPeople(1_001)]);
    await life.run();
    expect((await life.next()).lines.filter((line) => line.includes("null"))).toEqual([]);
    life.people.push(person("new", null));
    expect((await life.next()).lines.some((line) => line.includes('"new"'))).toBe(true);
    expect(life.lost).toEqual([]);
  });

  it("are those of the days before 1970-01-02 too", async () => {
    const life = new Life([
      ...peopleOn(lastDays(30), 3),
      ...["0001-01-01", "1969-07-20", "1970-01-01"].map((day) => person(day, Date.parse(day))),
    ]);
    const { state } = await life.run();
    expect(life.lost).toEqual([]);
    expect(state).toMatchObject({ undated: { rows: 3 } });
    const { lines } = await life.next();
    expect(lines.filter((line) => !line.includes('"2026-03-1'))).toEqual([]);
  });
});

/** Spans of an account, some of whose rows have come or left since they were read, and what a check asks and finds. */
async function randomCheck(roll: (sides: number) => number): Promise<string[]> {
  const some = <T>(...list: readonly T[]): T => list[roll(list.length)] as T;
  const first = addDays(TODAY, -200);
  const grown = new Map<Day, number>();
  const rowsOn = (day: Day): number => (Date.parse(day) / DAY_MS) % 3;
  const off = some([0], [0, 0, 0, 0, 1], [0, 0, 0, -1], [0, 1, -1], [-1, -2, -1]);
  const holes = some(0, 0, 2, 5);
  let days: Coverage = [];
  for (let from = first, many = some(3, 10, 24, 60); many > 0 && from < TODAY; many--) {
    const to = addDays(from, roll(some(1, 2, 6)));
    grown.set(addDays(from, roll(2)), some(...off));
    const status = roll(15) === 0 ? some("again" as const, "missing" as const) : undefined;
    const rows = Array.from({ length: daysBetween(from, to) }, (_, nth) => rowsOn(addDays(from, nth)));
    const sum = rows.reduce((all, one) => all + one, 0);
    days = put(
      days,
      spanOf([from, to], roll(some(4, 40)) === 0 || status !== undefined ? null : sum, status),
    );
    from = addDays(to, 1 + (roll(6) < holes ? 1 + roll(3) : 0));
  }
  const said: string[] = [];
  const api = apiWith({
    count: async (window) => {
      const [from, to] = window.kind === "closed" ? [window.from, window.to] : [first, TODAY];
      const all = Array.from({ length: daysBetween(from, to) }, (_, nth) => addDays(from, nth));
      const rows = all.reduce((sum, day) => sum + Math.max(0, rowsOn(day) + (grown.get(day) ?? 0)), 0);
      said.push(`${from} to ${to}: ${rows}`);
      return {
        rows: rows + (window.kind === "all" ? undated : 0),
        undated: 0,
        known: true,
        asked: NOON,
        answered: NOON,
      };
    },
    sources: async () => some(undefined, ["crm"], ["ads", "crm"]),
  });
  const undated = some(0, 3, 1_000, 1_001);
  const saved: DatedState = {
    ...{ ...NEW_STATE, days, sources: some(null, ["crm"], []) },
    undated: some(null, { rows: some(0, 3, 1_001), seen: ["a"] }),
    filters: some(null, { source_slug: some("", "crm"), is_user: "all" }) as DatedState["filters"],
  };
  const last = addDays(TODAY, -some(1, 2, 20, 190, 300));
  const open = { rows: some(0, 9), undated: 0, known: true, asked: NOON - DAY_MS * roll(30), answered: NOON };
  const found = await checkDay(saved, [some(first, first, addDays(first, 30)), last], open, roll(3) > 0, api);
  return [...said, JSON.stringify(found)];
}

/** `TOLD="checks of 3" npx vitest run test/unit/streams/daily-check.test.ts` prints the checks of a line. */
it("counts what these lines sum up, and takes out the days whose rows came late", async () => {
  const sums = await sumsOf("checks", [10, 50], randomCheck, (said) => `${said.length - 100} counts`);
  await expect(sums).toMatchFileSnapshot("../../golden/daily-check-sums.txt");
});
