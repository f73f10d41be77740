import { describe, expect, it } from "vitest";
import { BodyError, DataError } from "../../src/errors.ts";
import type { Progress } from "../../src/sync/frontier.ts";
import type { Day } from "../../src/sync/window.ts";
import { addDays, dayOf } from "../../src/sync/window.ts";
import {
  type ModelOptions,
  ModelService,
  type Person,
  peopleOn,
  undatedPeople,
} from "../support/model-service.ts";
import { byId, type Ran, repeated, runDated } from "../support/sync-run.ts";

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

describe("readDated() on a first sync", () => {
  it("reads a small account with two counts and one stream", async () => {
    const service = model(lastDays(3650), 1, {
      people: [...past(peopleOn(lastDays(1000), 1)), ...undatedPeople(3)],
    });
    const ran = await runDated(service.ports());
    expectWhole(service, ran);
    expect(requests(service)).toEqual(["count", "count", "stream"]);
    expect(ran.progress).toMatchObject({ from: null, undated: "done", missing: [], gap: null });
  });

  it("splits into closed windows, then the undated, then the open one, oldest first", async () => {
    const service = model([], 0, { people: [...past(peopleOn(lastDays(60), 5)), ...undatedPeople(4)] });
    const ran = await runDated(service.ports(), { limits: { maxRows: 40 } });
    expectWhole(service, ran);
    const streams = service.asked.filter(({ what }) => what === "stream").map(({ window }) => window);
    expect(streams.at(-1)).toMatchObject({ kind: "open", undated: false });
    const closed = streams.slice(0, -1).map((window) => (window.kind === "closed" ? window.from : ""));
    expect(closed).toEqual([...closed].sort());
  });

  it("counts again a window whose count has grown old", async () => {
    const service = model(lastDays(40), 5, { latency: 40_000 });
    expectWhole(service, await runDated(service.ports(), { limits: { maxRows: 50 } }));
  });

  it("says how many rows there are before the first", async () => {
    const service = model(lastDays(3), 2);
    const { events } = await runDated(service.ports());
    expect(events[0]).toEqual({ kind: "estimate", stream: "people", rows: service.people.length });
  });

  it("ends with a state even when there is nothing", async () => {
    const service = model([], 0);
    const ran = await runDated(service.ports());
    expectWhole(service, ran);
    expect(ran.progress?.discoveredAt).toBe("2026-03-18T23:59:59.999Z");
  });
});

describe("readDated() on a later sync", () => {
  it("takes two requests when little is new", async () => {
    const service = model(lastDays(100), 3);
    const { progress } = await runDated(service.ports());
    service.asked.length = 0;
    const ran = await runDated(service.ports(), { resume: progress });
    expect(ran.complete).toBe(true);
    expect(requests(service)).toEqual(["count", "stream"]);
  });

  it("begins its lookback before the cursor", async () => {
    const service = model(lastDays(100), 3);
    const { progress } = await runDated(service.ports());
    const ran = await runDated(service.ports(), { resume: progress, limits: { lookbackDays: 30 } });
    expect(byId(ran.lines).size).toBe(
      service.people.filter(({ at }) => (at ?? 0) >= Date.parse("2026-02-18")).length,
    );
  });

  it("reads nothing from a cursor in the future and leaves the state as it is", async () => {
    const service = model(lastDays(10), 3);
    const { progress } = await runDated(service.ports());
    const resume = { ...(progress as Progress), discoveredAt: "2999-01-01T00:00:00Z" };
    const ran = await runDated(service.ports(), { resume });
    expect(ran).toMatchObject({ lines: [], complete: true, progress: resume });
    expect(service.notices).toMatchObject([{ kind: "log", level: "warn" }]);
  });

  it("is not complete with a cursor in the future while days are missing", async () => {
    const service = model(lastDays(10), 3);
    const { progress } = await runDated(service.ports());
    const resume = {
      ...(progress as Progress),
      discoveredAt: "2999-01-01T00:00:00Z",
      missing: [day("2026-03-15")],
    };
    const ran = await runDated(service.ports(), { resume });
    expect(ran).toMatchObject({ lines: [], complete: false, progress: resume });
  });

  it("begins a full refresh anew when the service's clock has gone back behind it", async () => {
    const service = model(lastDays(10), 3);
    const { progress } = await runDated(service.ports());
    const resume = { ...(progress as Progress), discoveredAt: "2999-01-01T00:00:00Z" };
    expectWhole(service, await runDated(service.ports(), { resume, saysDone: true }));
  });

  it("never moves its state backwards", async () => {
    const service = model(lastDays(10), 3);
    const resume: Progress = {
      discoveredAt: "2026-03-20T09:59:00.123456Z",
      missing: [],
      from: null,
      undated: "done",
      gap: null,
    };
    const ran = await runDated(service.ports(), { resume });
    expect(ran.progress?.discoveredAt).toBe("2026-03-20T09:59:00.123456Z");
  });
});

describe("readDated() from an earlier start_date than the state's", () => {
  const later = async (
    service: ModelService,
    startDate: Day | null,
    limits: Parameters<typeof runDated>[1] = {},
  ): Promise<Ran> => {
    const { progress } = await runDated(service.ports(), { limits: { startDate: day("2026-03-01") } });
    service.asked.length = 0;
    return await runDated(service.ports(), {
      resume: progress,
      ...limits,
      limits: { startDate, ...limits.limits },
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
    expect(ran).toMatchObject({ complete: true, progress: { from: "2026-02-10", gap: null } });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("reads the undated too when the start is taken away", async () => {
    const service = model([], 0, { people: [...past(peopleOn(lastDays(60), 3)), ...undatedPeople(5)] });
    const ran = await later(service, null);
    expect([...byId(ran.lines).keys()].filter((id) => id.startsWith("u"))).toHaveLength(5);
    expect(ran).toMatchObject({ complete: true, progress: { from: null, undated: "done", gap: null } });
  });

  it("goes on in the gap after it was cut", async () => {
    const service = model(lastDays(200), 3);
    const first = await runDated(service.ports(), { limits: { startDate: day("2026-03-01") } });
    const limits = { startDate: day("2025-10-01"), maxRows: 20 };
    const cut = await runDated(service.ports(), { resume: first.progress, limits, stopAfter: 40 });
    expect(cut.progress?.gap).toMatchObject({ from: "2025-10-01" });
    const rest = await runDated(service.ports(), { resume: cut.progress, limits });
    expect(rest.complete).toBe(true);
    const wanted = service.people
      .filter(({ at }) => (at ?? 0) >= Date.parse("2025-10-01"))
      .map(({ id }) => id);
    expect([...byId([...first.lines, ...cut.lines, ...rest.lines]).keys()].sort()).toEqual(wanted.sort());
    expect(rest.lines.length).toBeLessThan(wanted.length);
  });

  it("repeats nothing where the lookback reaches into the gap", async () => {
    const service = model(lastDays(60), 3);
    const ran = await later(service, day("2026-02-10"), { limits: { lookbackDays: 40 } });
    expect(ran.complete).toBe(true);
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("claims no day between an end_date inside the gap and the state's first day", async () => {
    const service = model(lastDays(60), 3);
    const ran = await later(service, day("2026-02-10"), {
      limits: { lookbackDays: 40, endDate: day("2026-02-20") },
    });
    expect(ran.progress).toMatchObject({ from: "2026-03-01", gap: { from: "2026-02-10", to: "2026-02-20" } });
    const rest = await runDated(service.ports(), {
      resume: ran.progress,
      limits: { startDate: day("2026-02-10") },
    });
    const days = new Set(
      [...ran.lines, ...rest.lines].map((line) => JSON.parse(line).discoveredAt.slice(0, 10)),
    );
    expect(days.has("2026-02-25")).toBe(true);
    expect(rest.progress).toMatchObject({ from: "2026-02-10", gap: null });
  });

  it("remembers days that a later start_date left out", async () => {
    const service = model(lastDays(60), 3);
    const first = await runDated(service.ports(), {
      limits: { startDate: day("2026-02-01"), endDate: day("2026-02-10") },
    });
    const second = await runDated(service.ports(), {
      resume: first.progress,
      limits: { startDate: day("2026-03-01") },
    });
    const third = await runDated(service.ports(), {
      resume: second.progress,
      limits: { startDate: day("2026-02-01") },
    });
    const seen = byId([...first.lines, ...second.lines, ...third.lines]);
    const wanted = service.people.filter(({ at }) => (at ?? 0) >= Date.parse("2026-02-01"));
    expect(wanted.filter(({ id }) => !seen.has(id))).toEqual([]);
  });
});

describe("readDated() up to an end_date", () => {
  it.each([
    ["in the past", "2026-03-10", "2026-03-10T23:59:59.999Z"],
    ["today", "2026-03-20", undefined],
    ["in the future", "2026-04-20", undefined],
  ])("%s delivers exactly its days", async (_, end, reached) => {
    const service = model(lastDays(30), 4);
    const ran = await runDated(service.ports(), { limits: { endDate: day(end) } });
    const wanted = service.people.filter(({ at }) => dayOf(at ?? 0) <= end).map(({ id }) => id);
    expect([...byId(ran.lines).keys()].sort()).toEqual(wanted.sort());
    expect(ran.complete).toBe(true);
    if (reached !== undefined) expect(ran.progress?.discoveredAt).toBe(reached);
    expect(Date.parse(ran.progress?.discoveredAt ?? "")).toBeLessThanOrEqual(NOW);
  });

  it("yesterday delivers none of today's rows", async () => {
    const service = model(lastDays(30), 4);
    const ran = await runDated(service.ports(), { limits: { endDate: day("2026-03-19") } });
    const days = ran.lines.map((line) => JSON.parse(line).discoveredAt.slice(0, 10));
    expect(days.includes("2026-03-19")).toBe(true);
    expect(days.includes("2026-03-20")).toBe(false);
    expect((ran.progress?.discoveredAt ?? "") <= "2026-03-19T23:59:59.999Z").toBe(true);
  });

  it("reads nothing again once it is reached", async () => {
    const service = model(lastDays(30), 4);
    const limits = { endDate: day("2026-03-01"), startDate: day("2026-02-25") };
    const { progress } = await runDated(service.ports(), { limits });
    const ran = await runDated(service.ports(), { resume: progress, limits });
    expect(ran).toMatchObject({ complete: true, progress });
    expect(ran.events.some(({ kind }) => kind === "checkpoint")).toBe(true);
  });
});

describe("readDated() when a day cannot be read", () => {
  const lacking = (...days: string[]): Partial<ModelOptions> => ({
    cut: (window) =>
      window.kind === "closed" && days.some((bad) => window.from <= bad && window.to >= bad)
        ? { rows: 1, loud: true }
        : undefined,
  });
  it("reads it page by page", async () => {
    const service = model(lastDays(30), 4, lacking("2026-03-10"));
    expectWhole(service, await runDated(service.ports(), { limits: { maxRows: 20 } }));
  });

  const pageless = (service: ModelService): ReturnType<ModelService["ports"]> => {
    const ports = service.ports();
    return {
      ...ports,
      page: async (window, number) => {
        if (window.kind === "closed") throw new BodyError("The list is broken too");
        return await ports.page(window, number);
      },
    };
  };

  it("puts it on record, goes on, is not complete, and reads it first next time", async () => {
    const broken = model(lastDays(30), 4, lacking("2026-03-10"));
    const ran = await runDated(pageless(broken), { limits: { maxRows: 20 } });
    expect(ran).toMatchObject({ complete: false, progress: { missing: ["2026-03-10"] } });
    expect(byId(ran.lines).size).toBeGreaterThan(broken.people.length - 4);
    const healed = new ModelService({ now: NOW + 1_000, people: broken.people });
    const next = await runDated(healed.ports(), { resume: ran.progress });
    expect(next).toMatchObject({ complete: true, progress: { missing: [] } });
    expect(healed.asked.find(({ what }) => what === "stream")?.window).toMatchObject({ from: "2026-03-10" });
    expect(byId([...ran.lines, ...next.lines])).toEqual(healed.served());
  });

  it("emits a missing day once though the lookback covers it", async () => {
    const healed = model(lastDays(30), 4);
    const first = await runDated(healed.ports());
    const resume = { ...(first.progress as Progress), missing: [day("2026-03-15")] };
    const ran = await runDated(healed.ports(), { resume, limits: { lookbackDays: 10 } });
    expect(ran).toMatchObject({ complete: true, progress: { missing: [] } });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("clears a missing day that holds nothing any more", async () => {
    const healed = model(lastDays(30), 4);
    const first = await runDated(healed.ports());
    const resume = { ...(first.progress as Progress), missing: [day("2025-03-15")] };
    expect(await runDated(healed.ports(), { resume })).toMatchObject({
      complete: true,
      progress: { missing: [] },
    });
  });

  it("clears an empty missing day that the planner skips within the lookback", async () => {
    const days = lastDays(60).filter((one) => one < "2026-03-01" || one > "2026-03-12");
    const healed = model(days, 4);
    const first = await runDated(healed.ports());
    const resume = { ...(first.progress as Progress), missing: [day("2026-03-05")] };
    const limits = { lookbackDays: 40, maxRows: 10 };
    const ran = await runDated(healed.ports(), { resume, limits });
    expect(ran).toMatchObject({ complete: true, progress: { missing: [] } });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it("gives a day up without a trace when told to", async () => {
    const broken = model(lastDays(30), 4, lacking("2026-03-10"));
    const ignoredDays = [day("2026-03-10")];
    const ran = await runDated(pageless(broken), { limits: { maxRows: 20, ignoredDays } });
    expect(ran).toMatchObject({ complete: true, progress: { missing: [] } });
  });

  it("forgets a missing day of the state when told to ignore it", async () => {
    const service = model(lastDays(30), 4);
    const first = await runDated(service.ports());
    const resume = { ...(first.progress as Progress), missing: [day("2026-01-10")] };
    const ran = await runDated(service.ports(), { resume, limits: { ignoredDays: [day("2026-01-10")] } });
    expect(ran).toMatchObject({ complete: true, progress: { missing: [] } });
  });

  it.each([[20], [250_000]])(
    "ends the stream after three in a row, with the state before them (windows of %i rows)",
    async (maxRows) => {
      const bad = ["2026-03-08", "2026-03-09", "2026-03-10"];
      const broken = model(lastDays(30), 4, {
        cut: (window) =>
          "from" in window &&
          bad.some((one) => window.from <= one && (window.kind === "open" || window.to >= one))
            ? { rows: 1, loud: true }
            : undefined,
      });
      const ran = await runDated(pageless(broken), { limits: { maxRows } });
      expect(ran.complete).toBe(false);
      expect(String(ran.error)).toContain("3 days in a row");
      const { discoveredAt, missing = [] } = ran.progress ?? {};
      expect(bad.filter((one) => one <= (discoveredAt ?? "").slice(0, 10))).toEqual(missing);
      const streams = broken.asked.filter(({ what }) => what === "stream");
      expect(
        streams.filter(({ window }) => window.kind === "open" && window.undated).length,
      ).toBeLessThanOrEqual(2);
    },
  );
});

describe("readDated() with totals that are not what they say", () => {
  it("reads all of a service whose totals are capped", async () => {
    const service = model(lastDays(60), 9, { total: (rows) => Math.min(rows, 20) });
    expectWhole(service, await runDated(service.ports()));
    expectWhole(service, await runDated(service.ports(), { limits: { maxRows: 15 } }));
  });

  it("finds the undated whom capped totals hide, and says so if the export lacks some", async () => {
    const people = [...past(peopleOn(lastDays(60), 9)), ...undatedPeople(7)];
    const capped: Partial<ModelOptions> = { people, total: (rows) => Math.min(rows, 20) };
    for (const maxRows of [15, 50]) {
      expectWhole(
        model([], 0, capped),
        await runDated(model([], 0, capped).ports(), { limits: { maxRows } }),
      );
    }
    const lacking = model([], 0, { ...capped, omits: ({ id }) => id === people.at(-1)?.id });
    const ran = await runDated(lacking.ports(), { limits: { maxRows: 15 } });
    expect(ran).toMatchObject({ complete: false, progress: { undated: "pending" } });
  });

  it("ends with an error and no false state where totals are too low", async () => {
    const service = model(lastDays(60), 9, { total: (rows) => Math.max(0, rows - 2) });
    const ran = await runDated(service.ports());
    expect(ran.complete).toBe(false);
    expect(ran.error).toBeInstanceOf(DataError);
    expect(String(ran.error)).toContain("verify_counts");
    expect(ran.progress?.discoveredAt ?? null).toBe(null);
  });

  it("believes no total of 0 once totals have shown less than there is", async () => {
    const total: ModelOptions["total"] = (rows, window) => {
      if (window.kind !== "closed" || window.from !== window.to) return rows - 1;
      return window.from === "2026-03-10" ? 0 : rows;
    };
    const service = model(["2026-03-10", "2026-03-11"], 3, { total });
    const limits = { startDate: day("2026-03-10"), endDate: day("2026-03-11") };
    const ran = await runDated(service.ports(), { limits });
    expect(ran.error).toBeInstanceOf(DataError);
  });

  it("ends with an error, not with green, where totals are too high", async () => {
    const service = model(lastDays(60), 9, { total: (rows) => rows + 2 });
    const ran = await runDated(service.ports());
    expect(ran.complete).toBe(false);
    expect(repeated(ran.lines)).toEqual([]);
  });

  it.each([1, 3])(
    "reads a service that does not count when nothing is to be verified (%i workers)",
    async (concurrency) => {
      const people = [...past(peopleOn(lastDays(200), 2)), ...undatedPeople(3)];
      const service = model([], 0, { people, total: () => null });
      const ran = await runDated(service.ports(false), { limits: { verify: false, concurrency } });
      expectWhole(service, ran);
    },
  );

  it("does not read everything for undated people whom the totals deny, verified or not", async () => {
    const service = model(lastDays(60), 9);
    const ran = await runDated(service.ports(false), { limits: { verify: false, maxRows: 100 } });
    expectWhole(service, ran);
    expect(
      service.asked.some(({ what, window }) => what === "stream" && window.kind === "open" && window.undated),
    ).toBe(false);
  });

  it("fails loudly where the date filters are not honoured", async () => {
    const service = model(lastDays(60), 9);
    const ports = service.ports();
    const everything = { kind: "open", from: day("1970-01-01"), undated: true } as const;
    const ran = await runDated(
      { ...ports, stream: () => ports.stream(everything) },
      { limits: { maxRows: 100 } },
    );
    expect(ran.error).toBeInstanceOf(DataError);
    expect(ran.progress).toBe(null);
  });
});

describe("readDated() with a limit on its time", () => {
  it("ends complete at the end of a window, and goes on there", async () => {
    const service = model(lastDays(100), 5, { latency: 1_000 });
    let resume: Progress | null = null;
    const lines: string[] = [];
    let runs = 0;
    for (; runs < 50; runs++) {
      const ran: Ran = await runDated(service.ports(), {
        resume,
        limits: { maxRows: 30, deadline: service.now + 60_000 },
      });
      expect(ran.complete).toBe(true);
      lines.push(...ran.lines);
      if (ran.progress?.undated === "done" && (ran.progress.discoveredAt ?? "") > "2026-03-20") break;
      resume = ran.progress;
    }
    expect(runs).toBeGreaterThan(1);
    expect(byId(lines)).toEqual(service.served());
  });

  it("comes to the range although a missing day takes all the time", async () => {
    const service = model(lastDays(20), 5, { latency: 1_000 });
    const resume: Progress = {
      discoveredAt: "2026-03-10T00:00:00Z",
      missing: [day("2026-03-02"), day("2026-03-03")],
      from: null,
      undated: "done",
      gap: null,
    };
    const ran = await runDated(service.ports(), { resume, limits: { deadline: service.now } });
    expect((ran.progress?.discoveredAt ?? "") > "2026-03-11").toBe(true);
  });
});
