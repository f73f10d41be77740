import { describe, expect, it } from "vitest";
import { BodyError, DataError } from "../../../src/errors.ts";
import { put, type Span } from "../../../src/streams/coverage.ts";
import type { DatedState } from "../../../src/streams/dated-state.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import { readWindow } from "../../../src/streams/read-window.ts";
import type { Count, Page, Row, StreamApi } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import { dice } from "../../support/dice.ts";
import {
  lineOf,
  type ModelOptions,
  type ModelService,
  type Person,
  rowOf,
  undatedPeople,
} from "../../support/model-service.ts";
import {
  DAY_MS,
  day,
  expectAll,
  lastDays,
  NOW,
  peopleOf,
  requestsOf,
  type SyncOptions,
  serviceOf,
  sync,
  TODAY,
} from "../../support/people-sync.ts";
import { apiWith, rulesWith } from "../../support/run-rules.ts";
import { byId, repeated, runStream } from "../../support/sync-run.ts";

const isOf = (window: Window, ...days: string[]): boolean =>
  window.kind === "closed" && days.some((one) => window.from <= one && window.to >= one);

const shuffled = (roll: (sides: number) => number, rows: Person[]): Person[] =>
  rows
    .map((row) => ({ row, place: roll(1_000_000) }))
    .sort((a, b) => a.place - b.place)
    .map(({ row }) => row);

const ROLL = dice(1);

describe("a run is never falsely complete", () => {
  it("takes no walk with a shortfall for proof where a list orders its rows at random", async () => {
    let complete = 0;
    for (let seed = 0; seed < 40; seed++) {
      const roll = dice(seed);
      const service = serviceOf(peopleOf(lastDays(6), 25), {
        cut: (window) => (isOf(window, "2026-03-16") ? { rows: 8, loud: false } : undefined),
        list: (rows) => shuffled(roll, rows),
      });
      const ran = await sync(service);
      if (ran.complete) {
        complete += 1;
        expectAll(service, ran);
      } else expect(ran.missing).toEqual(["2026-03-16"]);
      const healed = serviceOf(service.people, { now: NOW + 1_000 });
      const next = await sync(healed, { state: ran.state });
      expect(byId([...ran.lines, ...next.lines])).toEqual(healed.served());
    }
    expect(complete).toBeGreaterThan(0);
  });

  it("proves walks together whose union is what was counted", async () => {
    let turn = 0;
    const service = serviceOf(peopleOf(lastDays(6), 25), {
      cut: (window) => (isOf(window, "2026-03-16") ? { rows: 8, loud: false } : undefined),
      list: (rows) => {
        // Every other walk shows its first row twice and lacks its last, or the other way round.
        const [first, last] = [rows[0], rows.at(-1)];
        turn += rows.length === 25 ? 1 : 0;
        if (first === undefined || last === undefined || rows.length !== 25) return rows;
        return turn % 12 < 6 ? [first, ...rows.slice(0, -1)] : [...rows.slice(1), last];
      },
    });
    const ran = await sync(service);
    expect(ran.complete).toBe(true);
    expect(byId(ran.lines)).toEqual(service.served());
  });

  const companies = { source: { isDated: false, onMissingKey: "pass" } } as const;
  const byPages = { source: { ...companies.source, isExported: false } } as const;

  it.each<[string, Person[], Partial<ModelOptions>, SyncOptions]>([
    ["of today's people", peopleOf([TODAY], 90), {}, {}],
    [
      "of people whose service's clock is days ahead",
      peopleOf(lastDays(3), 40),
      { now: NOW + 3 * DAY_MS },
      {},
    ],
    ["of companies", undatedPeople(90), {}, companies],
  ])(
    "is not complete where the list %s ends early and their export is cut",
    async (_, people, options, source) => {
      const service = serviceOf(people, {
        ...options,
        cut: () => ({ rows: 20, loud: false }),
        list: (rows) => rows.slice(0, Math.floor((rows.length * 2) / 3)),
      });
      const ran = await sync(service, source);
      expect(ran).toMatchObject({ complete: false, error: expect.any(BodyError) });
      if (options.now === undefined) expect(ran.state?.discoveredAt ?? null).toBeNull();
    },
  );

  it.each<[string, Partial<ModelOptions>]>([
    ["takes no total that is too low for the end", { total: () => 10 }],
    ["proves walks together whose union is all there is", { list: (rows) => shuffled(ROLL, rows) }],
  ])("%s, of a list that is read by pages alone", async (_, options) => {
    const service = serviceOf(undatedPeople(25), options);
    expectAll(service, await sync(service, byPages));
  });

  it("is not complete where a list that is read by pages alone ends before its total", async () => {
    const ran = await sync(serviceOf(undatedPeople(25), { total: () => 26 }), byPages);
    expect(ran).toMatchObject({ complete: false, error: expect.any(BodyError) });
    expect(ran.lines).toHaveLength(25);
  });

  it("reads a list without totals again after a broken page, and says at last what was wrong", async () => {
    const broken = (pages: number): { service: ModelService; api: StreamApi } => {
      const service = serviceOf(undatedPeople(25));
      const api = service.api();
      let left = pages;
      const page: StreamApi["page"] = async (window, number) => {
        left -= 1;
        if (left >= 0) throw new BodyError(`Cannot read page ${number}: an element is no object`);
        return { ...(await api.page(window, number)), total: null };
      };
      const count = (): never => {
        throw new DataError("Cannot count: there is no total");
      };
      return { service, api: { ...api, page, count } };
    };
    const once = broken(1);
    expectAll(once.service, await runStream(once.api, byPages));
    const ran = await runStream(broken(100).api, byPages);
    expect(String(ran.error)).toMatch(/page 1: an element is no object.*Run again later/);
  });

  it("reads companies again that a cut body lacks, and believes their count", async () => {
    const service = serviceOf(undatedPeople(90), {
      cut: (_, nth) => (nth < 2 ? { rows: 20, loud: nth === 0 } : undefined),
    });
    expectAll(service, await sync(service, companies));
    expect(requestsOf(service)).toEqual(["count", "stream", "count", "stream", "count", "stream"]);
  });

  it("looks for people without a date once a day, and then delivers a newcomer", async () => {
    const service = serviceOf([...peopleOf(lastDays(5), 10), ...undatedPeople(3)]);
    const lines: string[] = [];
    const syncNext = async (state: DatedState | null): Promise<[DatedState | null, string[]]> => {
      requestsOf(service);
      const ran = await sync(service, { state });
      expect(ran.complete).toBe(true);
      lines.push(...ran.lines);
      return [ran.state, requestsOf(service)];
    };
    const [first] = await syncNext(null);
    service.now += DAY_MS;
    const [second, daily] = await syncNext(first);
    // What is read, what lies behind it, everything; the sources; the ends of the list.
    expect(daily).toEqual(["count", "count", "count", "any", "page", "page", "stream"]);
    service.people.push({ id: "new", at: null, user: false });
    const [third] = await syncNext(second);
    service.now += DAY_MS;
    const [fourth] = await syncNext(third);
    expect(byId(lines)).toEqual(service.served());
    expect(fourth).toMatchObject({ undated: { rows: 4 }, checked: "2026-03-22" });
    expect((await syncNext(fourth))[1]).toEqual(["count", "stream"]);
  });

  it("emits a person once who is checked again while a closed window is read", async () => {
    const people = peopleOf(lastDays(20), 10);
    const mover = people[3] as Person;
    const service = serviceOf(people, {
      showsMoved: true,
      latency: 700,
      moment: ({ now }) => {
        if (now > NOW + 6_000 && (mover.at ?? 0) < NOW) mover.at = now;
      },
    });
    const ran = await sync(service, { maxWindowRows: 40 });
    expect(ran.error).toBeUndefined();
    expect(repeated(ran.lines)).toEqual([]);
    expect(ran.lines.filter((line) => line === lineOf(mover))).toHaveLength(1);
  });
});

describe("totals that are lower than what there is", () => {
  const people = (): Person[] => [...peopleOf(lastDays(5), 8), ...undatedPeople(7)];
  const always: Readonly<Record<string, NonNullable<ModelOptions["total"]>>> = {
    "are capped at 6": (rows) => Math.min(rows, 6),
    "are capped at 20": (rows) => Math.min(rows, 20),
    "are always 0": () => 0,
    "are 0 for one day": (rows, window) => (isOf(window, "2026-03-17") ? 0 : rows),
    "are 0 for everything": (rows, window) => (window.kind === "all" ? 0 : rows),
    "are lower by 1": (rows) => Math.max(0, rows - 1),
    "are lower by 3": (rows) => Math.max(0, rows - 3),
  };
  const exports: readonly NonNullable<ModelOptions["cut"]>[] = [
    () => undefined,
    (_, nth) => (nth < 2 ? { rows: 18, loud: false } : undefined),
    (_, nth) => (nth < 3 ? { rows: 4, loud: true } : undefined),
    () => ({ rows: 22, loud: false }),
  ];

  /** Every row comes or the stream ends with an error, and nothing is lost once the service is healed. */
  async function expectNothingLost(options: () => Partial<ModelOptions>, isDated: boolean): Promise<boolean> {
    const source = { isDated, onMissingKey: "pass" } as const;
    const served = isDated ? people() : undatedPeople(27);
    let complete = false;
    for (const maxWindowRows of [15, 1_000]) {
      const settings = { maxWindowRows };
      const service = serviceOf(served, options());
      const ran = await sync(service, { ...settings, source });
      if (ran.complete) expectAll(service, ran);
      expect(ran.error === undefined).toBe(ran.complete);
      complete ||= ran.complete;
      const state = isDated ? ran.state : null;
      const next = await sync(serviceOf(served), { state, ...settings, source });
      expect(next.error).toBeUndefined();
      expect(byId([...ran.lines, ...next.lines])).toEqual(service.served());
    }
    return complete;
  }

  it.each(Object.entries(always))("are no proof where they %s", async (_, total) => {
    for (const cut of exports)
      for (const isDated of [true, false]) await expectNothingLost(() => ({ total, cut }), isDated);
  });

  it("hide nobody while they are capped for the first counts", async () => {
    const complete: boolean[] = [];
    for (let capped = 0; capped < 13; capped++) {
      const options = (): Partial<ModelOptions> => {
        let counts = 0;
        return { total: (rows) => (counts++ < capped ? Math.min(rows, 20) : rows) };
      };
      complete.push(await expectNothingLost(options, true));
    }
    expect(complete[0]).toBe(true);
  });

  it("deliver what was read and name the numbers and the way out", async () => {
    const total: ModelOptions["total"] = (rows) => Math.min(rows, 20);
    for (const isDated of [true, false]) {
      const service = serviceOf(isDated ? people() : undatedPeople(27), { total, turnsBack: !isDated });
      const ran = await sync(service, { source: { isDated, onMissingKey: "pass" } });
      expect(byId(ran.lines)).toEqual(service.served());
      const { cause = ran.error } = ran.error as Error;
      expect(ran.error).toMatchObject({ message: expect.stringContaining('"verify_counts": false') });
      expect(cause).toMatchObject({ message: expect.stringMatching(/Cannot trust .*\b2[17]\b.*\b20\b/) });
    }
  });

  it("hide no company without a date where the list ends with the last that was shown", async () => {
    const service = serviceOf(undatedPeople(27), { total: (rows) => Math.min(rows, 20) });
    expectAll(service, await sync(service, { source: { isDated: false, onMissingKey: "pass" } }));
  });

  it("skip no half for its count of 0", async () => {
    const isLost = ({ id }: Person): boolean => id.startsWith("p2-");
    const list: ModelOptions["list"] = (rows) => rows.filter((person) => !isLost(person));
    const total: ModelOptions["total"] = (rows, window) => (isOf(window, "2026-03-18") ? rows - 8 : rows);
    const service = serviceOf(peopleOf(lastDays(5), 8), { list, total });
    const settings = { startDate: day("2026-03-16"), endDate: day("2026-03-18") };
    expect(await sync(service, settings)).toMatchObject({
      complete: false,
      error: expect.any(DataError),
    });
  });
});

describe("there is always a way forward", () => {
  const broken = (...days: string[]): Partial<ModelOptions> => ({
    cut: (window) => (isOf(window, ...days) ? { rows: 2, loud: true } : undefined),
    breaks: (window) => isOf(window, ...days),
  });

  it("goes past three days in a row that are ignored, and delivers what they give", async () => {
    const days = ["2026-03-08", "2026-03-09", "2026-03-10"].map(day);
    const service = serviceOf(peopleOf(lastDays(30), 4), broken(...days));
    const settings = { maxWindowRows: 20, ignoreMissingDays: days };
    const ran = await sync(service, settings);
    expect(ran).toMatchObject({ complete: true, error: undefined, missing: [] });
    expect(byId(ran.lines).size).toBe(service.people.length - 3 * 2);
    const single = service.asked.filter(
      ({ what, window }) =>
        what === "stream" && "to" in window && window.from === days[1] && window.to === days[1],
    );
    expect(single).toHaveLength(1);
  });

  it("makes a day missing whose pages are broken JSON, and goes on", async () => {
    const service = serviceOf(peopleOf(lastDays(30), 25), {
      cut: (window) => (isOf(window, "2026-03-10") ? { rows: 2, loud: true } : undefined),
      breaks: (window, number) => isOf(window, "2026-03-10") && number === 2,
    });
    const ran = await sync(service, { maxWindowRows: 60 });
    expect(ran).toMatchObject({ complete: false, missing: ["2026-03-10"] });
    // The rows of the other pages are delivered anyway.
    expect(byId(ran.lines).size).toBe(service.people.length - 10);
  });

  const withoutId = (id: string): ((person: Person) => Row) => {
    return (person) => (person.id === id ? { ...rowOf(person), key: "" } : rowOf(person));
  };

  it.each([true, false])(
    "delivers the rows beside one without an id (verify_counts: %s)",
    async (verifyCounts) => {
      const people = peopleOf(lastDays(20), 4);
      const bad = people.find(({ at }) => at !== null && new Date(at).toISOString() > "2026-03-10");
      const service = serviceOf(people, { row: withoutId(bad?.id ?? "") });
      const settings = { maxWindowRows: 20, verifyCounts };
      const ran = await sync(service, settings);
      expect(ran).toMatchObject({ complete: false, missing: ["2026-03-10"] });
      expect(byId(ran.lines).size).toBe(people.length - 1);
      const ignoreMissingDays = [day("2026-03-10")];
      const next = await sync(service, { ...settings, ignoreMissingDays });
      expect(next.complete).toBe(true);
      expect(byId(next.lines).size).toBe(people.length - 1);
    },
  );

  it("counts companies without a key as shown where the destination cannot take them", async () => {
    const people = undatedPeople(30);
    const row = withoutId("u7");
    for (const onMissingKey of ["drop", "pass"] as const) {
      const service = serviceOf(people, { row });
      const ran = await sync(service, { source: { isDated: false, onMissingKey } });
      expect(ran.complete).toBe(true);
      expect(ran.lines).toHaveLength(onMissingKey === "drop" ? 29 : 30);
      expect(requestsOf(service)).toEqual(["count", "stream"]);
    }
  });

  it("is complete with dates before 1970, in three requests", async () => {
    const people = peopleOf(["0001-01-01", "1969-07-20", ...lastDays(3)], 3);
    const service = serviceOf(people);
    expectAll(service, await sync(service));
    expect(requestsOf(service)).toEqual(["count", "count", "stream"]);
  });

  const person = (id: string, at: number): Person => ({ id, at, user: true });
  it.each<[string, Person[], number, SyncOptions]>([
    ["where little is new", [], 0, {}],
    [
      "though people are dated in the future",
      [person("typo", Date.parse("2062-03-01T00:00:00Z"))],
      60_000,
      {},
    ],
    [
      "where the service's clock is five seconds behind its rows",
      [person("ahead", NOW + 4_000)],
      0,
      { startDate: day("2026-03-19") },
    ],
  ])("takes two requests for a quiet sync %s", async (_, others, later, settings) => {
    const service = serviceOf([...peopleOf(lastDays(5), 10), ...others]);
    const { state } = await sync(service, settings);
    requestsOf(service);
    service.now += later;
    expect((await sync(service, { state, ...settings })).complete).toBe(true);
    expect(requestsOf(service)).toEqual(["count", "stream"]);
  });

  it.each<[string, (at: number) => string]>([
    ["epoch seconds", (at) => String(Math.floor(at / 1000))],
    ["epoch milliseconds", (at) => String(at)],
    ["+00", (at) => new Date(at).toISOString().replace("Z", "+00")],
    ["a comma", (at) => new Date(at).toISOString().replace(".", ",")],
    ["a space", (at) => new Date(at).toISOString().replace("T", " ")],
    ["lower case", (at) => new Date(at).toISOString().toLowerCase()],
  ])("reads cursors that are %s in as many requests as others", async (_, spelt) => {
    const people = peopleOf(lastDays(5), 10);
    const row = (person: Person): Row => {
      const cursor = spelt(person.at ?? 0);
      return { raw: `{"id":"${person.id}","at":"${cursor}"}` as RawLine, key: person.id, cursor };
    };
    const service = serviceOf(people, { row });
    const ran = await sync(service);
    expect(ran.complete).toBe(true);
    expect(ran.lines).toHaveLength(people.length);
    expect(requestsOf(service)).toEqual(["count", "count", "stream"]);
    expect(ran.state?.discoveredAt).toMatch(/^2026-03-20T0\d:.*Z$/);
  });
});

describe("days that people leave while they are read", () => {
  /** At any moment while it is on, moves the oldest person who has not moved to now. */
  const draining = (people: Person[], isOn: () => boolean): ((model: ModelService) => void) => {
    let next = 0;
    return ({ now }) => {
      const person = people[next];
      if (!isOn() || person === undefined || (person.at ?? 0) > NOW - DAY_MS) return;
      person.at = now;
      next += 1;
    };
  };

  it("are closed softly, checked again by the next run, and no row is lost", async () => {
    const people = peopleOf(lastDays(30), 20);
    let isOn = true;
    const service = serviceOf(people, { latency: 40, moment: draining(people, () => isOn) });
    const settings = { maxWindowRows: 100 };
    const first = await sync(service, settings);
    expect(first).toMatchObject({ complete: true, missing: [] });
    expect(first.again.length).toBeGreaterThan(0);
    expect(first.lines.length).toBeLessThan(people.length * 1.2);
    isOn = false;
    service.now += 3_600_000;
    const next = await sync(service, { state: first.state, ...settings });
    expect(next).toMatchObject({ complete: true, again: [] });
    expect(byId([...first.lines, ...next.lines])).toEqual(service.served());
  });

  const drained: Span = [day("2026-03-02"), day("2026-03-03"), null, "again"];

  it("are complete where the list shows its last row at every place past its end", async () => {
    const people = peopleOf(lastDays(30), 20);
    const service = serviceOf(people, { latency: 40, moment: draining(people, () => true), turnsBack: true });
    const ran = await sync(service, { maxWindowRows: 100 });
    expect(ran).toMatchObject({ complete: true, state: { undated: { rows: 0 } }, missing: [] });
  });

  it("are read by pages if they drain once more, and closed if the pages drain too", async () => {
    const people = peopleOf(lastDays(30), 20);
    const before = await sync(serviceOf(people));
    const oldest = people.filter(({ at }) => at !== null && new Date(at).toISOString() > "2026-03-02");
    const service = serviceOf(people, { latency: 20, moment: draining(oldest, () => true), batch: 3 });
    const state = { ...(before.state as DatedState), days: put(before.state?.days ?? [], drained) };
    const ran = await sync(service, { state });
    expect(ran).toMatchObject({ complete: true, again: [], missing: [] });
    expect(service.asked.some(({ what, window }) => what === "page" && isOf(window, "2026-03-02"))).toBe(
      true,
    );
  });

  it.each([
    [null, "again"],
    ["again", "proven"],
  ] as const)("of a range too large for pages are closed: %s becomes %s", async (clears, kind) => {
    const window: Window = { kind: "closed", from: day("2026-03-02"), to: day("2026-03-03") };
    const rows = Array.from({ length: 20_005 }, (_, nth): Row => {
      return { raw: `{"id":${nth}}` as RawLine, key: String(nth), cursor: "2026-03-02T12:00:00Z" };
    });
    let total = 20_017;
    const count = async (): Promise<Count> => {
      total -= 7;
      return { rows: total, undated: 0, known: true, asked: NOW, answered: NOW };
    };
    const stream = async function* () {
      yield { rows };
    };
    const page = async (): Promise<Page> => ({ rows: [], size: 1_000, total: null });
    const api = apiWith({ now: () => NOW, count, stream, page });
    const read = readWindow({ window, clears }, rulesWith({ api }));
    let step = await read.next();
    while (step.done !== true) step = await read.next();
    expect(step.value).toMatchObject([{ kind }]);
  });
});
