import { describe, expect, it } from "vitest";
import { BodyError } from "../../../src/base/errors.ts";
import { BEGINNING, dayOf } from "../../../src/base/time.ts";
import type { RowState } from "../../../src/sync/state.ts";
import type { Window } from "../../../src/sync/window.ts";
import { type ModelOptions, ModelService, undatedPeople } from "../../support/model-service.ts";
import {
  day,
  daysIn,
  idsIn,
  idsSince,
  lastDays,
  NOW,
  peopleOf,
  type SyncOptions,
  serviceOf,
  sync,
} from "../../support/people-sync.ts";
import { byId, type Ran, repeated, runStream, withMissing } from "../../support/sync-run.ts";

const people = (days: number, perDay: number, options: Partial<ModelOptions> = {}): ModelService =>
  serviceOf(peopleOf(lastDays(days), perDay), options);

/** What a first sync covers. */
const ALL = [[BEGINNING, "2026-03-18"]];
const FUTURE = "2999-01-01T00:00:00Z";

describe("a later run", () => {
  it("from a cursor in the future reads every day that no span contains", async () => {
    const service = people(30, 3);
    const { state } = await sync(service);
    const days = state?.days.filter(({ to }) => to < "2026-03-08") ?? [];
    const ran = await sync(service, { state: { ...(state as RowState), days, discoveredAt: FUTURE } });
    expect(idsSince(service, "2026-03-08").filter((id) => !idsIn(ran.lines).includes(id))).toEqual([]);
    expect(ran).toMatchObject({ complete: true, covered: ALL });
  });

  it("does not believe that days are read which the service's clock has not reached", async () => {
    const service = people(30, 3);
    const { state } = await sync(service);
    const ahead = { from: day("2026-03-21"), to: day("2026-04-19"), status: "proven", rows: 0 } as const;
    const days = [...(state?.days ?? []), ahead];
    const ran = await sync(service, { state: { ...(state as RowState), days, discoveredAt: FUTURE } });
    expect(ran.state?.days.filter(({ to }) => to > "2026-03-20")).toEqual([]);
  });
});

describe("a run with another start_date or end_date than the ones before", () => {
  const between = (from: string, to?: string): SyncOptions => ({
    startDate: day(from),
    endDate: to === undefined ? null : day(to),
  });
  const START = between("2026-03-01");

  const EARLIER = between("2026-02-10");
  const LONG = { lookbackWindowDays: 40 };

  it.each<[string, SyncOptions[]]>([
    ["an earlier start", [START, EARLIER]],
    ["an earlier start, and a lookback that reaches into the gap", [START, { ...EARLIER, ...LONG }]],
    [
      "an end inside the gap, and then none",
      [START, { ...between("2026-02-10", "2026-02-20"), ...LONG }, EARLIER],
    ],
    ["days that a later start left out", [between("2026-02-10", "2026-02-15"), START, EARLIER]],
  ])("reads every day that is wanted: %s", async (_, runs) => {
    const service = people(60, 3);
    const lines: string[] = [];
    let state: RowState | null = null;
    for (const settings of runs) {
      const ran: Ran = await sync(service, { state, ...settings });
      expect(ran.complete).toBe(true);
      expect(repeated(ran.lines)).toEqual([]);
      lines.push(...ran.lines);
      state = ran.state;
      if (settings === runs.at(-1)) expect(ran.covered).toEqual([["2026-02-10", "2026-03-18"]]);
    }
    expect(idsIn(lines)).toEqual(idsSince(service, "2026-02-10"));
  });

  it("reads of the days that it knows only the lookback, and people without a date where the start is taken away", async () => {
    const service = serviceOf([...peopleOf(lastDays(60), 3), ...undatedPeople(5)]);
    const { state } = await sync(service, START);
    const ran = await sync(service, { state });
    expect(daysIn(ran.lines)).not.toContain("2026-03-05");
    expect(daysIn(ran.lines)).toContain("2026-02-28");
    expect(ran).toMatchObject({ complete: true, covered: ALL, state: { undated: { rows: 5 } } });
  });

  it.each([
    ["in the past", "2026-03-10", "2026-03-10"],
    ["yesterday", "2026-03-19", undefined],
    ["today", "2026-03-20", undefined],
    ["in the future", "2026-04-20", undefined],
  ])("delivers exactly the days up to an end_date %s", async (_, end, reached) => {
    const service = people(30, 4);
    const ran = await sync(service, { endDate: day(end) });
    const wanted = service.people.filter(({ at }) => dayOf(at ?? 0) <= end).map(({ id }) => id);
    expect(idsIn(ran.lines)).toEqual(wanted.sort());
    expect(ran).toMatchObject({ complete: true, covered: [[BEGINNING, reached ?? "2026-03-18"]] });
    const latest = Math.min(NOW, Date.parse(`${end}T23:59:59.999Z`));
    expect(Date.parse(ran.state?.discoveredAt ?? "")).toBeLessThanOrEqual(latest);
    const next = await sync(service, { state: ran.state, endDate: day(end) });
    expect(next).toMatchObject({ complete: true, state: { discoveredAt: ran.state?.discoveredAt } });
    const earlier = await sync(service, { state: ran.state, endDate: day("2026-03-05") });
    expect(earlier).toMatchObject({ complete: true, lines: [], state: { days: ran.state?.days } });
  });
});

describe("a day that cannot be read", () => {
  const touches = (window: Window, bad: string): boolean =>
    "from" in window &&
    (window.from ?? "") <= bad &&
    (window.kind === "open" || ("to" in window && window.to >= bad));
  const lacking = (...days: string[]): Partial<ModelOptions> => ({
    cut: (window) => (days.some((bad) => touches(window, bad)) ? { rows: 1, loud: true } : undefined),
  });

  const syncPageless = (service: ModelService, settings: SyncOptions): Promise<Ran> => {
    const api = service.api();
    const page: typeof api.page = async (window, number) => {
      if (window.kind === "closed") throw new BodyError("The list is broken too");
      return await api.page(window, number);
    };
    return runStream({ ...api, page }, { settings });
  };

  it("is saved as missing if its pages break too, makes the stream incomplete, and is read first by the next run", async () => {
    const service = people(30, 4, lacking("2026-03-10"));
    const ran = await syncPageless(service, { maxWindowRows: 20 });
    expect(ran).toMatchObject({ complete: false, missing: ["2026-03-10"] });
    expect(byId(ran.lines).size).toBeGreaterThan(service.people.length - 4);
    const healed = new ModelService({ now: NOW + 1_000, people: service.people });
    const next = await sync(healed, { state: ran.state });
    expect(next).toMatchObject({ complete: true, missing: [] });
    expect(healed.asked.find(({ what }) => what === "stream")?.window).toMatchObject({ from: "2026-03-10" });
    expect(byId([...ran.lines, ...next.lines])).toEqual(healed.served());
  });

  it("is not read while ignore_missing_days names it, and is read afterwards", async () => {
    const settings = { maxWindowRows: 20, ignoreMissingDays: [day("2026-03-10")] };
    const service = people(30, 4, lacking("2026-03-10"));
    const ran = await syncPageless(service, settings);
    expect(ran).toMatchObject({ complete: true, missing: [] });
    for (const state of [ran.state, withMissing(ran, "2026-03-10")])
      expect(await sync(service, { state, ...settings })).toMatchObject({ complete: true, missing: [] });
    const reads = service.asked.filter(
      ({ what, window }) => what === "stream" && touches(window, "2026-03-10"),
    );
    expect(reads).toEqual([]);
    const healed = people(30, 4);
    const next = await sync(healed, { state: ran.state });
    expect(byId([...ran.lines, ...next.lines])).toEqual(healed.served());
  });

  it.each<[string, SyncOptions, string]>([
    ["is covered by the lookback", { lookbackWindowDays: 10 }, "2026-03-15"],
    ["has no rows any more", {}, "2025-03-15"],
  ])("that is missing and %s is read once and is not missing any more", async (_, settings, missing) => {
    const healed = people(30, 4);
    const state = withMissing(await sync(healed), missing);
    const ran = await sync(healed, { state, ...settings });
    expect(ran).toMatchObject({ complete: true, missing: [] });
    expect(repeated(ran.lines)).toEqual([]);
  });

  it.each([20, 250_000])(
    "ends the stream as the third in a row, with the state before them (windows of %i rows)",
    async (maxWindowRows) => {
      const bad = ["2026-03-08", "2026-03-09", "2026-03-10"];
      const ran = await syncPageless(people(30, 4, lacking(...bad)), { maxWindowRows });
      expect(ran.complete).toBe(false);
      expect(String(ran.error)).toContain("3 days in a row");
      expect(ran.covered.every(([, last]) => last < "2026-03-10")).toBe(true);
    },
  );
});

describe("a run with a limit on its time", () => {
  it.each([1, 2])("reads more in each run, until everything is read (%i workers)", async (numWorkers) => {
    const service = people(16, 3, { latency: 1_000 });
    const settings = { maxWindowRows: 3, lookbackWindowDays: 5, numWorkers };
    let state: RowState | null = null;
    const lines: string[] = [];
    let runs = 0;
    for (; runs < 20 && !state?.discoveredAt?.startsWith("2026-03-20"); runs++) {
      const ran: Ran = await sync(service, { ...settings, state, endsAt: service.now });
      expect(ran.complete).toBe(true);
      lines.push(...ran.lines);
      state = ran.state;
    }
    expect(runs).toBeGreaterThan(1);
    expect(byId(lines)).toEqual(service.served());
  });
});
