import {
  appendFile,
  open as openFile,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { DAY_MS } from "../../../src/base/time.ts";
import { Book } from "../../../src/jobs/book.ts";
import { Receipts } from "../../../src/jobs/receipts.ts";
import { systemProcesses } from "../../../src/output/files/processes.ts";
import { JobService } from "../../support/job-service.ts";
import { canMount, mountAlone } from "../../support/mounts.ts";
import { tempDir } from "../../support/temp-dir.ts";

const AT = Date.UTC(2026, 2, 2, 10);
const [KEY, OTHER] = ["k".repeat(16), "v".repeat(16)] as const;
const LOOK_UP = "companyLookup";
const RUNTIME = {
  ...{ clock: systemClock, signal: new AbortController().signal, pid: process.pid },
  processes: systemProcesses(process.pid),
};

const SALT = { key: "salt", id: "id" };
const SALTS = new Map([[LOOK_UP, SALT] as const]);

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
async function open(): Promise<Opened> {
  const receipts = await Receipts.open(path, SALTS, RUNTIME);
  const book = new Book({ salt: SALT, syncId: "a", runId: "a", streams: [] });
  for await (const [, changes] of receipts.read()) book.add(changes);
  book.takeChanges();
  await receipts.begin([[LOOK_UP, book.toReceipts()]]).catch(async (error: unknown) => {
    await receipts.close();
    throw error;
  });
  return { receipts, book };
}

/** One run. Returns what its book knew in the end. */
async function run(work: (opened: Opened) => Promise<unknown> = async () => {}) {
  const opened = await open();
  await work(opened);
  const { book, receipts } = opened;
  const known = [KEY, OTHER].map((key) => book.get(key));
  const charged = book.account(AT).day;
  await receipts.close();
  return { known, charged };
}

/** Buys an item and writes all of it: as far as its answer where a cost is given. */
async function buy({ receipts, book }: Opened, key: string, at: number, cost?: number): Promise<void> {
  const { id } = book.intend(key, at);
  await receipts.write(LOOK_UP, book.takeChanges());
  book.change(key, id, { step: "open", job: `job-${at}` });
  await receipts.write(LOOK_UP, book.takeChanges());
  if (cost === undefined) return;
  book.answered(key, id, at, cost, null);
  await receipts.write(LOOK_UP, book.takeChanges());
}

/** The prototype of open files, to spy on. */
async function handles(): Promise<{ datasync(): Promise<void>; appendFile(): Promise<void> }> {
  const probe = await openFile(folder, "r");
  await probe.close();
  return Object.getPrototypeOf(probe);
}

describe("Receipts", () => {
  it("are on the disk before a submission leaves, and have its answer before its row leaves", async () => {
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
    book.intend(KEY, AT);
    const changes = book.takeChanges();
    const full = Object.assign(new Error("full"), { code: "ENOSPC" });
    vi.spyOn(await handles(), "appendFile").mockRejectedValueOnce(full);
    for (const _try of [1, 2])
      await expect(receipts.write(LOOK_UP, changes)).rejects.toThrow(/Cannot use the receipts/);
    await receipts.close();
    expect((await readFile(path, "utf8")).split("\n")).toHaveLength(2);
  });

  it("are open in one run at a time, by whatever link they are named", async () => {
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

  it("are rewritten when they are opened, and nothing that counts is lost", async () => {
    const before = await run(async (opened) => {
      for (let nth = 0; nth < 20; nth++) await buy(opened, KEY, AT - (20 - nth) * DAY_MS, 3);
      await buy(opened, OTHER, AT);
    });
    const { size } = await stat(path);
    expect(await run()).toEqual(before);
    expect((await stat(path)).size).toBeLessThan(size / 3);
    expect(await run()).toEqual(before);
  });

  it("are checked by their path: a foreign line, a shorter file, another file", async () => {
    const changes: readonly (() => Promise<unknown>)[] = [
      () => appendFile(path, '{"for":"companyLookup"}\n'),
      () => truncate(path, 10),
      () => rename(path, `${path}.old`).then(() => writeFile(path, "x".repeat(200))),
      async () => {
        const text = await readFile(path, "utf8");
        await writeFile(`${path}.new`, `${text.slice(0, -3)}x"\n`);
        await rename(`${path}.new`, path);
      },
    ];
    for (const change of changes) {
      const opened = await open();
      await buy(opened, KEY, AT);
      await opened.receipts.check();
      await change();
      await expect(opened.receipts.check()).rejects.toThrow(/another run writes to the same file/);
      await opened.receipts.close();
      await rm(path);
    }
  });

  it.skipIf(!canMount)("are appended to where the file is mounted alone and cannot be replaced", async () => {
    const first = await run((opened) => buy(opened, KEY, AT, 3));
    await appendFile(path, '{"for":"companyLo');
    const { ino } = await stat(path);
    const at = join(folder, "mounted.jsonl");
    mountAlone(path, at);
    path = at;
    expect(await run(({ receipts }) => receipts.check())).toEqual(first);
    const second = await run((opened) => buy(opened, OTHER, AT));
    expect((await stat(path)).ino).toBe(ino);
    expect(await run()).toEqual(second);
  });

  it.skipIf(!canMount)(
    "to which another run writes before they are begun are refused, and keep its lines",
    async () => {
      await run((opened) => buy(opened, KEY, AT, 3));
      const at = join(folder, "mounted.jsonl");
      mountAlone(path, at);
      const receipts = await Receipts.open(at, SALTS, RUNTIME);
      for await (const _line of receipts.read());
      await run((opened) => buy(opened, OTHER, AT));
      const text = await readFile(path, "utf8");
      await appendFile(at, '{"for":"companyLookup"}\n');
      await expect(receipts.begin([])).rejects.toThrow(/another run writes to the same file/);
      await receipts.close();
      expect(await readFile(path, "utf8")).toBe(text);
    },
  );

  it("keep what another run writes, by another mount, while they are begun", async () => {
    await run((opened) => buy(opened, KEY, AT, 3));
    const receipts = await Receipts.open(path, SALTS, RUNTIME);
    for await (const _line of receipts.read());
    const line = '{"for":"companyLookup"}\n';
    await appendFile(path, line);
    await expect(receipts.begin([])).rejects.toThrow(/another run writes to the same file/);
    await receipts.close();
    expect((await readFile(path, "utf8")).endsWith(line)).toBe(true);
  });

  it.skipIf(!canMount)("of a file that another run replaced under its mount are refused", async () => {
    await run((opened) => buy(opened, KEY, AT, 3));
    const at = join(folder, "mounted.jsonl");
    mountAlone(path, at);
    const elsewhere = path;
    path = at;
    const alone = await open();
    path = elsewhere;
    await run();
    await expect(alone.receipts.check()).rejects.toThrow(/another run writes to the same file/);
    await alone.receipts.close();
    path = at;
    await expect(open()).rejects.toThrow(/another run writes to the same file/);
  });
});
