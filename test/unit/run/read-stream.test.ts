import { describe, expect, it } from "vitest";
import { type SandboxOptions, startSandbox } from "../../../sandbox/server.ts";
import { type ConfiguredStream, parseConfiguredCatalog } from "../../../src/catalog/airbyte.ts";
import { type RowStreamSpec, STREAMS } from "../../../src/catalog/streams.ts";
import { read } from "../../../src/commands/read.ts";
import { BodyError, ConfigError, DataError } from "../../../src/errors.ts";
import { type Asked, readStream, type StreamRun, streamRun } from "../../../src/run/read-stream.ts";
import { without } from "../../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import type { Row } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import { BEGINNING, dayOf } from "../../../src/time.ts";
import { connector } from "../../support/cli.ts";
import { catalogFor, configFor } from "../../support/configs.ts";
import { hurriedClock, readOptions, runtimeWith } from "../../support/in-process.ts";
import {
  type ModelOptions,
  ModelService,
  type Person,
  rowOf,
  undatedPeople,
} from "../../support/model-service.ts";
import {
  day,
  daysIn,
  expectAll,
  idsIn,
  idsSince,
  lastDays,
  NOW,
  peopleOf,
  requestsOf,
  type SyncOptions,
  serviceOf,
  sync,
} from "../../support/people-sync.ts";
import { openSession } from "../../support/session.ts";
import { sumsOf } from "../../support/stories.ts";
import { byId, type Ran, repeated, runStream, withMissing } from "../../support/sync-run.ts";

const people = (days: number, perDay: number, options: Partial<ModelOptions> = {}): ModelService =>
  serviceOf(peopleOf(lastDays(days), perDay), options);

/** What a first sync covers. */
const ALL = [[BEGINNING, "2026-03-18"]];

const startsAndEnds = (from: string, to: string): SyncOptions => ({ startDate: day(from), endDate: day(to) });

describe("readStream() on a first sync", () => {
  it("reads a small account with two counts and one stream", async () => {
    const service = serviceOf([...peopleOf(lastDays(1000), 1), ...undatedPeople(3)]);
    const ran = await sync(service);
    expectAll(service, ran);
    expect(requestsOf(service)).toEqual(["count", "count", "stream"]);
    expect(ran).toMatchObject({ covered: ALL, missing: [], state: { undated: { rows: 3 } } });
  });

  it("splits into closed windows, then the undated, then the open one, oldest first", async () => {
    const service = serviceOf([...peopleOf(lastDays(60), 5), ...undatedPeople(4)]);
    expectAll(service, await sync(service, { maxWindowRows: 40 }));
    const streams = service.asked.filter(({ what }) => what === "stream").map(({ window }) => window);
    expect(streams.at(-1)).toMatchObject({ kind: "open", undated: false });
    const closed = streams.slice(0, -1).map((window) => (window.kind === "closed" ? window.from : ""));
    expect(closed).toEqual([...closed].sort());
  });

  it("counts again a window whose count has grown old", async () => {
    const service = people(40, 5, { latency: 40_000 });
    expectAll(service, await sync(service, { maxWindowRows: 50 }));
  });

  it("says how many rows there are before the first", async () => {
    const service = people(3, 2);
    const rows = service.people.length;
    expect((await sync(service)).events[0]).toEqual({ kind: "estimate", stream: "people", rows });
  });

  it("ends with a state even when there is nothing", async () => {
    const service = serviceOf([]);
    const ran = await sync(service);
    expectAll(service, ran);
    expect(ran).toMatchObject({ covered: ALL, state: { discoveredAt: null } });
  });
});

describe("readStream() on a later sync", () => {
  const FUTURE = "2999-01-01T00:00:00Z";

  it("begins its lookback before the cursor", async () => {
    const service = people(100, 3);
    const { state } = await sync(service);
    const ran = await sync(service, { state, lookbackWindowDays: 30 });
    expect(idsIn(ran.lines)).toEqual(idsSince(service, "2026-02-18"));
  });

  it("reads at least the lookback from a cursor in the future, and writes one that fits", async () => {
    const service = people(30, 3);
    const first = await sync(service);
    const state = { ...withMissing(first, "2026-03-05"), discoveredAt: FUTURE };
    service.people.push({ id: "late", at: Date.parse("2026-03-18T12:00:00Z"), user: true });
    const ran = await sync(service, { state });
    expect(ran).toMatchObject({ complete: true, missing: [], covered: ALL });
    expect(daysIn([...byId(ran.lines).values()])).toEqual(
      ["05", "20", "19", "18"].map((nth) => `2026-03-${nth}`),
    );
    expect(ran.lines.some((line) => line.includes("late"))).toBe(true);
    expect(ran.state?.discoveredAt).toBe(first.state?.discoveredAt);
    const text = expect.stringContaining("later than the service's clock");
    expect(ran.events).toContainEqual(expect.objectContaining({ kind: "log", level: "warn", text }));
  });

  it("reads from the first day that the state does not hold where its cursor is in the future", async () => {
    const service = people(30, 3);
    const { state } = await sync(service);
    const days = without(state?.days ?? [], [day("2026-03-08"), day("2026-03-09")]);
    const ran = await sync(service, { state: { ...(state as DatedState), days, discoveredAt: FUTURE } });
    expect(idsIn(ran.lines)).toEqual(idsSince(service, "2026-03-08"));
    expect(ran).toMatchObject({ complete: true, covered: ALL });
  });

  it("does not believe that days are read which the service's clock has not reached", async () => {
    const service = people(30, 3);
    const { state } = await sync(service);
    const days = [...(state?.days ?? []), [day("2026-03-21"), day("2026-04-19"), null] as const];
    const ran = await sync(service, { state: { ...(state as DatedState), days, discoveredAt: FUTURE } });
    expect(ran.state?.days.filter(([, to]) => to > "2026-03-20")).toEqual([]);
  });

  it("asks a service again whose clock is behind the cursor once", async () => {
    const service = people(30, 3);
    const { state } = await sync(service);
    const api = service.api();
    let counts = 0;
    const count: typeof api.count = async (window) => {
      const counted = await api.count(window);
      return counts++ === 0 ? { ...counted, asked: 0, answered: 0 } : counted;
    };
    const ran = await runStream({ ...api, count }, { state });
    expect(ran).toMatchObject({ complete: true, covered: ALL });
    expect(ran.events.some(({ kind }) => kind === "log")).toBe(false);
  });

  it("begins a full refresh anew when the service's clock has gone back behind it", async () => {
    const service = people(10, 3);
    const state = { ...((await sync(service)).state as DatedState), discoveredAt: FUTURE };
    expectAll(service, await sync(service, { state, isFullRefresh: true }));
  });

  it("never moves its state backwards", async () => {
    const discoveredAt = "2026-03-20T09:59:00.123456Z";
    const state: DatedState = { ...NEW_STATE, discoveredAt, undated: { rows: 0, seen: null } };
    expect((await sync(people(10, 3), { state })).state?.discoveredAt).toBe(discoveredAt);
  });
});

describe("readStream() from an earlier start_date than the state's", () => {
  const START = { startDate: day("2026-03-01") };

  const later = async (service: ModelService, options: SyncOptions): Promise<Ran> =>
    await sync(service, { state: (await sync(service, START)).state, ...options });

  it("reads the gap, and of the rest only the lookback", async () => {
    const ran = await later(people(60, 3), { startDate: day("2026-02-10") });
    const days = daysIn(ran.lines);
    expect(days).toEqual(expect.arrayContaining(["2026-02-10", "2026-02-28"]));
    for (const other of ["2026-02-09", "2026-03-05"]) expect(days).not.toContain(other);
    expect(ran).toMatchObject({ complete: true, covered: [["2026-02-10", "2026-03-18"]] });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("reads the undated too when the start is taken away", async () => {
    const ran = await later(serviceOf([...peopleOf(lastDays(60), 3), ...undatedPeople(5)]), {});
    expect([...byId(ran.lines).keys()].filter((id) => id.startsWith("u"))).toHaveLength(5);
    expect(ran).toMatchObject({ complete: true, covered: ALL, state: { undated: { rows: 5 } } });
  });

  it.each([3, 5, 17, 40])(
    "goes on in the days before its own after it was cut at event %i",
    async (stopAfter) => {
      const service = people(200, 3);
      const first = await sync(service, START);
      const settings = { startDate: day("2025-10-01"), maxWindowRows: 20 };
      const cut = await sync(service, { state: first.state, ...settings, stopAfter });
      expect(cut.covered).toHaveLength(stopAfter > 5 ? 2 : 1);
      const rest = await sync(service, { state: cut.state, ...settings });
      expect(rest.complete).toBe(true);
      const saved = cut.events.findLastIndex(({ kind }) => kind === "checkpoint");
      const lines = cut.events
        .slice(0, saved + 1)
        .flatMap((event) => (event.kind === "records" ? event.lines : []));
      const wanted = idsSince(service, "2025-10-01");
      expect(idsIn([...first.lines, ...lines, ...rest.lines])).toEqual(wanted);
      expect(rest.lines.length).toBeLessThan(wanted.length);
    },
  );

  it("repeats nothing where the lookback reaches into the gap", async () => {
    const ran = await later(people(60, 3), { startDate: day("2026-02-10"), lookbackWindowDays: 40 });
    expect(ran.complete).toBe(true);
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("claims no day between an end_date inside the gap and the state's first day", async () => {
    const service = people(60, 3);
    const ran = await later(service, {
      lookbackWindowDays: 40,
      ...startsAndEnds("2026-02-10", "2026-02-20"),
    });
    expect(ran.covered).toEqual([
      ["2026-02-10", "2026-02-20"],
      ["2026-03-01", "2026-03-18"],
    ]);
    const rest = await sync(service, { state: ran.state, startDate: day("2026-02-10") });
    expect(daysIn([...ran.lines, ...rest.lines])).toContain("2026-02-25");
    expect(rest.covered).toEqual([["2026-02-10", "2026-03-18"]]);
  });

  it("remembers days that a later start_date left out", async () => {
    const service = people(60, 3);
    const lines: string[] = [];
    let state: DatedState | null = null;
    for (const settings of [
      startsAndEnds("2026-02-01", "2026-02-10"),
      START,
      { startDate: day("2026-02-01") },
    ]) {
      const ran: Ran = await sync(service, { state, ...settings });
      lines.push(...ran.lines);
      state = ran.state;
    }
    expect(idsIn(lines)).toEqual(idsSince(service, "2026-02-01"));
  });
});

describe("readStream() up to an end_date", () => {
  it.each([
    ["in the past", "2026-03-10", "2026-03-10"],
    ["yesterday", "2026-03-19", undefined],
    ["today", "2026-03-20", undefined],
    ["in the future", "2026-04-20", undefined],
  ])("%s delivers exactly its days", async (_, end, reached) => {
    const service = people(30, 4);
    const ran = await sync(service, { endDate: day(end) });
    const wanted = service.people.filter(({ at }) => dayOf(at ?? 0) <= end).map(({ id }) => id);
    expect(idsIn(ran.lines)).toEqual(wanted.sort());
    expect(ran).toMatchObject({ complete: true, covered: [[BEGINNING, reached ?? "2026-03-18"]] });
    const latest = Math.min(NOW, Date.parse(`${end}T23:59:59.999Z`));
    expect(Date.parse(ran.state?.discoveredAt ?? "")).toBeLessThanOrEqual(latest);
  });

  it("reads nothing again once it is reached", async () => {
    const service = people(30, 4);
    const settings = startsAndEnds("2026-02-25", "2026-03-01");
    const { state } = await sync(service, settings);
    const ran = await sync(service, { state, ...settings });
    expect(ran).toMatchObject({ complete: true, covered: [["2026-02-25", "2026-03-01"]] });
    expect(ran.state).toEqual(state);
    expect(ran.events.some(({ kind }) => kind === "checkpoint")).toBe(true);
  });
});

describe("readStream() when a day cannot be read", () => {
  const touches = (window: Window, bad: string): boolean =>
    "from" in window &&
    (window.from ?? "") <= bad &&
    (window.kind === "open" || ("to" in window && window.to >= bad));

  const lacking = (kinds: readonly string[], ...days: string[]): Partial<ModelOptions> => ({
    cut: (window) =>
      kinds.includes(window.kind) && days.some((bad) => touches(window, bad))
        ? { rows: 1, loud: true }
        : undefined,
  });

  /** A day is broken, and with it the pages of every day. */
  const broken = (): ModelService => people(30, 4, lacking(["closed"], "2026-03-10"));
  const syncPageless = (service: ModelService, settings: SyncOptions): Promise<Ran> => {
    const api = service.api();
    const page: typeof api.page = async (window, number) => {
      if (window.kind === "closed") throw new BodyError("The list is broken too");
      return await api.page(window, number);
    };
    return runStream({ ...api, page }, { settings });
  };

  it("reads it page by page", async () => {
    const service = broken();
    expectAll(service, await sync(service, { maxWindowRows: 20 }));
  });

  it("puts it on record, goes on, is not complete, and reads it first next time", async () => {
    const service = broken();
    const ran = await syncPageless(service, { maxWindowRows: 20 });
    expect(ran).toMatchObject({ complete: false, missing: ["2026-03-10"] });
    expect(byId(ran.lines).size).toBeGreaterThan(service.people.length - 4);
    const healed = new ModelService({ now: NOW + 1_000, people: service.people });
    const next = await sync(healed, { state: ran.state });
    expect(next).toMatchObject({ complete: true, missing: [] });
    expect(healed.asked.find(({ what }) => what === "stream")?.window).toMatchObject({ from: "2026-03-10" });
    expect(byId([...ran.lines, ...next.lines])).toEqual(healed.served());
  });

  it("gives a day up without a trace when told to", async () => {
    const settings = { maxWindowRows: 20, ignoreMissingDays: [day("2026-03-10")] };
    expect(await syncPageless(broken(), settings)).toMatchObject({ complete: true, missing: [] });
  });

  const emptyInMarch = lastDays(60).filter((one) => one < "2026-03-01" || one > "2026-03-12");
  it.each<[string, readonly string[], string, SyncOptions]>([
    ["is emitted once though the lookback covers it", lastDays(30), "2026-03-15", { lookbackWindowDays: 10 }],
    ["holds nothing any more", lastDays(30), "2025-03-15", {}],
    [
      "is empty and that the planner skips within the lookback",
      ...([emptyInMarch, "2026-03-05", { lookbackWindowDays: 40, maxWindowRows: 10 }] as const),
    ],
    ["is to be ignored", lastDays(30), "2026-01-10", { ignoreMissingDays: [day("2026-01-10")] }],
  ])("clears a missing day of the state that %s", async (_, days, missing, settings) => {
    const healed = serviceOf(peopleOf(days, 4));
    const state = withMissing(await sync(healed), missing);
    const ran = await sync(healed, { state, ...settings });
    expect(ran).toMatchObject({ complete: true, missing: [] });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it.each([[20], [250_000]])(
    "ends the stream after three in a row, with the state before them (windows of %i rows)",
    async (maxWindowRows) => {
      const bad = ["2026-03-08", "2026-03-09", "2026-03-10"];
      const service = people(30, 4, lacking(["closed", "open"], ...bad));
      const ran = await syncPageless(service, { maxWindowRows });
      expect(ran.complete).toBe(false);
      expect(String(ran.error)).toContain("3 days in a row");
      const isCovered = (one: string): boolean =>
        ran.covered.some(([first, last]) => first <= one && one <= last);
      expect(ran.missing).toEqual(bad.filter(isCovered));
      const everything = service.asked.filter(
        ({ what, window }) => what === "stream" && window.kind === "open" && window.undated,
      );
      expect(everything.length).toBeLessThanOrEqual(2);
    },
  );
});

describe("readStream() with totals that are not what they say", () => {
  it.each([15, 250_000])(
    "reads the days of a service whose totals are capped (%i)",
    async (maxWindowRows) => {
      const all = [...peopleOf(lastDays(60), 9), ...undatedPeople(7)];
      const service = serviceOf(all, { total: (rows) => Math.min(rows, 20) });
      const ran = await sync(service, { maxWindowRows });
      expect(ran).toMatchObject({ complete: false, missing: [], state: { undated: null } });
      for (const line of service.served().values())
        if (!line.includes("null")) expect(ran.lines).toContain(line);
      const healed = await sync(serviceOf(all), { state: ran.state });
      expect(byId([...ran.lines, ...healed.lines])).toEqual(service.served());
    },
  );

  it("ends with an error and no false state where totals are too low", async () => {
    const ran = await sync(people(60, 9, { total: (rows) => Math.max(0, rows - 2) }));
    expect(ran).toMatchObject({ complete: false, error: expect.any(DataError) });
    expect(String(ran.error)).toContain("verify_counts");
    expect(ran.state?.discoveredAt ?? null).toBe(null);
  });

  it("believes no total of 0 once totals have shown less than there is", async () => {
    const total: ModelOptions["total"] = (rows, window) => {
      if (window.kind !== "closed" || window.from !== window.to) return rows - 1;
      return window.from === "2026-03-10" ? 0 : rows;
    };
    const service = serviceOf(peopleOf(["2026-03-10", "2026-03-11"], 3), { total });
    expect((await sync(service, startsAndEnds("2026-03-10", "2026-03-11"))).error).toBeInstanceOf(DataError);
  });

  it("ends with an error, not with green, where totals are too high", async () => {
    const ran = await sync(people(60, 9, { total: (rows) => rows + 2 }));
    expect(ran.complete).toBe(false);
    expect(repeated(ran.lines)).toEqual([]);
  });

  it.each([1, 3])(
    "reads a service that does not count when nothing is to be verified (%i workers)",
    async (numWorkers) => {
      const service = serviceOf([...peopleOf(lastDays(200), 2), ...undatedPeople(3)], { total: () => null });
      expectAll(service, await sync(service, { verifyCounts: false, numWorkers }));
    },
  );

  it("does not read everything for undated people whom the totals deny, verified or not", async () => {
    const service = people(60, 9);
    expectAll(service, await sync(service, { verifyCounts: false, maxWindowRows: 100 }));
    const isEverything = ({ what, window }: ModelService["asked"][number]): boolean =>
      what === "stream" && window.kind === "open" && window.undated;
    expect(service.asked.some(isEverything)).toBe(false);
  });

  it("finds the row of a leap second on the day that it names", async () => {
    const leap = { id: "leap", at: Date.parse("2026-03-10") - 1, user: true };
    const row = (person: Person): Row => {
      const usual = rowOf(person);
      if (person !== leap) return usual;
      const cursor = "2026-03-09T23:59:60Z";
      return { ...usual, raw: usual.raw.replace(/2026[^"]*/, cursor) as RawLine, cursor };
    };
    const service = serviceOf([...peopleOf(lastDays(20), 9), leap], { row });
    const ran = await sync(service, { maxWindowRows: 9 });
    expect(ran).toMatchObject({ complete: true, error: undefined });
    expect(ran.lines).toHaveLength(service.people.length);
  });

  it("fails loudly where the date filters are not honoured", async () => {
    const api = people(60, 9).api();
    const everything = { kind: "open", from: day("1970-01-01"), undated: true } as const;
    const stream = (): ReturnType<typeof api.stream> => api.stream(everything);
    const ran = await runStream({ ...api, stream }, { settings: { maxWindowRows: 100 } });
    expect(ran).toMatchObject({ error: expect.any(DataError), state: null });
  });
});

describe("readStream() with a limit on its time", () => {
  it("ends complete at the end of a window, and goes on there", async () => {
    const service = people(100, 5, { latency: 1_000 });
    let state: DatedState | null = null;
    const lines: string[] = [];
    let runs = 0;
    for (; runs < 50; runs++) {
      const endsAt = service.now + 60_000;
      const ran: Ran = await sync(service, { state, maxWindowRows: 30, endsAt });
      expect(ran.complete).toBe(true);
      lines.push(...ran.lines);
      if (ran.state?.undated !== null && (ran.state?.discoveredAt ?? "") > "2026-03-20") break;
      state = ran.state;
    }
    expect(runs).toBeGreaterThan(1);
    expect(byId(lines)).toEqual(service.served());
  });

  it.each([1, 2])(
    "comes further in each run, however many days it repeats (%i workers)",
    async (numWorkers) => {
      const service = people(16, 3, { latency: 1_000 });
      const settings = { maxWindowRows: 3, lookbackWindowDays: 5, numWorkers };
      let state: DatedState | null = null;
      const lines: string[] = [];
      for (let nth = 0; nth < 20 && !state?.discoveredAt?.startsWith("2026-03-20"); nth++) {
        const ran = await sync(service, { ...settings, state, endsAt: service.now });
        expect(ran.complete).toBe(true);
        lines.push(...ran.lines);
        state = ran.state;
      }
      expect(byId(lines)).toEqual(service.served());
    },
  );

  it("begins nothing more from the very moment on at which its time is over", async () => {
    const windows = async (ms: number): Promise<number> => {
      const service = people(100, 5);
      const ran = await sync(service, { state: null, maxWindowRows: 30, endsAt: service.now + ms });
      expect(ran.complete).toBe(true);
      return service.asked.filter(({ what }) => what === "stream").length;
    };
    const [over, left] = [await windows(0), await windows(1)];
    expect([over < left, over >= 1]).toEqual([true, true]);
  });

  it("comes to the range although a missing day takes all the time", async () => {
    const service = people(20, 5, { latency: 1_000 });
    const state: DatedState = {
      ...NEW_STATE,
      discoveredAt: "2026-03-10T00:00:00Z",
      days: [
        [BEGINNING, day("2026-03-01"), null],
        [day("2026-03-02"), day("2026-03-03"), null, "missing"],
        [day("2026-03-04"), day("2026-03-08"), null],
      ],
      undated: { rows: 0, seen: null },
    };
    const ran = await sync(service, { state, endsAt: service.now });
    expect((ran.state?.discoveredAt ?? "") > "2026-03-11").toBe(true);
  });
});

/** Reads one stream of a sandbox in Airbyte's language; returns the exit code and the lines. */
async function readOf(
  stream: string,
  options: SandboxOptions,
  ...faults: readonly string[]
): Promise<readonly [number, readonly string[]]> {
  await using sandbox = await startSandbox({ requestsPerMinute: 0, ...options });
  sandbox.fault(...faults);
  let written = "";
  const runtime = runtimeWith(sandbox, (text) => {
    written += text;
  });
  return [await read(readOptions(stream), runtime), written.trimEnd().split("\n")];
}

/** Runs of an account as they fall: each event as JSON, of lines their ids. */
async function randomRuns(roll: (sides: number) => number): Promise<string[]> {
  const some = <T>(...list: readonly T[]): T => list[roll(list.length)] as T;
  const everyone = [...peopleOf(lastDays(3 + roll(50)), 1 + roll(3)), ...undatedPeople(roll(4))];
  const cut: ModelOptions["cut"] = (_window, nth) =>
    nth % 3 === 0 ? { rows: 2, loud: nth % 2 === 0 } : undefined;
  const service = serviceOf(everyone, {
    ...{ latency: some(5, 900), ...(roll(3) === 0 && { cut }) },
    ...(roll(8) === 0 && { total: () => null }),
    ...(roll(8) === 0 && { omits: ({ id }: Person) => id.endsWith("-1") }),
  });
  service.sources = some(undefined, ["crm"]);
  const settings: Partial<SyncOptions> = {
    ...{ maxWindowRows: some(10, 30, 250_000), numWorkers: 1 + roll(3), lookbackWindowDays: roll(3) },
    ...{ startDate: some(null, null, day("2026-03-02")), endDate: some(null, null, day("2026-03-12")) },
    ...{
      ignoreMissingDays: some([], [day("2026-03-10")]),
      verifyCounts: service.sources !== undefined || roll(2) > 0,
    },
    isFullRefresh: roll(5) === 0,
    source: {
      isDated: roll(6) > 0,
      isExported: roll(6) > 0,
      isListed: roll(6) > 0,
      onMissingKey: some("reject", "pass"),
    },
  };
  let state: DatedState | null = null;
  const said: string[] = [];
  for (let run = 0; run < 3; run++) {
    const endsAt = service.now + some(Number.POSITIVE_INFINITY, roll(40_000));
    const ran: Ran = await sync(service, { ...settings, state, endsAt });
    for (const event of [...service.notices.splice(0), ...ran.events])
      said.push(
        JSON.stringify(event.kind === "records" ? { ...event, lines: idsIn(event.lines), names: 0 } : event),
      );
    said.push(
      `${ran.error}`,
      service.asked
        .splice(0)
        .map(({ what }) => what)
        .join(),
    );
    service.now += some(3_600_000, 24 * 3_600_000);
    for (const one of service.people) if (roll(20) === 0) one.at = service.now - 9_000;
    state = ran.state?.days === undefined ? state : ran.state;
  }
  return said;
}

/** `TOLD="runs of 3" npx vitest run test/unit/run/read-stream.test.ts` prints the events of a line. */
it("readStream() says in three runs each what these lines sum up", async () => {
  const sums = await sumsOf("runs", [8, 12], randomRuns, (said) => {
    const ofKind = (kind: string): string =>
      `${said.filter((line) => line.startsWith(`{"kind":"${kind}"`)).length} of ${kind}`;
    return ["estimate", "records", "checkpoint", "log", "close"].map(ofKind).join(", ");
  });
  await expect(sums).toMatchFileSnapshot("../../golden/read-stream-sums.txt");
});

describe("streamRun()", () => {
  const REFRESH = { sync_mode: "full_refresh", generation_id: 1, sync_id: 2 };
  const SHARD = { plan: "a plan", bringsUndated: false };
  const DATED = { version: 2, discoveredAt: "2026-03-01T00:00:00.000Z", days: [], full_refresh: null };
  const DONE = { version: 2, full_refresh: { generation_id: 1, sync_id: 2, done: true } };

  /** How a stream is read that goes on from a state: nothing is asked for it. */
  async function runOf(
    name: string,
    mode: object,
    saved?: unknown,
    more: Partial<Asked> = {},
  ): Promise<StreamRun> {
    const { session } = openSession("http://127.0.0.1:1");
    const spec = STREAMS.find((one) => one.name === name) as RowStreamSpec;
    const streams = [{ stream: { name }, ...{ sync_mode: "incremental", ...mode } }];
    const [configured] = parseConfiguredCatalog({ streams });
    return await streamRun(session, spec, { configured: configured as ConfiguredStream, ...more }, saved);
  }

  it.each([
    ["people", {}, undefined],
    ["people", REFRESH, '"people"'],
    ["sources", {}, '"sources"'],
    ["sources", REFRESH, '"sources"'],
  ])("of a shard of %s, read as %j, needs days and goes on from a state: %s", async (name, mode, refused) => {
    const run = runOf(name, mode, undefined, { shard: SHARD });
    const text =
      `Cannot read a shard of ${refused}: its records need a date, and its sync_mode must be "incremental". ` +
      "Read it in one run";
    if (refused === undefined)
      expect(await run).toMatchObject({
        settings: { bringsUndated: false },
        saved: { state: { plan: "a plan" } },
      });
    else await expect(run).rejects.toThrow(new ConfigError(text));
  });

  it.each([
    ["people", {}, DATED, { kind: "read", state: { discoveredAt: DATED.discoveredAt } }],
    ["people", {}, undefined, { kind: "read", state: { discoveredAt: null } }],
    ["people", REFRESH, { ...DATED, ...DONE }, { kind: "delivered" }],
    ["sources", {}, DATED, { kind: "read", state: { discoveredAt: null, full_refresh: null } }],
    ["sources", REFRESH, DONE, { kind: "delivered", state: DONE }],
    ["sources", REFRESH, { ...DONE, full_refresh: { ...DONE.full_refresh, sync_id: 3 } }, { kind: "read" }],
  ])("of %s, read as %j, goes on from %j", async (name, mode, saved, resumed) => {
    const { source, saved: found, endsAt, keyId, settings } = await runOf(name, mode, saved);
    expect(found).toMatchObject(resumed);
    const isDated = name === "people";
    const onMissingKey = isDated ? "reject" : "pass";
    expect(source).toEqual({ isDated, isListed: true, isExported: isDated, onMissingKey });
    expect([endsAt, settings.bringsUndated, keyId.length]).toEqual([undefined, undefined, 16]);
  });

  it("tells why a state is not gone on from, before anything else", async () => {
    const said: unknown[] = [];
    const run: StreamRun = {
      ...(await runOf("people", {})),
      ...{
        api: people(1, 1).api(),
        saved: { kind: "read", state: NEW_STATE, why: "It is of another filter" },
      },
    };
    for await (const event of readStream(run)) said.push(event);
    expect(said[0]).toEqual({ kind: "log", level: "warn", text: "It is of another filter" });
  });
});

describe("streamEvents()", () => {
  it("reads a full refresh to its end, however little time the run may take", async () => {
    await using sandbox = await startSandbox({ people: 3_000, requestsPerMinute: 0 });
    const config = await configFor(sandbox, {
      ...{ max_window_rows: 1_000, max_run_seconds: 1, requests_per_minute: 6_000 },
    });
    const rowsOf = async (settings: object): Promise<readonly [number | null, number]> => {
      const args = ["read", "--config", config, "--catalog", await catalogFor({ people: settings })];
      // The time is up before the second window.
      const { code, messages } = await connector(args, { clock: hurriedClock(1_000) });
      return [code, messages.filter(({ type }) => type === "RECORD").length];
    };
    const refresh = { sync_mode: "full_refresh", generation_id: 1, sync_id: 1 };
    expect(await rowsOf(refresh)).toEqual([0, sandbox.people().length]);
    expect((await rowsOf({}))[1]).toBeLessThan(sandbox.people().length);
  });

  it("leaves rows without a key out only where the destination merges by key", async () => {
    await using sandbox = await startSandbox({ companies: 7, requestsPerMinute: 0 });
    const config = await configFor(sandbox);
    const rows = { append_dedup: 6, overwrite_dedup: 6, append: 7 };
    for (const [destination_sync_mode, count] of Object.entries(rows)) {
      sandbox.fault("keyless=1:times=always");
      const catalog = await catalogFor({ companies: { destination_sync_mode } });
      const { code, messages } = await connector(["read", "--config", config, "--catalog", catalog]);
      const records = messages.filter(({ type }) => type === "RECORD").length;
      expect([code, records], destination_sync_mode).toEqual([0, count]);
    }
  });

  it("says in every run that companies without a list cannot be counted, and what to do", async () => {
    const [code, lines] = await readOf("companies", { people: 5, companies: 7, companyList: false });
    const messages = lines.map((line) => JSON.parse(line));
    expect([code, messages.filter(({ type }) => type === "RECORD").length]).toEqual([0, 7]);
    const warnings = messages.filter(({ log }) => log?.level === "WARN").map(({ log }) => log.message);
    expect(warnings).toEqual([expect.stringMatching(/Cannot count.*endpoints\.companies.*verify_counts/)]);
  });

  it("says of a stream that fails, too, what differs from the schema", async () => {
    const faults = [
      "no-key=1:path=/people/stream:after=3",
      "status=401:code=INVALID_API_KEY:path=/people/stream",
    ];
    const [code, lines] = await readOf("people", { people: 12, undated: 0 }, ...faults);
    expect([code, lines.join()]).toEqual([1, expect.stringContaining("INVALID_API_KEY")]);
    const report = lines.findIndex((line) => line.includes("differ from its schema: no key in 1 row"));
    expect(report).toBeGreaterThan(0);
    expect(report).toBeLessThan(lines.findIndex((line) => line.includes('"INCOMPLETE"')));
  });

  it("reports dates that no rule can read, without a value", async () => {
    const [, lines] = await readOf("people", { people: 12, undated: 0 }, "dates=unreadable");
    expect(lines.filter((line) => line.includes("differ from its schema"))).toEqual([
      expect.stringMatching(
        /a cursor that no rule can read in \d+ rows?, which count as rows without a date/,
      ),
    ]);
  });
});
