import { describe, expect, it } from "vitest";
import { digestOf, newDigests, OLD_DIGESTS } from "../../src/jobs/digest.ts";
import { FinishedItems } from "../../src/jobs/finished-items.ts";
import { type Entry, entriesOf } from "../../src/jobs/items.ts";
import { type Job, newJob } from "../../src/jobs/job.ts";
import { DAYS_KEPT, JobBook, type Knowledge, type Ledger } from "../../src/jobs/store.ts";
import { addDays, type Day } from "../../src/time.ts";

const DIGESTS = newDigests("salt");
const ON = "2026-03-02" as Day;
const AT = Date.parse("2026-03-02T10:00:00Z");
const NOTHING: Knowledge = { ledgers: [], spent: new Map(), prices: [], inputs: [] };

const open = (knowledge: Partial<Knowledge> = {}): JobBook =>
  new JobBook({ ...NOTHING, ...knowledge }, DIGESTS);

const entry = (text: string): Entry => {
  const [one] = entriesOf("domain", text);
  if (one === undefined) throw new Error("No entry");
  return one;
};

const ledger = (
  salt: string | null,
  jobs: readonly [string, Job][] = [],
  done: readonly string[] = [],
): Ledger => {
  const finished = new FinishedItems();
  for (const key of done) finished.add(key, ON);
  const digests = salt === null ? OLD_DIGESTS : newDigests(salt);
  return { digests, jobs: new Map(jobs), finished };
};

const job = (fields: Partial<Job> = {}): Job => ({ ...newJob(AT, ON, ["a", "b"]), ...fields });
const key = (book: JobBook, text: string): string => book.keyOf(entry(text));

describe("JobBook: what is charged", () => {
  it("is each submission to the sync, its day and its month, and its cost once, when it is known", () => {
    const book = open({ spent: new Map([["2026-03-01" as Day, { submitted: 4, credits: 9 }]]) });
    const one = key(book, "one.example");
    book.intend(one, AT, ON, []);
    const before = { submitted: 1, credits: 0, open: 1 };
    expect(book.charged(ON)).toEqual({
      sync: before,
      day: before,
      month: { submitted: 5, credits: 9, open: 1 },
    });
    const submitted = book.get(one) as Job;
    book.charge(one, submitted, 3);
    book.put(one, { ...submitted, step: "answered", cost: 3 });
    book.charge(one, book.get(one) as Job, 3);
    const after = { submitted: 1, credits: 3, open: 0 };
    expect(book.charged(ON)).toEqual({
      sync: after,
      day: after,
      month: { submitted: 5, credits: 12, open: 0 },
    });
    expect(book.charged("2026-04-01" as Day).month).toEqual({ submitted: 0, credits: 0, open: 0 });
  });

  it("is nothing to this sync of a job that an earlier one submitted", () => {
    const book = open({ ledgers: [ledger("salt", [["k".repeat(16), job({ step: "open", jobId: "1" })]])] });
    expect(book.charged(ON)).toMatchObject({ sync: { open: 0 }, day: { open: 1 }, month: { open: 1 } });
    expect(book.charged(addDays(ON, 1))).toMatchObject({ day: { open: 0 }, month: { open: 1 } });
    book.charge("k".repeat(16), book.get("k".repeat(16)) as Job, 5);
    expect(book.charged(ON)).toMatchObject({
      sync: { credits: 0 },
      day: { credits: 5 },
      month: { credits: 5 },
    });
  });

  it("is what an unknown submission may have cost, once it is submitted again", () => {
    const unknown: [string, Job] = ["u".repeat(16), job({ day: "2026-03-01" as Day, unknowns: 1 })];
    const book = open({ ledgers: [ledger("salt", [unknown])], prices: [7] });
    const takeBack = book.intend(unknown[0], AT, ON, []);
    expect(book.charged("2026-03-01" as Day).day).toMatchObject({ submitted: 0, credits: 7 });
    expect(book.get(unknown[0])).toMatchObject({ step: "unknown", unknowns: 2 });
    takeBack();
    expect(book.charged("2026-03-01" as Day).day).toMatchObject({ submitted: 0, credits: 0 });
    expect(book.get(unknown[0])).toEqual(unknown[1]);
  });

  it("is nothing of a submission that the service did not take", () => {
    const book = open({ ledgers: [ledger("salt", [], ["d".repeat(16)])] });
    const known = "d".repeat(16);
    const takeBack = [book.intend(known, AT, ON, []), book.intend(key(book, "new.example"), AT, ON, [])];
    expect(book.charged(ON).sync.submitted).toBe(2);
    expect(book.finished.dayOf(known)).toBeUndefined();
    for (const undo of takeBack) undo();
    expect(book.charged(ON)).toMatchObject({ sync: { submitted: 0 }, day: { submitted: 0 } });
    expect(book.finished.dayOf(known)).toBe(ON);
    expect([...book.jobs()]).toEqual([]);
    expect(book.ofThisRun.size).toBe(0);
  });

  it("is never to a day before one that was charged", () => {
    const spent = new Map([[addDays(ON, 1), { submitted: 1, credits: 0 }]]);
    expect(open({ spent }).dayToCharge(ON)).toBe(addDays(ON, 1));
    expect(open({ spent }).dayToCharge(addDays(ON, 2))).toBe(addDays(ON, 2));
  });

  it("is remembered for two months, in the order of the days", () => {
    const days = [0, 1, DAYS_KEPT - 1, DAYS_KEPT, 400].map((back) => addDays(ON, -back));
    const spent = new Map(days.map((day) => [day, { submitted: 1, credits: 1 }]));
    expect([...open({ spent }).knowledge(ON).spent.keys()]).toEqual([days[2], days[1], days[0]]);
  });

  it("tells what the next answer may cost by the last fifty", () => {
    const book = open({ prices: [90] });
    expect(book.estimate).toBe(90);
    for (let nth = 0; nth < 50; nth++) book.charge("k".repeat(16), job(), 2);
    expect(book.estimate).toBe(2);
    book.learnPrices([80]);
    expect(book.estimate).toBe(2);
    const fresh = open();
    fresh.learnPrices([80, 1]);
    expect(fresh.estimate).toBe(80);
  });
});

describe("JobBook: an item", () => {
  it("keeps its tries and sources when it is submitted again after a failure, and is a refresh after an answer", () => {
    const failed = job({ step: "failed", tries: 2, sources: ["one"], isRefresh: true });
    const keys = ["f", "d", "n"].map((letter) => letter.repeat(16)) as [string, string, string];
    const book = open({ ledgers: [ledger("salt", [[keys[0], failed]], [keys[1]])] });
    for (const one of keys) book.intend(one, AT + 1, ON, ["a"]);
    const fresh = { step: "unknown", at: AT + 1, unknowns: 0, owed: ["a"] };
    expect(book.get(keys[0])).toMatchObject({ ...fresh, tries: 2, sources: ["one"], isRefresh: true });
    expect(book.get(keys[1])).toMatchObject({ ...fresh, tries: 0, sources: [], isRefresh: true });
    expect(book.get(keys[2])).toMatchObject({ ...fresh, tries: 0, sources: [], isRefresh: false });
  });

  it("is found under the digests of earlier versions and salts, and moves to those in use", () => {
    const old = digestOf(OLD_DIGESTS, "www.old.example.");
    const salted = digestOf(newDigests("other"), "salted.example");
    const book = open({
      ledgers: [ledger(null, [[old, job({ step: "open", jobId: "1" })]]), ledger("other", [], [salted])],
    });
    expect({ size: book.size, jobs: book.jobCount }).toEqual({ size: 2, jobs: 1 });
    expect(book.get(key(book, "OLD.example"))).toMatchObject({ jobId: "1" });
    expect(book.finished.dayOf(key(book, "salted.example"))).toBe(ON);
    expect({ size: book.size, jobs: book.jobCount }).toEqual({ size: 2, jobs: 1 });
    // Who knows it by its old key means the same item.
    book.finish(old, ON);
    expect(book.finished.dayOf(key(book, "old.example"))).toBe(ON);
    expect(book.knowledge(ON).ledgers.map(({ digests }) => digests)).toEqual([DIGESTS]);
  });

  it("stays with its newest submission where it is known under two digests", () => {
    for (const [older, newer] of [
      [AT, AT + 1],
      [AT + 1, AT],
    ] as const) {
      const current = digestOf(DIGESTS, "one.example");
      const old = digestOf(OLD_DIGESTS, "one.example");
      const book = open({
        ledgers: [
          ledger("salt", [[current, job({ at: newer, jobId: "new", step: "open" })]]),
          ledger(null, [[old, job({ at: older, jobId: "old", step: "open" })]]),
        ],
      });
      expect(book.get(key(book, "one.example"))?.jobId).toBe(newer > older ? "new" : "old");
      expect(book.jobCount).toBe(1);
    }
  });

  it("that nobody named in this run keeps its old digest, and its life goes on there", () => {
    const old = digestOf(OLD_DIGESTS, "one.example");
    const book = open({ ledgers: [ledger(null, [[old, job({ step: "open", jobId: "1" })]])] });
    book.put(old, job({ step: "answered", jobId: "1" }));
    expect([...book.jobs()]).toMatchObject([[old, { step: "answered" }]]);
    book.finish(old, ON);
    const [current, older] = book.knowledge(ON).ledgers;
    expect(current?.jobs.size).toBe(0);
    expect({ jobs: older?.jobs.size, done: older?.finished.dayOf(old) }).toEqual({ jobs: 0, done: ON });
  });
});
