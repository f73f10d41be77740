import { describe, expect, it } from "vitest";
import { BodyError, DataError } from "../../../src/base/errors.ts";
import { put } from "../../../src/sync/coverage.ts";
import type { Row, Service } from "../../../src/sync/service.ts";
import type { RowState } from "../../../src/sync/state.ts";
import type { Window } from "../../../src/sync/window.ts";
import { dice } from "../../support/dice.ts";
import {
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
  type SyncOptions,
  serviceOf,
  sync,
  TODAY,
} from "../../support/people-sync.ts";
import { byId, repeated, runStream } from "../../support/sync-run.ts";

const isOf = (window: Window, ...days: string[]): boolean =>
  window.kind === "closed" && days.some((one) => window.from <= one && window.to >= one);

const shuffled = (roll: (sides: number) => number, rows: Person[]): Person[] =>
  rows
    .map((row) => ({ row, place: roll(1_000_000) }))
    .sort((a, b) => a.place - b.place)
    .map(({ row }) => row);

const companies = { source: { isDated: false, onMissingKey: "pass" } } as const;
const byPages = { source: { ...companies.source, isExported: false } } as const;

describe("a list whose pages lack rows", () => {
  it("is no proof where it orders its rows at random: the stream is whole, or the day is missing until it is", async () => {
    let complete = 0;
    for (let seed = 0; seed < 10; seed++) {
      const roll = dice(seed);
      const service = serviceOf(peopleOf(lastDays(6), 25), {
        cut: (window) => (isOf(window, "2026-03-16") ? { rows: 8, loud: false } : undefined),
        list: (rows) => shuffled(roll, rows),
      });
      const ran = await sync(service);
      complete += ran.complete ? 1 : 0;
      if (ran.complete) expectAll(service, ran);
      else expect(ran.missing).toEqual(["2026-03-16"]);
      const healed = serviceOf(service.people, { now: NOW + 1_000 });
      const next = await sync(healed, { state: ran.state });
      expect(byId([...ran.lines, ...next.lines])).toEqual(healed.served());
    }
    expect(complete).toBeGreaterThan(0);
  });

  it.each<[string, Person[], number, SyncOptions]>([
    ["today's people", peopleOf([TODAY], 90), NOW, {}],
    ["people of a service whose clock is days ahead", peopleOf(lastDays(3), 40), NOW + 3 * DAY_MS, {}],
    ["companies", undatedPeople(90), NOW, companies],
  ])("proves nothing of %s where their export is cut", async (_, people, now, source) => {
    const service = serviceOf(people, {
      now,
      cut: () => ({ rows: 20, loud: false }),
      list: (rows) => rows.slice(0, Math.floor((rows.length * 2) / 3)),
    });
    const ran = await sync(service, source);
    expect(ran).toMatchObject({ complete: false, error: expect.any(BodyError) });
    if (now === NOW) expect(ran.state?.discoveredAt ?? null).toBeNull();
  });

  it("is not the end where a total is too low, or rows come in random order; it is not complete below its total", async () => {
    const roll = dice(1);
    for (const options of [{ total: () => 10 }, { list: (rows: Person[]) => shuffled(roll, rows) }]) {
      const service = serviceOf(undatedPeople(25), options);
      expectAll(service, await sync(service, byPages));
    }
    const ran = await sync(serviceOf(undatedPeople(25), { total: () => 26 }), byPages);
    expect([ran.complete, ran.lines.length]).toEqual([false, 25]);
  });

  it("without totals is read again after a broken page, and says at last what was wrong", async () => {
    const broken = (pages: number): { service: ModelService; api: Service } => {
      const service = serviceOf(undatedPeople(25));
      const api = service.api();
      let left = pages;
      const page: Service["page"] = async (window, number) => {
        left -= 1;
        if (left >= 0) throw new BodyError(`Cannot read page ${number}: an element is not an object`);
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
    expect(String(ran.error)).toMatch(/page 1: an element is not an object/);
  });
});

describe("totals that are lower than what there is", () => {
  const exports: readonly NonNullable<ModelOptions["cut"]>[] = [
    () => undefined,
    (_, nth) => (nth < 2 ? { rows: 18, loud: false } : undefined),
    (_, nth) => (nth < 3 ? { rows: 4, loud: true } : undefined),
  ];

  /** Every row comes or the stream ends with an error, and nothing is lost once the service is healed. */
  async function expectNothingLost(options: Partial<ModelOptions>, isDated: boolean): Promise<void> {
    const source = { isDated, onMissingKey: "pass" } as const;
    const served = isDated ? [...peopleOf(lastDays(5), 8), ...undatedPeople(7)] : undatedPeople(27);
    for (const maxWindowRows of isDated ? [15, 1_000] : [1_000]) {
      const settings = { maxWindowRows };
      const service = serviceOf(served, options);
      const ran = await sync(service, { ...settings, source });
      if (ran.complete) expectAll(service, ran);
      expect(ran.error === undefined).toBe(ran.complete);
      const state = isDated ? ran.state : null;
      const next = await sync(serviceOf(served), { state, ...settings, source });
      expect(next.error).toBeUndefined();
      expect(byId([...ran.lines, ...next.lines])).toEqual(service.served());
    }
  }

  it.each<[string, NonNullable<ModelOptions["total"]>]>([
    ["are capped at 6", (rows) => Math.min(rows, 6)],
    ["are capped at 20", (rows) => Math.min(rows, 20)],
    ["are always 0", () => 0],
    ["are 0 for one day", (rows, window) => (isOf(window, "2026-03-17") ? 0 : rows)],
    ["are 0 for everything", (rows, window) => (window.kind === "all" ? 0 : rows)],
    ["are lower by 1", (rows) => Math.max(0, rows - 1)],
    ["are lower by 3", (rows) => Math.max(0, rows - 3)],
  ])("hide no row and prove nothing where they %s", async (_, total) => {
    for (const cut of exports)
      for (const isDated of [true, false]) await expectNothingLost({ total, cut }, isDated);
  });

  it("skip no half of a contradicted window for its count of 0", async () => {
    const list: ModelOptions["list"] = (rows) => rows.filter(({ id }) => !id.startsWith("p2-"));
    const total: ModelOptions["total"] = (rows, window) => (isOf(window, "2026-03-18") ? rows - 8 : rows);
    const cut = () => ({ rows: 20, loud: true });
    const service = serviceOf(peopleOf(lastDays(5), 8), { list, total, cut });
    const settings = { startDate: day("2026-03-16"), endDate: day("2026-03-18") };
    const ran = await sync(service, settings);
    expect([ran.complete, ran.missing, byId(ran.lines).size]).toEqual([false, ["2026-03-18"], 24]);
  });
});

describe("other totals", () => {
  it("that are too high keep the stream from being complete", async () => {
    const ran = await sync(serviceOf(peopleOf(lastDays(20), 9), { total: (rows) => rows + 2 }));
    expect(ran.complete).toBe(false);
    expect(repeated(ran.lines)).toEqual([]);
  });

  it.each([1, 3])("are not needed where nothing is to be verified (%i workers)", async (numWorkers) => {
    const everyone = [...peopleOf(lastDays(100), 2), ...undatedPeople(3)];
    const service = serviceOf(everyone, { total: () => null });
    expectAll(service, await sync(service, { verifyCounts: false, numWorkers }));
  });
});

describe("odd rows", () => {
  const withoutId = (id: string): ((person: Person) => Row) => {
    return (person) => (person.id === id ? { ...rowOf(person), key: "" } : rowOf(person));
  };

  it.each([true, false])(
    "without an id keep their day from being complete, and the other rows are delivered (verify_counts: %s)",
    async (verifyCounts) => {
      const people = peopleOf(lastDays(20), 4);
      const bad = people.find(({ at }) => at !== null && new Date(at).toISOString() > "2026-03-10");
      const service = serviceOf(people, { row: withoutId(bad?.id ?? "") });
      const settings = { maxWindowRows: 20, verifyCounts };
      const ran = await sync(service, settings);
      expect(ran).toMatchObject({ complete: false, missing: ["2026-03-10"] });
      expect(byId(ran.lines).size).toBe(people.length - 1);
      const next = await sync(service, { ...settings, ignoreMissingDays: [day("2026-03-10")] });
      expect([next.complete, byId(next.lines).size]).toEqual([true, people.length - 4]);
    },
  );
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

  it("are read again by the next run, at most a fifth of the rows comes twice, and none is lost", async () => {
    const people = peopleOf(lastDays(30), 20);
    let isOn = true;
    const service = serviceOf(people, { latency: 40, moment: draining(people, () => isOn) });
    const first = await sync(service, { maxWindowRows: 100 });
    expect(first).toMatchObject({ complete: true, missing: [] });
    expect(first.again.length).toBeGreaterThan(0);
    expect(first.lines.length).toBeLessThan(people.length * 1.2);
    isOn = false;
    service.now += 3_600_000;
    const next = await sync(service, { state: first.state, maxWindowRows: 100 });
    expect(next).toMatchObject({ complete: true, again: [] });
    expect(byId([...first.lines, ...next.lines])).toEqual(service.served());
  });

  it.each([false, true])(
    "are proven by their pages if people leave again (exports lack a row: %s)",
    async (lacks) => {
      const people = peopleOf(lastDays(30), 20);
      const { state } = await sync(serviceOf(people));
      const oldest = people.filter(({ at }) => at !== null && new Date(at).toISOString() > "2026-03-02");
      const lost = people.findLast(({ at }) => at !== null && new Date(at).toISOString() < "2026-03-04");
      const omits = (person: Person): boolean => lacks && person === lost;
      const moment = draining(oldest, () => true);
      const service = serviceOf(people, { latency: 20, moment, batch: 3, omits });
      const others = state?.days.filter(({ from, to }) => to < "2026-03-02" || from > "2026-03-03") ?? [];
      const days = put(others, [day("2026-03-02"), day("2026-03-03")], "again");
      const ran = await sync(service, { state: { ...(state as RowState), days } });
      expect(ran).toMatchObject({ complete: true, missing: [] });
      if (!lacks) expect(ran.again).toEqual([]);
      expect(byId(ran.lines).has(lost?.id ?? "")).toBe(true);
      expect(service.asked.some(({ what, window }) => what === "page" && isOf(window, "2026-03-02"))).toBe(
        true,
      );
    },
  );
});
