import { describe, expect, it } from "vitest";
import { DataError } from "../../../src/errors.ts";
import { readUndated } from "../../../src/streams/read-undated.ts";
import type { Row } from "../../../src/streams/stream-api.ts";
import type { Planned, RunRules, WindowOutcome } from "../../../src/streams/window-result.ts";
import {
  type ModelOptions,
  ModelService,
  type Person,
  peopleOn,
  rowOf,
  undatedPeople,
} from "../../support/model-service.ts";
import { drain, rulesWith } from "../../support/run-rules.ts";

const NOW = Date.parse("2026-03-20T10:00:00Z");
const DATED = peopleOn(["2026-03-10", "2026-03-11"], 30);

type ReadUndated = { outcome: WindowOutcome; ids: string[]; asked: string[] };

/** Reads the people without a date of a service that has some, beside sixty with one. */
async function read(
  undated: number,
  options: Partial<ModelOptions> = {},
  planned: Partial<Planned> = {},
  rules: Partial<RunRules> = {},
): Promise<ReadUndated> {
  const service = new ModelService({ now: NOW, people: [...DATED, ...undatedPeople(undated)], ...options });
  const api = service.api(rules.verifyCounts);
  const reading = readUndated(
    { window: { kind: "undated" }, clears: null, ...planned },
    rulesWith({ api, ...rules }),
  );
  const { lines, result: outcome } = await drain(reading);
  const ids = lines.map((line) => String(JSON.parse(line).id));
  return { outcome, ids, asked: service.asked.map(({ what }) => what) };
}

const sweepsOf = (asked: readonly string[]): number => {
  const turns = asked.filter((what, nth) => what === "page" && asked[nth - 1] !== "page");
  return turns.length;
};

describe("readUndated()", () => {
  it("fetches a handful from the end of the list, by no more pages than hold them and one", async () => {
    const { outcome, ids, asked } = await read(13);
    expect(outcome).toMatchObject({ kind: "proven", undatedRows: 13 });
    expect(new Set(ids)).toEqual(new Set(undatedPeople(13).map(({ id }) => id)));
    expect(ids).toHaveLength(13);
    // The first page, two that hold them, and the one before.
    expect(asked.filter((what) => what === "page")).toHaveLength(4);
    expect(asked).not.toContain("stream");
  });

  it("finds them at the front of a list that is ordered the other way round", async () => {
    const { outcome, ids, asked } = await read(13, { list: (rows) => rows.toReversed() });
    expect(outcome).toMatchObject({ kind: "proven", undatedRows: 13 });
    expect(new Set(ids).size).toBe(13);
    expect(asked).not.toContain("stream");
  });

  it("reads a list of nobody else to its end", async () => {
    const { outcome, ids } = await read(25, { people: undatedPeople(25) });
    expect(outcome).toMatchObject({ kind: "proven", undatedRows: 25 });
    expect(ids).toHaveLength(25);
  });

  it("emits only those that were not delivered before, and counts nothing where their number is known", async () => {
    const seen = (await read(3)).outcome.undatedSeen ?? [];
    expect(seen).toHaveLength(3);
    const count = { rows: DATED.length, undated: 4, known: true, asked: NOW, answered: NOW };
    const again = await read(4, {}, { count, isKnown: true }, { undatedSeen: new Set(seen) });
    expect(again.outcome).toMatchObject({ kind: "proven", undatedRows: 4 });
    expect(again.outcome.undatedSeen).toHaveLength(4);
    expect(again.ids).toEqual(["u3"]);
    expect(new Set(again.asked)).toEqual(new Set(["page"]));
  });

  it("remembers at most a thousand", async () => {
    expect((await read(1_000)).outcome.undatedSeen).toHaveLength(1_000);
    expect((await read(1_001)).outcome).toMatchObject({ undatedRows: 1_001, undatedSeen: undefined });
  });

  it.each([
    [1_000, 990],
    [1_001, undefined],
  ])(
    "counts those who are suppressed among the thousand: of %i people it remembers %j",
    async (all, many) => {
      const row = (one: Person): Row => ({ ...rowOf(one), isHeld: /^u\d$/.test(one.id) });
      const { outcome, ids } = await read(all, { row });
      expect([outcome.undatedRows, outcome.undatedSeen?.length, ids.length]).toEqual([all, many, all - 10]);
    },
  );

  it.each(["ends", "turns back"])(
    "counts again where somebody arrived between the counts and the look past them, in a list that %s",
    async (how) => {
      const turnsBack = how === "turns back";
      const moment = ({ asked, people }: ModelService): void => {
        if (asked.at(-1)?.what === "any" && people.length === DATED.length) people.push(...undatedPeople(1));
      };
      const { outcome, ids, asked } = await read(0, { moment, turnsBack });
      expect(outcome).toMatchObject({ kind: "proven", undatedRows: 1 });
      expect(ids).toEqual(["u0"]);
      expect(asked).not.toContain("stream");
    },
  );

  it("sweeps a second time where the first one lacked some, and repeats nothing", async () => {
    let pages = 0;
    const list: ModelOptions["list"] = (rows) => {
      pages += 1;
      return pages < 5 ? rows.filter(({ id }) => id !== "u0") : rows;
    };
    const { outcome, ids, asked } = await read(3, { list });
    expect(outcome).toMatchObject({ kind: "proven", undatedRows: 3 });
    expect(ids.toSorted()).toEqual(["u0", "u1", "u2"]);
    expect(sweepsOf(asked)).toBe(2);
    expect(asked).not.toContain("stream");
  });

  it.each([
    ["the list lacks some", { list: (rows) => rows.filter(({ id }) => id !== "u0") }],
    ["a page cannot be parsed", { breaks: (_window, number) => number === 7 }],
  ] satisfies [string, Partial<ModelOptions>][])(
    "reads the unfiltered export after two sweeps where %s, and emits nobody else and nobody twice",
    async (_what, options) => {
      const { outcome, ids, asked } = await read(3, options);
      expect(outcome).toMatchObject({ kind: "proven", undatedRows: 3 });
      expect(ids.toSorted()).toEqual(["u0", "u1", "u2"]);
      expect(sweepsOf(asked)).toBe(2);
      expect(asked.filter((what) => what === "stream")).toHaveLength(1);
    },
  );

  it("are missing after three exports that lack some, but those who were shown are delivered", async () => {
    const { outcome, ids, asked } = await read(3, {
      list: (rows) => rows.filter(({ id }) => id !== "u0"),
      omits: ({ id }) => id === "u0",
    });
    expect(outcome).toMatchObject({ kind: "missing", cause: expect.any(Error) });
    expect(ids.toSorted()).toEqual(["u1", "u2"]);
    expect(asked.filter((what) => what === "stream")).toHaveLength(3);
  });

  it("are missing where every export is cut, however it ends", async () => {
    for (const loud of [true, false]) {
      const { outcome } = await read(3, { list: () => [], cut: () => ({ rows: 20, loud }) });
      expect(outcome).toMatchObject({ kind: "missing", cause: expect.any(Error) });
    }
  });

  it("are taken from any export that ends well where nothing is to be verified", async () => {
    const options: Partial<ModelOptions> = { total: () => null, omits: ({ id }) => id === "u0" };
    const { outcome, ids } = await read(3, options, {}, { verifyCounts: false });
    expect(outcome).toMatchObject({ kind: "proven", undatedRows: 2 });
    expect(ids.toSorted()).toEqual(["u1", "u2"]);
  });

  it("lets no error through but that of a body: an outage makes nobody missing", async () => {
    const moment = (): void => {
      throw new DataError("The service is down");
    };
    await expect(read(3, { moment })).rejects.toThrow("The service is down");
  });

  it.each(["count", "any", "page", "stream"])(
    "nor one that comes with a request of the kind %s",
    async (what) => {
      let isOver = false;
      const moment = ({ asked }: ModelService): void => {
        if (asked.at(-1)?.what !== what || isOver) return;
        isOver = true;
        throw new DataError("The service is down");
      };
      await expect(read(3, { moment, list: () => [] })).rejects.toThrow(DataError);
    },
  );
});
