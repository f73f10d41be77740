import { open as openFile, readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DAY_MS, dayOf } from "../../../src/base/time.ts";
import { Book } from "../../../src/jobs/book.ts";
import { Receipts } from "../../../src/jobs/receipts.ts";
import { systemProcesses } from "../../../src/output/files/processes.ts";
import { systemClock } from "../../../src/service/clock.ts";
import { JobService } from "../../support/job-service.ts";
import { tempDir } from "../../support/temp-dir.ts";

const AT = Date.UTC(2026, 2, 2, 10);
const day = dayOf(AT);
const [KEY, OTHER] = ["k".repeat(16), "v".repeat(16)] as const;
const LOOK_UP = "companyLookup";
const RUNTIME = {
  ...{ clock: systemClock, signal: new AbortController().signal, pid: process.pid },
  processes: systemProcesses(process.pid),
};

let folder = "";
let path = "";
beforeEach(async () => {
  folder = await tempDir();
  path = join(folder, "r.jsonl");
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Opened = { readonly receipts: Receipts; readonly book: Book };

/** Receipts, and a book that knows what they say. */
async function open(compactedAbove?: number): Promise<Opened> {
  const receipts = await Receipts.open(path, RUNTIME, () => {}, "salt");
  const book = new Book({
    ...{ author: { sync: "a", by: "a" }, digests: receipts.digests },
    handleAt: (place, key) => receipts.handleAt(place, key),
  });
  await receipts.read(new Map([[LOOK_UP, book] as const]), compactedAbove);
  return { receipts, book };
}

/** One run. Returns what its book knew in the end. */
async function run(work: (opened: Opened) => Promise<unknown> = async () => {}, compactedAbove?: number) {
  const opened = await open(compactedAbove);
  await work(opened);
  const { book, receipts } = opened;
  const known = [KEY, OTHER].map((key) => [
    book.get(key).day,
    Object.values(book.get(key).subs),
    book.handle(key),
  ]);
  const charged = book.charged(day).day;
  await receipts.close();
  return { known, charged };
}

/** Buys an item and writes all of it: as far as its answer where a cost is given. */
async function buy({ receipts, book }: Opened, key: string, at: number, cost?: number): Promise<void> {
  const { id, delta } = book.intend(key, at);
  await receipts.write(LOOK_UP, [delta]);
  await receipts.write(LOOK_UP, [book.change(key, id, { step: "open", job: `job-${at}` })]);
  if (cost !== undefined) await receipts.write(LOOK_UP, [book.answered(key, id, at, cost, null)]);
}

/** The prototype of open files, to spy on. */
async function handles(): Promise<{ datasync(): Promise<void>; appendFile(): Promise<void> }> {
  const probe = await openFile(folder, "r");
  await probe.close();
  return Object.getPrototypeOf(probe);
}

describe("Receipts", () => {
  it("tell a later run all that was written", async () => {
    const first = await run(async (opened) => {
      await buy(opened, KEY, AT, 3);
      await buy(opened, OTHER, AT);
    });
    expect(first.charged).toEqual({ submitted: 2, credits: 3, open: 1 });
    expect(await run()).toEqual(first);
  });

  it("are on the disk, and not only on their way, when a write has returned", async () => {
    const told: string[] = [];
    vi.spyOn(await handles(), "datasync").mockImplementation(async () => {
      const written = (await readFile(path, "utf8").catch(() => "")).split("\n").length;
      await new Promise((resolve) => setImmediate(resolve));
      told.push(`${written} lines synced`);
    });
    await run(async ({ receipts, book }) => {
      await receipts.write(LOOK_UP, [book.intend(KEY, AT).delta]);
      told.push("returned");
    });
    expect(told.slice(-2)).toEqual(["3 lines synced", "returned"]);
  });

  it("are on the disk before a submission leaves, and hold its answer before a row is delivered", async () => {
    let synced = 0;
    vi.spyOn(await handles(), "datasync").mockImplementation(async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      synced += 1;
    });
    const service = new JobService(path);
    const seen: number[] = [];
    service.answer = () => {
      seen.push(synced);
      return undefined;
    };
    service.onRow = () => seen.push(synced);
    await service.sync({ items: ["a.example"] });
    const [left = 0, delivered = 0] = seen;
    // What is to be submitted; then the job, and its answer.
    expect([left > 0, delivered]).toEqual([true, left + 2]);
  });

  it("take nothing more after a write that failed, because a file with a hole proves nothing", async () => {
    const { receipts, book } = await open();
    const { delta } = book.intend(KEY, AT);
    const full = Object.assign(new Error("full"), { code: "ENOSPC" });
    vi.spyOn(await handles(), "appendFile").mockRejectedValueOnce(full);
    for (const _try of [1, 2])
      await expect(receipts.write(LOOK_UP, [delta])).rejects.toThrow(/Cannot use the receipts/);
    await receipts.close();
    expect((await readFile(path, "utf8")).split("\n")).toHaveLength(2);
  });

  it("are held by one run at a time, by whatever link they are named", async () => {
    const first = await open();
    const [real, linked] = [path, join(folder, "link.jsonl")];
    await symlink("r.jsonl", linked);
    path = linked;
    await expect(open()).rejects.toMatchObject({ name: "TransientError" });
    await buy(first, KEY, AT);
    await first.receipts.close();
    expect((await run()).charged.submitted).toBe(1);
    expect((await stat(real)).size).toBeGreaterThan(100);
  });

  it("are compacted when they are large, and again when they have doubled; nothing that counts is lost", async () => {
    const before = await run(async (opened) => {
      for (let nth = 0; nth < 20; nth++) await buy(opened, KEY, AT - (20 - nth) * DAY_MS, 3);
      await buy(opened, OTHER, AT);
    });
    const { size } = await stat(path);
    expect((await run(undefined, 1)).known).toEqual(before.known);
    const { size: less, ino } = await stat(path);
    expect(less).toBeLessThan(size / 3);
    expect(await run(undefined, 1)).toEqual(before);
    expect((await stat(path)).ino, "there is nothing to compact").toBe(ino);
  });
});
