import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BodyError, ConfigError, UnreachableError } from "../../../src/errors.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import { partsOf } from "../../../src/streams/parts.ts";
import { Pass } from "../../../src/streams/proof.ts";
import { readWindow } from "../../../src/streams/read-window.ts";
import { SeenRows } from "../../../src/streams/seen-rows.ts";
import type { Row, StreamApi } from "../../../src/streams/stream-api.ts";
import type { ClosedWindow, Window } from "../../../src/streams/window.ts";
import type { WindowResult } from "../../../src/streams/window-result.ts";
import { WindowSize } from "../../../src/streams/window-size.ts";
import type { Day } from "../../../src/time.ts";
import { apiWith, drain, rulesWith } from "../../support/run-rules.ts";
import { runs } from "../../support/runs.ts";

const NOW = Date.parse("2026-03-20T10:00:00Z");
const DAY: ClosedWindow = { kind: "closed", from: "2026-03-02" as Day, to: "2026-03-02" as Day };

/** Who is shown under `is_user` true, and under false: a service may show some under both, or under neither. */
type Person = {
  readonly id: number;
  readonly uses: readonly boolean[];
  readonly sources: readonly string[];
  hasLeft?: boolean;
};

type Told = {
  readonly people: readonly Person[];
  /** Exports of more rows break there. */
  readonly most: number;
  readonly sources?: readonly string[];
  /** Called after each request. */
  readonly after?: (people: readonly Person[], nth: number) => void;
  /** What an export of these rows shows, and whether it ends as it should. */
  readonly shows?: (
    ids: readonly number[],
    nth: number,
  ) => { readonly ids: readonly number[]; readonly ends: boolean };
};

const rowOf = (id: number): Row => ({
  raw: `{"id":${id}}` as RawLine,
  key: String(id),
  cursor: `${DAY.from}T12:00:00Z`,
});

/** A service whose day is as told. */
function serviceOf({ people, most, sources = [], after = () => {}, shows }: Told): {
  readonly api: StreamApi;
  readonly asked: string[];
} {
  const asked: string[] = [];
  const held = (window: Window): readonly number[] => {
    const { isUser, source } = window as ClosedWindow;
    const isMatch = ({ uses, sources: checked, hasLeft }: Person): boolean =>
      hasLeft !== true &&
      (isUser === undefined || uses.includes(isUser)) &&
      (source === undefined || checked.includes(source));
    return people.filter(isMatch).map(({ id }) => id);
  };
  const ask = (what: string, window: Window): readonly number[] => {
    const { isUser, source } = window as ClosedWindow;
    const ids = held(window);
    asked.push([what, isUser, source].filter((one) => one !== undefined).join(" "));
    after(people, asked.length);
    return ids;
  };
  const api = apiWith({
    now: () => NOW,
    backOff: async () => {},
    sources: async () => sources,
    count: async (window) => ({
      ...{ rows: ask("count", window).length, undated: 0, known: true, asked: NOW, answered: NOW },
    }),
    stream: async function* (window) {
      const all = ask("stream", window);
      const { ids, ends } = shows?.(all, asked.length) ?? {
        ids: all.slice(0, most),
        ends: all.length <= most,
      };
      yield { rows: ids.map(rowOf) };
      if (!ends) throw new BodyError("The body was cut");
    },
    page: async () => {
      throw new BodyError("The list cannot be asked so deep");
    },
  });
  return { api, asked };
}

const MOST = 100;

async function read(
  told: Told,
): Promise<{ result: WindowResult; asked: readonly string[]; lines: readonly string[] }> {
  const { api, asked } = serviceOf(told);
  const rules = rulesWith({ api, windowSize: new WindowSize(MOST) });
  const { lines, result } = await drain(readWindow({ window: DAY, clears: null }, rules));
  return { result, asked, lines };
}

const people = (count: number, of: (id: number) => Omit<Person, "id">): Person[] =>
  Array.from({ length: count }, (_, id) => ({ id, ...of(id) }));

const eitherOr = (id: number): Omit<Person, "id"> => ({ uses: [id % 2 === 0], sources: [`s${id % 4}`] });

describe("a closed day whose export breaks", () => {
  it("is read in two parts where is_user divides it, and proven as one window", async () => {
    const { result, asked, lines } = await read({ people: people(180, eitherOr), most: 100 });
    expect(result).toMatchObject([{ kind: "proven", window: DAY, rowsByDay: new Map([[DAY.from, 180]]) }]);
    expect(new Set(lines).size).toBe(180);
    expect(lines).toHaveLength(180);
    expect(asked).toEqual([
      ...["count", "stream", "count true", "count false", "count", "count", "stream true", "stream false"],
    ]);
  });

  it("is read by source too where its parts are still too large", async () => {
    const sources = ["s0", "s1", "s2", "s3"];
    const told = { people: people(360, eitherOr), most: 100, sources };
    const { api, asked } = serviceOf(told);
    const windowSize = Object.defineProperty(new WindowSize(MOST), "rows", { value: 10 });
    const { lines, result } = await drain(
      readWindow({ window: DAY, clears: null }, rulesWith({ api, windowSize })),
    );
    expect(result).toMatchObject([{ kind: "proven", window: DAY }]);
    expect(lines).toHaveLength(360);
    expect(asked.filter((one) => one.startsWith("stream"))).toEqual([
      ...["stream", "stream true s0", "stream true s2", "stream false s1", "stream false s3"],
    ]);
  });

  it("makes a part again by itself", async () => {
    const shows: Told["shows"] = (ids, nth) => ({ ids: nth === 7 ? ids.slice(0, 40) : ids, ends: nth > 7 });
    const { result, asked, lines } = await read({ people: people(180, eitherOr), most: 100, shows });
    expect(result).toMatchObject([{ kind: "proven" }]);
    expect(lines).toHaveLength(180);
    expect(asked.slice(6)).toEqual(["stream true", "stream true", "stream false"]);
  });

  it("counts nothing of a part that broke once there are too many rows to remember", async () => {
    const isFull = vi.spyOn(SeenRows.prototype, "isFull", "get").mockReturnValue(true);
    onTestFinished(() => isFull.mockRestore());
    const again = (from: number): NonNullable<Told["shows"]> => {
      return (ids, nth) => ({
        ids: nth === 7 ? ids.slice(0, 40) : ids.slice(nth > 7 && ids[0] === 0 ? from : 0),
        ends: nth > 7,
      });
    };
    const told = { people: people(180, eitherOr), most: 100 };
    const whole = await read({ ...told, shows: again(0) });
    expect(whole.result).toMatchObject([{ kind: "proven", rowsByDay: new Map([[DAY.from, 180]]) }]);
    expect(whole.lines).toHaveLength(400);
    const lacking = await read({ ...told, shows: again(40) });
    expect(lacking.result).toMatchObject([{ kind: "missing" }]);
  });

  it.each<[string, (id: number) => Omit<Person, "id">]>([
    ["leaves out whom nobody has checked", (id) => ({ uses: id === 3 ? [] : [id % 2 === 0], sources: [] })],
    ["is ignored", () => ({ uses: [true, false], sources: [] })],
    ["shows some twice", (id) => ({ uses: id === 3 ? [true, false] : [id % 2 === 0], sources: [] })],
  ])("is not read in parts where is_user %s", async (_, of) => {
    const { result, asked } = await read({ people: people(180, of), most: 100 });
    expect(result).toMatchObject([{ kind: "missing", window: DAY }]);
    expect(asked.filter((one) => /^stream ./.test(one))).toEqual([]);
  });

  it("has each of its own exports where no filter divides it", async () => {
    const shows: Told["shows"] = (ids, nth) => ({ ids, ends: nth > 7 });
    const { result, asked } = await read({
      people: people(180, () => ({ uses: [], sources: [] })),
      most: 100,
      shows,
    });
    expect(result).toMatchObject([{ kind: "proven" }]);
    expect(asked.filter((one) => one.startsWith("stream"))).toEqual(["stream", "stream", "stream"]);
  });

  it("is not proven by parts that show one person twice and another never", async () => {
    const of = (id: number): Omit<Person, "id"> => ({
      uses: id === 170 ? [] : id === 171 ? [true, false] : [id % 2 === 0],
      sources: [],
    });
    const { result, lines } = await read({ people: people(180, of), most: 101 });
    expect(result).toMatchObject([{ kind: "missing", window: DAY }]);
    expect(lines).toHaveLength(179);
  });

  it.each([
    // Half of the people have used anything; parts of 75 rows are worth a request each.
    [2, 150, 2],
    [3, 150, 1],
    [2, 149, 1],
    [4, 300, 4],
  ])(
    "is read by %i sources where each stands for enough of %i rows: in %i parts",
    async (many, count, parts) => {
      const sources = Array.from({ length: many }, (_, nth) => `s${nth}`);
      const of = (id: number): Omit<Person, "id"> => ({ uses: [true, false], sources: [`s${id % many}`] });
      const { api } = serviceOf({ people: people(count, of), most: 100, sources });
      const found = await partsOf(DAY, count, { api, windowSize: new WindowSize(MOST) });
      expect(found.map((part) => (part.kind === "closed" ? part.source : undefined))).toEqual(
        parts === 1 ? [undefined] : sources,
      );
    },
  );

  it.each([new UnreachableError("Nothing can be reached"), new TypeError("A bug")])(
    "ends the stream with what is no answer to a count: %s",
    async (error) => {
      const { api } = serviceOf({ people: people(180, eitherOr), most: 100 });
      const count: StreamApi["count"] = async () => {
        throw error;
      };
      const bounds = { api: { ...api, count }, windowSize: new WindowSize(MOST) };
      await expect(partsOf(DAY, 180, bounds)).rejects.toBe(error);
    },
  );

  it("is not read in parts where the service refuses to count by them", async () => {
    const { api, asked } = serviceOf({ people: people(180, eitherOr), most: 100 });
    const count: StreamApi["count"] = async (window) => {
      if ("isUser" in window) throw new ConfigError("is_user is unknown", { code: "INVALID_PARAMETER" });
      return await api.count(window);
    };
    const bounds = { api: { ...api, count }, windowSize: new WindowSize(MOST) };
    expect(await partsOf(DAY, 180, bounds)).toEqual([DAY]);
    expect(asked).toEqual([]);
  });

  it("is never called proven while somebody who stayed was not shown, whatever the filters and exports do", async () => {
    const person = fc.record({
      uses: fc.constantFrom<readonly boolean[]>([true], [false], [], [true, false]),
      sources: fc.subarray(["a", "b"]),
    });
    const usual = fc.constantFrom({ uses: [true], sources: ["a"] }, { uses: [false], sources: ["b"] });
    const account = fc.array(fc.oneof({ arbitrary: usual, weight: 30 }, { arbitrary: person, weight: 1 }), {
      ...{ minLength: 5, maxLength: 30 },
    });
    const leaving = fc.array(fc.tuple(fc.integer({ min: 1, max: 30 }), fc.nat(29)), { maxLength: 3 });
    const losing = fc.array(fc.tuple(fc.integer({ min: 1, max: 30 }), fc.nat(29), fc.boolean()), {
      ...{ maxLength: 4 },
    });
    const proven: number[] = [];
    await fc.assert(
      fc.asyncProperty(account, leaving, losing, async (members, leaves, losses) => {
        const everyone = members.map((one, id): Person => ({ id, ...one }));
        const { api, asked } = serviceOf({
          people: everyone,
          most: 4,
          sources: ["a", "b"],
          after: (all, nth) => {
            for (const [when, who] of leaves)
              if (when === nth) Object.assign(all[who % all.length] ?? {}, { hasLeft: true });
          },
          shows: (ids, nth) => {
            const loss = losses.find(([when]) => when === nth);
            if (loss !== undefined) return { ids: ids.filter((id) => id !== loss[1]), ends: loss[2] };
            return nth === 2 ? { ids: ids.slice(0, 4), ends: false } : { ids, ends: true };
          },
        });
        const windowSize = Object.defineProperty(new WindowSize(4), "rows", { value: 1 });
        const { lines, result } = await drain(
          readWindow({ window: DAY, clears: null }, rulesWith({ api, windowSize })),
        );
        const shown = new Set(lines.map((line) => JSON.parse(line).id));
        expect(shown.size).toBe(lines.length);
        expect(asked.length).toBeLessThan(100);
        if (result[0]?.kind !== "proven") return;
        proven.push(asked.filter((one) => /^stream ./.test(one)).length);
        expect(everyone.filter(({ id, hasLeft }) => hasLeft !== true && !shown.has(id))).toEqual([]);
      }),
      { numRuns: runs(400, 20_000) },
    );
    expect(proven.filter((exports) => exports > 1).length).toBeGreaterThan(50);
  });
});

/** Remembers a few rows, as the real one remembers five million. */
class Forgetful extends SeenRows {
  #rows = 0;

  override get isFull(): boolean {
    return this.#rows >= 30;
  }

  override add(...row: Parameters<SeenRows["add"]>): number {
    const known = super.add(...row);
    this.#rows += 1;
    return known;
  }

  override forget(): void {
    super.forget();
    this.#rows = 0;
  }
}

describe("a pass over more rows than are remembered", () => {
  it.each([10, 29, 30, 31, 60])("counts a part once that broke after %i rows", (broken) => {
    const count = { rows: 120, undated: 0, known: true, asked: NOW, answered: NOW };
    const pass = new Pass(DAY, count, new Forgetful(), rulesWith());
    const batch = (from: number, to: number) => ({
      rows: Array.from({ length: to - from }, (_, nth) => rowOf(from + nth)),
    });
    pass.beginPart();
    pass.accept(batch(0, 60));
    const restart = pass.beginPart();
    for (const tries of [broken, 7]) {
      pass.accept(batch(60, 60 + Math.min(60, tries)));
      restart();
    }
    pass.accept(batch(60, 120));
    expect(pass).toMatchObject({ beforeCount: 120, distinct: 120, dated: 120 });
    expect(pass.rowsByDay).toEqual(new Map([[DAY.from, 120]]));
  });
});
