import { describe, expect, it } from "vitest";
import { newsTo, openBook } from "../../src/jobs/adopt.ts";
import { newDigests } from "../../src/jobs/digest.ts";
import { FinishedItems } from "../../src/jobs/finished-items.ts";
import { type Job, newJob } from "../../src/jobs/job.ts";
import type { Receipt } from "../../src/jobs/receipts.ts";
import type { Saved } from "../../src/jobs/state.ts";
import type { Knowledge } from "../../src/jobs/store.ts";
import { addDays, type Day } from "../../src/time.ts";

const DIGESTS = newDigests("salt");
const KEY = "k".repeat(16);
const ON = "2026-03-02" as Day;
const AT = Date.parse("2026-03-02T10:00:00Z");
const LOOKUPS = { name: "company_lookups", syncMode: "incremental" };
const CONTACTS = { name: "company_lookup_contacts", syncMode: "incremental" };

const job = (fields: Partial<Job> = {}): Job => ({
  ...newJob(AT, ON, [LOOKUPS.name]),
  ...{ step: "open", jobId: "job_1" },
  ...fields,
});

const receipt = (fields: Partial<Job> = {}, sealed: string | null = null): Receipt => ({
  ...{ setting: "companyLookup", key: KEY, job: job({ owed: [], ...fields }), sealed },
});

function knowing(known: Job | Day | undefined, more: Partial<Knowledge> = {}): Saved {
  const finished = new FinishedItems();
  if (typeof known === "string") finished.add(KEY, known);
  const jobs = new Map(typeof known === "object" ? [[KEY, known]] : []);
  const ledgers = [{ digests: DIGESTS, jobs, finished }];
  return { cursor: null, knowledge: { ledgers, spent: new Map(), prices: [], inputs: [], ...more } };
}

const NOTHING: Saved = { cursor: null, knowledge: null };

/** What is known of the item in the end, and what was charged to its day. */
function opened(
  saved: Readonly<Record<string, Saved>>,
  selected = [LOOKUPS],
  ...receipts: readonly Receipt[]
) {
  const { book, ...rest } = openBook(new Map(Object.entries(saved)), selected, DIGESTS, receipts);
  const { submitted, credits } = book.charged(ON).day;
  return { job: book.get(KEY), finished: book.finished.dayOf(KEY), charged: [submitted, credits], ...rest };
}

const ANSWERED = { step: "answered", cost: 3, ended: AT + 60_000 } as const;

describe("openBook() of one stream", () => {
  it("leaves an item done that its state and the receipts say is done", () => {
    const known = opened({ company_lookups: knowing(ON) }, [LOOKUPS], receipt(ANSWERED));
    expect(known).toMatchObject({ job: undefined, finished: ON, charged: [0, 0] });
  });

  it("takes over and charges, once, what only the receipts know", () => {
    for (const saved of [NOTHING, knowing(undefined), knowing(addDays(ON, -1))]) {
      const known = opened({ company_lookups: saved }, [LOOKUPS], receipt(ANSWERED));
      expect(known.job).toMatchObject({ ...ANSWERED, jobId: "job_1", owed: ["company_lookups"] });
      expect(known).toMatchObject({ finished: undefined, charged: [1, 3] });
    }
    const open = opened({ company_lookups: NOTHING }, [LOOKUPS], receipt());
    expect(open).toMatchObject({ job: { step: "open", owed: ["company_lookups"] }, charged: [1, 0] });
  });

  it("adds to what the state says of a submission what the receipts know besides", () => {
    const unknown = job({ step: "unknown", jobId: null });
    const known = opened(
      { company_lookups: knowing(unknown) },
      [LOOKUPS],
      receipt({ asked: AT + 1, misses: 2 }),
    );
    expect(known.job).toMatchObject({ step: "open", jobId: "job_1", asked: AT + 1, misses: 2 });
    expect(known.job?.owed).toEqual(["company_lookups"]);
    const answered = opened({ company_lookups: knowing(job()) }, [LOOKUPS], receipt(ANSWERED));
    expect(answered).toMatchObject({ job: ANSWERED, charged: [0, 3] });
  });

  it("does not go back from an answer or a later submission to what an older receipt says", () => {
    const later = job({ at: AT + 1, jobId: "job_2" });
    expect(opened({ company_lookups: knowing(later) }, [LOOKUPS], receipt()).job?.jobId).toBe("job_2");
    const failed = job({ step: "failed", tries: 1 });
    const known = opened({ company_lookups: knowing(failed) }, [LOOKUPS], receipt(ANSWERED));
    expect(known.job).toMatchObject({ step: "failed", tries: 1 });
  });

  it("calls an answer done that nobody can bring any more, and delivers nothing of it", () => {
    const lost = receipt({ ...ANSWERED, jobId: null });
    expect(opened({ company_lookups: NOTHING }, [LOOKUPS], lost)).toMatchObject({
      ...{ job: undefined, finished: ON, charged: [1, 3] },
    });
    const sealed = receipt({ ...ANSWERED, jobId: null }, "sealed");
    const kept = opened({ company_lookups: NOTHING }, [LOOKUPS], sealed);
    expect(kept).toMatchObject({ job: { owed: ["company_lookups"] }, sealed: new Map([[KEY, "sealed"]]) });
  });

  it("owes a full refresh whatever the receipts can bring back", () => {
    const refresh = [{ ...LOOKUPS, syncMode: "full_refresh" }];
    const known = opened({ company_lookups: knowing(ON) }, refresh, receipt(ANSWERED));
    expect(known).toMatchObject({ job: { step: "answered", owed: ["company_lookups"] }, charged: [0, 0] });
    expect(opened({ company_lookups: knowing(ON) }, refresh).unrecoverable).toBe(1);
  });

  it("learns prices from the receipts only where the state knows none", () => {
    const receipts = [receipt(ANSWERED)];
    const estimate = (prices: readonly number[]): number =>
      openBook(new Map([["company_lookups", knowing(undefined, { prices })]]), [LOOKUPS], DIGESTS, receipts)
        .book.estimate;
    expect([estimate([]), estimate([8])]).toEqual([3, 8]);
  });
});

describe("openBook() of two streams", () => {
  const both = [LOOKUPS, CONTACTS];
  const of = (lookups: Saved, contacts: Saved) =>
    opened({ company_lookups: lookups, company_lookup_contacts: contacts }, both);

  it("goes by the newest submission, whichever state has it, and owes it to both", () => {
    const [older, newer] = [job(), job({ at: AT + 1, jobId: "job_2" })];
    const [ours, theirs] = [LOOKUPS.name, CONTACTS.name];
    for (const known of [
      of(knowing(older), knowing({ ...newer, owed: [theirs] })),
      of(knowing({ ...newer, owed: [ours] }), knowing({ ...older, owed: [theirs] })),
    ]) {
      expect(known.job).toMatchObject({ jobId: "job_2", at: AT + 1 });
      expect(known.job?.owed.toSorted()).toEqual([theirs, ours].toSorted());
    }
  });

  it("owes an answer to the one that has not delivered it, without another charge", () => {
    const known = of(knowing(ON), knowing(job({ owed: [CONTACTS.name] })));
    expect(known.job).toMatchObject({ step: "answered", cost: 0, owed: [CONTACTS.name] });
    expect(of(knowing(ON), knowing(ON))).toMatchObject({ job: undefined, finished: ON });
  });

  it("charges each day with the larger of what the two say", () => {
    const spent = (submitted: number, credits: number) => ({
      spent: new Map([[ON, { submitted, credits }]]),
    });
    expect(of(knowing(ON, spent(2, 9)), knowing(ON, spent(3, 4))).charged).toEqual([3, 9]);
  });

  it("owes a stream that is new the jobs that are open, and no others", () => {
    expect(of(knowing(job()), NOTHING).job?.owed.toSorted()).toEqual([CONTACTS.name, LOOKUPS.name]);
    expect(of(knowing(job({ step: "answered" })), NOTHING).job?.owed).toEqual([LOOKUPS.name]);
  });
});

describe("newsTo()", () => {
  const isNews = (saved: Saved, isFullRefresh = false) => {
    const states = new Map([["companyLookup" as const, new Map([["company_lookups", saved]])]]);
    return (at: number) => newsTo(states, [LOOKUPS], isFullRefresh)("companyLookup", KEY, at);
  };
  const DAY = 86_400_000;

  it("is what came after all that the state knows of an item, and a submission that still waits", () => {
    const done = isNews(knowing(ON));
    expect([done(AT), done(AT + DAY)]).toEqual([false, true]);
    const open = isNews(knowing(job()));
    expect([open(AT - 1), open(AT), open(AT + 1)]).toEqual([false, true, true]);
    const answered = isNews(knowing(job({ step: "answered" })));
    expect([answered(AT), answered(AT + 1)]).toEqual([false, true]);
  });

  it("is everything without a state, and in a full refresh, and nothing of another setting", () => {
    expect(isNews(NOTHING)(0)).toBe(true);
    expect(isNews(knowing(ON), true)(0)).toBe(true);
    expect(newsTo(new Map(), [LOOKUPS], true)("emailCheck", KEY, AT)).toBe(false);
  });
});
