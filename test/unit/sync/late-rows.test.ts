import { describe, expect, it } from "vitest";
import { addDays, BEGINNING, type Day } from "../../../src/base/time.ts";
import type { RowState } from "../../../src/sync/state.ts";
import {
  type ModelOptions,
  type ModelService,
  type Person,
  peopleOn,
  undatedPeople,
} from "../../support/model-service.ts";
import { DAY_MS, NOW, type SyncOptions, serviceOf, sync, TODAY } from "../../support/people-sync.ts";
import { type Ran, runStream } from "../../support/sync-run.ts";

/** Days before today, oldest first. */
const daysBefore = (count: number): Day[] =>
  Array.from({ length: count }, (_, nth) => addDays(TODAY, nth - count));
const person = (id: string, at: number | null): Person => ({ id, at, user: false });

/** An account that is read once a day. */
class Account {
  readonly service: ModelService;
  readonly lines: string[] = [];
  state: RowState | null = null;
  readonly #settings: SyncOptions;

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

  async run(settings: SyncOptions = {}, key = "key"): Promise<Ran> {
    this.service.asked.length = 0;
    const ran = await runStream(this.service.api(), {
      state: this.state,
      key,
      settings: { ...this.#settings, ...settings },
    });
    if (ran.error === undefined) expect(ran.complete).toBe(true);
    this.state = ran.state;
    this.lines.push(...ran.lines);
    return ran;
  }

  async nextDay(settings: SyncOptions = {}, key = "key"): Promise<Ran> {
    this.service.now += DAY_MS;
    return await this.run(settings, key);
  }

  /** Rows of this many days ago. */
  arriveLate(...days: readonly number[]): void {
    for (const ago of days) this.people.push(person(`late${ago}`, this.service.now - ago * DAY_MS));
  }

  /** How many requests the last run made. */
  get requests(): number {
    return this.service.asked.length;
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

  it("are looked for by at most 30 requests on a new day; the other runs need 2", async () => {
    const account = new Account(peopleOn(daysBefore(400), 2), settings);
    await account.run();
    await account.nextDay();
    expect(account.requests).toBeLessThanOrEqual(30);
    await account.run();
    expect(account.requests).toBe(2);
    account.arriveLate(3, 90, 300);
    await account.nextDay();
    expect(account.lost).toEqual([]);
  });
});

describe("the daily check only helps", () => {
  it("where its counts fail: today's rows come, the run says so, and the next one checks again", async () => {
    let isBroken = true;
    const account = new Account(peopleOn(daysBefore(60), 3), {}, { checkFails: () => isBroken });
    await account.run();
    account.arriveLate(30);
    account.people.push(person("new", NOW + DAY_MS - 60_000));
    const ran = await account.nextDay();
    expect(ran.lines.some((line) => line.includes('"new"'))).toBe(true);
    const text = expect.stringContaining("The next run tries again");
    expect(ran.events).toContainEqual(expect.objectContaining({ kind: "log", level: "warn", text }));
    isBroken = false;
    await account.run();
    expect(account.lost).toEqual([]);
    expect(account.state?.checked).toBe("2026-03-21");
  });

  it("where the list of sources, or one source of it, cannot be asked for", async () => {
    const isRefused = new Set(["erp"]);
    const account = new Account(
      peopleOn(daysBefore(60), 3),
      {},
      {
        checkFails: (window) => window.kind === "closed" && isRefused.has(window.source ?? ""),
      },
    );
    account.service.sources = undefined;
    await account.run();
    expect(account.state).toMatchObject({ sources: null, checked: null });
    account.service.sources = ["crm", "erp"];
    await account.run();
    expect(account.state).toMatchObject({ sources: ["crm"], checked: null });
    isRefused.clear();
    await account.run();
    expect(account.state).toMatchObject({ sources: ["crm", "erp"], checked: TODAY });
  });
});

describe("a source that is granted", () => {
  const granted = (): Person[] =>
    peopleOn(daysBefore(50), 2).map((one) => ({ ...one, id: `g${one.id}`, sources: ["erp"] }));
  const accountOf = (): Account => {
    const account: Account = new Account(
      [...peopleOn(daysBefore(50), 8), ...granted()],
      {},
      {
        filter: ({ sources }) => sources === undefined || account.service.sources?.includes("erp") === true,
      },
    );
    account.service.sources = ["crm"];
    return account;
  };

  it.each([0, 1])(
    "%i days after the first sync is read, although as many people have left",
    async (later) => {
      const account = accountOf();
      await account.run();
      for (let nth = 0; nth < later; nth++) await account.nextDay();
      for (const one of account.people.slice(0, 120)) one.at = account.service.now;
      account.service.sources = ["crm", "erp"];
      await account.nextDay();
      expect(account.state?.sources).toEqual(["crm", "erp"]);
      expect(account.lost).toEqual([]);
      expect((await account.nextDay()).lines.filter((line) => /"g.*2026-0[12]/.test(line))).toEqual([]);
    },
  );
});

describe("another API key", () => {
  const rotated = async (people: Person[], state: RowState | null) =>
    await sync(serviceOf(people), { state, key: "b" });

  it("of the same organization is accepted with a warning, and finds what came late", async () => {
    const account = new Account(peopleOn(daysBefore(60), 9));
    await account.run();
    account.arriveLate(30);
    const ran = await account.nextDay({}, "b");
    expect(account.lost).toEqual([]);
    const text = expect.stringContaining("the key is of the same organization");
    expect(ran.events).toContainEqual(expect.objectContaining({ kind: "log", level: "warn", text }));
    expect(account.state?.key).toBe("b");
  });

  it("of another organization is refused before a row is sent, and the message says what to do", async () => {
    const { state } = await sync(serviceOf(peopleOn(daysBefore(60), 9)), { key: "a" });
    const ran = await rotated(peopleOn(daysBefore(300), 4), state);
    expect(ran.lines).toEqual([]);
    expect(String(ran.error)).toMatch(
      /another organization \(in \d+ of \d+ ranges.*set "key" to null in the state/,
    );
    expect(
      await sync(serviceOf(peopleOn(daysBefore(300), 4)), {
        state: state && { ...state, key: null },
        key: "b",
      }),
    ).toMatchObject({ complete: true });
  });

  it("of another organization is refused where each of its counts fails once", async () => {
    const { state } = await sync(serviceOf(peopleOn(daysBefore(60), 9)), { key: "a" });
    const service = serviceOf(peopleOn(daysBefore(300), 4), { checkFails: () => true });
    const { lines, error } = await sync(service, { state, key: "b" });
    expect([lines, String(error)]).toEqual([[], expect.stringContaining("another organization")]);
  });

  it("of another organization with the same numbers, some of whose people both share, loses no row", async () => {
    const own = [...peopleOn(daysBefore(10), 3), ...undatedPeople(1_200)];
    const { state } = await sync(serviceOf(own), { key: "a" });
    const others = own.map((one, nth) => (nth % 3 === 0 ? one : { ...one, id: `b${one.id}` }));
    const service = serviceOf(others);
    const ran = await sync(service, { state, key: "b" });
    const came = new Set<string>(ran.lines);
    expect([...service.served().values()].filter((line) => !came.has(line))).toEqual([]);
  });
});

it("a cursor is not that of a row whose year was typed wrong", async () => {
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

describe("people without a date", () => {
  it("are found when three get a date and three others come without one", async () => {
    const account = new Account([...peopleOn(daysBefore(30), 3), ...undatedPeople(5)]);
    await account.run();
    for (const one of account.people) if (["u0", "u1", "u2"].includes(one.id)) one.at = account.service.now;
    account.people.push(person("u7", null), person("u8", null), person("u9", null));
    await account.nextDay();
    expect(account.lost).toEqual([]);
  });

  it("are those of the days before 1970-01-02 too", async () => {
    const old = ["0001-01-01", "1969-07-20", "1970-01-01"].map((at) => person(at, Date.parse(at)));
    const account = new Account([...peopleOn(daysBefore(30), 3), ...old]);
    const { state } = await account.run();
    expect(account.lost).toEqual([]);
    expect(state).toMatchObject({ undated: { rows: 3 } });
  });

  it("come once a day up to 1,000 of them, and more only when their number has changed", async () => {
    for (const [count, comes] of [
      [1_000, true],
      [1_001, false],
    ] as const) {
      const account = new Account([...peopleOn(daysBefore(3), 1), ...undatedPeople(count)]);
      await account.run();
      expect((await account.nextDay()).lines.length > 1_000).toBe(comes);
      expect((await account.run()).lines.length).toBeLessThan(9);
      account.people.push(person("another", null));
      await account.nextDay();
      expect(account.lost).toEqual([]);
    }
  });
});

it("a state without days, or with a null cursor, reads everything, people without a date too", async () => {
  const people = [...peopleOn(daysBefore(30), 3), ...undatedPeople(1_200)];
  const account = new Account(people, { maxWindowRows: 60 });
  const { state } = await account.run();
  if (state === null) throw new Error("No state");
  for (const saved of [
    { ...state, days: [], undated: null },
    { ...state, discoveredAt: null },
  ]) {
    account.state = saved;
    account.lines.length = 0;
    await account.run();
    expect(account.lost).toEqual([]);
    expect(account.state?.days[0]?.from).toBe(BEGINNING);
  }
});
