import { describe, expect, it } from "vitest";
import { Checkpoints } from "../../../src/streams/checkpoints.ts";
import { NEW_STATE } from "../../../src/streams/dated-state.ts";
import type { Event } from "../../../src/streams/event.ts";
import { measureAll } from "../../../src/streams/range.ts";
import type { Count, StreamApi } from "../../../src/streams/stream-api.ts";
import { Tally } from "../../../src/streams/tally.ts";
import { closedWindow } from "../../../src/streams/window.ts";
import type { Day } from "../../../src/time.ts";
import { apiWith } from "../../support/run-rules.ts";

const counted = (rows: number, undated = 0): Count => ({ rows, undated, known: true, asked: 0, answered: 0 });
const OPEN = { kind: "open", from: "2026-03-01" as Day, undated: true } as const;
const DAY = closedWindow("2026-02-05" as Day, "2026-02-05" as Day);
const NOTHING = { emitted: 0, suppressed: 0, passes: 0, requests: 0, seconds: 0 };

describe("Tally", () => {
  it("says of each window what was counted around its last pass, and what it took", async () => {
    let now = 0;
    const tally = new Tally(apiWith({ count: async () => counted(7, 2), monotonic: () => now }));
    await tally.api.count(OPEN);
    tally.begin({ shown: 3, undated: 1 }, counted(9, 1));
    tally.add(3, 1);
    tally.begin({ shown: 8, undated: 2 }, counted(8, 2));
    tally.add(5, 0);
    await tally.api.count(OPEN);
    now = 1234;
    expect(tally.take("open")).toEqual({
      ...{ counted_before: 10, counted_after: 9, shown: 8 },
      ...{ emitted: 8, suppressed: 1, passes: 2, requests: 4, seconds: 1.234 },
    });
    tally.begin({ shown: 8, undated: 2 }, { ...counted(0), known: false });
    expect(tally.take("undated")).toEqual({
      ...{ counted_before: null, counted_after: null, shown: 2, ...NOTHING, passes: 1 },
    });
    const nobody = { counted_before: null, counted_after: null, shown: 0, ...NOTHING };
    for (const kind of ["open", "undated", "closed", "all"] as const)
      expect(tally.take(kind)).toEqual(nobody);
  });
});

it.each<[string, number, (api: StreamApi) => unknown]>([
  ["count of days", 1, (api) => api.count(DAY)],
  ["count of days up to now", 1, (api) => api.count({ ...OPEN, undated: false })],
  ["count of days up to now and of people without a date", 2, (api) => api.count(OPEN)],
  ["count of people without a date", 2, (api) => api.count({ kind: "undated" })],
  ["count of everything", 1, (api) => api.count({ kind: "all" })],
  ["export", 1, (api) => api.stream(DAY)],
  ["question whether there is a row", 1, (api) => api.hasRows(DAY)],
  ["look at a row", 1, (api) => api.rowAt(DAY, 7)],
  ["page", 1, (api) => api.page(DAY, 7)],
  ["question for the sources", 1, (api) => api.sources()],
  ["wait", 0, (api) => api.backOff(7)],
  ["look at the clock", 0, (api) => api.now()],
])("a %s takes %i requests", async (_, requests, ask) => {
  const asked: unknown[][] = [];
  const note =
    <Answer>(answer: Answer) =>
    (...given: unknown[]): Answer => {
      asked.push(given);
      return answer;
    };
  const batches = (async function* (): AsyncGenerator<never> {})();
  const tally = new Tally({
    ...{
      count: note(Promise.resolve(counted(7))),
      stream: note(batches),
      hasRows: note(Promise.resolve(true)),
    },
    ...{ rowAt: note(Promise.resolve(undefined)), sources: note(Promise.resolve(undefined)) },
    ...{ page: note(Promise.resolve({ rows: [], size: 10, total: 0 })), backOff: note(Promise.resolve()) },
    ...{ now: note(9), monotonic: () => 0, notify: note(undefined) },
  });
  await ask(tally.api);
  const given: unknown[][] = [];
  const straight = new Proxy({} as StreamApi, {
    get:
      () =>
      (...args: unknown[]) =>
        void given.push(args),
  });
  ask(straight);
  expect(asked.map((args) => args.filter((one) => one !== undefined))).toEqual(given);
  expect(tally.take("closed")).toMatchObject({ requests });
});

describe("Checkpoints", () => {
  it("tell of every day of a window: of its parts, and of days that were counted empty", async () => {
    const range = {
      ...(await measureAll(NEW_STATE, false, apiWith({}))),
      kind: "days" as const,
      yesterday: "2026-03-10" as Day,
    };
    const facts = { counted_before: 1, counted_after: null, shown: 1, ...NOTHING };
    const [from, to] = ["2026-02-03" as Day, "2026-02-08" as Day];
    const day = closedWindow("2026-02-05" as Day, "2026-02-05" as Day);
    const events: Event[] = [
      ...new Checkpoints("people", range).finish(
        0,
        { window: closedWindow("2026-02-05" as Day, to), clears: null, days: [from, to] },
        [
          { window: day, kind: "missing", facts },
          { window: closedWindow("2026-02-06" as Day, to), kind: "proven", facts },
        ],
      ),
    ];
    const [{ records = [] } = { records: [] }] = events as Extract<Event, { kind: "checkpoint" }>[];
    expect(
      records.map(({ first_day, last_day, verdict, shown }) => [first_day, last_day, verdict, shown]),
    ).toEqual([
      ["2026-02-03", "2026-02-04", "proven", 0],
      ["2026-02-05", "2026-02-05", "missing", 1],
      ["2026-02-06", "2026-02-08", "proven", 1],
    ]);
  });
});
