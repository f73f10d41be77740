import { execFileSync } from "node:child_process";
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { type Behaviour, refusing } from "../support/counting-service.ts";
import { countingStage, playScene, type Scene, type Sync } from "../support/job-stage.ts";
import { tempDir } from "../support/temp-dir.ts";

vi.setConfig({ testTimeout: 60_000 });

const ITEMS = [..."abcdefgh"].map((letter) => `${letter}.example`);
const [A = "", B = "", C = "", D = ""] = ITEMS;
/** Before the clock of the service, whatever the time of day: it begins at ten. */
const discoveredAt = `${new Date().toISOString().slice(0, 10)}T00:00:00Z`;
const people = ITEMS.map((companyDomain, nth) => ({ id: String(nth), companyDomain, discoveredAt }));
const emails = ITEMS.flatMap((domain) => [`a@${domain}`, `b@${domain}`]);
const elsewhere = async (): Promise<string> => join(await tempDir(), "receipts.jsonl");
const SPELLINGS = ["a@x.example", "A@x.example.", '"a@x.example"', "'a@x.example'", "a@bücher.example"];
const TWO = ["a@x.example", "a@xn--bcher-kva.example"];
const CONTACTS = "company_lookup_contacts";
const BOTH = ["company_lookups", CONTACTS];
/** All rows but one came long before the days that a second pass reads. */
const long = people.map((row) => ({ ...row, discoveredAt: "2026-01-01T00:00:00Z" }));
const rowsOf = (rows: typeof people, domains: readonly string[] = []): Sync => ({
  settings: { domains, from_people: true },
  behaviour: { people: rows },
});
const ofPeople = rowsOf([...long, ...people.slice(0, 1)]);
const threeOf = (bought: number): Sync => ({
  ...{ settings: { domains: [], from_people: true, max_lookups_per_sync: 3 }, bought },
  behaviour: { people: long },
});
const fromThird = rowsOf(people.slice(2));

/** A refresh in which the platform drops what older generations brought. */
const refresh = (generation: number, sync: number): Sync => ({
  ids: { generation_id: generation, minimum_generation_id: generation, sync_id: sync },
});
/** As PyAirbyte numbers every sync, of whatever mode. */
const PYAIRBYTE: Sync = { ids: { ...refresh(1, 1).ids, destination_sync_mode: "overwrite" } };
const REFUSES_D: Sync = { behaviour: refusing(400, "SOURCE_NOT_VERIFIABLE", [D]) };
const incomplete: Sync = {
  ...{ fails: "transient_error", says: '"INCOMPLETE"' },
  warns: "this refresh is not complete, so the destination keeps its rows",
};
const numbered = (sync_id: number, sync: Sync = {}): Sync => ({
  ...{ ids: { sync_id, generation_id: 1, minimum_generation_id: 0 }, ...sync },
});
const PENDING: Behaviour = { result: () => ({ status: 202, body: { status: "processing" } }) };
const LOSES_B: Behaviour = {
  wild: { method: "POST", items: [B], answer: (response) => response.destroy() },
};
const listing = (...domains: string[]): Sync => ({ settings: { domains } });

const SCENES: Readonly<Record<string, Scene>> = {
  "a refresh without any memory drops nothing": {
    syncs: [{ syncMode: "full_refresh", ...incomplete, bought: [], delivered: [] }],
  },
  "a refresh that knows nothing and is asked for nothing drops nothing": {
    settings: { domains: ["none"] },
    syncs: [{ ...refresh(4, 9), ...incomplete, bought: [] }],
  },
  "a refresh buys nothing, and is complete once all that is known is delivered, in whatever attempt": {
    settings: { max_lookups_per_sync: 3 },
    syncs: [
      { bought: 3, delivered: 3 },
      { ...refresh(4, 9), bought: [], delivered: 3 },
      { ...refresh(4, 9), isForgotten: true, bought: [], delivered: 3 },
      { ids: { sync_id: 10, generation_id: 4, minimum_generation_id: 0 }, bought: 3, delivered: 3 },
      { ...refresh(5, 11), bought: [], delivered: 6 },
      { ...refresh(5, 12), bought: [], delivered: [] },
    ],
  },
  "a refresh is not complete while a job is open": {
    settings: { domains: [A], max_wait_seconds: 0 },
    syncs: [
      { bought: [A], delivered: [] },
      { ...refresh(4, 9), ...incomplete, behaviour: PENDING, bought: [], delivered: [] },
      { ...refresh(4, 10), bought: [], delivered: [A] },
    ],
  },
  "a refresh is not complete while a submission is unknown": {
    settings: { domains: [A, B] },
    syncs: [
      { behaviour: LOSES_B, bought: [A, B], delivered: [A] },
      { syncMode: "full_refresh", ...incomplete, bought: [], delivered: [A] },
      { ...listing(A), syncMode: "full_refresh", bought: [], delivered: [A] },
    ],
  },
  "a refresh is not complete while an answer cannot be asked for again": {
    settings: { domains: [A, B] },
    syncs: [
      { bought: [A, B] },
      {
        ...{ config: { receipts_file: await elsewhere() }, ...incomplete, syncMode: "full_refresh" },
        ...{ bought: [], delivered: [] },
      },
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
      { ...fromThird, delivered: ITEMS.slice(3) },
      { ...fromThird, delivered: [], polls: 0 },
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
        ...{ config: { receipts_file: await elsewhere() }, bought: [], delivered: [] },
      },
    ],
  },
  "a refresh of one stream of two looks at all rows, and drops nothing that they name": {
    syncs: [
      { ...ofPeople, ...numbered(1), streams: BOTH, bought: ITEMS, delivered: [...ITEMS, ...ITEMS] },
      { ...ofPeople, ...numbered(2), streams: BOTH, bought: [], delivered: [] },
      {
        ...{ ...ofPeople, ...numbered(3), idsOf: { [CONTACTS]: refresh(2, 3).ids ?? {} } },
        ...{ streams: BOTH, bought: [], delivered: ITEMS },
      },
    ],
  },
  "rows are read again until each of their items was submitted": {
    syncs: [threeOf(3), threeOf(3), threeOf(2), threeOf(0)],
  },
  "rows are read from the start again under other filters only": {
    syncs: [
      { ...rowsOf([...long.slice(0, 1), ...people.slice(2, 3)]), bought: [A, C] },
      { ...rowsOf([...long.slice(1, 2), ...people.slice(2, 3)]), bought: [] },
      { ...rowsOf(long.slice(1, 2)), config: { source_slug: "crm" }, bought: [B] },
    ],
  },
  "a full refresh looks for items among people, and buys none": {
    syncs: [
      { ...listing(A), bought: [A] },
      { ...rowsOf(people, [A]), syncMode: "full_refresh", bought: [], delivered: [A] },
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
  "every spelling of an e-mail is one item": {
    setting: "email_verification",
    settings: { emails: [...SPELLINGS, "a@xn--bcher-kva.example"] },
    syncs: [{ bought: TWO, delivered: TWO }, { bought: [] }, { isForgotten: true, bought: [] }],
  },
};

describe("what is remembered of jobs", () => {
  it.each(Object.entries(SCENES))("%s", (_, { settings, ...scene }) => {
    const lists = scene.setting === undefined ? { domains: ITEMS } : {};
    return playScene({ ...scene, settings: { ...lists, ...settings } });
  });

  it("stops the submissions if the receipts are damaged, and open jobs are collected", async () => {
    const receipts_file = await elsewhere();
    const stage = await countingStage("company_lookup", { domains: [A, B] }, { receipts_file });
    await stage.play(
      { bought: [A, B] },
      { settings: { domains: [A, B, C], max_wait_seconds: 0 }, bought: [C], delivered: [] },
    );
    await appendFile(receipts_file, `${"\0".repeat(20)}\n`);
    const damaged = await readFile(receipts_file, "utf8");
    const all: Sync = { settings: { domains: ITEMS }, fails: "config_error", bought: [], tried: 0 };
    await stage.play(
      { ...all, delivered: [C] },
      { ...all, isForgotten: true, says: "Cannot use the receipts" },
    );
    expect(await readFile(receipts_file, "utf8")).toBe(damaged);
  });

  it("is refused at once if it is a pipe", async () => {
    const receipts_file = await elsewhere();
    execFileSync("mkfifo", [receipts_file]);
    const stage = await countingStage("company_lookup", { domains: [A] }, { receipts_file });
    await stage.play({ fails: "config_error", bought: [] });
  });
});
