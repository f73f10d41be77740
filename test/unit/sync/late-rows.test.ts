import { describe, expect, it } from "vitest";
import { addDays, type Day } from "../../../src/base/time.ts";
import { spanOf } from "../../../src/sync/coverage.ts";
import type { Service } from "../../../src/sync/service.ts";
import { type DatedState, NEW_STATE } from "../../../src/sync/state.ts";
import { dice } from "../../support/dice.ts";
import {
  type ModelOptions,
  type ModelService,
  type Person,
  peopleOn,
  undatedPeople,
} from "../../support/model-service.ts";
import { DAY_MS, NOW, type SyncOptions, serviceOf, TODAY } from "../../support/people-sync.ts";
import { type Ran, runStream } from "../../support/sync-run.ts";

/** Days before today, oldest first. */
const daysBefore = (count: number): Day[] =>
  Array.from({ length: count }, (_, nth) => addDays(TODAY, nth - count));
const person = (id: string, at: number | null): Person => ({ id, at, user: false });

/** An account that is read once a day. */
class Account {
  readonly service: ModelService;
  readonly lines: string[] = [];
  readonly #settings: SyncOptions;
  #state: DatedState | null = null;

  constructor(people: Person[], settings: SyncOptions = {}, options: Partial<ModelOptions> = {}) {
    this.service = serviceOf(people, { latency: 20, ...options });
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

  async run(api: Service = this.service.api()): Promise<Ran> {
    this.service.asked.length = 0;
    const ran = await runStream(api, { state: this.#state, settings: this.#settings });
    expect(ran).toMatchObject({ complete: true, error: undefined });
    this.#state = ran.state;
    this.lines.push(...ran.lines);
    return ran;
  }

  async nextDay(api?: Service): Promise<Ran> {
    this.service.now += DAY_MS;
    return await this.run(api);
  }

  /** How many requests the last run made. */
  get requests(): number {
    return this.service.asked.length;
  }

  /** The state no longer knows how many rows its days have. */
  forgetNumbers(): void {
    const days = this.#state?.days.map(([from, to]) => spanOf([from, to], null)) ?? [];
    this.#state = { ...(this.#state ?? NEW_STATE), days };
  }

  /** Some people are checked again, now. */
  move(...people: readonly (Person | undefined)[]): void {
    for (const one of people) if (one !== undefined) one.at = this.service.now;
  }
}

describe.each([
  ["of one window", { maxWindowRows: 250_000 }],
  ["of several windows", { maxWindowRows: 60 }],
])("rows that come late into an account %s", (_, settings) => {
  it.each([0, 2])("are found where history appears after %i people of today", async (shown) => {
    let isVisible = false;
    const newest = Array.from({ length: shown }, (_, nth) => person(`n${nth}`, NOW - 60_000 - nth));
    const account = new Account([...newest, ...peopleOn(daysBefore(99), 2)], settings, {
      filter: ({ id }) => isVisible || id.startsWith("n"),
    });
    await account.run();
    account.people.push(person("n9", NOW + 60_000));
    await account.nextDay();
    isVisible = true;
    await account.nextDay();
    expect(account.lost).toEqual([]);
  });

  it("are found in days whose numbers the state lacked, once a run has counted them", async () => {
    const account = new Account(peopleOn(daysBefore(60), 5), settings);
    await account.run();
    account.forgetNumbers();
    await account.nextDay();
    account.people.push(person("late", NOW - 40 * DAY_MS));
    for (let nth = 0; nth < 3; nth++) await account.nextDay();
    expect(account.lost).toEqual([]);
  });

  it("are found behind those who left, when an index that stood still catches up", async () => {
    const roll = dice(7);
    const account = new Account(peopleOn(daysBefore(60), 10), settings, {
      filter: ({ id }) => !isStill || !id.startsWith("late"),
    });
    let isStill = true;
    await account.run();
    const came = account.service.now;
    for (let nth = 0; nth < 94; nth++) account.people.push(person(`late${nth}`, came - nth * 1_800_000));
    for (let nth = 0; nth < 3; nth++) {
      await account.nextDay();
      for (let moved = 0; moved < 40; moved++) account.move(account.people[roll(600)]);
    }
    isStill = false;
    for (let nth = 0; nth < 4; nth++) {
      await account.nextDay();
      expect(account.requests).toBeLessThanOrEqual(100);
      account.move(account.people[roll(600)]);
    }
    await account.nextDay();
    expect(account.lost).toEqual([]);
  });

  it("are looked for by 5 requests on a new day, and at most 21 where people move; the other runs need 2", async () => {
    const account = new Account(peopleOn(daysBefore(400), 2), settings);
    account.service.sources = ["crm"];
    await account.run();
    await account.nextDay();
    await account.run();
    expect(account.requests).toBe(2);
    await account.nextDay();
    expect(account.requests).toBe(5);
    const roll = dice(3);
    for (let nth = 0; nth < 40; nth++) account.move(account.people[roll(600)]);
    await account.nextDay();
    expect(account.requests).toBeLessThanOrEqual(21);
    await account.nextDay();
    expect(account.lost).toEqual([]);
  });
});

describe("a source that is granted", () => {
  it("is read from the first covered day on, once, although as many people have left", async () => {
    const old = peopleOn(daysBefore(50), 8);
    const granted = peopleOn(daysBefore(50), 2).map((one) => ({ ...one, id: `g${one.id}`, source: "erp" }));
    const account = new Account(
      [...old, ...granted],
      {},
      {
        filter: ({ source }) => source === undefined || account.service.sources?.includes(source) === true,
      },
    );
    account.service.sources = ["crm"];
    await account.run();
    expect((await account.nextDay()).state?.sources).toEqual(["crm"]);
    account.move(...old.slice(0, 120));
    account.service.sources = ["crm", "erp"];
    expect((await account.nextDay()).state?.sources).toEqual(["crm", "erp"]);
    expect(account.lost).toEqual([]);
    // Numbers that nobody counted since are too low, so their days come once more.
    await account.nextDay();
    expect((await account.nextDay()).lines.filter((line) => line.includes('"g'))).toEqual([]);
  });
});

describe("the cursor", () => {
  it("is not that of a row whose year was typed wrong", async () => {
    const typed = person("typed", Date.parse("2062-03-01"));
    const account = new Account([...peopleOn(daysBefore(30), 3), typed]);
    const { state } = await account.run();
    expect(state?.discoveredAt?.slice(0, 10)).toBe("2026-03-19");
    for (let nth = 0; nth < 3; nth++) {
      account.people.push(person(`new${nth}`, account.service.now + 1_000));
      await account.nextDay();
      expect(account.lost).toEqual([]);
    }
  });
});

describe("people without a date", () => {
  it("are found when three get a date and three others come without one", async () => {
    const account = new Account([...peopleOn(daysBefore(30), 3), ...undatedPeople(5)]);
    await account.run();
    account.move(...account.people.filter(({ id }) => ["u0", "u1", "u2"].includes(id)));
    account.people.push(person("u7", null), person("u8", null), person("u9", null));
    const { lines } = await account.nextDay();
    expect(account.lost).toEqual([]);
    expect(lines.filter((line) => line.includes("null"))).toHaveLength(5);
  });

  it("are those of the days before 1970-01-02 too", async () => {
    const old = ["0001-01-01", "1969-07-20", "1970-01-01"].map((at) => person(at, Date.parse(at)));
    const account = new Account([...peopleOn(daysBefore(30), 3), ...old]);
    const { state } = await account.run();
    expect(account.lost).toEqual([]);
    expect(state).toMatchObject({ undated: { rows: 3 } });
  });
});
