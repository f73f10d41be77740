import { createHash } from "node:crypto";
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/api/clock.ts";
import { newsTo, openBook } from "../../src/jobs/adopt.ts";
import { newDigests } from "../../src/jobs/digest.ts";
import { FinishedItems } from "../../src/jobs/finished-items.ts";
import { entriesOf } from "../../src/jobs/items.ts";
import { type Job, newJob } from "../../src/jobs/job.ts";
import { type Receipt, Receipts, readReceipts } from "../../src/jobs/receipts.ts";
import { seal, unseal } from "../../src/jobs/seal.ts";
import { parseJobState, type Saved, toJobState } from "../../src/jobs/state.ts";
import type { Day } from "../../src/time.ts";

const DAY = "2026-03-02" as Day;
const NOW = Date.UTC(2026, 2, 2, 10);
const DAY_MS = 86_400_000;
const KEY = "kkkkkkkkkkkkkkkk";
const OLD = (item: string): string =>
  createHash("sha256").update(item).digest().subarray(0, 12).toString("base64url");
const entry = (text: string) => entriesOf("domain", text)[0] ?? { item: null, kind: "domain" as const, text };

describe("the state of version 0.1.0", () => {
  const job = (item: string, step: string, jobId: string | null = "job_1") => ({
    item: OLD(item),
    step,
    at: new Date(NOW).toISOString(),
    job_id: jobId,
    not_before: null,
    tries: 0,
    resent: 0,
  });

  it("is understood, so that nothing of it is bought again", () => {
    const jobs = [
      job("www.done.example", "done"),
      job("open.example", "submitted"),
      job("again.example", "again"),
      job("lost.example", "lost"),
      job("denied.example", "denied"),
      job("unknown.example", "submitting", null),
    ];
    const saved = parseJobState("company_lookups", { version: 1, created_at: null, jobs }, "created_at");
    const selected = [{ name: "company_lookups", syncMode: "incremental" }];
    const { book } = openBook(new Map([["company_lookups", saved]]), selected, newDigests(), []);
    expect(book.finished.dayOf(book.keyOf(entry("done.example")))).toBe(DAY);
    for (const name of ["open", "again", "lost", "denied"])
      expect(book.get(book.keyOf(entry(`${name}.example`)))).toMatchObject({ step: "open", jobId: "job_1" });
    expect(book.get(book.keyOf(entry("Unknown.example.")))).toMatchObject({ step: "unknown" });
    expect(book.get(book.keyOf(entry("new.example")))).toBeUndefined();
  });

  it("is refused in any other shape", () => {
    for (const state of [{ version: 1 }, { version: 7, jobs: [] }, { version: 2, jobs: [] }, [], "x"])
      expect(() => parseJobState("company_lookups", state, "created_at")).toThrow(/never ignored/);
  });
});

describe("FinishedItems", () => {
  it("keeps every item with its day, in 16 characters", () => {
    const finished = new FinishedItems();
    const keys = Array.from({ length: 5000 }, (_, nth) => OLD(String(nth)));
    for (const [nth, key] of keys.entries()) finished.add(key, (nth % 2 === 0 ? DAY : "2026-03-03") as Day);
    const packed = finished.toPacked();
    expect(packed.map(([, text]) => text.length)).toEqual([40_000, 40_000]);
    const again = new FinishedItems();
    for (const [day, text] of packed) expect(again.addPacked(day, text)).toBe(true);
    for (const [nth, key] of keys.entries())
      expect(again.dayOf(key)).toBe(nth % 2 === 0 ? DAY : "2026-03-03");
    again.delete(keys[0] ?? "");
    expect(again.dayOf(keys[0] ?? "")).toBeUndefined();
    expect(again.size).toBe(4999);
  });

  it("refuses text that is no list of digests", () => {
    expect(new FinishedItems().addPacked(DAY, "abc")).toBe(false);
  });
});

describe("toJobState()", () => {
  it("comes back as it was written", () => {
    const saved = parseJobState("s", undefined, "created_at");
    const { book } = openBook(
      new Map([["s", saved]]),
      [{ name: "s", syncMode: "incremental" }],
      newDigests("salt"),
      [],
    );
    const key = book.keyOf(entry("a.example"));
    book.intend(key, NOW, DAY, ["s"]);
    book.finish(book.keyOf(entry("b.example")), DAY);
    const state = JSON.parse(JSON.stringify(toJobState("created_at", null, book.knowledge(DAY))));
    expect(JSON.stringify(state)).not.toContain("a.example");
    const { knowledge } = parseJobState("s", state, "created_at");
    expect(knowledge?.ledgers[0]?.jobs.get(key)).toEqual(book.get(key));
    expect(knowledge?.ledgers[0]?.finished.size).toBe(1);
    expect(knowledge?.spent).toEqual(new Map([[DAY, { submitted: 1, credits: 0 }]]));
  });
});

describe("Receipts", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "receipts-"));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });
  const open = (): Promise<Receipts> =>
    Receipts.open(
      join(folder, "deep", "r.jsonl"),
      { clock: systemClock, signal: new AbortController().signal, pid: process.pid },
      () => {},
      undefined,
      () => true,
      64 * 1024,
    );
  const job = { ...newJob(NOW, DAY, []), step: "open" as const, jobId: "job_1" };

  it("remember the newest of what was written, under one salt", async () => {
    const first = await open();
    await first.write("companyLookup", [[KEY, newJob(NOW, DAY, [])]]);
    await first.write("companyLookup", [[KEY, job]]);
    await first.write("companyLookup", [["vvvvvvvvvvvvvvvv", newJob(NOW, DAY, [])]]);
    await first.void("companyLookup", "vvvvvvvvvvvvvvvv", NOW);
    await first.close();
    const second = await open();
    expect(second.salt).toBe(first.salt);
    expect(second.news).toEqual([{ setting: "companyLookup", key: KEY, job, sealed: null }]);
    await second.close();
  });

  it("go on after a line that a crash tore", async () => {
    await (await open()).close();
    await appendFile(join(folder, "deep", "r.jsonl"), '{"for":"companyLookup","item":"k","a');
    const torn = await open();
    await torn.write("companyLookup", [[KEY, job]]);
    await torn.close();
    const after = await open();
    expect(after.news).toHaveLength(1);
    await after.close();
  });

  it("are compacted when they are large, and again when they have doubled; nothing that counts is lost", async () => {
    const path = join(folder, "deep", "r.jsonl");
    const first = await open();
    const [other, gone] = ["vvvvvvvvvvvvvvvv", "wwwwwwwwwwwwwwww"];
    const old = {
      ...newJob(NOW - 90 * DAY_MS, DAY, []),
      step: "answered" as const,
      jobId: "job_old",
      cost: 3,
    };
    const recent = { ...old, at: NOW - 10 * DAY_MS, jobId: "job_recent" };
    for (const known of [old, recent, newJob(NOW, DAY, [])])
      await first.write("companyLookup", [[KEY, known]]);
    // The answer to one verification, as large as none is, again and again.
    const sealed = "x".repeat(14 * 1024);
    for (let nth = 0; nth < 5; nth++)
      await first.write("emailVerification", [[other, { ...old, cost: 0 }]], sealed);
    await first.write("companyLookup", [[KEY, job]]);
    await first.write("companyLookup", [[gone, { ...old, at: NOW - DAY_MS }]]);
    await first.write("companyLookup", [[gone, newJob(NOW, DAY, [])]]);
    await first.void("companyLookup", gone, NOW);
    await first.close();
    await appendFile(path, '{"for":"companyLookup","item":"kkkk');
    const before = await readReceipts(path, () => true);
    await (await open()).close();
    const { size, mode } = await stat(path);
    expect(size).toBeLessThan(16 * 1024);
    expect(mode & 0o777).toBe(0o600);
    const after = await open();
    expect(after.salt).toBe(first.salt);
    // Only a submission that no cap counts any more, and that is not the item's newest, is gone.
    const isGone = ({ key, job: { at } }: Receipt): boolean => key === KEY && at === old.at;
    expect(before?.news.filter(isGone)).toHaveLength(1);
    expect(after.news).toEqual(before?.news.filter((receipt) => !isGone(receipt)));
    await after.write("companyLookup", [["zzzzzzzzzzzzzzzz", job]]);
    await after.close();
    const again = await open();
    expect(again.news).toHaveLength(after.news.length + 1);
    await again.close();
  });

  it("are not compacted in each run because they are large and hold nothing that is superseded", async () => {
    const path = join(folder, "deep", "r.jsonl");
    const first = await open();
    const sealed = "x".repeat(14 * 1024);
    for (let nth = 0; nth < 5; nth++)
      await first.write("emailVerification", [[`${nth}`.padStart(16, "k"), job]], sealed);
    await first.close();
    await (await open()).close();
    const { ino } = await stat(path);
    const third = await open();
    expect(third.news).toHaveLength(5);
    await third.close();
    expect((await stat(path)).ino).toBe(ino);
  });

  it("are refused to a second run, and when they are something else", async () => {
    const first = await open();
    await first.close();
    await writeFile(join(folder, "deep", "r.jsonl"), "something else\n");
    await expect(open()).rejects.toThrow(/first line/);
    expect(await readFile(join(folder, "deep", "r.jsonl"), "utf8")).toBe("something else\n");
  });
});

describe("newsTo()", () => {
  const stateWith = (job: Job): ReadonlyMap<"companyLookup", ReadonlyMap<string, Saved>> => {
    const state = toJobState("created_at", null, {
      ledgers: [{ digests: newDigests("salt"), jobs: new Map([[KEY, job]]), finished: new FinishedItems() }],
      ...{ spent: new Map(), prices: [], inputs: [] },
    });
    const saved = parseJobState("company_lookups", JSON.parse(JSON.stringify(state)), "created_at");
    return new Map([["companyLookup", new Map([["company_lookups", saved]])]]);
  };
  const isNews = (job: Job): boolean =>
    newsTo(stateWith(job), [{ name: "company_lookups", syncMode: "incremental" }], false)(
      "companyLookup",
      KEY,
      job.at,
    );
  const submitted = newJob(NOW, DAY, ["company_lookups"]);

  it("takes from the receipts what a run that was killed wrote there and not into its state", () => {
    expect(isNews(submitted)).toBe(true);
    expect(isNews({ ...submitted, step: "open", jobId: "job_1" })).toBe(true);
  });

  it("leaves a submission alone whose answer the state has", () => {
    expect(isNews({ ...submitted, step: "failed", jobId: "job_1", tries: 1 })).toBe(false);
    expect(isNews({ ...submitted, step: "answered", jobId: "job_1", owed: [] })).toBe(false);
  });
});

describe("seal()", () => {
  it("is opened only by the e-mail that it was sealed for", () => {
    const sealed = seal("salt", "a@b.example", '{"ok":true}');
    expect(unseal("salt", "a@b.example", sealed)).toBe('{"ok":true}');
    expect(unseal("salt", "c@b.example", sealed)).toBeUndefined();
    expect(Buffer.from(sealed, "base64url").includes("true")).toBe(false);
    expect(sealed).not.toContain(Buffer.from('ok":true').toString("base64url"));
  });
});
