import {
  appendFile,
  chmod,
  link,
  mkdir,
  open as openFile,
  readFile,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/api/clock.ts";
import { systemProcesses } from "../../../src/files/processes.ts";
import { Book } from "../../../src/jobs/book.ts";
import { Receipts } from "../../../src/jobs/receipts.ts";
import { seal, unseal } from "../../../src/jobs/seal.ts";
import { DAY_MS, dayOf } from "../../../src/time.ts";
import { tempDir } from "../../support/temp-dir.ts";

const AT = Date.UTC(2026, 2, 2, 10);
const day = dayOf(AT);
const textOf = (at: number): string => new Date(at).toISOString();
const [KEY, OTHER] = ["k".repeat(16), "v".repeat(16)] as const;
const RUNTIME = {
  ...{ clock: systemClock, signal: new AbortController().signal, pid: process.pid },
  processes: systemProcesses(process.pid),
};
const LOOK_UP = "companyLookup";

let folder = "";
let path = "";
let notes: string[] = [];
beforeEach(async () => {
  folder = await tempDir();
  path = join(folder, "deep", "r.jsonl");
  notes = [];
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Told = { readonly receipts: Receipts; readonly book: Book; readonly verified: Book };

/** What receipts tell the books of look-ups and of verifications. Closes them if they cannot be read. */
async function toldBy(receipts: Receipts, compactedAbove?: number): Promise<Told> {
  const [book, verified] = ["a", "b"].map(
    (by) =>
      new Book({
        ...{ author: { sync: by, by }, digests: receipts.digests },
        handleAt: (place, key) => receipts.handleAt(place, key),
      }),
  ) as [Book, Book];
  const books = new Map([[LOOK_UP, book] as const, ["emailVerification", verified] as const]);
  try {
    await receipts.read(books, compactedAbove);
  } catch (cause) {
    await receipts.close();
    throw Object.assign(cause as Error, { book });
  }
  return { receipts, book, verified };
}

const open = async (compactedAbove?: number): Promise<Told> =>
  await toldBy(await Receipts.open(path, RUNTIME, (text) => notes.push(text), "salt"), compactedAbove);

/** Looks at the receipts without their lock. */
async function look(): Promise<Told> {
  const receipts = await Receipts.look(path);
  if (receipts === undefined) throw new Error("no receipts");
  const told = await toldBy(receipts);
  await receipts.close();
  return told;
}

/** One run. What it knew of its items in the end comes back. */
async function run(work: (opened: Told) => Promise<unknown> = async () => {}, compactedAbove?: number) {
  const opened = await open(compactedAbove);
  await work(opened);
  const { book, verified } = opened;
  const known = [book, verified].map((one) =>
    [KEY, OTHER].map((key) => [one.get(key).day, Object.values(one.get(key).subs), one.handle(key)]),
  );
  const charged = book.charged(day).day;
  await opened.receipts.close();
  return { known, charged, ...opened };
}

/** Buys an item and writes all of it: as far as its answer where a cost is given. */
async function buy({ receipts, book }: Told, key: string, at: number, cost?: number): Promise<void> {
  const { id, delta } = book.intend(key, at);
  await receipts.write(LOOK_UP, [delta]);
  await receipts.write(LOOK_UP, [book.change(key, id, { step: "open", job: `job-${at}` })]);
  if (cost !== undefined) await receipts.write(LOOK_UP, [book.answered(key, id, at, cost, null)]);
}

describe("Receipts", () => {
  it("tell a later run all that was written, under one salt, without holding it in memory", async () => {
    const first = await run(async (opened) => {
      await buy(opened, KEY, AT, 3);
      await buy(opened, OTHER, AT);
      const { id, delta } = opened.verified.intend(KEY, AT);
      await opened.receipts.write("emailVerification", [delta]);
      const sealed = "x".repeat(10_000);
      await opened.receipts.write("emailVerification", [opened.verified.answered(KEY, id, AT, 0, sealed)]);
    });
    const second = await run();
    expect(second.receipts.digests).toEqual(first.receipts.digests);
    expect(second).toMatchObject({ known: first.known, charged: { submitted: 2, credits: 3, open: 1 } });
    expect(second.book.get(KEY).handle).toBeNull();
    expect(second.known[0]?.[0]?.[2]).toMatchObject({ job: `job-${AT}`, sure: true, cost: 3 });
    expect(await readFile(path, "utf8")).toMatch(
      /^\{"receipts":2,"service":\{\},"salt":"salt","normalization":2\}\n/,
    );
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
  });

  it("are on the disk, and not only on their way, when a write has returned", async () => {
    const probe = await openFile(folder, "r");
    const handles = Object.getPrototypeOf(probe) as { datasync(): Promise<void> };
    await probe.close();
    const told: string[] = [];
    vi.spyOn(handles, "datasync").mockImplementation(async () => {
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

  it("keep a job that another answer of its day covers, until that answer's own is known", async () => {
    const handleIn = async (work?: Parameters<typeof run>[0], compactedAbove?: number): Promise<unknown> =>
      (await run(work, compactedAbove)).known[0]?.[0]?.[2];
    const news = async ({ receipts, book }: Told): Promise<void> => {
      book.add({ digests: receipts.digests, days: [[day, KEY]] });
      await receipts.write(LOOK_UP, book.newsToReceipts());
    };
    await run((opened) => buy(opened, KEY, AT));
    const unsure = { job: `job-${AT}`, sure: false };
    for (const work of [news, undefined]) expect(await handleIn(work)).toMatchObject(unsure);
    expect(await handleIn(undefined, 1)).toMatchObject(unsure);
    const sure = { id: "other.0", at: AT, day, job: "job-other", sealed: null, sure: true, cost: 3 };
    const item = { day, handle: sure, subs: {} };
    await run(({ receipts }) =>
      receipts.write(LOOK_UP, [{ digests: receipts.digests, items: [[KEY, item]] }]),
    );
    for (const compactedAbove of [undefined, 1, 1])
      expect(await handleIn(undefined, compactedAbove)).toEqual(sure);
  });

  it("are read however long they are, and however long a line is", async () => {
    const first = await run(async (opened) => {
      const { id, delta } = opened.verified.intend(KEY, AT);
      await buy(opened, KEY, AT, 3);
      const answered = opened.verified.answered(KEY, id, AT, 0, "x".repeat(3_000_000));
      await opened.receipts.write("emailVerification", [delta, answered]);
      await appendFile(path, `{"service":{"a":"${"b".repeat(100)}"}}\n`.repeat(25_000));
      await buy(opened, OTHER, AT, 3);
    });
    const { size } = await stat(path);
    expect(await run()).toMatchObject({ known: first.known, charged: first.charged });
    expect((await stat(path)).size).toBe(size);
  });

  it("forget what a crash tore behind the last line break", async () => {
    await run((opened) => buy(opened, KEY, AT));
    const before = await readFile(path, "utf8");
    await appendFile(path, '{"for":"companyLookup","items":[{"it');
    const torn = await run();
    expect(torn.charged.submitted).toBe(1);
    expect(await readFile(path, "utf8")).toBe(before);
  });

  it.each([
    "",
    "no JSON",
    '{"for":"other"}',
    '{"for":"companyLookup","items":[{"item":"short"}]}',
    '{"for":"companyLookup","days":[["2026-03-02","short"]]}',
    '{"for":"companyLookup","spent":[["2026-03-02"]]}',
  ])("are damaged by %j in a line, and tell what stands before", async (line) => {
    await run((opened) => buy(opened, KEY, AT));
    const { size } = await stat(path);
    await appendFile(path, `${line}\n`);
    await expect(run()).rejects.toThrow(`what stands at byte ${size} is not what this connector writes`);
    const error = await look().catch((cause) => cause);
    expect(error.message).toMatch(/Cannot use the receipts/);
    expect(Object.keys(error.book.get(KEY).subs)).toHaveLength(1);
  });

  it("are refused when they are something else, too new, or no file", async () => {
    await (await open()).receipts.close();
    const header = '{"receipts":2,"salt":"s","normalization":';
    const refused = [
      ["something else\n", /first line/],
      ['{"receipts":3,"salt":"s"}\n', /newer version/],
      [`${header}9}\n`, /newer version/],
      [`${header}1}\n{"for":"companyLookup","salt":"s","normalization":9}\n`, /newer/],
    ] as const;
    for (const [text, why] of refused) {
      await writeFile(path, text);
      await expect(open(), text).rejects.toThrow(why);
      await expect(open(), text).rejects.toThrow(`Cannot use the receipts "${path}"`);
      expect(await readFile(path, "utf8")).toBe(text);
    }
    path = "/dev/null";
    await expect(open()).rejects.toThrow(/no regular file/);
  });

  it.each([
    ["anyone may write to", () => chmod(path, 0o666), /anyone may write/],
    ["has two names", () => link(path, `${path}2`), /has another name/],
  ])("are no file that %s", async (_, spoil, why) => {
    await run((opened) => buy(opened, KEY, AT));
    await spoil();
    await symlink(path, join(folder, "link"));
    path = join(folder, "link");
    await expect(open()).rejects.toThrow(why);
    await expect(look()).rejects.toThrow(why);
  });

  it.each([true, false])(
    "are one file by whatever link they are named (there before: %s)",
    async (isThere) => {
      const real = path;
      await mkdir(join(folder, "deep"));
      if (isThere) await run();
      const [one, two] = [join(folder, "link.jsonl"), join(folder, "deep", "link2.jsonl")];
      await symlink("deep/r.jsonl", one);
      await symlink("../link.jsonl", two);
      path = two;
      const first = await open();
      path = one;
      await expect(open()).rejects.toMatchObject({ name: "TransientError" });
      await buy(first, KEY, AT);
      await first.receipts.close();
      expect((await run()).charged.submitted).toBe(1);
      expect((await stat(real)).size).toBeGreaterThan(100);
    },
  );

  it("are refused where the way to them leads nowhere, and say so", async () => {
    await mkdir(join(folder, "deep"));
    await symlink("loop.jsonl", join(folder, "deep", "loop.jsonl"));
    await writeFile(join(folder, "file"), "");
    const [loop, below] = [join(folder, "deep", "loop.jsonl"), join(folder, "file", "r.jsonl")];
    for (path of [loop, below]) {
      await expect(open()).rejects.toThrow(`Cannot use the receipts "${path}": `);
      await expect(look()).rejects.toThrow(/make the file writable, or name another in receipts_file$/);
    }
    // Whether a file is there that cannot be looked at, nobody knows.
    const exist = await Promise.all(
      [loop, below, join(folder, "none.jsonl")].map((one) => Receipts.exist(one)),
    );
    expect(exist).toEqual([true, false, false]);
  });

  it("may be run by others as a program, as long as nobody else writes to them", async () => {
    await run((opened) => buy(opened, KEY, AT));
    await chmod(path, 0o755);
    expect((await run()).charged.submitted).toBe(1);
  });

  it.each<[string, RegExp]>([
    [
      '{"receipts":2,"salt":5,"normalization":1}',
      /it has no "salt" and "normalization"\. It knows what was paid for/,
    ],
    ['{"receipts":2,"salt":"s","normalization":9}', /a newer version of this program wrote it\. It knows/],
    ['{"receipts":9,"salt":"s"}', /a newer version of this program wrote it\. It knows/],
    ['{"receipts":0,"salt":"s"}', /its first line is not what this connector writes\. It knows/],
    ["", /its first line is not what this connector writes\. It knows/],
  ])("that begin with %j are damaged, and may be restored or moved away", async (header, why) => {
    await mkdir(dirname(path));
    await writeFile(path, `${header}\n`);
    await expect(open()).rejects.toThrow(why);
    await expect(look()).rejects.toThrow(/restore it, or move it away to go on by the state alone$/);
  });

  it("are about the services that they name in words", async () => {
    await mkdir(dirname(path));
    const header =
      '{"receipts":2,"service":{"companyLookup":5,"emailCheck":"here"},"salt":"s","normalization":2}';
    await writeFile(path, `${header}\n{"service":{"emailVerification":null,"companyLookup":"there"}}\n`);
    const { receipts } = await run();
    expect([...receipts.services].sort()).toEqual([
      ["companyLookup", "there"],
      ["emailCheck", "here"],
    ]);
  });

  it("take nothing more after a write that failed, because a file with a hole proves nothing", async () => {
    const opened = await open();
    const { delta } = opened.book.intend(KEY, AT);
    const probe = await openFile(path, "r");
    const appendTo = vi.spyOn(Object.getPrototypeOf(probe), "appendFile");
    await probe.close();
    appendTo.mockRejectedValueOnce(Object.assign(new Error("full"), { code: "ENOSPC" }));
    for (const _try of [1, 2])
      await expect(opened.receipts.write(LOOK_UP, [delta])).rejects.toThrow(/Cannot use the receipts/);
    await opened.receipts.close();
    expect((await readFile(path, "utf8")).split("\n")).toHaveLength(2);
  });

  it("are compacted when they are large, and again when they have doubled; nothing that counts is lost", async () => {
    const before = await run(async (opened) => {
      await buy(opened, KEY, AT - 90 * DAY_MS, 3);
      for (let nth = 0; nth < 20; nth++) await buy(opened, KEY, AT - (20 - nth) * DAY_MS, 3);
      await buy(opened, OTHER, AT);
      const { delta } = opened.verified.intend(KEY, AT);
      await opened.receipts.write("emailVerification", [delta]);
      await opened.receipts.bind(new Map([["companyLookup", "here"]]));
    });
    const { size } = await stat(path);
    const first = await run(undefined, 1);
    expect(first.known).toEqual(before.known);
    expect((await stat(path)).size).toBeLessThan(size / 4);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const { ino } = await stat(path);
    const second = await run(undefined, 1);
    expect([second.known, second.charged]).toEqual([before.known, before.charged]);
    expect(second.receipts.services).toEqual(new Map([["companyLookup", "here"]]));
    // What holds nothing that is superseded is not compacted in each run.
    expect((await stat(path)).ino).toBe(ino);
    await run(async (opened) => {
      for (let nth = 1; nth < 10; nth++) await buy(opened, KEY, AT + nth * DAY_MS, 1);
    }, 1);
    const grown = await stat(path);
    await run(undefined, 1);
    expect((await stat(path)).size).toBeLessThan(grown.size / 2);
  });
});

describe("receipts of format 1", () => {
  const line = (item: string, fields: object): string =>
    `${JSON.stringify({ for: LOOK_UP, item, normalization: 1, at: textOf(AT), ...fields })}\n`;
  const write = async (...lines: readonly string[]): Promise<void> => {
    await (await open()).receipts.close();
    await writeFile(path, ['{"receipts":1,"salt":"old salt"}\n', ...lines].join(""));
  };

  it("are read as what they meant, and written anew in this format", async () => {
    const [w, x, y] = ["w", "x", "y"].map((letter) => letter.repeat(16)) as [string, string, string];
    await write(
      line(KEY, { for: { toString: 1 }, step: "unknown", day }),
      line(KEY, { step: "unknown", day }),
      line(KEY, { step: "open", job_id: "j", day }),
      '{"for":"companyLookup","item":"kk\n',
      line(KEY, { step: "answered", job_id: "j", day, cost: 3, ended: textOf(AT + DAY_MS) }),
      line(OTHER, { step: "unknown", day }),
      line(w, { step: "unknown", day }),
      line(w, { step: "void" }),
      line(x, { step: "refused", day, code: "NO" }),
      line(y, { step: "unknown", day }),
      line(y, { step: "failed", job_id: "f", day, tries: 1, cost: 0, ended: textOf(AT) }),
      '{"compacted":12}\n',
    );
    for (const _format of [1, 2]) {
      const { book, charged } = await run();
      expect([book.get(KEY).day, book.canBeHad(KEY)]).toEqual([dayOf(AT + DAY_MS), true]);
      expect(charged).toEqual({ submitted: 3, credits: 3, open: 1 });
      const steps = [OTHER, w, x, y].map((key) => Object.values(book.get(key).subs).map(({ step }) => step));
      expect(steps).toEqual([["unknown"], ["void"], ["refused"], ["failed"]]);
      // Nothing that failed is owed to anyone.
      expect([OTHER, w, x, y].filter((key) => book.owes("s", key))).toEqual([]);
    }
    expect(await readFile(path, "utf8")).toMatch(/^\{"receipts":2,"service":\{\},"salt":"old salt"/);
    expect(notes).toEqual([expect.stringContaining("did not name a service")]);
    expect((await run()).known[0]?.[0]?.[2]).toMatchObject({ job: "j", sure: true, cost: 3 });
  });

  it("charge each submission and its cost to the day that the line names, or that of its moment", async () => {
    await write(
      line(KEY, { step: "unknown", day: "2026-03-01" }),
      line(KEY, { step: "answered", job_id: "j", day: "2026-03-01", cost: 3, ended: textOf(AT) }),
      line(OTHER, { step: "unknown" }),
      line(OTHER, { step: "answered", job_id: "k", at: "soon", day, cost: 9 }),
      line(OTHER, { step: "answered", job_id: "k", cost: 2 }),
    );
    for (const _format of [1, 2])
      expect((await run()).book.spentByDay()).toEqual([
        ["2026-03-01", 1, 3],
        [day, 1, 2],
      ]);
  });

  it("are from then on about the services of the run that opens them, which is told", async () => {
    await write(line(KEY, { step: "open", job_id: "j", day }));
    const services = new Map([[LOOK_UP, "here"]]);
    const opened = await Receipts.open(path, RUNTIME, (text) => notes.push(text), "salt", services);
    expect([...opened.services]).toEqual([...services]);
    const { receipts } = await toldBy(opened);
    await receipts.close();
    expect(notes).toEqual([
      `The receipts "${path}" did not name a service. From now on they are about the one of this config.`,
    ]);
    expect([...(await run()).receipts.services]).toEqual([...services]);
  });

  it("keep a sealed response with the moment at which it came", async () => {
    const sealed = seal("old salt", "a@b.example", "{}");
    const ended = textOf(AT + 5_000);
    await write(line(KEY, { for: "emailVerification", step: "answered", day, cost: 0, ended, sealed }));
    for (const _format of [1, 2])
      expect((await run()).known[1]?.[0]?.[2]).toMatchObject({ sealed, job: null, at: AT + 5_000 });
  });

  it("are only looked at without the lock", async () => {
    await write(line(KEY, { step: "open", job_id: "j", day }));
    const before = await readFile(path, "utf8");
    const { book } = await look();
    expect([Object.keys(book.get(KEY).subs), await readFile(path, "utf8")]).toEqual([[`old.${AT}`], before]);
    expect(await Receipts.look(join(folder, "none.jsonl"))).toBeUndefined();
  });
});

describe("seal()", () => {
  it("is opened only by the e-mail that it was sealed for", () => {
    const sealed = seal("salt", "a@b.example", '{"ok":true}');
    expect(unseal("salt", "a@b.example", sealed)).toBe('{"ok":true}');
    expect(unseal("salt", "c@b.example", sealed)).toBeUndefined();
    expect(Buffer.from(sealed, "base64url").includes("true")).toBe(false);
    expect(sealed).not.toContain(Buffer.from('ok":true').toString("base64url"));
    const saved = "1teCBBjeKFSPtPEYkjUPbVUckvik_v_1jvFEYjcbt9fEN1a6PE5T";
    expect([unseal("salt", "a@b.example", saved), saved.length]).toEqual(['{"ok":true}', sealed.length]);
  });
});
