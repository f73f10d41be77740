import { expect, it } from "vitest";
import { type Coverage, put, spanOf } from "../../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import { measureDays } from "../../../src/streams/range.ts";
import type { StreamApi } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import { addDays, BEGINNING, DAY_MS, type Day, startOf } from "../../../src/time.ts";
import { ModelService, peopleOn, undatedPeople } from "../../support/model-service.ts";
import { sumsOf } from "../../support/stories.ts";
import { SETTINGS } from "../../support/sync-run.ts";

const TODAY = "2026-03-20" as Day;
const NOON = startOf(TODAY) + DAY_MS / 2;
type Roll = (sides: number) => number;

/** The days of an account, some of whose rows have come or left since they were read, and its state. */
function randomAccount(roll: Roll): { readonly service: ModelService; readonly state: DatedState } {
  const some = <T>(...list: readonly T[]): T => list[roll(list.length)] as T;
  const ago = (most: number): Day => addDays(TODAY, -roll(most));
  const length = some(5, 30, 60, 200);
  const held = Array.from({ length: roll(length) }, () => ago(length));
  const now = NOON + some(0, 7, -12) * 3_600_000;
  const people = [
    ...peopleOn(held, 1 + roll(3)),
    ...peopleOn([BEGINNING], roll(2)),
    ...undatedPeople(roll(5)),
  ];
  const service = new ModelService({
    ...{ now, latency: some(20, 900), people: people.map((one, nth) => ({ ...one, id: `${nth}` })) },
    ...(roll(10) === 0 && { total: () => null }),
  });
  service.sources = some(undefined, ["crm"], ["crm", "ads"]);
  const rowsIn = (from: Day, to: Day): number =>
    people.filter(({ at }) => at !== null && at >= startOf(from) && at < startOf(addDays(to, 1))).length;
  let days: Coverage = [];
  const off = some([0], [0, 0, 0, 1], [0, 0, -1], [0, 1, -1, 2, -2]);
  let from = some(BEGINNING, addDays(TODAY, -length), ago(40));
  for (let many = some(1, 5, 20, 40); many > 0 && from < addDays(TODAY, 2); many--) {
    const to = from === BEGINNING ? addDays(TODAY, -1 - length) : addDays(from, roll(some(1, 2, 9, 40)));
    const status = some(
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      "again" as const,
      "missing" as const,
    );
    const rows = status === undefined && roll(9) > 0 ? Math.max(0, rowsIn(from, to) + some(...off)) : null;
    days = put(days, spanOf([from, to], rows, status, roll(8) === 0 ? 1 : 0));
    from = addDays(to, 1 + (roll(3) === 0 ? roll(5) : 0));
  }
  const state = {
    ...{ ...NEW_STATE, days: roll(8) === 0 ? [] : days },
    discoveredAt: some(null, `${ago(9)}T01:02:03Z`, `${ago(length)}T00:00:00Z`, "2026-04-01T00:00:00Z"),
    ...{
      checked: some(null, ago(9), ago(9), ago(9)),
      undated: some(null, { rows: roll(5), seen: ["a"] }),
    },
    filters: some(null, { source_slug: some("", "crm"), is_user: "all" }) as DatedState["filters"],
    ...{ sources: some(null, ["crm"], ["crm", "ads"]), asked: some(null, `${ago(9)}T00:00:00.000Z`) },
    full_refresh: roll(12) === 0 ? { generation_id: 1, sync_id: 1, done: false } : null,
  };
  return { service, state };
}

/** What is asked before the first row is read, and what is decided by it. */
async function decided(roll: Roll): Promise<string[]> {
  const some = <T>(...list: readonly T[]): T => list[roll(list.length)] as T;
  const ago = (most: number): Day => addDays(TODAY, -roll(most));
  const { service, state } = randomAccount(roll);
  const said: string[] = [];
  const model = service.api(false);
  const api: StreamApi = {
    ...model,
    count: async (window: Window) => {
      const count = await model.count(window);
      said.push(`count ${JSON.stringify(window)}: ${count.rows} and ${count.undated}`);
      return count;
    },
  };
  const { days } = state;
  const missing = [...days.filter((span) => span[3] === "missing").map(([day]) => day), ago(30)];
  const range = await measureDays(
    state,
    {
      ...{
        ...SETTINGS,
        startDate: some(null, null, null, null, null, ago(40), ago(300), "1999-01-01" as Day),
      },
      endDate: some(null, null, null, null, null, ago(3), ago(60), addDays(TODAY, 3)),
      ...{ lookbackWindowDays: roll(4), ignoreMissingDays: some([], missing) },
      ...(roll(3) === 0 && { bringsUndated: roll(2) === 0 }),
    },
    api,
  );
  return [...said, JSON.stringify(range)];
}

/** `TOLD="ranges of 3" npx vitest run test/unit/streams/range.test.ts` prints the ranges of a line. */
it("is decided, and the days behind it are checked, by the requests that these lines sum up", async () => {
  const sums = await sumsOf("ranges", [10, 40], decided, (said) => {
    const counts = said.filter((line) => line.startsWith("count")).length;
    return `${counts} counts, ${said.join("").split('"warning"').length - 1} warnings`;
  });
  await expect(sums).toMatchFileSnapshot("../../golden/range-sums.txt");
});

it("ignores the missing days that are named, and no others", async () => {
  const day = (nth: number): Day => addDays(TODAY, -nth);
  const days = [30, 20, 10].reduce<Coverage>(
    (all, nth) => put(all, spanOf([day(nth), day(nth)], null, "missing")),
    [],
  );
  const service = new ModelService({ now: NOON, people: peopleOn([day(15)], 2) });
  const settings = { ...SETTINGS, ignoreMissingDays: [day(25), day(20), day(5)] };
  const state = { ...NEW_STATE, days, discoveredAt: `${day(2)}T00:00:00Z`, checked: TODAY };
  const range = await measureDays(state, settings, service.api());
  expect(range.state.days).toEqual([
    [day(30), day(30), null, "missing"],
    [day(20), day(20), null],
    [day(10), day(10), null, "missing"],
  ]);
  expect(range.holes[0]).toEqual([BEGINNING, day(31)]);
});
