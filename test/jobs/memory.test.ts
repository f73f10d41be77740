import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/api/clock.ts";
import { STREAMS } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import { entriesOf } from "../../src/jobs/items.ts";
import { Memory } from "../../src/jobs/memory.ts";

const SPECS = STREAMS.flatMap((spec) =>
  spec.reading === "job" && spec.setting === "companyLookup" ? [spec] : [],
);
const [LOOKUPS, CONTACTS] = ["company_lookups", "company_lookup_contacts"] as const;
const AT = Date.UTC(2026, 2, 2, 10);
const REFRESH = { truncates: true, generation: null };

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "memory-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

type Given = {
  readonly settings?: object;
  readonly states?: Readonly<Record<string, unknown>>;
  readonly refresh?: { readonly truncates: boolean; readonly generation: number | null };
};

/** One run's memory. The receipts are in the folder's own state folder, unless settings name them. */
async function open({ settings = {}, states = {}, refresh }: Given = {}) {
  const api = { api_url: "https://x.example", api_key: "svc_00000000_one" };
  const config = parseConfig(
    {
      ...{ base_url: "https://a.example", api_key: "svc_00000000_one", external_api: api },
      ...{ company_lookup: { domains: ["a.example"] }, ...settings },
    },
    {},
  );
  const notes: string[] = [];
  const memory = await Memory.open({
    ...{
      config,
      environment: { XDG_STATE_HOME: folder },
      states: new Map(Object.entries(states)),
      sync: "7",
    },
    streams: SPECS.map((spec) => ({
      ...spec,
      isSelected: true,
      truncates: false,
      generation: null,
      ...refresh,
    })),
    lock: { clock: systemClock, signal: new AbortController().signal, pid: process.pid },
    notify: (text) => notes.push(text),
  });
  return { memory, notes };
}

/** Works with a memory, and returns the states of both streams in the end. */
async function run(given: Given, work: (memory: Memory) => Promise<unknown> | unknown = () => {}) {
  const { memory } = await open(given);
  try {
    const result = await work(memory);
    const states = SPECS.map((spec) => [spec.name, JSON.parse(JSON.stringify(memory.state(spec, null, AT)))]);
    return { result, states: Object.fromEntries(states) as Record<string, Record<string, unknown>> };
  } finally {
    await memory.close();
  }
}

const keyIn = (memory: Memory, item = "a.example"): string =>
  entriesOf("domain", item).map((entry) => memory.of("companyLookup").book.keyOf(entry))[0] ?? "";

/** Buys an item, and delivers its answer to some streams. */
const buy =
  (item: string, ...streams: readonly string[]) =>
  async (memory: Memory): Promise<void> => {
    const { book } = memory.of("companyLookup");
    const key = keyIn(memory, item);
    const { id, delta } = book.intend(key, AT);
    const taken = book.change(key, id, { step: "open", job: "j" });
    await memory.write("companyLookup", [delta, taken, book.answered(key, id, AT, 2, null)]);
    for (const stream of streams) book.deliver(stream, key);
  };

/** To which streams an item is owed, and whether its answer can be had. */
const owed = (memory: Memory): unknown => {
  const { book } = memory.of("companyLookup");
  const key = keyIn(memory);
  return [[LOOKUPS, CONTACTS].filter((stream) => book.owes(stream, key)), book.canBeHad(key)];
};

const receiptsIn = async (): Promise<string[]> =>
  (await readdir(join(folder, "source-contact-intelligence")))
    .filter((name) => name.endsWith(".jsonl"))
    .sort();

describe("Memory", () => {
  it("takes purchases from every memory, and deliveries from each stream's own state alone", async () => {
    const { states } = await run({}, buy("a.example", LOOKUPS));
    expect((await run({ states }, owed)).result).toEqual([[CONTACTS], true]);
    expect((await run({}, owed)).result).toEqual([[LOOKUPS, CONTACTS], true]);
    expect((await run({ states: { [LOOKUPS]: states[LOOKUPS] } }, owed)).result).toEqual([[CONTACTS], true]);
  });

  it("writes to the receipts what only a state knows, so that losing either loses nothing", async () => {
    const settings = { receipts_file: join(folder, "one.jsonl") };
    const { states } = await run({ settings }, buy("a.example", LOOKUPS, CONTACTS));
    const others = { receipts_file: join(folder, "two.jsonl") };
    await run({ settings: others, states });
    const { result } = await run({ settings: others }, (memory) => {
      const { book, hasState } = memory.of("companyLookup");
      return [book.get(keyIn(memory)).day, book.charged("2026-03-02" as never).day, hasState];
    });
    expect(result).toEqual(["2026-03-02", { submitted: 1, credits: 2, open: 0 }, false]);
    // What the receipts know already is not written again.
    const before = await readFile(others.receipts_file, "utf8");
    await run({ settings: others, states });
    expect(await readFile(others.receipts_file, "utf8")).toBe(before);
  });

  it.each<[string, Given["refresh"], Given["refresh"], boolean]>([
    [
      "of the same generation",
      { truncates: false, generation: 3 },
      { truncates: true, generation: 3 },
      false,
    ],
    ["of another generation", { truncates: false, generation: 3 }, { truncates: false, generation: 4 }, true],
    [
      "without generations",
      { truncates: false, generation: null },
      { truncates: false, generation: null },
      false,
    ],
    ["of a full refresh without generations", { truncates: false, generation: null }, REFRESH, true],
  ])("counts deliveries %s or owes them", async (_what, before, now, isOwed) => {
    const { states } = await run({ refresh: before ?? REFRESH }, buy("a.example", LOOKUPS, CONTACTS));
    const { result } = await run({ states, refresh: now ?? REFRESH }, owed);
    expect(result).toEqual([isOwed ? [LOOKUPS, CONTACTS] : [], true]);
  });

  it("keeps the cursors of inputs, but not where state and receipts have other salts", async () => {
    const cursor = { from: "people", filters: "", through: "2026-03-01", full: "2026-02-01" };
    const settings = { receipts_file: join(folder, "one.jsonl") };
    const { states } = await run({ settings }, (memory) => {
      memory.of("companyLookup").book.inputs.set("people", cursor as never);
    });
    const inputs = (memory: Memory): unknown => [...memory.of("companyLookup").book.inputs.values()];
    expect((await run({ settings, states }, inputs)).result).toEqual([cursor]);
    const others = { receipts_file: join(folder, "two.jsonl") };
    expect((await run({ settings: others, states }, inputs)).result).toEqual([cursor]);
    await rm(others.receipts_file);
    await run({ settings: others });
    expect((await run({ settings: others, states }, inputs)).result).toEqual([]);
  });

  it("refuses state and receipts of another address, with the ways out, and no other spelling of it", async () => {
    const { states } = await run({}, buy("a.example"));
    const at = (url: string) => ({ external_api: { api_url: url, api_key: "svc_00000000_one" } });
    await expect(run({ settings: at("https://y.example"), states }, owed)).rejects.toThrow(
      /Cannot use what is remembered of jobs: The state of "company_lookups" .*reset the stream/,
    );
    const file = { receipts_file: join(folder, "named.jsonl") };
    await run({ settings: file }, buy("a.example"));
    await expect(run({ settings: { ...at("https://y.example"), ...file } }, owed)).rejects.toThrow(
      /The receipts .*name another file in receipts_file/,
    );
    const spelt = { ...at("https://X.example/"), ...file };
    expect((await run({ settings: spelt, states }, owed)).result).toEqual([[LOOKUPS, CONTACTS], true]);
    // A state may be taken along by hand.
    const moved = Object.fromEntries(
      Object.entries(states).map(([name, state]) => [name, { ...state, service: null }]),
    );
    expect(
      (await run({ settings: { ...at("https://y.example"), receipts_file: "" }, states: moved }, owed))
        .result,
    ).toEqual([...[[LOOKUPS, CONTACTS], true]]);
  });

  it("submits nothing under a new key that finds receipts of the old one and no state", async () => {
    const { states } = await run({}, buy("a.example", LOOKUPS, CONTACTS));
    const names = await receiptsIn();
    const settings = { external_api: { api_url: "https://x.example", api_key: "svc_11111111_two" } };
    const { memory } = await open({ settings });
    expect(memory.blocked?.message).toContain(names[0]);
    expect(memory.blocked?.message).toMatch(/name that file in receipts_file.*another organization/);
    await memory.close();
    expect(await receiptsIn()).toEqual(names);
    const named = { ...settings, receipts_file: join(folder, "source-contact-intelligence", names[0] ?? "") };
    expect((await run({ settings: named }, owed)).result).toEqual([[LOOKUPS, CONTACTS], true]);
    expect((await run({ settings, states }, owed)).result).toEqual([[], false]);
    const elsewhere = { external_api: { api_url: "https://y.example", api_key: "svc_11111111_two" } };
    expect((await run({ settings: elsewhere }, (one) => one.blocked)).result).toBeUndefined();
  });

  it("goes on without submitting when the receipts are damaged, and without receipts where none can be", async () => {
    const settings = { receipts_file: join(folder, "one.jsonl") };
    await run({ settings }, buy("a.example"));
    await writeFile(settings.receipts_file, `${await readFile(settings.receipts_file, "utf8")}damage\n`);
    const damaged = await open({ settings });
    expect([damaged.memory.blocked?.message, damaged.memory.hasReceipts]).toEqual([
      ...[expect.stringContaining("Cannot use the receipts"), false],
    ]);
    await damaged.memory.close();
    await writeFile(join(folder, "source-contact-intelligence"), "a file, no folder");
    const { memory, notes } = await open();
    expect([memory.blocked, memory.isForgetful, notes.length]).toEqual([undefined, true, 1]);
    await memory.close();
  });

  it("charges all tries of one sync together", async () => {
    await run({}, buy("a.example"));
    const { result } = await run(
      {},
      (memory) => memory.of("companyLookup").book.charged("2026-03-02" as never).sync,
    );
    expect(result).toEqual({ submitted: 1, credits: 2, open: 0 });
  });
});
