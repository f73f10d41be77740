import { describe, expect, it } from "vitest";
import { BodyError, ScrambledError } from "../../../src/base/errors.ts";
import type { Day } from "../../../src/base/time.ts";
import type { RawLine } from "../../../src/sync/event.ts";
import type { Count, Page, Row, Service } from "../../../src/sync/service.ts";
import type { Window } from "../../../src/sync/window.ts";
import { type Person, undatedPeople } from "../../support/model-service.ts";
import {
  DAY_MS,
  day,
  expectAll,
  lastDays,
  NOW,
  peopleOf,
  serviceOf,
  sync,
} from "../../support/people-sync.ts";
import { apiWith, type Ran, type RunOptions, runStream } from "../../support/sync-run.ts";

const rowOf = (id: number, cursor: string | null): Row => ({
  raw: JSON.stringify({ id, discoveredAt: cursor }) as RawLine,
  key: String(id),
  cursor,
});

/** Rows of a window's first day. */
const rowsOf = (many: number, window: Window): Row[] =>
  Array.from({ length: many }, (_, nth) => rowOf(nth, `${"from" in window ? window.from : ""}T01:00:00Z`));

type Script = {
  readonly counts: readonly number[];
  readonly shown: readonly number[];
  readonly paged?: readonly number[];
};

/** A service that counts, exports and lists what a script says, the last of each for ever. */
function scripted({ counts, shown, paged = [] }: Script): {
  api: Service;
  asked: string[];
} {
  const asked: string[] = [];
  const rest = { counts: [...counts], shown: [...shown], paged: [...paged] };
  const next = (list: number[]): number => (list.length > 1 ? list.shift() : list[0]) ?? 0;
  let pages: Row[] = [];
  const api = apiWith({
    now: () => NOW,
    backOff: async () => {},
    sources: async () => [],
    rowAt: async () => ({ row: undefined, total: null }),
    count: async (): Promise<Count> => {
      asked.push("count");
      return { rows: next(rest.counts), undated: 0, known: true, asked: NOW, answered: NOW };
    },
    stream: async function* (window) {
      asked.push("stream");
      yield rowsOf(next(rest.shown), window);
    },
    page: async (window, number): Promise<Page> => {
      asked.push(`page ${number}`);
      if (number === 1 && asked.at(-2) === "count") pages = rowsOf(next(rest.paged), window);
      return { rows: pages.slice((number - 1) * 10, number * 10), size: 10, total: null };
    },
  });
  return { api, asked };
}

const MARCH_2 = day("2026-03-02");

/** Reads closed days alone. */
async function read(
  script: Script | Service,
  to: Day = MARCH_2,
  options: RunOptions = {},
): Promise<Ran & { asked: string[]; verdict: string }> {
  const { api, asked } = "count" in script ? { api: script, asked: [] } : scripted(script);
  const settings = { startDate: MARCH_2, endDate: to, ...options.settings };
  const ran = await runStream(api, { ...options, settings });
  const found = { missing: ran.missing.length, again: ran.again.length, proven: ran.covered.length };
  const verdict = Object.entries(found).find(([, many]) => many > 0)?.[0] ?? "nothing";
  return { ...ran, asked, verdict };
}

describe("a closed day", () => {
  const [ONCE, COUNTED, TWICE] = ["count stream", "count stream count", "count stream count stream"];

  it.each([
    ["as many rows as were counted", [5], [5], "proven", ONCE],
    ["fewer, as does the next count: people left", [5, 4], [4], "again", COUNTED],
    ["fewer, and the next count even fewer: people left since", [5, 3], [4], "again", COUNTED],
    ["fewer than the next count: rows were lost, and it is read again", [5], [4, 5], "proven", TWICE],
    ["more, as does the next count: a row came late", [3, 4], [4], "proven", COUNTED],
    ["a row that has left, and not again: the first export's copy lags", [3], [4, 3], "proven", TWICE],
  ])("that shows %s", async (_, counts, shown, verdict, asked) => {
    expect(await read({ counts, shown })).toMatchObject({ verdict, asked: asked?.split(" ") });
  });

  it.each<[string, Script]>([
    ["shows more than each count says", { counts: [3], shown: [4], paged: [4] }],
    ["lacks rows everywhere", { counts: [25], shown: [24, 23], paged: [24, 23, 24] }],
  ])(
    "that %s is missing after three exports and three walks, and its rows are delivered",
    async (_, script) => {
      const { verdict, complete, asked, lines } = await read(script);
      expect([verdict, complete, lines.length]).toEqual(["missing", false, Math.max(...script.shown)]);
      expect(asked.filter((what) => what === "stream")).toHaveLength(3);
      expect(asked.filter((what) => what === "page 1")).toHaveLength(3);
    },
  );

  it("that shows by its pages what is counted is not proven after a broken export that showed more", async () => {
    const { api } = scripted({ counts: [16], shown: [20], paged: [16] });
    const stream: Service["stream"] = async function* (window) {
      yield rowsOf(20, window);
      throw new BodyError("The body broke off");
    };
    expect(await read({ ...api, stream })).toMatchObject({ verdict: "missing", complete: false });
  });

  it.each([
    ["delivers rows again that came in a body whose check sum is wrong", ScrambledError, 10],
    ["delivers rows once that came in a body that broke off", BodyError, 5],
  ])("%s", async (_, Failure, delivered) => {
    const { api } = scripted({ counts: [5], shown: [5] });
    let exports = 0;
    const stream: Service["stream"] = async function* (window) {
      yield rowsOf(5, window);
      exports += 1;
      if (exports === 1) throw new Failure("The body is not whole");
    };
    const { verdict, lines } = await read({ ...api, stream });
    expect([verdict, lines.length]).toEqual(["proven", delivered]);
  });

  it.each<[string, Row[], string]>([
    ["a row twice instead of one that is lost", [rowOf(1, `${MARCH_2}T01:00:00Z`)], "missing"],
    ["somebody who has moved to today instead of a lost row", [rowOf(9, "2026-03-20T10:00:00Z")], "missing"],
    ["a row without its key", [{ ...rowOf(9, `${MARCH_2}T01:00:00Z`), key: "" }], "missing"],
    ["another row of the day", [rowOf(9, `${MARCH_2}T23:59:59.999Z`)], "proven"],
  ])("that shows %s ends as it should", async (_, more, verdict) => {
    const { api } = scripted({ counts: [5], shown: [5] });
    const stream: Service["stream"] = async function* (window) {
      yield [...rowsOf(4, window), ...more];
    };
    const page = async (): Promise<Page> => ({ rows: [], size: 10, total: null });
    expect(await read({ ...api, stream, page })).toMatchObject({ verdict });
  });

  it.each(["2026-03-01T23:59:59.999Z", "2026-03-03T00:00:00Z", "2026-03-18T23:59:59.999Z"])(
    "ends the stream with an error where the export shows a row of %s: the filters are not honoured",
    async (cursor) => {
      const { api } = scripted({ counts: [5], shown: [5] });
      const stream: Service["stream"] = async function* () {
        yield [rowOf(1, cursor)];
      };
      const { error, state } = await read({ ...api, stream });
      expect([String(error), state]).toEqual([expect.stringContaining("date filters"), null]);
    },
  );
});

describe("an account of one window", () => {
  const isOld = ({ at }: Person): boolean => at !== null && at < NOW - 5 * DAY_MS;

  it.each<[string, (person: Person) => boolean, number]>([
    ["somebody comes in at the moment of the count", isOld, 1],
    ["nobody comes in", isOld, 0],
    ["the row has no date", ({ at }) => at === null, 0],
  ])(
    "is not proven by an export that lacks a row where %s: the row is found",
    async (_, isMeant, newcomers) => {
      let exports = 0;
      let coming = newcomers;
      const service = serviceOf([...peopleOf(lastDays(9), 2), ...undatedPeople(2)], {
        omits: (person) => exports === 1 && person === service.people.find(isMeant),
        moment: ({ asked, people, now }) => {
          if (asked.at(-1)?.what !== "stream") return;
          exports = asked.filter(({ what }) => what === "stream").length;
          for (; coming > 0; coming--) people.push({ id: "new", at: now, user: false });
        },
      });
      const ran = await sync(service);
      expectAll(service, ran);
      expect([coming, exports > 1]).toEqual([0, true]);
    },
  );
});

describe("the pages of a day whose exports are empty", () => {
  const empty = { shown: [0] };

  it("prove it by exactly what was counted", async () => {
    const { verdict, lines } = await read({ counts: [25], ...empty, paged: [25] });
    expect([verdict, lines.length]).toEqual(["proven", 25]);
  });

  it("prove it together with exports that broke at other places", async () => {
    const { verdict, lines } = await read({ counts: [5], shown: [3], paged: [5] });
    expect([verdict, lines.length]).toEqual(["proven", 5]);
  });

  it("are checked again by the next run where people left between the counts around a walk", async () => {
    // A count before the first of three exports, one after each, and one after the walk.
    const counts = [...Array<number>(4).fill(25), 24];
    expect(await read({ counts, ...empty, paged: [24] })).toMatchObject({ verdict: "again" });
  });

  it.each([
    [5, [1]],
    [10, [1]],
    [25, [1, 2, 3]],
    [95, [1, 2, 3, 4]],
  ])(
    "that all break are asked for three times, as far as there are some of %i rows",
    async (rows, numbers) => {
      const { api } = scripted({ counts: [rows], shown: [3] });
      const asked: number[] = [];
      const page = async (_: Window, number: number): Promise<Page> => {
        asked.push(number);
        throw new BodyError("The page is no JSON");
      };
      expect(await read({ ...api, page })).toMatchObject({ verdict: "missing", lines: { length: 3 } });
      expect(asked).toEqual([...numbers, ...numbers, ...numbers]);
    },
  );

  it("prove nothing where one in the middle lacks a row", async () => {
    const { api } = scripted({ counts: [25], shown: [0], paged: [25] });
    const page: Service["page"] = async (window, number) => {
      const { rows, ...more } = await api.page(window, number);
      return { ...more, rows: number === 2 ? rows.slice(1) : rows };
    };
    expect(await read({ ...api, page })).toMatchObject({ verdict: "missing" });
  });
});

it("pages without an end are given up", async () => {
  const { api } = scripted({ counts: [3], shown: [0] });
  const page = async (window: Window, number: number): Promise<Page> => {
    if (number > 20) throw new Error("They were read for ever");
    const rows = rowsOf(1_000, window).map((row, nth) => ({ ...row, key: `${number} ${nth}` }));
    return { rows, size: 1_000, total: null };
  };
  expect(await read({ ...api, page })).toMatchObject({ complete: false, verdict: "missing" });
});

it("an export that repeats its rows for ever is given up", async () => {
  const { api } = scripted({ counts: [3], shown: [], paged: [3] });
  const stream: Service["stream"] = async function* (window) {
    for (let nth = 0; nth < 20; nth++) yield Array(1_000).fill(rowsOf(1, window)[0]);
    throw new Error("It was read for ever");
  };
  expect(await read({ ...api, stream })).toMatchObject({ complete: true, verdict: "proven" });
});

describe("a row that is passed on again", () => {
  const MS = Date.parse("2026-03-19T08:00:00.120Z");

  /** The lines that leave of the rows that an export of today shows. */
  async function left(rows: readonly Row[], undated = 0): Promise<readonly string[]> {
    const { api } = scripted({ counts: [1 - undated], shown: [] });
    const count: Service["count"] = async (window) => ({ ...(await api.count(window)), undated });
    const stream: Service["stream"] = async function* () {
      yield rows;
    };
    const startDate = undated === 0 ? day("2026-03-19") : null;
    return (await runStream({ ...api, count, stream }, { settings: { startDate } })).lines;
  }

  it.each<[cursor: string, other: string, isSame: boolean]>([
    ["2026-03-19T08:00:00.120Z", "2026-03-19T09:00:00.12+01:00", true],
    ["2026-03-19T08:00:00.120Z", "2026-03-19T08:00:00.121Z", false],
    ["2026-03-19T08:00:00.12001Z", "2026-03-19T08:00:00.120Z", false],
    ["2026-03-19T08:00:00,12001Z", "2026-03-19T08:00:00.1200100+00:00", true],
    [String(MS), "2026-03-19T08:00:00.120Z", true],
    [`${MS / 1_000}`, `${MS}000`, true],
    [`${MS}001`, `${MS}002`, false],
  ])("the cursors %s and %s of a key are the same moment: %s", async (cursor, other, isSame) => {
    expect(await left([rowOf(1, cursor), rowOf(1, other)])).toHaveLength(isSame ? 1 : 2);
  });

  it("rows without a date differ by their content, in every spelling", async () => {
    const escaped = '{"id":"u","name":"\\u00e9","discoveredAt":null}' as RawLine;
    const plain = '{"id":"u", "name":"\xc3\xa9", "discoveredAt":null}' as RawLine;
    const other = escaped.replace("u00e9", "u00e8") as RawLine;
    const rows = [escaped, plain, other].map((raw) => ({ raw, key: '"u"', cursor: null }));
    expect(await left(rows, 1)).toEqual([escaped, other]);
  });
});
