import { describe, expect, it } from "vitest";
import { BodyError } from "../../../src/base/errors.ts";
import type { Row } from "../../../src/sync/service.ts";
import {
  type ModelOptions,
  type ModelService,
  type Person,
  rowOf,
  undatedPeople,
} from "../../support/model-service.ts";
import { expectAll, lastDays, peopleOf, serviceOf, sync } from "../../support/people-sync.ts";
import { byId, type Ran } from "../../support/sync-run.ts";

/** Everyone with a date; too many for one window, so that those without one are read by themselves. */
const DATED = peopleOf(lastDays(12), 5);
const SETTINGS = { maxWindowRows: 20 };

type Read = { ran: Ran; ids: string[]; asked: Readonly<Record<string, number>>; service: ModelService };

/** Reads people of whom some have no date: the ids of these, and how often the service was asked for what of everybody. */
async function read(
  undated: number,
  options: Partial<ModelOptions> = {},
  settings: object = {},
): Promise<Read> {
  const people = [...DATED.map((one) => ({ ...one })), ...undatedPeople(undated)];
  const service = serviceOf(people, options);
  const ran = await sync(service, { ...SETTINGS, ...settings });
  const asked: Record<string, number> = { page: 0, stream: 0 };
  for (const { what, window } of service.asked)
    if (window.kind === "open" && window.undated) asked[what] = (asked[what] ?? 0) + 1;
  const ids = ran.lines.filter((line) => line.includes("null")).map((line) => String(JSON.parse(line).id));
  return { ran, ids: ids.sort(), asked, service };
}

const withoutU0: ModelOptions["list"] = (rows) => rows.filter(({ id }) => id !== "u0");

describe("people without a date", () => {
  it.each<[string, Partial<ModelOptions>]>([
    ["the end of the list", {}],
    ["its front, where it is ordered the other way round", { list: (rows) => rows.toReversed() }],
  ])("are read from %s, by a few pages and without an export of everyone", async (_, options) => {
    const { ran, ids, asked, service } = await read(13, options);
    expectAll(service, ran);
    expect(ran.state?.undated).toMatchObject({ rows: 13 });
    expect(ids).toHaveLength(13);
    expect(asked["page"]).toBeLessThanOrEqual(4);
    expect(asked["stream"]).toBe(0);
  });

  it("who arrive between the counts and the look past them are delivered", async () => {
    // The plan looks at the list of those with a date, and only then that of everybody is looked at.
    const moment = ({ asked, people }: ModelService): void => {
      const last = asked.at(-1);
      const isLook = last?.what === "any" && last.window.kind === "open" && last.window.undated;
      if (isLook && people.length === DATED.length) people.push(...undatedPeople(1));
    };
    const { ran, ids } = await read(0, { moment });
    expect(ran).toMatchObject({ complete: true, state: { undated: { rows: 1 } } });
    expect(ids).toEqual(["u0"]);
  });

  it.each<[string, Partial<ModelOptions>]>([
    ["the list lacks some", { list: withoutU0 }],
    ["a page cannot be parsed", { breaks: (_window, number) => number > 5 }],
  ])("are read from the export of everyone if %s, and each once", async (_, options) => {
    const { ran, ids, asked } = await read(3, options);
    expect([ran.complete, ids, asked["stream"]]).toEqual([true, ["u0", "u1", "u2"], 1]);
    expect(byId(ran.lines).size).toBe(ran.lines.length);
  });

  it.each<[string, Partial<ModelOptions>, string[]]>([
    ["the export lacks one too", { list: withoutU0, omits: ({ id }) => id === "u0" }, ["u1", "u2"]],
    ["every export is cut loudly", { list: () => [], cut: cutOfEverybody(true) }, []],
    ["every export is cut silently", { list: () => [], cut: cutOfEverybody(false) }, []],
  ])(
    "are still to be read by the next run where %s, and the stream is not complete",
    async (_, options, ids) => {
      const first = await read(3, options);
      expect(first.ran).toMatchObject({
        complete: false,
        error: expect.any(BodyError),
        state: { undated: null },
      });
      expect([first.ids, first.asked["stream"]]).toEqual([ids, 3]);
      const healed = serviceOf(first.service.people);
      const next = await sync(healed, { ...SETTINGS, state: first.ran.state });
      expect(byId([...first.ran.lines, ...next.lines])).toEqual(healed.served());
    },
  );

  it("are found in a slow export of everyone whose other rows have no key", async () => {
    const row = (one: Person): Row => (one.at === null ? rowOf(one) : { ...rowOf(one), key: "" });
    const options = { list: () => [], batch: 1, latency: 1_500, row };
    const { ran, ids } = await read(2, options, { source: { onMissingKey: "pass" } });
    expect([ran.complete, ids]).toEqual([true, ["u0", "u1"]]);
  });
});

function cutOfEverybody(loud: boolean): NonNullable<ModelOptions["cut"]> {
  return (window) => (window.kind === "open" && window.undated ? { rows: 20, loud } : undefined);
}
