import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../../src/api/clock.ts";
import { jobSpecsOf } from "../../../src/catalog/streams.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { Memory } from "../../../src/jobs/memory.ts";
import { Receipts } from "../../../src/jobs/receipts.ts";
import type { Day } from "../../../src/time.ts";
import { keyIn } from "../../support/job-books.ts";
import { tempDir } from "../../support/temp-dir.ts";

const BOTH = ["company_lookups", "company_lookup_contacts"] as const;
const [LOOKUPS, CONTACTS] = BOTH;
const AT = Date.UTC(2026, 2, 2, 10);
const DAY = "2026-03-02" as Day;

let folder = "";
beforeEach(async () => {
  folder = await tempDir();
});

type Given = {
  readonly settings?: object;
  readonly states?: Readonly<Record<string, unknown>>;
  readonly refresh?: { readonly truncates: boolean; readonly generation: number | null };
};

const API = { api_url: "https://x.example", api_key: "svc_00000000_one" };
const GIVEN = {
  ...{ base_url: "https://a.example", api_key: "svc_00000000_one", external_api: API },
  company_lookup: { domains: ["a.example"] },
};

/** One run's memory. The receipts are in the folder's own state folder, unless settings name them. */
async function open({ settings = {}, states = {}, refresh }: Given = {}) {
  const config = parseConfig({ ...GIVEN, ...settings }, {});
  const notes: string[] = [];
  const memory = await Memory.open({
    ...{
      config,
      environment: { XDG_STATE_HOME: folder },
      states: new Map(Object.entries(states)),
      sync: "7",
    },
    streams: jobSpecsOf(config).map((spec) => ({
      ...{ ...spec, isSelected: true, truncates: false, generation: null, ...refresh },
    })),
    lock: { clock: systemClock, signal: new AbortController().signal, pid: process.pid },
    notify: (text) => notes.push(text),
  });
  return { memory, notes, config };
}

/** Works with a memory, and returns the states of both streams in the end. */
async function run(given: Given, work: (memory: Memory) => Promise<unknown> | unknown = () => {}) {
  const { memory, config } = await open(given);
  try {
    const result = await work(memory);
    const states = jobSpecsOf(config).map((spec) => [spec.name, memory.state(spec, null, AT)]);
    return { result, states: JSON.parse(JSON.stringify(Object.fromEntries(states))) };
  } finally {
    await memory.close();
  }
}

const bookIn = (memory: Memory) => memory.of("companyLookup").book;

/** Buys an item, and delivers its answer to some streams. */
const buy =
  (item: string, ...streams: readonly string[]) =>
  async (memory: Memory): Promise<void> => {
    const book = bookIn(memory);
    const key = keyIn(book, item);
    const { id, delta } = book.intend(key, AT);
    const taken = book.change(key, id, { step: "open", job: "j" });
    await memory.write("companyLookup", [delta, taken, book.answered(key, id, AT, 2, null)]);
    for (const stream of streams) book.deliver(stream, key);
  };

/** To which streams an item is owed, and whether its answer can be had. */
const owed = (memory: Memory): unknown => {
  const book = bookIn(memory);
  const key = keyIn(book, "a.example");
  return [BOTH.filter((stream) => book.owes(stream, key)), book.canBeHad(key)];
};

const receiptsIn = async (): Promise<string[]> =>
  (await readdir(join(folder, "source-contact-intelligence")))
    .filter((name) => name.endsWith(".jsonl"))
    .sort();

describe("Memory", () => {
  it("takes purchases from every memory, and deliveries from each stream's own state alone", async () => {
    const { states } = await run({}, buy("a.example", LOOKUPS));
    expect((await run({ states }, owed)).result).toEqual([[CONTACTS], true]);
    expect((await run({}, owed)).result).toEqual([BOTH, true]);
    expect((await run({ states: { [LOOKUPS]: states[LOOKUPS] } }, owed)).result).toEqual([[CONTACTS], true]);
  });

  it("writes to the receipts what only a state knows, so that losing either loses nothing", async () => {
    const settings = { receipts_file: join(folder, "one.jsonl") };
    const { states } = await run({ settings }, buy("a.example", ...BOTH));
    const others = { receipts_file: join(folder, "two.jsonl") };
    await run({ settings: others, states });
    const { result } = await run({ settings: others }, (memory) => {
      const { book, hasState } = memory.of("companyLookup");
      return [book.get(keyIn(book, "a.example")).day, book.charged(DAY).day, hasState];
    });
    expect(result).toEqual([DAY, { submitted: 1, credits: 2, open: 0 }, false]);
    // What the receipts know already is not written again.
    const before = await readFile(others.receipts_file, "utf8");
    await run({ settings: others, states });
    expect(await readFile(others.receipts_file, "utf8")).toBe(before);
  });

  it.each([
    ["of the same generation", 3, { truncates: true, generation: 3 }, false],
    ["of another generation", 3, { truncates: false, generation: 4 }, true],
    ["without generations", null, { truncates: false, generation: null }, false],
    ["of a full refresh without generations", null, { truncates: true, generation: null }, true],
  ])("counts deliveries %s or owes them", async (_what, generation, refresh, isOwed) => {
    for (const settings of [{}, { receipts_file: "" }]) {
      const before = { truncates: false, generation };
      const { states } = await run({ settings, refresh: before }, buy("a.example", ...BOTH));
      const { result } = await run({ settings, states, refresh }, owed);
      expect(result).toEqual([isOwed ? BOTH : [], !("receipts_file" in settings)]);
    }
  });

  it.each([
    ["receipts", {}],
    ["states", { receipts_file: "" }],
  ])(
    "remembers in its %s that a refresh of either stream began blind, in whichever it was killed",
    async (_, settings) => {
      const blindIn =
        (generation: number) =>
        (memory: Memory): unknown => {
          const book = bookIn(memory);
          for (const item of ["a.example", "b.example"]) keyIn(book, item);
          return BOTH.filter((stream) => book.isBlind(stream, generation));
        };
      const refresh = { truncates: true, generation: 4 };
      // The answer is delivered to one stream, and the other one has not had its turn.
      const { states } = await run({ settings, refresh }, buy("a.example", LOOKUPS));
      const given = { settings, ...("receipts_file" in settings && { states }) };
      expect((await run({ ...given, refresh }, blindIn(4))).result).toEqual(BOTH);
      const next = { truncates: true, generation: 5 };
      expect((await run({ ...given, refresh: next }, blindIn(5))).result).toEqual([]);
    },
  );

  it("returns from a write when the receipts have: a submission leaves then", async () => {
    const { memory } = await open();
    const told: string[] = [];
    const slow = vi.spyOn(Receipts.prototype, "write").mockImplementation(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      told.push("on the disk");
    });
    onTestFinished(() => slow.mockRestore());
    await memory.write("companyLookup", []);
    told.push("returned");
    await memory.close();
    expect(told).toEqual(["on the disk", "returned"]);
  });

  it("keeps the cursors of inputs, but not where state and receipts have other salts", async () => {
    const cursor = { from: "people", filters: "", through: "2026-03-01", full: "2026-02-01" };
    const settings = { receipts_file: join(folder, "one.jsonl") };
    const { states } = await run({ settings }, (memory) => {
      bookIn(memory).inputs.set("people", cursor as never);
    });
    const inputs = (memory: Memory): unknown => [...bookIn(memory).inputs.values()];
    expect((await run({ settings, states }, inputs)).result).toEqual([cursor]);
    const others = { receipts_file: join(folder, "two.jsonl") };
    expect((await run({ settings: others, states }, inputs)).result).toEqual([cursor]);
    await rm(others.receipts_file);
    await run({ settings: others });
    expect((await run({ settings: others, states }, inputs)).result).toEqual([]);
    const mixed = await run(
      { settings: others, states: (await run({ settings }, buy("a.example"))).states },
      (memory) => {
        bookIn(memory).inputs.set("people", cursor as never);
      },
    );
    expect((await run({ settings: others, states: mixed.states }, inputs)).result).toEqual([]);
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
    expect((await run({ settings: spelt, states }, owed)).result).toEqual([BOTH, true]);
    // A state may be taken along by hand.
    const moved = JSON.parse(JSON.stringify(states).replaceAll(/"service":"\w+"/g, '"service":null'));
    const elsewhere = { ...at("https://y.example"), receipts_file: "" };
    expect((await run({ settings: elsewhere, states: moved }, owed)).result).toEqual([BOTH, true]);
  });

  it("submits nothing under a new key that finds receipts of the old one and no state", async () => {
    const { states } = await run({}, buy("a.example", ...BOTH));
    const names = await receiptsIn();
    const settings = { external_api: { api_url: "https://x.example", api_key: "svc_11111111_two" } };
    const { memory } = await open({ settings });
    expect(memory.blocked?.message).toContain(names[0]);
    expect(memory.blocked?.message).toMatch(/name that file in receipts_file.*another organization/);
    await memory.close();
    expect(await receiptsIn()).toEqual(names);
    // The state of that run knows nothing, and says so.
    const empty = (await run({ settings })).states;
    expect((await run({ settings, states: empty }, (one) => one.blocked)).result).toBeDefined();
    const named = { ...settings, receipts_file: join(folder, "source-contact-intelligence", names[0] ?? "") };
    expect((await run({ settings: named }, owed)).result).toEqual([BOTH, true]);
    expect((await run({ settings, states }, owed)).result).toEqual([[], false]);
    const elsewhere = { external_api: { api_url: "https://y.example", api_key: "svc_11111111_two" } };
    expect((await run({ settings: elsewhere }, (one) => one.blocked)).result).toBeUndefined();
    // Not everything beside them is receipts of a key.
    const place = join(folder, "source-contact-intelligence");
    for (const name of await receiptsIn()) await rename(join(place, name), join(place, `old-${name}`));
    expect((await run({ settings }, (one) => one.blocked)).result).toBeUndefined();
  });

  it.each<[string, readonly string[], boolean]>([
    ["the state of look-ups", ["email_verifications"], true],
    ["the state of verifications", BOTH, true],
    ["the state of checks, of which the old receipts know nothing", [...BOTH, "email_verifications"], false],
  ])(
    "submits nothing under a new key where the old one's receipts know what is lost with %s",
    async (_, kept, isBlocked) => {
      const emails = { emails: ["a@x.example"] };
      const settings = { email_verification: emails, email_check: emails };
      const { states } = await run({ settings }, async (memory) => {
        await buy("a.example", ...BOTH)(memory);
        const { book } = memory.of("emailVerification");
        await memory.write("emailVerification", [book.intend("k".repeat(16), AT).delta]);
      });
      const external_api = { api_url: "https://x.example", api_key: "svc_11111111_two" };
      const { result } = await run(
        {
          settings: { ...settings, external_api },
          states: Object.fromEntries(kept.map((name) => [name, states[name]])),
        },
        ({ blocked }) => blocked !== undefined,
      );
      expect(result).toBe(isBlocked);
    },
  );

  it("submits nothing under a new key for a connection without a state, although one with a state has begun receipts", async () => {
    const verifies = { company_lookup: undefined, email_verification: { emails: ["a@x.example"] } };
    const external_api = { api_url: "https://x.example", api_key: "svc_11111111_two" };
    const { states } = await run({}, buy("a.example", ...BOTH));
    await run({ settings: verifies }, async (memory) => {
      const { book } = memory.of("emailVerification");
      await memory.write("emailVerification", [book.intend("k".repeat(16), AT).delta]);
    });
    const [old = ""] = await receiptsIn();
    const isBlocked = async (given: Given): Promise<boolean> =>
      (await run(given, ({ blocked }) => blocked !== undefined)).result as boolean;
    const settings = { ...verifies, external_api };
    expect(await isBlocked({ settings: { external_api }, states })).toBe(false);
    for (const _sync of [1, 2]) expect(await isBlocked({ settings })).toBe(true);
    const named = join(folder, "source-contact-intelligence", old);
    expect(await isBlocked({ settings: { ...settings, receipts_file: named } })).toBe(false);
    expect(await isBlocked({ settings: { external_api } })).toBe(false);
  });

  it("goes on without submitting when the receipts are damaged, and without receipts where none can be", async () => {
    const settings = { receipts_file: join(folder, "one.jsonl") };
    await run({ settings }, buy("a.example"));
    await writeFile(settings.receipts_file, `${await readFile(settings.receipts_file, "utf8")}damage\n`);
    const damaged = await open({ settings });
    const text = await readFile(settings.receipts_file, "utf8");
    expect(damaged.memory.blocked?.message).toContain("Cannot use the receipts");
    // What stands before the damage is known, and nothing is written behind it.
    expect(owed(damaged.memory)).toEqual([BOTH, true]);
    await buy("b.example")(damaged.memory);
    await damaged.memory.close();
    expect(await readFile(settings.receipts_file, "utf8")).toBe(text);
    await writeFile(join(folder, "source-contact-intelligence"), "a file, no folder");
    const { memory, notes } = await open();
    expect([memory.blocked, memory.of("companyLookup").mostSubmissions, notes.length]).toEqual([
      undefined,
      10,
      1,
    ]);
    await memory.close();
  });

  it("is looked at without a lock, and nothing is written; damaged receipts are an error", async () => {
    const settings = { receipts_file: join(folder, "one.jsonl") };
    const looked = async (given: object): Promise<unknown> => {
      const config = parseConfig({ ...GIVEN, ...given }, {});
      const streams = jobSpecsOf(config).map((spec) => {
        return { ...spec, isSelected: true, truncates: false, generation: null };
      });
      const environment = { XDG_STATE_HOME: folder };
      const memory = await Memory.look({ config, environment, states: new Map(), streams, sync: null });
      const { book, mostSubmissions } = memory.of("companyLookup");
      await memory.close();
      return [book.size, mostSubmissions, memory.hasReceipts];
    };
    expect(await looked(settings)).toEqual([0, Number.POSITIVE_INFINITY, false]);
    expect(await looked({ receipts_file: "" })).toEqual([0, 10, false]);
    expect(await readdir(folder)).toEqual([]);
    const { memory } = await open({ settings });
    await buy("a.example")(memory);
    expect(await looked(settings)).toEqual([1, Number.POSITIVE_INFINITY, true]);
    await memory.close();
    await writeFile(settings.receipts_file, `${await readFile(settings.receipts_file, "utf8")}damage\n`);
    await expect(looked(settings)).rejects.toThrow("Cannot use the receipts");
  });

  it("looks for the receipts of another key only beside those of its own, and not in what is no receipts", async () => {
    await run({}, buy("a.example", ...BOTH));
    const place = join(folder, "source-contact-intelligence");
    await writeFile(join(place, "receipts-0000000000000000.jsonl"), "no receipts");
    const external_api = { api_url: "https://x.example", api_key: "svc_11111111_two" };
    const blocked = await open({ settings: { external_api } });
    expect([blocked.memory.blocked?.name, blocked.notes]).toEqual(["OtherKey", []]);
    await blocked.memory.close();
    const mine = { external_api, receipts_file: join(place, "mine.jsonl") };
    expect((await run({ settings: mine }, (memory) => memory.blocked)).result).toBeUndefined();
  });

  it("charges all tries of one sync together", async () => {
    await run({}, buy("a.example"));
    const { result } = await run({}, (memory) => bookIn(memory).charged(DAY).sync);
    expect(result).toEqual({ submitted: 1, credits: 2, open: 0 });
  });
});
