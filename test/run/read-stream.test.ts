import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { read } from "../../src/commands/read.ts";
import { BodyError, DataError } from "../../src/errors.ts";
import { without } from "../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../src/streams/dated-state.ts";
import type { Day } from "../../src/time.ts";
import { addDays, BEGINNING, dayOf } from "../../src/time.ts";
import { connector } from "../support/cli.ts";
import { catalogFor, configFor } from "../support/configs.ts";
import { hurriedClock, readOptions, runtimeWith } from "../support/in-process.ts";
import {
  type ModelOptions,
  ModelService,
  type Person,
  peopleOn,
  undatedPeople,
} from "../support/model-service.ts";
import { byId, type Ran, repeated, runStream, withMissing } from "../support/sync-run.ts";

const NOW = Date.parse("2026-03-20T10:00:00.500Z");
const TODAY = "2026-03-20" as Day;
const day = (text: string): Day => text as Day;

/** Days up to today, oldest first. */
const lastDays = (count: number): Day[] =>
  Array.from({ length: count }, (_, nth) => addDays(TODAY, nth + 1 - count));

const past = (people: Person[]): Person[] => people.filter(({ at }) => at === null || at < NOW - 5_000);

function model(days: readonly string[], perDay: number, options: Partial<ModelOptions> = {}): ModelService {
  return new ModelService({ now: NOW, people: past(peopleOn(days, perDay)), ...options });
}

function expectWhole(service: ModelService, ran: Ran): void {
  expect(ran.error).toBeUndefined();
  expect(ran.complete).toBe(true);
  expect(byId(ran.lines)).toEqual(service.served());
  expect(repeated(ran.lines)).toEqual([]);
}

const requests = (service: ModelService): string[] => service.asked.map(({ what }) => what);

describe("readStream() on a first sync", () => {
  it("reads a small account with two counts and one stream", async () => {
    const service = model(lastDays(3650), 1, {
      people: [...past(peopleOn(lastDays(1000), 1)), ...undatedPeople(3)],
    });
    const ran = await runStream(service.api());
    expectWhole(service, ran);
    expect(requests(service)).toEqual(["count", "count", "stream"]);
    expect(ran).toMatchObject({
      covered: [[BEGINNING, "2026-03-18"]],
      missing: [],
      state: { undated: { rows: 3 } },
    });
  });

  it("splits into closed windows, then the undated, then the open one, oldest first", async () => {
    const service = model([], 0, { people: [...past(peopleOn(lastDays(60), 5)), ...undatedPeople(4)] });
    const ran = await runStream(service.api(), { settings: { maxWindowRows: 40 } });
    expectWhole(service, ran);
    const streams = service.asked.filter(({ what }) => what === "stream").map(({ window }) => window);
    expect(streams.at(-1)).toMatchObject({ kind: "open", undated: false });
    const closed = streams.slice(0, -1).map((window) => (window.kind === "closed" ? window.from : ""));
    expect(closed).toEqual([...closed].sort());
  });

  it("counts again a window whose count has grown old", async () => {
    const service = model(lastDays(40), 5, { latency: 40_000 });
    expectWhole(service, await runStream(service.api(), { settings: { maxWindowRows: 50 } }));
  });

  it("says how many rows there are before the first", async () => {
    const service = model(lastDays(3), 2);
    const { events } = await runStream(service.api());
    expect(events[0]).toEqual({ kind: "estimate", stream: "people", rows: service.people.length });
  });

  it("ends with a state even when there is nothing", async () => {
    const service = model([], 0);
    const ran = await runStream(service.api());
    expectWhole(service, ran);
    expect(ran).toMatchObject({ covered: [[BEGINNING, "2026-03-18"]], state: { discoveredAt: null } });
  });
});

describe("readStream() on a later sync", () => {
  it("takes two requests when little is new", async () => {
    const service = model(lastDays(100), 3);
    const { state: progress } = await runStream(service.api());
    service.asked.length = 0;
    const ran = await runStream(service.api(), { state: progress });
    expect(ran.complete).toBe(true);
    expect(requests(service)).toEqual(["count", "stream"]);
  });

  it("begins its lookback before the cursor", async () => {
    const service = model(lastDays(100), 3);
    const { state: progress } = await runStream(service.api());
    const ran = await runStream(service.api(), { state: progress, settings: { lookbackWindowDays: 30 } });
    expect(byId(ran.lines).size).toBe(
      service.people.filter(({ at }) => (at ?? 0) >= Date.parse("2026-02-18")).length,
    );
  });

  it("reads at least the lookback from a cursor in the future, and writes one that fits", async () => {
    const service = model(lastDays(30), 3);
    const progress = await runStream(service.api());
    const state = { ...withMissing(progress, "2026-03-05"), discoveredAt: "2999-01-01T00:00:00Z" };
    service.people.push({ id: "late", at: Date.parse("2026-03-18T12:00:00Z"), user: true });
    const ran = await runStream(service.api(), { state });
    expect(ran).toMatchObject({ complete: true, missing: [], covered: [[BEGINNING, "2026-03-18"]] });
    expect([
      ...new Set([...byId(ran.lines).values()].map((line) => JSON.parse(line).discoveredAt.slice(0, 10))),
    ]).toEqual([...["2026-03-05", "2026-03-20", "2026-03-19", "2026-03-18"]]);
    expect(ran.lines.some((line) => line.includes("late"))).toBe(true);
    expect(ran.state?.discoveredAt).toBe(progress.state?.discoveredAt);
    expect(ran.events).toContainEqual(
      expect.objectContaining({
        kind: "log",
        level: "warn",
        text: expect.stringContaining("later than the service's clock"),
      }),
    );
  });

  it("reads from the first day that the state does not hold where its cursor is in the future", async () => {
    const service = model(lastDays(30), 3);
    const progress = await runStream(service.api());
    const days = without(progress.state?.days ?? [], [day("2026-03-08"), day("2026-03-09")]);
    const state = { ...(progress.state as DatedState), days, discoveredAt: "2999-01-01T00:00:00Z" };
    const ran = await runStream(service.api(), { state });
    const from = (one: { at: number | null }): boolean => (one.at ?? 0) >= Date.parse("2026-03-08");
    expect(byId(ran.lines).size).toBe(service.people.filter(from).length);
    expect(ran).toMatchObject({ complete: true, covered: [[BEGINNING, "2026-03-18"]] });
  });

  it("asks a service again whose clock is behind the cursor once", async () => {
    const service = model(lastDays(30), 3);
    const { state } = await runStream(service.api());
    const api = service.api();
    let counts = 0;
    const count: typeof api.count = async (window) => {
      const counted = await api.count(window);
      return counts++ === 0 ? { ...counted, asked: 0, answered: 0 } : counted;
    };
    const ran = await runStream({ ...api, count }, { state });
    expect(ran).toMatchObject({ complete: true, covered: [[BEGINNING, "2026-03-18"]] });
    expect(ran.events.some(({ kind }) => kind === "log")).toBe(false);
  });

  it("begins a full refresh anew when the service's clock has gone back behind it", async () => {
    const service = model(lastDays(10), 3);
    const { state: progress } = await runStream(service.api());
    const state = { ...(progress as DatedState), discoveredAt: "2999-01-01T00:00:00Z" };
    expectWhole(service, await runStream(service.api(), { state, isFullRefresh: true }));
  });

  it("never moves its state backwards", async () => {
    const service = model(lastDays(10), 3);
    const state: DatedState = {
      ...NEW_STATE,
      discoveredAt: "2026-03-20T09:59:00.123456Z",
      undated: { rows: 0, seen: null },
    };
    const ran = await runStream(service.api(), { state });
    expect(ran.state?.discoveredAt).toBe("2026-03-20T09:59:00.123456Z");
  });
});

describe("readStream() from an earlier start_date than the state's", () => {
  const later = async (
    service: ModelService,
    startDate: Day | null,
    settings: Parameters<typeof runStream>[1] = {},
  ): Promise<Ran> => {
    const { state: progress } = await runStream(service.api(), {
      settings: { startDate: day("2026-03-01") },
    });
    service.asked.length = 0;
    return await runStream(service.api(), {
      state: progress,
      ...settings,
      settings: { startDate, ...settings.settings },
    });
  };

  it("reads the gap, and of the rest only the lookback", async () => {
    const service = model(lastDays(60), 3);
    const ran = await later(service, day("2026-02-10"));
    const days = new Set(
      [...byId(ran.lines).values()].map((line) => JSON.parse(line).discoveredAt.slice(0, 10)),
    );
    expect(days.has("2026-02-28")).toBe(true);
    expect(days.has("2026-02-10")).toBe(true);
    expect(days.has("2026-02-09")).toBe(false);
    expect(days.has("2026-03-05")).toBe(false);
    expect(ran).toMatchObject({ complete: true, covered: [["2026-02-10", "2026-03-18"]] });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("reads the undated too when the start is taken away", async () => {
    const service = model([], 0, { people: [...past(peopleOn(lastDays(60), 3)), ...undatedPeople(5)] });
    const ran = await later(service, null);
    expect([...byId(ran.lines).keys()].filter((id) => id.startsWith("u"))).toHaveLength(5);
    expect(ran).toMatchObject({
      complete: true,
      covered: [[BEGINNING, "2026-03-18"]],
      state: { undated: { rows: 5 } },
    });
  });

  it.each([3, 5, 17, 40])(
    "goes on in the days before its own after it was cut at event %i",
    async (stopAfter) => {
      const service = model(lastDays(200), 3);
      const first = await runStream(service.api(), { settings: { startDate: day("2026-03-01") } });
      const settings = { startDate: day("2025-10-01"), maxWindowRows: 20 };
      const cut = await runStream(service.api(), { state: first.state, settings, stopAfter });
      expect(cut.covered).toHaveLength(stopAfter > 5 ? 2 : 1);
      const rest = await runStream(service.api(), { state: cut.state, settings });
      expect(rest.complete).toBe(true);
      const wanted = service.people
        .filter(({ at }) => (at ?? 0) >= Date.parse("2025-10-01"))
        .map(({ id }) => id);
      const saved = cut.events.findLastIndex(({ kind }) => kind === "checkpoint");
      const lines = cut.events
        .slice(0, saved + 1)
        .flatMap((event) => (event.kind === "records" ? event.lines : []));
      expect([...byId([...first.lines, ...lines, ...rest.lines]).keys()].sort()).toEqual(wanted.sort());
      expect(rest.lines.length).toBeLessThan(wanted.length);
    },
  );

  it("repeats nothing where the lookback reaches into the gap", async () => {
    const service = model(lastDays(60), 3);
    const ran = await later(service, day("2026-02-10"), { settings: { lookbackWindowDays: 40 } });
    expect(ran.complete).toBe(true);
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("claims no day between an end_date inside the gap and the state's first day", async () => {
    const service = model(lastDays(60), 3);
    const ran = await later(service, day("2026-02-10"), {
      settings: { lookbackWindowDays: 40, endDate: day("2026-02-20") },
    });
    expect(ran.covered).toEqual([
      ["2026-02-10", "2026-02-20"],
      ["2026-03-01", "2026-03-18"],
    ]);
    const rest = await runStream(service.api(), {
      state: ran.state,
      settings: { startDate: day("2026-02-10") },
    });
    const days = new Set(
      [...ran.lines, ...rest.lines].map((line) => JSON.parse(line).discoveredAt.slice(0, 10)),
    );
    expect(days.has("2026-02-25")).toBe(true);
    expect(rest.covered).toEqual([["2026-02-10", "2026-03-18"]]);
  });

  it("remembers days that a later start_date left out", async () => {
    const service = model(lastDays(60), 3);
    const first = await runStream(service.api(), {
      settings: { startDate: day("2026-02-01"), endDate: day("2026-02-10") },
    });
    const second = await runStream(service.api(), {
      state: first.state,
      settings: { startDate: day("2026-03-01") },
    });
    const third = await runStream(service.api(), {
      state: second.state,
      settings: { startDate: day("2026-02-01") },
    });
    const seen = byId([...first.lines, ...second.lines, ...third.lines]);
    const wanted = service.people.filter(({ at }) => (at ?? 0) >= Date.parse("2026-02-01"));
    expect(wanted.filter(({ id }) => !seen.has(id))).toEqual([]);
  });
});

describe("readStream() up to an end_date", () => {
  it.each([
    ["in the past", "2026-03-10", "2026-03-10"],
    ["today", "2026-03-20", undefined],
    ["in the future", "2026-04-20", undefined],
  ])("%s delivers exactly its days", async (_, end, reached) => {
    const service = model(lastDays(30), 4);
    const ran = await runStream(service.api(), { settings: { endDate: day(end) } });
    const wanted = service.people.filter(({ at }) => dayOf(at ?? 0) <= end).map(({ id }) => id);
    expect([...byId(ran.lines).keys()].sort()).toEqual(wanted.sort());
    expect(ran.complete).toBe(true);
    expect(ran.covered).toEqual([[BEGINNING, reached ?? "2026-03-18"]]);
    expect(Date.parse(ran.state?.discoveredAt ?? "")).toBeLessThanOrEqual(NOW);
  });

  it("yesterday delivers none of today's rows", async () => {
    const service = model(lastDays(30), 4);
    const ran = await runStream(service.api(), { settings: { endDate: day("2026-03-19") } });
    const days = ran.lines.map((line) => JSON.parse(line).discoveredAt.slice(0, 10));
    expect(days.includes("2026-03-19")).toBe(true);
    expect(days.includes("2026-03-20")).toBe(false);
    expect((ran.state?.discoveredAt ?? "") <= "2026-03-19T23:59:59.999Z").toBe(true);
  });

  it("reads nothing again once it is reached", async () => {
    const service = model(lastDays(30), 4);
    const settings = { endDate: day("2026-03-01"), startDate: day("2026-02-25") };
    const { state: progress } = await runStream(service.api(), { settings });
    const ran = await runStream(service.api(), { state: progress, settings });
    expect(ran).toMatchObject({ complete: true, covered: [["2026-02-25", "2026-03-01"]] });
    expect(ran.state).toEqual(progress);
    expect(ran.events.some(({ kind }) => kind === "checkpoint")).toBe(true);
  });
});

describe("readStream() when a day cannot be read", () => {
  const lacking = (...days: string[]): Partial<ModelOptions> => ({
    cut: (window) =>
      window.kind === "closed" && days.some((bad) => window.from <= bad && window.to >= bad)
        ? { rows: 1, loud: true }
        : undefined,
  });
  it("reads it page by page", async () => {
    const service = model(lastDays(30), 4, lacking("2026-03-10"));
    expectWhole(service, await runStream(service.api(), { settings: { maxWindowRows: 20 } }));
  });

  const pageless = (service: ModelService): ReturnType<ModelService["api"]> => {
    const api = service.api();
    return {
      ...api,
      page: async (window, number) => {
        if (window.kind === "closed") throw new BodyError("The list is broken too");
        return await api.page(window, number);
      },
    };
  };

  it("puts it on record, goes on, is not complete, and reads it first next time", async () => {
    const broken = model(lastDays(30), 4, lacking("2026-03-10"));
    const ran = await runStream(pageless(broken), { settings: { maxWindowRows: 20 } });
    expect(ran).toMatchObject({ complete: false, missing: ["2026-03-10"] });
    expect(byId(ran.lines).size).toBeGreaterThan(broken.people.length - 4);
    const healed = new ModelService({ now: NOW + 1_000, people: broken.people });
    const next = await runStream(healed.api(), { state: ran.state });
    expect(next).toMatchObject({ complete: true, missing: [] });
    expect(healed.asked.find(({ what }) => what === "stream")?.window).toMatchObject({ from: "2026-03-10" });
    expect(byId([...ran.lines, ...next.lines])).toEqual(healed.served());
  });

  it("emits a missing day once though the lookback covers it", async () => {
    const healed = model(lastDays(30), 4);
    const first = await runStream(healed.api());
    const state = withMissing(first, "2026-03-15");
    const ran = await runStream(healed.api(), { state, settings: { lookbackWindowDays: 10 } });
    expect(ran).toMatchObject({ complete: true, missing: [] });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("clears a missing day that holds nothing any more", async () => {
    const healed = model(lastDays(30), 4);
    const first = await runStream(healed.api());
    const state = withMissing(first, "2025-03-15");
    expect(await runStream(healed.api(), { state })).toMatchObject({
      complete: true,
      missing: [],
    });
  });

  it("clears an empty missing day that the planner skips within the lookback", async () => {
    const days = lastDays(60).filter((one) => one < "2026-03-01" || one > "2026-03-12");
    const healed = model(days, 4);
    const first = await runStream(healed.api());
    const state = withMissing(first, "2026-03-05");
    const settings = { lookbackWindowDays: 40, maxWindowRows: 10 };
    const ran = await runStream(healed.api(), { state, settings });
    expect(ran).toMatchObject({ complete: true, missing: [] });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("gives a day up without a trace when told to", async () => {
    const broken = model(lastDays(30), 4, lacking("2026-03-10"));
    const ignoreMissingDays = [day("2026-03-10")];
    const ran = await runStream(pageless(broken), { settings: { maxWindowRows: 20, ignoreMissingDays } });
    expect(ran).toMatchObject({ complete: true, missing: [] });
  });

  it("forgets a missing day of the state when told to ignore it", async () => {
    const service = model(lastDays(30), 4);
    const first = await runStream(service.api());
    const state = withMissing(first, "2026-01-10");
    const ran = await runStream(service.api(), {
      state,
      settings: { ignoreMissingDays: [day("2026-01-10")] },
    });
    expect(ran).toMatchObject({ complete: true, missing: [] });
  });

  it.each([[20], [250_000]])(
    "ends the stream after three in a row, with the state before them (windows of %i rows)",
    async (maxWindowRows) => {
      const bad = ["2026-03-08", "2026-03-09", "2026-03-10"];
      const broken = model(lastDays(30), 4, {
        cut: (window) =>
          "from" in window &&
          bad.some((one) => window.from <= one && (window.kind === "open" || window.to >= one))
            ? { rows: 1, loud: true }
            : undefined,
      });
      const ran = await runStream(pageless(broken), { settings: { maxWindowRows } });
      expect(ran.complete).toBe(false);
      expect(String(ran.error)).toContain("3 days in a row");
      expect(ran.missing).toEqual(
        bad.filter((one) => ran.covered.some(([first, last]) => first <= one && one <= last)),
      );
      const streams = broken.asked.filter(({ what }) => what === "stream");
      expect(
        streams.filter(({ window }) => window.kind === "open" && window.undated).length,
      ).toBeLessThanOrEqual(2);
    },
  );
});

describe("readStream() with totals that are not what they say", () => {
  it.each([15, 250_000])(
    "reads the days of a service whose totals are capped (%i)",
    async (maxWindowRows) => {
      const people = [...past(peopleOn(lastDays(60), 9)), ...undatedPeople(7)];
      const service = model([], 0, { people, total: (rows) => Math.min(rows, 20) });
      const ran = await runStream(service.api(), { settings: { maxWindowRows } });
      expect(ran).toMatchObject({ complete: false, missing: [], state: { undated: null } });
      for (const line of service.served().values())
        if (!line.includes("null")) expect(ran.lines).toContain(line);
      const healed = await runStream(model([], 0, { people }).api(), { state: ran.state });
      expect(byId([...ran.lines, ...healed.lines])).toEqual(service.served());
    },
  );

  it("ends with an error and no false state where totals are too low", async () => {
    const service = model(lastDays(60), 9, { total: (rows) => Math.max(0, rows - 2) });
    const ran = await runStream(service.api());
    expect(ran.complete).toBe(false);
    expect(ran.error).toBeInstanceOf(DataError);
    expect(String(ran.error)).toContain("verify_counts");
    expect(ran.state?.discoveredAt ?? null).toBe(null);
  });

  it("believes no total of 0 once totals have shown less than there is", async () => {
    const total: ModelOptions["total"] = (rows, window) => {
      if (window.kind !== "closed" || window.from !== window.to) return rows - 1;
      return window.from === "2026-03-10" ? 0 : rows;
    };
    const service = model(["2026-03-10", "2026-03-11"], 3, { total });
    const settings = { startDate: day("2026-03-10"), endDate: day("2026-03-11") };
    const ran = await runStream(service.api(), { settings });
    expect(ran.error).toBeInstanceOf(DataError);
  });

  it("ends with an error, not with green, where totals are too high", async () => {
    const service = model(lastDays(60), 9, { total: (rows) => rows + 2 });
    const ran = await runStream(service.api());
    expect(ran.complete).toBe(false);
    expect(repeated(ran.lines)).toEqual([]);
  });

  it.each([1, 3])(
    "reads a service that does not count when nothing is to be verified (%i workers)",
    async (numWorkers) => {
      const people = [...past(peopleOn(lastDays(200), 2)), ...undatedPeople(3)];
      const service = model([], 0, { people, total: () => null });
      const ran = await runStream(service.api(false), { settings: { verifyCounts: false, numWorkers } });
      expectWhole(service, ran);
    },
  );

  it("does not read everything for undated people whom the totals deny, verified or not", async () => {
    const service = model(lastDays(60), 9);
    const ran = await runStream(service.api(false), {
      settings: { verifyCounts: false, maxWindowRows: 100 },
    });
    expectWhole(service, ran);
    expect(
      service.asked.some(({ what, window }) => what === "stream" && window.kind === "open" && window.undated),
    ).toBe(false);
  });

  it("fails loudly where the date filters are not honoured", async () => {
    const service = model(lastDays(60), 9);
    const api = service.api();
    const everything = { kind: "open", from: day("1970-01-01"), undated: true } as const;
    const ran = await runStream(
      { ...api, stream: () => api.stream(everything) },
      { settings: { maxWindowRows: 100 } },
    );
    expect(ran.error).toBeInstanceOf(DataError);
    expect(ran.state).toBe(null);
  });
});

describe("readStream() with a limit on its time", () => {
  it("ends complete at the end of a window, and goes on there", async () => {
    const service = model(lastDays(100), 5, { latency: 1_000 });
    let state: DatedState | null = null;
    const lines: string[] = [];
    let runs = 0;
    for (; runs < 50; runs++) {
      const ran: Ran = await runStream(service.api(), {
        state,
        settings: { maxWindowRows: 30 },
        endsAt: service.now + 60_000,
      });
      expect(ran.complete).toBe(true);
      lines.push(...ran.lines);
      if (ran.state?.undated !== null && (ran.state?.discoveredAt ?? "") > "2026-03-20") break;
      state = ran.state;
    }
    expect(runs).toBeGreaterThan(1);
    expect(byId(lines)).toEqual(service.served());
  });

  it("comes to the range although a missing day takes all the time", async () => {
    const service = model(lastDays(20), 5, { latency: 1_000 });
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
    const ran = await runStream(service.api(), { state, endsAt: service.now });
    expect((ran.state?.discoveredAt ?? "") > "2026-03-11").toBe(true);
  });
});

describe("streamEvents() of companies without a list", () => {
  it("says in every run that they cannot be counted, and what to do", async () => {
    await using sandbox = await startSandbox({
      ...{ people: 5, companies: 7, companyList: false, requestsPerMinute: 0 },
    });
    let written = "";
    const runtime = runtimeWith(sandbox, (text) => {
      written += text;
    });
    expect(await read(readOptions("companies"), runtime)).toBe(0);
    const messages = written
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
    expect(messages.filter(({ type }) => type === "RECORD")).toHaveLength(7);
    const warnings = messages
      .filter(({ log }) => log?.level === "WARN")
      .map(({ log }) => String(log.message));
    expect(warnings).toEqual([expect.stringMatching(/cannot .*counted|Cannot count/i)]);
    expect(warnings[0]).toContain("endpoints.companies");
    expect(warnings[0]).toContain("verify_counts");
  });
});

describe("streamEvents()", () => {
  it("reads a full refresh to its end, however little time the run may take", async () => {
    await using sandbox = await startSandbox({ people: 3_000, requestsPerMinute: 0 });
    const config = await configFor(sandbox, {
      ...{ max_window_rows: 1_000, max_run_seconds: 1, requests_per_minute: 6_000 },
    });
    const read = async (settings: object): Promise<readonly [number | null, number]> => {
      const catalog = await catalogFor({ people: settings });
      const args = ["read", "--config", config, "--catalog", catalog];
      // The time is up before the second window.
      const { code, messages } = await connector(args, { clock: hurriedClock(1_000) });
      return [code, messages.filter(({ type }) => type === "RECORD").length];
    };
    const refresh = { sync_mode: "full_refresh", generation_id: 1, sync_id: 1 };
    expect(await read(refresh)).toEqual([0, sandbox.people().length]);
    expect((await read({}))[1]).toBeLessThan(sandbox.people().length);
  });

  it("leaves rows without a key out only where the destination merges by key", async () => {
    await using sandbox = await startSandbox({ companies: 7, requestsPerMinute: 0 });
    const config = await configFor(sandbox);
    for (const [mode, rows] of [
      ["append_dedup", 6],
      ["overwrite_dedup", 6],
      ["append", 7],
    ] as const) {
      sandbox.fault("keyless=1:times=always");
      const catalog = await catalogFor({ companies: { destination_sync_mode: mode } });
      const { code, messages } = await connector(["read", "--config", config, "--catalog", catalog]);
      expect([code, messages.filter(({ type }) => type === "RECORD").length], mode).toEqual([0, rows]);
    }
  });
});

describe("streamEvents() of a stream that fails", () => {
  it("says all the same what differs from the schema", async () => {
    await using sandbox = await startSandbox({ people: 12, undated: 0, requestsPerMinute: 0 });
    sandbox.fault(
      "no-key=1:path=/people/stream:after=3",
      "status=401:code=INVALID_API_KEY:path=/people/stream",
    );
    let written = "";
    const runtime = runtimeWith(sandbox, (text) => {
      written += text;
    });
    expect(await read(readOptions("people"), runtime)).toBe(1);
    expect(written).toContain("INVALID_API_KEY");
    const lines = written.split("\n");
    const report = lines.findIndex((line) => line.includes("differ from its schema: no key in 1 row"));
    const end = lines.findIndex((line) => line.includes('"INCOMPLETE"'));
    expect(report).toBeGreaterThan(0);
    expect(report).toBeLessThan(end);
  });
});

describe("streamEvents() of people whose dates no rule can read", () => {
  it("says so in the report of what differs from the schema, without a value", async () => {
    await using sandbox = await startSandbox({ people: 12, undated: 0, requestsPerMinute: 0 });
    sandbox.fault("dates=unreadable");
    let written = "";
    const runtime = runtimeWith(sandbox, (text) => {
      written += text;
    });
    await read(readOptions("people"), runtime);
    const reports = written.split("\n").filter((line) => line.includes("differ from its schema"));
    expect(reports).toHaveLength(1);
    expect(reports[0]).toMatch(
      /a cursor that no rule can read in \d+ rows?, which count as rows without a date/,
    );
  });
});
