import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BodyError, DataError, ScrambledError, UnmadeError } from "../../../src/errors.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import { readPages } from "../../../src/streams/read-pages.ts";
import { readWindow } from "../../../src/streams/read-window.ts";
import { SeenRows } from "../../../src/streams/seen-rows.ts";
import type { Count, Page, Row, StreamApi } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import type { Planned, WindowResult } from "../../../src/streams/window-result.ts";
import { type Day, daysBetween } from "../../../src/time.ts";
import { apiWith, drain, rulesWith } from "../../support/run-rules.ts";

const NOW = Date.parse("2026-03-20T10:00:00Z");
const ONE_DAY: Window = { kind: "closed", from: "2026-03-02" as Day, to: "2026-03-02" as Day };
const TWO_DAYS: Window = { ...ONE_DAY, to: "2026-03-03" as Day };
const RECENT: Window = { kind: "open", from: "2026-03-19" as Day, undated: false };

/** Rows of a window's first day; more than ten thousand are four thousand again and again. */
const rowsOf = (many: number, window: Window): Row[] =>
  Array.from({ length: many }, (_, nth) => ({
    raw: `{"id":${nth}}` as RawLine,
    key: String(many > 10_000 ? nth % 4_000 : nth),
    cursor: `${"from" in window ? window.from : ""}T12:00:00Z`,
  }));

type Script = {
  readonly counts: readonly number[];
  /** Whether they are counts of each day. */
  readonly isByDay?: boolean;
  readonly shown: readonly number[];
  readonly paged?: readonly number[];
  /** Numbers of pages that cannot be parsed. */
  readonly broken?: readonly number[];
};

/** A service that counts, streams and pages what a script says, the last of each for ever. */
function scripted({ counts, isByDay = false, shown, paged = [], broken = [] }: Script): {
  api: StreamApi;
  asked: string[];
} {
  const asked: string[] = [];
  const rest = { counts: [...counts], shown: [...shown], paged: [...paged] };
  const next = (list: number[]): number => (list.length > 1 ? list.shift() : list[0]) ?? 0;
  let pages: Row[] = [];
  const api = apiWith({
    now: () => NOW,
    backOff: async () => {},
    count: async (window): Promise<Count> => {
      asked.push("count");
      const days = isByDay && window.kind === "closed" ? daysBetween(window.from, window.to) : 1;
      return { rows: days * next(rest.counts), undated: 0, known: true, asked: NOW, answered: NOW };
    },
    stream: async function* (window) {
      asked.push("stream");
      yield { rows: rowsOf(next(rest.shown), window) };
    },
    page: async (window, number): Promise<Page> => {
      asked.push(`page ${number}`);
      if (broken.includes(number)) throw new BodyError("The page is no JSON");
      if (number === 1 && asked.at(-2) === "count") pages = rowsOf(next(rest.paged), window);
      return { rows: pages.slice((number - 1) * 10, number * 10), size: 10, total: null };
    },
  });
  return { api, asked };
}

async function read(
  script: Script,
  window: Window = ONE_DAY,
  clears: Planned["clears"] = null,
): Promise<{ result: WindowResult; asked: string[]; lines: number }> {
  const { api, asked } = scripted(script);
  const { lines, result } = await drain(readWindow({ window, clears }, rulesWith({ api })));
  return { result, asked, lines: lines.length };
}

it("says nothing to anybody of a window that is as it should be", async () => {
  for (const window of [ONE_DAY, TWO_DAYS, RECENT]) {
    const told: unknown[] = [];
    const { api } = scripted({ counts: [3], shown: [3] });
    const rules = rulesWith({ api: { ...api, notify: (notice) => void told.push(notice) } });
    const { result } = await drain(readWindow({ window, clears: null }, rules));
    expect([result.map(({ kind }) => kind), told]).toEqual([["proven"], []]);
  }
});

it("says so once of a window of more rows than are remembered, of which one that comes twice is passed on twice", async () => {
  const full = vi.spyOn(SeenRows.prototype, "isFull", "get").mockReturnValue(true);
  onTestFinished(() => full.mockRestore());
  const notify = vi.fn<StreamApi["notify"]>();
  const { api } = scripted({ counts: [5], shown: [5] });
  const stream: StreamApi["stream"] = async function* (window) {
    yield { rows: rowsOf(2, window).map((row) => ({ ...row, key: "a" })) };
    yield { rows: rowsOf(3, window) };
  };
  const rules = rulesWith({ api: { ...api, stream, notify } });
  const { lines, result } = await drain(readWindow({ window: ONE_DAY, clears: null }, rules));
  expect([lines.length, result]).toMatchObject([5, [{ kind: "proven" }]]);
  const text =
    "The window 2026-03-02 holds more than 5,000,000 rows: beyond them a row that comes twice is passed on twice. " +
    "Lower max_window_rows, or upsert on the key";
  expect(notify.mock.calls).toEqual([[{ kind: "log", level: "warn", text }]]);
});

describe("readWindow() of a closed window", () => {
  it.each([
    [4, 0, { kind: "proven", texts: 0, exportsFail: false }],
    [5, 0, { kind: "proven", texts: 1, exportsFail: true }],
    [5, 1, { kind: "proven", texts: 0, exportsFail: false }],
  ])(
    "says so of a day whose export cannot be made: %i attempts, %i of which broke off",
    async (vain, broken, expected) => {
      const texts: string[] = [];
      const { api } = scripted({ counts: [5], shown: [5], paged: [5] });
      let exports = 0;
      const stream: StreamApi["stream"] = async function* (window) {
        const Failure = ++exports <= broken ? BodyError : UnmadeError;
        if (exports <= vain) throw new Failure("The export sends nothing");
        yield* api.stream(window);
      };
      const notify: StreamApi["notify"] = (notice) => void texts.push(JSON.stringify(notice));
      const rules = rulesWith({ api: { ...api, stream, notify } });
      const { result } = await drain(readWindow({ window: ONE_DAY, clears: null }, rules));
      const said = texts.filter((text) => text.includes("It is read page by page"));
      const { exportsFail } = rules.windowSize;
      expect({ kind: result[0]?.kind, texts: said.length, exportsFail }).toEqual(expected);
    },
  );

  it("is proven by exactly what was counted", async () => {
    const { result, asked } = await read({ counts: [5], shown: [5] });
    expect(result).toMatchObject([{ kind: "proven" }]);
    expect(asked).toEqual(["count", "stream"]);
  });

  it.each([
    ["delivers rows again that came in a body whose check sum is wrong", ScrambledError, 10],
    ["delivers rows once that came in a body that broke off", BodyError, 5],
  ])("%s", async (_, Failure, delivered) => {
    const { api } = scripted({ counts: [5], shown: [5] });
    let streams = 0;
    const stream: StreamApi["stream"] = async function* (window) {
      yield { rows: rowsOf(5, window) };
      streams += 1;
      if (streams === 1) throw new Failure("The body is not whole");
    };
    const planned = { window: ONE_DAY, clears: null };
    const { lines } = await drain(readWindow(planned, rulesWith({ api: { ...api, stream } })));
    expect(lines).toHaveLength(delivered);
  });

  it("is draining where fewer were shown than counted before, and no fewer than counted after", async () => {
    for (const after of [3, 4]) {
      const { result, asked } = await read({ counts: [5, after], shown: [4] });
      expect(result).toMatchObject([{ kind: "again" }]);
      expect(asked).toEqual(["count", "stream", "count"]);
    }
  });

  it("lacks rows for certain where fewer were shown than counted after, and is read again with that count", async () => {
    const { result, asked } = await read({ counts: [5, 5], shown: [4, 5] });
    expect(result).toMatchObject([{ kind: "proven" }]);
    expect(asked).toEqual(["count", "stream", "count", "stream"]);
  });

  it.each([
    ["alike, which is believed of the second after once", [4], 1],
    ["by other numbers", [4, 4, 4, 3, 4, 3, 4, 4, 3], 5],
  ])(
    "is halved after two passes that lacked rows, and a day is tried five times, then by pages: %s",
    async (_, shown, second) => {
      const script = { counts: [5], isByDay: true, shown, paged: [4] };
      const { result, asked } = await read(script, TWO_DAYS);
      expect(result).toMatchObject([{ kind: "missing" }, { kind: "missing" }]);
      expect(asked.filter((what) => what === "stream")).toHaveLength(2 + 5 + second);
      expect(asked.filter((what) => what === "page 2").length).toBeGreaterThan(0);
    },
  );

  it("counts a failure of two days against the second of them while the first holds nothing", async () => {
    const { asked } = await read({ counts: [5, 5, 5, 0, 5], shown: [4, 3], paged: [4] }, TWO_DAYS);
    expect(asked.filter((what) => what === "stream")).toHaveLength(2 + 3);
  });

  it("fails with the numbers where a day shows more than both counts", async () => {
    await expect(read({ counts: [3], shown: [4] })).rejects.toThrow(DataError);
    await expect(read({ counts: [3], shown: [4] })).rejects.toThrow("verify_counts");
  });

  it("is read again where a row came in late", async () => {
    const { result } = await read({ counts: [3, 4], shown: [4] });
    expect(result).toMatchObject([{ kind: "proven" }]);
  });

  it("is halved at once, and not read to its end, where it shows far more", async () => {
    const { result, asked } = await read({ counts: [3], shown: [10_001, 3] }, TWO_DAYS);
    expect(result).toMatchObject([{ kind: "proven" }, { kind: "proven" }]);
    expect(asked.filter((what) => what === "stream")).toHaveLength(3);
  });

  it("is halved at once where it shows more, and no half is skipped for its count of 0", async () => {
    const { asked } = await read({ counts: [3, 0, 4, 0, 4], shown: [4] }, TWO_DAYS);
    expect(asked.filter((what) => what === "stream").length).toBeGreaterThanOrEqual(3);
  });

  it.each([
    ["more", 4, 1],
    ["fewer", 2, 0],
  ])(
    "is split at yesterday where it shows %s than was counted, and days of no count are read only where it shows more",
    async (_, shown, exports) => {
      const early: Window = { kind: "open", from: "2026-03-02" as Day, undated: false };
      const { api } = scripted({ counts: [3, 0], shown: [shown, 0] });
      const read: string[] = [];
      const stream: StreamApi["stream"] = (window) => {
        read.push(window.kind);
        return api.stream(window);
      };
      const planned = { window: early, clears: null };
      await drain(readWindow(planned, rulesWith({ api: { ...api, stream } }))).catch(() => undefined);
      expect(read.filter((kind) => kind === "closed").length > 0).toBe(exports > 0);
      expect(read[0]).toBe("open");
    },
  );

  it("counts again what was counted more than a minute ago", async () => {
    const { api, asked } = scripted({ counts: [5], shown: [5] });
    for (const [age, counts] of [
      [59_000, 0],
      [61_000, 1],
    ] as const) {
      asked.length = 0;
      const count = { rows: 5, undated: 0, known: true, asked: NOW - age, answered: NOW - age };
      await drain(readWindow({ window: ONE_DAY, clears: null, count }, rulesWith({ api })));
      expect(asked.filter((what) => what === "count")).toHaveLength(counts);
    }
  });
});

describe("readWindow()", () => {
  it.each([
    ["closed", ONE_DAY, { counts: [5_000], shown: [10_001, 5_000] }, 2],
    // Ten thousand rows of four thousand people: more than the three thousand that were counted, in a window that grows.
    ["open", RECENT, { counts: [3_000], shown: [10_001] }, 1],
    ["open", RECENT, { counts: [4_500], shown: [10_001, 4_500] }, 2],
  ])(
    "of a window that is %s ends a body that shows far more than was counted: %j, %j",
    async (_, window, script, streams) => {
      const { result, asked } = await read(script, window);
      expect(result).toMatchObject([{ kind: "proven" }]);
      expect(asked.filter((what) => what === "stream")).toHaveLength(streams);
    },
  );
});

describe("readWindow() of everything", () => {
  it("takes no count where nothing is to be verified", async () => {
    const { api, asked } = scripted({ counts: [5], shown: [3] });
    const rules = rulesWith({ api, verifyCounts: false });
    const { result } = await drain(readWindow({ window: { kind: "all" }, clears: null }, rules));
    expect(result).toMatchObject([{ kind: "proven" }]);
    expect(asked).toEqual(["stream"]);
  });
});

describe("readWindow() of a range that drained before", () => {
  it.each([
    ["is read by pages if it drains again", { counts: [5, 4], shown: [4] }, true],
    ["is closed for good if its pages drain too", { counts: [6, 5, 5, 4], shown: [5] }, true],
    ["is not closed where its pages lack rows", { counts: [6, 5, 5], shown: [5, 4, 3] }, false],
  ])("%s", async (_, script, isProven) => {
    const { result, asked } = await read({ ...script, paged: [4] }, TWO_DAYS, "again");
    expect(result.some(({ kind }) => kind === "proven")).toBe(isProven);
    expect(asked).toContain("page 2");
  });
});

describe("readWindow() by pages", () => {
  const cut = { shown: [0] };

  it("walks a closed day five times at most and never closes it with a shortfall", async () => {
    const { result, asked } = await read({ counts: [25], ...cut, paged: [24, 23, 24, 23, 24] });
    expect(result).toMatchObject([{ kind: "missing" }]);
    expect(asked.filter((what) => what === "page 4")).toHaveLength(5);
  });

  it("walks a day no more that shows the same rows again", async () => {
    const { result, asked } = await read({ counts: [25], isByDay: true, shown: [24], paged: [24] });
    expect(result).toMatchObject([{ kind: "missing" }]);
    expect(asked.filter((what) => what === "page 4")).toHaveLength(1);
  });

  it("proves a closed day by pages that show exactly what was counted, last page first", async () => {
    const { result, asked, lines } = await read({ counts: [25], ...cut, paged: [25] });
    expect(result).toMatchObject([{ kind: "proven" }]);
    expect(lines).toBe(25);
    expect(asked.slice(-5)).toEqual(["page 1", "page 4", "page 3", "page 2", "page 1"]);
  });

  it("fails where pages show more than both counts", async () => {
    await expect(read({ counts: [25], ...cut, paged: [26] })).rejects.toThrow(DataError);
  });

  it.each([
    [ONE_DAY, "failed"],
    [RECENT, "failed"],
    [{ kind: "all" }, "proven"],
  ] as const)(
    "takes no short page in the middle for a whole one, verified or not: %j",
    async (window, kind) => {
      const { api } = scripted({ counts: [25], shown: [], paged: [25] });
      const page: StreamApi["page"] = async (_, number) => {
        const { rows, ...more } = await api.page(window, number);
        return { ...more, rows: number === 2 ? rows.slice(1) : rows };
      };
      const rules = rulesWith({ api: { ...api, page }, verifyCounts: false });
      const reading = readPages(window, null, rules, new SeenRows(), await api.count(window));
      let next = await reading.next();
      while (next.done !== true) next = await reading.next();
      expect(next.value).toMatchObject({ kind });
    },
  );

  it("is draining where people left between the counts around a walk", async () => {
    // A count before the first of five passes, one after each, and one after the walk.
    const counts = [...Array<number>(6).fill(25), 24];
    const { result } = await read({ counts, ...cut, paged: [24] });
    expect(result).toMatchObject([{ kind: "again" }]);
  });

  it.each([
    ["delivers the rows of the other pages past three that cannot be parsed", [2, 3, 4], 30],
    ["ends a walk at the fourth page that cannot be parsed", [2, 3, 4, 5], 10],
  ])("%s, and is not proven", async (_, broken, delivered) => {
    const { result, lines } = await read({ counts: [60], ...cut, paged: [60], broken });
    expect(lines).toBe(delivered);
    expect(result).toMatchObject([{ kind: "missing" }]);
  });
});
