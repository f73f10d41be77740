import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Checkpoints } from "../../../src/streams/checkpoints.ts";
import {
  type Coverage,
  type DayStatus,
  missingDaysOf,
  put,
  type Span,
  spanOf,
} from "../../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import type { Event } from "../../../src/streams/event.ts";
import type { Range } from "../../../src/streams/range.ts";
import type { Window } from "../../../src/streams/window.ts";
import type { Planned, WindowOutcome, WindowResult } from "../../../src/streams/window-result.ts";
import { addDays, BEGINNING, type Day } from "../../../src/time.ts";
import { sumsOf } from "../../support/stories.ts";

const FIRST = "2026-01-01" as Day;
const YESTERDAY = "2026-03-19" as Day;
const ASKED = Date.parse("2026-03-20T10:00:00Z");
const day = (offset: number): Day => addDays(FIRST, offset);
const closed = (from: number, to = from): Extract<Window, { kind: "closed" }> => ({
  ...{ kind: "closed", from: day(from), to: day(to) },
});
const span = (from: number, to: number, rows: number | null, status?: DayStatus): Span =>
  spanOf([day(from), day(to)], rows, status);
const OPEN: Window = { kind: "open", from: YESTERDAY, undated: false };
const WHOLE: Window = { kind: "open", from: BEGINNING, undated: true };
const UNDATED: Window = { kind: "undated" };
/** How many rows a window held on some of its days. */
const held = (rows: Readonly<Record<number, number>>): Partial<WindowOutcome> => ({
  rowsByDay: new Map(Object.entries(rows).map(([nth, many]) => [day(Number(nth)), many])),
});
const missing = (nth: number): Span => span(nth, nth, null, "missing");
const again = (from: number, to: number): Span => span(from, to, null, "again");

const COUNT = { rows: 9, undated: 0, known: true, asked: ASKED, answered: ASKED };

/** Drives checkpoints as a run does. */
class Run {
  readonly checkpoints: Checkpoints;
  #next = 0;

  constructor(
    state: Partial<DatedState> = {},
    range: Partial<Range> = {},
    witness?: ConstructorParameters<typeof Checkpoints>[2],
  ) {
    const whole: Range = {
      ...{ kind: "days", state: { ...NEW_STATE, ...state }, yesterday: YESTERDAY, holes: [] },
      ...{ count: COUNT, granted: [], lookbackDays: 1 },
      ...{ window: { kind: "open", from: FIRST, undated: false }, undated: "pending" },
      ...{ latest: ASKED, until: Number.POSITIVE_INFINITY },
      ...range,
    };
    this.checkpoints = new Checkpoints("people", whole, witness);
  }

  get state(): DatedState {
    return this.checkpoints.state;
  }

  get missing(): readonly Day[] {
    return missingDaysOf(this.state.days);
  }

  finishAt(index: number, planned: Planned, result: WindowResult): Event[] {
    return [...this.checkpoints.finish(index, planned, result)];
  }

  finish(
    window: Window,
    outcome: Partial<WindowOutcome> | null = {},
    planned: Partial<Planned> = {},
  ): Event[] {
    const result = outcome === null ? [] : [{ window, kind: "proven" as const, ...outcome }];
    return this.finishAt(this.#next++, { window, clears: null, ...planned }, result);
  }

  close(isTimeUp = false): Event[] {
    return [...this.checkpoints.close(0, isTimeUp)];
  }
}

describe("Checkpoints", () => {
  it("pass only what the contiguous prefix has ended, in whatever order windows end", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 8 }), (order) => {
        const run = new Run();
        const ended = new Set<number>();
        for (const index of order) {
          ended.add(index);
          const window = closed(index);
          const newest = `${day(index)}T12:00:00Z`;
          const events = run.finishAt(index, { window, clears: null }, [{ window, kind: "proven", newest }]);
          let prefix = 0;
          while (ended.has(prefix)) prefix += 1;
          expect(run.state.days.map(([from]) => from)).toEqual(
            Array.from({ length: prefix }, (_, nth) => day(nth)),
          );
          expect(run.state.discoveredAt).toBe(prefix === 0 ? null : `${day(prefix - 1)}T12:00:00Z`);
          expect(events.length).toBe(index < prefix ? 1 : 0);
          if (events[0]?.kind === "checkpoint") expect(events[0].windows).toBe(prefix);
        }
      }),
    );
  });

  it("follow every window, although the state says nothing new", () => {
    const run = new Run({ discoveredAt: "2026-03-20T09:00:00Z" });
    const kinds = (events: readonly Event[]): string[] => events.map(({ kind }) => kind);
    expect(kinds(run.finish(UNDATED, { undatedRows: 3 }))).toEqual(["checkpoint"]);
    expect(kinds(run.finish(OPEN, { newest: "2026-03-20T09:00:00Z" }))).toEqual(["checkpoint"]);
    expect(kinds(run.close())).toEqual(["close"]);
  });

  const clearing = { clears: "missing" } as const;
  const bad = missing(2);
  it.each<[string, Coverage, Window, Partial<WindowOutcome> | null, Coverage, Partial<Planned>?]>([
    [
      "what it held by day",
      [],
      closed(0, 4),
      held({ 1: 5, 4: 2 }),
      [span(0, 0, 0), span(1, 1, 5), span(2, 4, 2)],
    ],
    [
      "empty days before it",
      [],
      closed(3, 4),
      held({ 3: 5 }),
      [span(0, 2, 0), span(3, 3, 5), span(4, 4, 0)],
      { days: [day(0), day(4)] },
    ],
    ["an empty window", [], closed(0, 4), null, [span(0, 4, 0)]],
    ["no number where none is known", [], closed(0, 4), {}, [span(0, 4, null)]],
    ["a missing day that was proven", [bad], closed(2), held({ 2: 3 }), [span(2, 2, 3)], clearing],
    ["a missing day that stays so", [bad], closed(2), { kind: "missing" }, [bad], clearing],
    ["a missing day that people left", [bad], closed(2), { kind: "again" }, [again(2, 2)], clearing],
    ["a range that people left", [], closed(0, 4), { kind: "again" }, [again(0, 4)]],
    ["a part of one", [again(0, 9)], closed(0, 4), {}, [span(0, 4, null), again(5, 9)], { clears: "again" }],
    ["a day that is ignored", [bad], closed(2), { kind: "ignored" }, [span(2, 2, null)]],
    [
      "a bad part",
      [],
      closed(0, 4),
      { window: closed(2), kind: "missing" },
      [span(0, 1, 0), bad, span(3, 4, 0)],
    ],
    [
      "a missing day that a window of other days holds",
      [span(0, 9, 30), missing(10)],
      closed(8, 11),
      held({ 8: 1, 10: 4 }),
      [span(0, 9, 30), span(10, 10, 4), span(11, 11, 0)],
    ],
  ])("put into days: %s", (_, days, window, outcome, expected, planned) => {
    const run = new Run({ days });
    run.finish(window, outcome, planned);
    expect(run.state.days).toEqual(expected);
  });

  it.each([
    ["the window of a whole account", { kind: "open", from: FIRST, undated: false } as const, 16],
    ["a closed window", closed(0, 59), 3],
  ])("are parts of %s by which a later check can tell where rows come and leave", (_, window, parts) => {
    const run = new Run({}, { lookbackDays: 0 });
    run.finish(window, held(Object.fromEntries(Array.from({ length: 60 }, (_day, nth) => [nth, 1]))));
    // The newest twelve days stand alone.
    expect(run.state.days.filter(([, to]) => to < day(48))).toHaveLength(parts);
  });

  it("never hold the run's yesterday, whatever an open window shows", () => {
    const run = new Run({}, { window: { kind: "open", from: day(70), undated: false } });
    run.finish({ kind: "open", from: day(70), undated: false }, held({ 71: 4, 77: 9, 78: 9 }));
    const days = [span(70, 70, 0), span(71, 71, 4), span(72, 76, 0)];
    expect(run.state.days).toEqual(days);
    run.finish(OPEN, {});
    expect(run.state.days).toEqual(days);
  });

  it("put in the parts of an open window that was split", () => {
    const run = new Run();
    const window: Window = { kind: "open", from: day(60), undated: true };
    const result: WindowResult = [
      { window: closed(60, 70), kind: "proven", ...held({ 61: 5 }) },
      { window: closed(71, 76), kind: "again", newest: `${day(76)}T00:00:00Z` },
      { window: UNDATED, kind: "proven", undatedRows: 2 },
      {
        window: { kind: "open", from: day(77), undated: false },
        kind: "proven",
        newest: "2026-03-20T01:00:00+00:00",
      },
    ];
    run.finishAt(0, { window, clears: null }, result);
    expect(run.state).toMatchObject({
      days: [span(60, 60, 0), span(61, 61, 5), span(62, 70, 0), span(71, 76, null, "again")],
      ...{ discoveredAt: "2026-03-20T01:00:00.000Z" },
      ...{ undated: { rows: 2, seen: null }, checked: "2026-03-20" },
    });
  });

  it("keep few spans, however many windows there are", () => {
    const run = new Run();
    for (let nth = 0; nth < 70; nth++) run.finish(closed(nth), held({ [nth]: nth }));
    expect(run.state.days).toHaveLength(32);
    expect(run.state.days.reduce((sum, [, , rows]) => sum + (rows ?? 0), 0)).toBe((69 * 70) / 2);
  });

  it("have a cursor that no row later than the first count moves, and that never goes back", () => {
    const run = new Run({ discoveredAt: "2026-03-18T00:00:00Z" });
    run.finish(closed(1, 5), { newest: `${day(5)}T00:00:00Z` });
    expect(run.state.discoveredAt).toBe("2026-03-18T00:00:00Z");
    run.finish(OPEN);
    expect(run.state.discoveredAt).toBe("2026-03-18T00:00:00Z");
  });

  it("stay where the time limit ended the run", () => {
    const run = new Run({}, { window: closed(0, 15) });
    run.finish(closed(0, 3), { newest: `${day(2)}T12:00:00Z` });
    expect(run.close(true).at(-1)).toMatchObject({
      complete: true,
      report: { time_limit_reached: true, saved_up_to: `${day(2)}T12:00:00Z` },
    });
    expect(run.state.days).toEqual([span(0, 3, null)]);
  });

  it.each([
    ["done at its end", {}, false, true],
    ["not done with a missing day", { kind: "missing" as const }, false, false],
    ["not done when its time is up", {}, true, false],
  ])("say that a full refresh is %s", (_, outcome, isTimeUp, done) => {
    const full_refresh = { generation_id: 1, sync_id: 2, done: false };
    const run = new Run({ full_refresh });
    run.finish(closed(0), outcome);
    const last = run.close(isTimeUp).findLast(({ kind }) => kind === "checkpoint");
    expect(run.state.full_refresh).toEqual({ ...full_refresh, done });
    if (done) expect(last).toMatchObject({ state: { full_refresh: { done } } });
  });

  it("of a stream without days say only whether its refresh is done", () => {
    const full_refresh = { generation_id: 1, sync_id: 2, done: false };
    const run = new Run({ full_refresh }, { kind: "all" });
    run.finish({ kind: "all" });
    expect(run.close()).toMatchObject([
      { kind: "checkpoint", state: { version: 2, full_refresh: { ...full_refresh, done: true } } },
      { kind: "close", complete: true },
    ]);
  });

  it.each([
    [[0], `Cannot prove the day ${day(0)} of "people" complete`],
    [[0, 1], `Cannot prove the days ${day(0)}, ${day(1)} of "people" complete`],
  ])("name the days that are missing, and the way out: %j", (days, text) => {
    const run = new Run();
    for (const nth of days) run.finish(closed(nth), { kind: "missing", cause: new Error("why") });
    const closing = run.close().at(-1);
    const error = closing?.kind === "close" ? (closing.error as Error) : undefined;
    expect(error?.message).toContain(text);
    expect(error?.message).toContain("ignore_missing_days");
    expect(error?.cause).toMatchObject({ message: "why" });
    expect(closing).toMatchObject({ complete: false, report: { missing_days: days.map(day) } });
  });

  it("are complete with ranges that people left, and say so", () => {
    const run = new Run();
    run.finish(closed(0, 4), { kind: "again" });
    run.finish(closed(5, 9));
    run.finish(OPEN);
    const events = run.close();
    expect(events.at(-1)).toMatchObject({ complete: true, report: { recheck: [[day(0), day(4)]] } });
    expect(events.at(-2)).toMatchObject({ kind: "log", text: expect.stringContaining("1 range of days") });
  });

  it("throw at the third missing day in a row, over any borders of windows, and no sooner", () => {
    const run = new Run();
    run.finish(closed(0), { kind: "missing" });
    run.finish(closed(1), { kind: "missing" });
    run.finish(closed(2));
    run.finish(closed(3), { kind: "missing" });
    run.finish(closed(4), null);
    run.finish(closed(5), { kind: "ignored" });
    run.finish(closed(6), { kind: "missing" });
    expect(() => run.finish(closed(7), { kind: "missing" })).toThrow("3 days in a row");
    expect(run.missing).toEqual([day(0), day(1), day(3), day(6)]);
  });

  it("do not hold days of earlier runs against the service", () => {
    const days = put([], span(1, 4, null, "missing"));
    const run = new Run({ days });
    for (let nth = 1; nth <= 4; nth++) run.finish(closed(nth), { kind: "missing" }, { clears: "missing" });
    expect(run.missing).toEqual([day(1), day(2), day(3), day(4)]);
  });

  it.each([
    ["their own window", UNDATED],
    ["one that brings them", WHOLE],
  ])("have the people without a date after %s", (_, window) => {
    const run = new Run();
    run.finish(window, { undatedRows: 7 });
    expect(run.state).toMatchObject({ undated: { rows: 7, seen: null }, checked: "2026-03-20" });
  });

  it("have them still to come, and are not complete, while they are missing", () => {
    const run = new Run({ undated: { rows: 3, seen: null } }, { undated: { ...COUNT, undated: 3 } });
    run.finish(UNDATED, { kind: "missing", cause: "cause" });
    run.finish(OPEN);
    expect(run.close().at(-1)).toMatchObject({ complete: false });
    expect(run.state.undated).toBeNull();
  });
});

/** A run of a few windows as they fall, and all that its checkpoints say: events as JSON, errors by their words. */
function randomStory(roll: (sides: number) => number): string[] {
  const some = <T>(...list: readonly T[]): T => list[roll(list.length)] as T;
  const numbers = (): Map<Day, number> =>
    new Map(Array.from({ length: roll(9) }, (_, nth) => [day(4 * nth + roll(4)), roll(4) * roll(300)]));
  const facts = { counted_before: 5, counted_after: null, shown: 5, emitted: 4, suppressed: 1 };
  const outcome = (window: Window): WindowOutcome => ({
    ...{ window, kind: some("proven", "proven", "proven", "again", "missing", "ignored") },
    ...(roll(2) === 0 && { rowsByDay: numbers(), heldByDay: some(new Map(), numbers(), undefined) }),
    ...(roll(2) === 0 && { newest: some(`${day(roll(90))}T01:00:00+01:00`, "1767312000", "2026-01-05") }),
    ...(roll(3) === 0 && { undatedRows: roll(5), undatedSeen: some(undefined, ["a"]) }),
    ...(roll(2) === 0 && { facts: { ...facts, passes: roll(3), requests: 4, seconds: 1.5 } }),
    ...(roll(3) === 0 && { cause: new Error(`cause ${roll(100)}`) }),
    ...(roll(3) === 0 && { isAlike: true }),
  });
  const days = Array.from({ length: roll(7) }, () => roll(70)).reduce<Coverage>((all, from) => {
    const status = some(undefined, undefined, "again" as const, "missing" as const);
    const rows = status === undefined ? some(null, 0, roll(500)) : null;
    return put(
      all,
      spanOf([day(from), day(from + roll(status === "missing" ? 2 : 8))], rows, status, roll(2)),
    );
  }, []);
  const granted = { ...closed(0, 20 + roll(3)), source: "ads" };
  const run = new Run(
    {
      ...{
        days,
        discoveredAt: some(null, "2026-01-20T00:00:00Z"),
        undated: some(null, { rows: 2, seen: null }),
      },
      ...{ witness: some(null, { keys: ["k"], cursor: "2026-01-01T00:00:00.000Z", key: "old" }) },
      ...{
        sources: some(null, ["crm"]),
        full_refresh: some(null, { generation_id: 1, sync_id: 2, done: false }),
      },
    },
    {
      ...{ kind: some("days", "days", "days", "days", "all"), granted: some([], [granted]) },
      ...{ lookbackDays: roll(3), undated: some<Range["undated"]>("none", "pending", COUNT) },
    },
    () => some(null, { keys: ["new"], cursor: `${day(roll(9))}T00:00:00.000Z`, key: "key" }),
  );
  let next = roll(3);
  const windows = Array.from({ length: 2 + roll(6) }, (): readonly [Planned, WindowResult] => {
    const from = next;
    const whole = closed(from, from + roll(3) * roll(12));
    next = from + 1 + roll(14);
    const parts = [closed(from, from + 1), closed(from + 2, from + 3 + roll(4))];
    const window = some<Window>(whole, whole, whole, { ...whole, source: "ads" }, OPEN, WHOLE, UNDATED, {
      kind: "all",
    });
    const planned: Planned = {
      ...{ window, clears: some(null, null, null, "again", "missing") },
      ...(window.kind === "closed" && roll(2) === 0 && { days: [day(from - roll(3)), window.to] }),
      ...(window === whole && roll(4) === 0 && { days: [day(from), granted.to] }),
    };
    return [
      planned,
      some([], [outcome(window)], [outcome(window)], [...parts, ...some([], [UNDATED, OPEN])].map(outcome)),
    ];
  });
  const order = windows.map((_, nth) => nth).sort((a, b) => ((a * 7) % 5) - ((b * 7) % 5));
  const said: string[] = [];
  const say = (events: () => readonly Event[]): void => {
    try {
      for (const event of events()) said.push(JSON.stringify(event, toWords));
    } catch (error) {
      said.push(JSON.stringify(error, toWords));
    }
  };
  for (const index of order) {
    const [planned, result] = windows[index] as readonly [Planned, WindowResult];
    say(() => run.finishAt(index, planned, result));
    said.push(JSON.stringify(run.state, toWords));
  }
  say(() => run.close(roll(3) === 0));
  return said;
}

const toWords = (_key: string, value: unknown): unknown =>
  value instanceof Error ? `${value.name}: ${value.message} (${value.cause ?? ""})` : value;

/** `TOLD="runs of 3" npx vitest run test/unit/streams/checkpoints.test.ts` prints the runs of a line. */
it("say of windows that end in any order what these lines sum up", async () => {
  const sums = await sumsOf("runs", [8, 20], randomStory, (said) => {
    const many = (start: string): number => said.filter((line) => line.startsWith(start)).length;
    return `${many('{"kind":"checkpoint"')} checkpoints, ${many('{"kind":"close"')} ends, ${many('"')} failures`;
  });
  await expect(sums).toMatchFileSnapshot("../../golden/checkpoint-sums.txt");
});
