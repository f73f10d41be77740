import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { envelope } from "../support/counting-service.ts";
import { countingStage, type Setting, type Sync } from "../support/job-stage.ts";
import { tempDir } from "../support/temp-dir.ts";

vi.setConfig({ testTimeout: 60_000 });

const LETTERS = [..."abcdefgh"];
const ITEMS = LETTERS.map((letter) => `${letter}.example`);
const [A = "", B = "", C = "", D = ""] = ITEMS;
const discoveredAt = new Date().toISOString();
const people = ITEMS.map((companyDomain, nth) => ({ id: String(nth), companyDomain, discoveredAt }));
const emails = Array.from({ length: 30 }, (_, nth) => `e${nth}@x.example`);
const elsewhere = async (): Promise<string> => join(await tempDir(), "receipts.jsonl");
const NEW_DISK = { receipts_file: await elsewhere() };
const CONTACTS = "company_lookup_contacts";
const BOTH = ["company_lookups", CONTACTS];
/** All rows but one came long before the days that a second pass reads. */
const ofPeople: Sync = {
  behaviour: {
    people: [
      ...people.map((row) => ({ ...row, discoveredAt: "2026-01-01T00:00:00Z" })),
      ...people.slice(0, 1),
    ],
  },
};

/** A refresh in which the platform drops what older generations brought. */
const refresh = (generation: number, sync: number): Sync => ({
  ids: { generation_id: generation, minimum_generation_id: generation, sync_id: sync },
});
/** As PyAirbyte numbers every sync, of whatever mode. */
const PYAIRBYTE: Sync = { ids: { ...refresh(1, 1).ids, destination_sync_mode: "overwrite" } };
const REFUSES_D: Sync = {
  behaviour: { refuse: (item) => (item === D ? envelope(400, "SOURCE_NOT_VERIFIABLE") : undefined) },
};
const incomplete: Sync = {
  ...{ fails: "transient_error", says: '"INCOMPLETE"' },
  warns: "this refresh is not complete, so that the destination keeps its rows",
};
const numbered = (sync_id: number, sync: Sync = {}): Sync => ({
  ...{ ids: { sync_id, generation_id: 1, minimum_generation_id: 0 }, ...sync },
});
const listing = (...domains: string[]): Sync => ({ settings: { domains } });

type Scene = {
  readonly setting?: Setting;
  readonly settings?: object;
  readonly syncs: readonly [Sync, ...Sync[]];
};

const SCENES: Readonly<Record<string, Scene>> = {
  "a refresh without any memory drops nothing": {
    syncs: [{ syncMode: "full_refresh", ...incomplete, bought: [], delivered: [] }],
  },
  "a refresh that knows nothing and is asked for nothing drops nothing": {
    settings: { domains: ["none"] },
    syncs: [{ ...refresh(4, 9), ...incomplete, bought: [] }],
  },
  "a refresh that a cap ends is complete only once all is delivered, in whatever attempt": {
    settings: { max_lookups_per_sync: 3 },
    syncs: [
      { ...refresh(4, 9), ...incomplete, bought: 3, delivered: 3 },
      { ...refresh(4, 9), ...incomplete, bought: 0, delivered: 0 },
      { ...refresh(4, 10), ...incomplete, isForgotten: true, bought: 3, delivered: 6 },
      { ...refresh(4, 11), bought: 2, delivered: 2 },
      { ...refresh(4, 12), bought: 0, delivered: 0 },
      { ...refresh(5, 13), bought: 0, delivered: ITEMS },
      { ...refresh(6, 14), isForgotten: true, bought: 0, delivered: ITEMS },
    ],
  },
  "connections that share receipts deliver what their own lists name": {
    syncs: [
      { ...listing(A, B), bought: [A, B], delivered: [A, B] },
      { ...listing(C, D), isForgotten: true, bought: [C, D], delivered: [C, D] },
      { ...listing(B, C), isForgotten: true, bought: [], delivered: [B, C] },
      { ...listing(D), isForgotten: true, streams: CONTACTS, bought: [], delivered: [D] },
      { ...listing(A, D), streams: CONTACTS, bought: [], delivered: [A] },
    ],
  },
  "connections that share receipts ask for their own jobs": {
    syncs: [
      { settings: { domains: [A], max_wait_seconds: 0 }, bought: [A], delivered: [] },
      { ...listing(C), isForgotten: true, bought: [C], delivered: [C] },
      { ...listing(C), bought: [], delivered: [], polls: 0 },
      {
        settings: { domains: [], from_people: true },
        behaviour: { people: people.slice(2) },
        delivered: ITEMS.slice(3),
      },
      {
        settings: { domains: [], from_people: true },
        behaviour: { people: people.slice(2) },
        delivered: [],
        polls: 0,
      },
      { ...listing(A), delivered: [A], bought: [] },
    ],
  },
  "ids that never change make no refresh, and tell nothing of one": {
    settings: { domains: ITEMS.slice(0, 4) },
    syncs: [
      { ...PYAIRBYTE, ...REFUSES_D, bought: [A, B, C], delivered: [A, B, C] },
      { ...PYAIRBYTE, bought: [], delivered: [] },
      { ...PYAIRBYTE, syncMode: "full_refresh", bought: [], delivered: [A, B, C] },
      { ...PYAIRBYTE, syncMode: "full_refresh", isForgotten: true, bought: [], delivered: [A, B, C] },
      { ...PYAIRBYTE, bought: [], delivered: [] },
      {
        ...{ ...PYAIRBYTE, ...incomplete, syncMode: "full_refresh", isForgotten: true },
        ...{ config: { receipts_file: `${NEW_DISK.receipts_file}-3` }, bought: [], delivered: [] },
      },
    ],
  },
  "a refresh of one stream of two looks at all rows, and drops nothing that they name": {
    settings: { domains: [], from_people: true },
    syncs: [
      { ...ofPeople, ...numbered(1), streams: BOTH, bought: ITEMS, delivered: [...ITEMS, ...ITEMS] },
      { ...ofPeople, ...numbered(2), streams: BOTH, bought: [], delivered: [] },
      {
        ...{ ...ofPeople, ...numbered(3), idsOf: { [CONTACTS]: refresh(2, 3).ids ?? {} } },
        ...{ streams: BOTH, bought: [], delivered: ITEMS },
      },
    ],
  },
  "what is taken off a list comes back to no stream": {
    syncs: [
      { ...listing(A, B), bought: [A, B] },
      { ...listing(B), streams: CONTACTS, delivered: [B] },
      { ...listing(B), streams: CONTACTS, isForgotten: true, delivered: [B] },
      { ...listing(B), syncMode: "full_refresh", delivered: [B] },
      { ...listing(B), ...refresh(2, 5), isForgotten: true, delivered: [B] },
      { ...listing(A, B), streams: CONTACTS, delivered: [A, B], bought: [], isForgotten: true },
    ],
  },
  "attempts of one sync share its cap": {
    setting: "email_verification",
    settings: { emails, max_per_sync: 5 },
    syncs: [
      numbered(7, { bought: 5 }),
      numbered(7, { bought: 0 }),
      numbered(7, { bought: 0, isForgotten: true }),
      numbered(8, { bought: 5 }),
      numbered(8, { bought: 0, config: { receipts_file: "" } }),
    ],
  },
  "syncs that the platform does not number have a cap each": {
    setting: "email_verification",
    settings: { emails, max_per_sync: 5 },
    syncs: [
      { bought: 5 },
      { bought: 5 },
      { ...PYAIRBYTE, bought: 5, fails: null },
      { ...PYAIRBYTE, bought: 5, fails: null },
    ],
  },
};

describe("what is remembered of jobs", () => {
  it.each(Object.entries(SCENES))("%s", async (_, { setting = "company_lookup", settings, syncs }) => {
    const lists = setting === "company_lookup" ? { domains: ITEMS } : {};
    const stage = await countingStage(setting, { ...lists, ...settings });
    await stage.play(...syncs);
    expect(stage.service.orderedTwice).toEqual([]);
  });

  it.each<[string, (text: string) => string]>([
    ["NULs within", (text) => text.replace(/\n(.{40}).{20}/, `\n$1${"\0".repeat(20)}`)],
    ["two halves in one line", (text) => text.replace(/(\n.{60}).*\n(.*)\n/, "$1$2\n")],
    ["a header that is gone", (text) => text.slice(text.indexOf("\n") + 1)],
    ["nothing", () => ""],
  ])("stops the submissions if the receipts have %s, and open jobs are collected", async (_, damage) => {
    const receipts_file = await elsewhere();
    const stage = await countingStage("company_lookup", { domains: ITEMS.slice(0, 2) }, { receipts_file });
    await stage.play(
      { bought: [A, B] },
      { settings: { domains: [A, B, C], max_wait_seconds: 0 }, bought: [C], delivered: [] },
    );
    await writeFile(receipts_file, damage(await readFile(receipts_file, "utf8")));
    const text = await readFile(receipts_file, "utf8");
    const before = stage.requests.length;
    const all: Sync = { settings: { domains: ITEMS }, fails: "config_error", bought: [], submissions: 0 };
    await stage.play(
      { ...all, delivered: [C] },
      { ...all, isForgotten: true, says: "Cannot use the receipts" },
    );
    expect(stage.requests.slice(before).join()).not.toContain("POST");
    expect(await readFile(receipts_file, "utf8")).toBe(text);
    expect(stage.service.orderedTwice).toEqual([]);
  });

  it.each(["receipts.jsonl", "receipts.jsonl.lock"])("is refused at once if %s is a pipe", async (name) => {
    const folder = await tempDir();
    const receipts_file = join(folder, "receipts.jsonl");
    const stage = await countingStage("company_lookup", { domains: [A] }, { receipts_file });
    if (name.endsWith("lock")) await stage.play({ bought: [A] });
    execFileSync("mkfifo", [join(folder, name)]);
    await stage.play({ settings: { domains: [A, B] }, fails: "config_error", bought: [] });
  });
});
