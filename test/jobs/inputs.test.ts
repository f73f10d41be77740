import { describe, expect, it } from "vitest";
import { Book } from "../../src/jobs/book.ts";
import { newDigests } from "../../src/jobs/identity.ts";
import { type InputOptions, Inputs, type RowSource } from "../../src/jobs/inputs.ts";
import { file } from "../support/cli.ts";

const NOW = Date.parse("2026-03-20T10:00:00Z");
const TODAY = "2026-03-20";

const newBook = (): Book =>
  new Book({ author: { sync: "s", by: "r" }, digests: newDigests("salt"), isFromRows: true });

/** Submits an item that a list or a row names, and answers it. */
function answer(book: Book, item: string): void {
  const key = book.keyOf({ item, kind: "domain", text: item });
  const { id } = book.intend(key, NOW);
  book.answered(key, id, NOW, 1, null);
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

function inputsOf(book: Book, { list = [], file = null, ...options }: Options): Inputs {
  const resubmitRules = { refreshAfterDays: null, retryUnknown: false };
  return new Inputs({
    ...{ sources: [], book, stream: "company_lookups", readsAll: false, now: () => NOW },
    type: { settingName: "company_lookup", kind: "domain", list, file, resubmitRules },
    ...options,
  });
}

type Options = Partial<InputOptions> & { readonly list?: readonly string[]; readonly file?: string | null };

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

  it("that were doubted come after what rows name", async () => {
    const book = newBook();
    const inputs = inputsOf(book, {
      list: ["old.example", "new.example"],
      sources: [sourceOf(["row.example"])],
    });
    const key = book.keyOf({ item: "old.example", kind: "domain", text: "old.example" });
    book.notTaken(key, book.intend(key, NOW - 1).id, "void", "INVALID_BODY");
    expect((await inputs.configured()).map(({ item }) => item)).toEqual(["new.example"]);
    expect(await othersOf(inputs)).toEqual(["row.example", "old.example"]);
    expect(inputs.waiting).toBe(2);
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

  it.each([
    ["the filters are others", { filters: "source=crm" }],
    ["the rows have no date", { isDated: false }],
  ])("are looked at from the start where %s", async (_what, changes) => {
    const book = newBook();
    await readAll(book, sourceOf(["a.example"]));
    const source = sourceOf(["a.example"]);
    await readAll(book, { ...source, ...changes });
    expect(source.days).toEqual([null]);
  });

  it("are looked at from the start where a later run may want more, and every thirty days", async () => {
    const book = newBook();
    await readAll(book, sourceOf(["a.example"]));
    const [all, month, sooner] = [sourceOf([]), sourceOf([]), sourceOf([])];
    await readAll(book, all, { readsAll: true });
    await readAll(book, sooner, { now: () => NOW + 29 * 86_400_000 });
    await readAll(book, month, { now: () => NOW + 30 * 86_400_000 });
    expect([all.days, sooner.days, month.days]).toEqual([[null], [expect.any(String)], [null]]);
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

  it("that cannot be read do not keep back the others", async () => {
    const broken: RowSource = { ...sourceOf([]), count: () => Promise.reject(new Error("down")) };
    const inputs = inputsOf(newBook(), {
      sources: [broken, { ...sourceOf(["a.example"]), from: "companies" }],
    });
    expect(await othersOf(inputs)).toEqual(["a.example"]);
    expect(inputs.failure).toMatchObject({ message: "down" });
  });
});
