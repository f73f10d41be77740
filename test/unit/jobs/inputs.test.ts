import { describe, expect, it } from "vitest";
import { Suppression } from "../../../src/config/suppress.ts";
import type { Book } from "../../../src/jobs/book.ts";
import { type InputOptions, Inputs, type RowSource } from "../../../src/jobs/inputs.ts";
import { DAY_MS, type Day, dayOf } from "../../../src/time.ts";
import { file } from "../../support/cli.ts";
import { keyIn, newBook } from "../../support/job-books.ts";

const NOW = Date.parse("2026-03-20T10:00:00Z");
const TODAY = "2026-03-20";

/** Submits an item that a list or a row names, and answers it. */
function answer(book: Book, item: string, at = NOW): void {
  const key = keyIn(book, item);
  book.answered(key, book.intend(key, at).id, at, 1, null);
}

/** A stream of rows that are counted as many as they are, unless said otherwise, and the days that it was read from. */
function sourceOf(
  rows: readonly string[],
  counted: number | undefined = rows.length,
): RowSource & { days: unknown[] } {
  const days: unknown[] = [];
  return {
    ...{ from: "people", isDated: true, filters: "none", days },
    count: async () => counted,
    read: async function* (from) {
      days.push(from);
      yield rows;
    },
  };
}

function inputsOf(
  book: Book,
  { list = [], file = null, refreshAfterDays = null, ...options }: Options,
): Inputs {
  const resubmitRules = { refreshAfterDays, retryUnknown: false };
  return new Inputs({
    ...{ sources: [], book, stream: "company_lookups", readsAll: false, now: () => NOW },
    suppressed: new Suppression([["held.example"]]),
    type: { settingName: "company_lookup", kind: "domain", list, file, resubmitRules },
    ...options,
  });
}

type Options = Partial<InputOptions> & {
  readonly list?: readonly string[];
  readonly file?: string | null;
  readonly refreshAfterDays?: number | null;
};

async function othersOf(inputs: Inputs): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const batch of inputs.others()) found.push(...batch.map(({ item }) => item));
  return found;
}

describe("Inputs: the config's", () => {
  it("are each once, from the list and the file, with the place of what is none", async () => {
    const path = await file("items.csv", "domain\nc.example\nno domain\n");
    const list = ["a.example", "b.example, A.example", "not one"];
    const inputs = inputsOf(newBook(), { list, file: path });
    const found = await inputs.configured();
    expect(found.map(({ item, place }) => [item, place])).toEqual([
      ["a.example", "company_lookup.domains[0]"],
      ["b.example", "company_lookup.domains[1]"],
      ["c.example", `line 2 of "${path}"`],
    ]);
    expect(inputs.waiting).toBe(3);
    expect(inputs.invalid).toEqual({
      count: 2,
      places: ["company_lookup.domains[2]", `line 3 of "${path}"`],
    });
  });

  it("are held up to five thousand, and counted beyond", async () => {
    const list = Array.from({ length: 5_003 }, (_, nth) => `i${nth}.example`);
    const inputs = inputsOf(newBook(), { list });
    expect(await inputs.configured()).toHaveLength(5_000);
    expect(inputs.waiting).toBe(5_003);
  });

  it("that were doubted come after what rows name, and refreshes last, the oldest first", async () => {
    const book = newBook();
    const inputs = inputsOf(book, {
      list: ["newer.example", "older.example", "doubted.example", "new.example"],
      sources: [sourceOf(["row.example"])],
      refreshAfterDays: 1,
    });
    answer(book, "newer.example", NOW - 3 * DAY_MS);
    answer(book, "older.example", NOW - 4 * DAY_MS);
    const key = keyIn(book, "doubted.example");
    book.notTaken(key, book.intend(key, NOW - 1).id, "void", "INVALID_BODY");
    expect((await inputs.configured()).map(({ item }) => item)).toEqual(["new.example"]);
    const others = ["row", "doubted", "older", "newer"].map((name) => `${name}.example`);
    expect(await othersOf(inputs)).toEqual(others);
    expect(inputs.waiting).toBe(4);
  });

  it("that can wait are held up to five thousand as well, the oldest of all of them", async () => {
    const book = newBook();
    const list = Array.from({ length: 10_000 }, (_, nth) => `i${nth}.example`);
    const keys = list.map((item) => keyIn(book, item));
    const [newer, older] = [keys.slice(0, 9_990), keys.slice(9_990)].map((some) => some.join(""));
    const days = [
      [dayOf(NOW - 3 * DAY_MS), newer],
      [dayOf(NOW - 9 * DAY_MS), older],
    ] as [Day, string][];
    book.add({ digests: book.digests, days });
    const inputs = inputsOf(book, { list, refreshAfterDays: 1 });
    expect(await inputs.configured()).toEqual([]);
    const held = await othersOf(inputs);
    expect([held.length, held.slice(0, 10), inputs.waiting]).toEqual([5_000, list.slice(9_990), 10_000]);
  });

  it("that were doubted come in the order of their last submissions", async () => {
    const book = newBook();
    const doubt = (item: string, ...agos: readonly number[]): void => {
      for (const ago of agos) {
        const key = keyIn(book, item);
        book.notTaken(key, book.intend(key, NOW - ago).id, "void", "INVALID_BODY");
      }
    };
    doubt("last.example", 30, 1);
    doubt("second.example", 5);
    doubt("first.example", 20, 6);
    const inputs = inputsOf(book, { list: ["last.example", "second.example", "first.example"] });
    expect(await inputs.configured()).toEqual([]);
    expect(await othersOf(inputs)).toEqual(["first", "second", "last"].map((name) => `${name}.example`));
  });
});

describe("Inputs: those of rows", () => {
  /** Reads the rows, ends the life of what they name, and returns where the next run begins. */
  async function readAll(book: Book, source: RowSource, options: Partial<InputOptions> = {}) {
    const inputs = inputsOf(book, { sources: [source], ...options });
    const items = await othersOf(inputs);
    for (const item of items) answer(book, item);
    inputs.moveCursors();
    return { items, failure: inputs.failure, cursor: book.inputs.get("people") };
  }

  it("are each once, and later runs look only at the rows since", async () => {
    const book = newBook();
    const first = await readAll(book, sourceOf(["a.example", "b.example", "a.example", "", "none"]));
    expect(first.items).toEqual(["a.example", "b.example"]);
    expect(first.cursor).toMatchObject({ through: "2026-03-18", full: TODAY });
    const source = sourceOf(["b.example", "c.example"]);
    expect((await readAll(book, source)).items).toEqual(["c.example"]);
    expect(source.days).toEqual(["2026-03-19"]);
  });

  it.each<[string, Partial<RowSource>, Partial<InputOptions>, unknown]>([
    ["from the start where the filters are others", { filters: "source=crm" }, {}, null],
    ["from the start where the rows have no date", { isDated: false }, {}, null],
    ["from the start where a later run may want more", {}, { readsAll: true }, null],
    ["from the start on the day before the last pass", {}, { now: () => NOW - DAY_MS }, null],
    ["from the start before the last day that was read", {}, { now: () => NOW - 2 * DAY_MS }, null],
    ["from a day on for thirty days", {}, { now: () => NOW + 29 * DAY_MS }, expect.any(String)],
    ["from the start after thirty days", {}, { now: () => NOW + 30 * DAY_MS }, null],
  ])("are looked at %s", async (_what, changes, options, first) => {
    const book = newBook();
    await readAll(book, sourceOf(["a.example"]));
    const source = sourceOf(["a.example"]);
    await readAll(book, { ...source, ...changes }, options);
    expect(source.days).toEqual([first]);
  });

  it.each([
    ["fewer rows came than were counted", sourceOf(["a.example"], 2)],
    ["nobody knows how many there are", { ...sourceOf(["a.example"]), count: async () => undefined }],
  ])("are looked at from the start next time where %s", async (_what, source) => {
    expect((await readAll(newBook(), source)).cursor).toBeUndefined();
  });

  it("are looked at from the start next time where one of them is still wanted", async () => {
    const book = newBook();
    const inputs = inputsOf(book, { sources: [sourceOf(["a.example"])] });
    await othersOf(inputs);
    inputs.moveCursors();
    expect(book.inputs.size).toBe(0);
  });

  it("that name somebody who is suppressed are counted once for each text, and name no item", async () => {
    const rows = ["held.example", "a.example", "held.example", "www.held.example"];
    const inputs = inputsOf(newBook(), { sources: [sourceOf(rows)] });
    expect(await othersOf(inputs)).toEqual(["a.example"]);
    expect(inputs.suppressed).toBe(2);
  });

  it("that cannot be read do not keep back the others", async () => {
    const broken: RowSource = { ...sourceOf([]), count: () => Promise.reject(new Error("down")) };
    const inputs = inputsOf(newBook(), {
      sources: [broken, { ...sourceOf(["a.example"]), from: "companies" }],
    });
    expect(await othersOf(inputs)).toEqual(["a.example"]);
    expect(inputs.failure).toMatchObject({ message: "down" });
  });
});
