import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/errors.ts";
import { collectDue, collectFailure, deliver, moveSchedules, schedule } from "../../../src/jobs/collect.ts";
import { type JobContext, JobRun } from "../../../src/jobs/job-run.ts";
import type { Answer, JobReply, Trouble } from "../../../src/jobs/job-type.ts";
import type { Delta, Sub } from "../../../src/jobs/lattice.ts";
import type { Event } from "../../../src/streams/event.ts";
import { DAY, JobService, Tape } from "../../support/job-model.ts";

const HOUR = DAY / 24;
const [LOOKUPS, CONTACTS] = ["company_lookups", "company_lookup_contacts"];

const answerOf = (domain: string, changes: Partial<Answer> = {}): Answer => ({
  value: { domain, status: "success", contacts: [{}, {}] },
  ...{ cursor: null, cost: 2, failed: false, code: null, sources: [], ...changes },
});
const answered = (domain: string, changes?: Partial<Answer>): JobReply => ({
  kind: "answered",
  answer: answerOf(domain, changes),
});
const PENDING: JobReply = { kind: "pending", notBefore: null };
const trouble = (kind: Trouble["kind"], changes: Partial<Trouble> = {}): Trouble => ({
  ...{ kind, error: new Error(`it is ${kind}`), code: `code ${kind}`, ...changes },
});

/** An open job: when it was submitted, as ms before now, and what else is known of it. */
type Open = Partial<Omit<Sub, "at">> & { readonly ago?: number };

/**
 * A run over open jobs of as many items. `replies`: what each job brings, by its number, and then for good; a job that
 * has none is pending.
 */
function runOver(
  jobs: readonly Open[],
  replies: Readonly<Record<number, readonly JobReply[]>> = {},
  changes = {},
) {
  const service = new JobService(new Tape([]));
  const items = jobs.map((_, nth) => `i${nth}.example`);
  const written: Delta[] = [];
  const base = service.context(items, null);
  const { book } = base;
  const now = service.now;
  const keys = items.map((item) => book.keyOf({ item, kind: "domain", text: item }));
  const ids = jobs.map(({ ago = 0, ...fields }, nth) => {
    const { id } = book.intend(keys[nth] ?? "", now - ago);
    book.change(keys[nth] ?? "", id, { step: "open", job: `job${nth}`, ...fields });
    return id;
  });
  const asked: string[] = [];
  const left = new Map(Object.entries(replies).map(([nth, list]) => [`job${nth}`, [...list]]));
  const context = {
    ...base,
    memory: {
      ...base.memory,
      write: async (_setting: string, deltas: readonly Delta[]) => void written.push(...deltas),
    },
    client: {
      ...base.client,
      ask: async (job: string): Promise<JobReply> => {
        asked.push(job);
        const list = left.get(job) ?? [];
        return (list.length > 1 ? list.shift() : list[0]) ?? PENDING;
      },
    },
    ...changes,
  } as JobContext;
  const run = new JobRun(context);
  const sub = (nth: number): Sub | undefined => book.get(keys[nth] ?? "").subs[ids[nth] ?? ""];
  return { run, service, book, keys, ids, asked, written, sub, now };
}

type Over = ReturnType<typeof runOver>;

async function all(events: AsyncGenerator<Event, unknown>): Promise<readonly Event[]> {
  const seen: Event[] = [];
  for (;;) {
    const { done, value } = await events.next();
    if (done === true) return seen;
    seen.push(value as Event);
  }
}

/** Asks for what is due until nothing is. */
async function collect({ run, keys }: Over): Promise<readonly Event[]> {
  schedule(run, keys);
  const seen: Event[] = [];
  for (let before = -1; before !== seen.length; ) {
    before = seen.length;
    const events = await all(collectDue(run));
    seen.push(...events);
    if (run.nextDue !== undefined && run.nextDue <= run.context.client.now()) before = -1;
  }
  return seen;
}

const recordsIn = (events: readonly Event[]): number =>
  events.reduce((sum, event) => sum + (event.kind === "records" ? event.lines.length : 0), 0);

describe("schedule()", () => {
  it("puts those first that were not asked for the longest, and what is due later behind them", () => {
    const over = runOver([
      { ago: HOUR, asked: 0, notBefore: null },
      { ago: HOUR },
      { ago: HOUR, notBefore: Date.UTC(2026, 2, 2, 10) + 2_000 },
      { ago: HOUR, notBefore: Date.UTC(2026, 2, 2, 10) + 1_000 },
      { ago: HOUR, asked: -5 },
    ]);
    schedule(over.run, over.keys);
    schedule(over.run, over.keys);
    expect(over.run.collecting.agenda.map(({ job }) => job)).toEqual([
      "job4",
      "job0",
      "job1",
      "job3",
      "job2",
    ]);
    expect(over.run.nextDue).toBeLessThan(0);
    expect(over.run.collecting.agenda.at(-1)?.due).toBe(over.now + 2_000);
  });

  it("keeps the order of those that are due at one time", () => {
    const over = runOver([{}, {}, {}]);
    schedule(over.run, over.keys);
    expect(over.run.collecting.agenda.map(({ job }) => job)).toEqual(["job0", "job1", "job2"]);
  });

  it("leaves to the setting's second stream what is due now and was not asked for", () => {
    const shared = { answers: new Map(), asked: new Set(["job0"]), hasSeenAll: false, suppressed: 0 };
    const over = runOver([{}, {}, { notBefore: Date.UTC(2026, 2, 2, 10) + 1 }], {}, { shared });
    over.run = new JobRun({ ...over.run.context, task: { ...over.run.context.task, isSecond: true } });
    schedule(over.run, over.keys);
    expect(over.run.collecting.agenda.map(({ job }) => job)).toEqual(["job1"]);
  });

  it("asks once more for an answer that a stream lacks, and never for what it has", async () => {
    const over = runOver([{}], { 0: [answered("i0.example")] });
    await collect(over);
    const again = new JobRun(over.run.context);
    schedule(again, over.keys);
    expect(again.collecting.agenda).toEqual([]);
    const task = { ...over.run.context.task, spec: { ...over.run.context.task.spec, name: CONTACTS } };
    const other = new JobRun({ ...over.run.context, task } as JobContext);
    schedule(other, over.keys);
    expect(other.collecting.agenda.map(({ job }) => job)).toEqual(["job0"]);
  });

  it("asks for nothing of a kind that is answered at once", () => {
    const over = runOver([{}]);
    const run = new JobRun({ ...over.run.context, type: { ...over.run.context.type, polling: null } });
    schedule(run, over.keys);
    expect(run.collecting.agenda).toEqual([]);
  });
});

describe("collectDue()", () => {
  it("asks for three at once, delivers in their order, and says whether any was due", async () => {
    const replies = Object.fromEntries([0, 1, 2, 3].map((nth) => [nth, [answered(`i${nth}.example`)]]));
    const over = runOver([{}, {}, {}, {}], replies);
    const turn = async (): Promise<boolean | void> => {
      const events = collectDue(over.run);
      for (;;) {
        const { done, value } = await events.next();
        if (done === true) return value;
      }
    };
    expect(await turn()).toBe(false);
    schedule(over.run, over.keys);
    const turns = [
      [await turn(), over.asked.length],
      [await turn(), over.asked.length],
    ];
    expect([turns, await turn(), over.asked]).toEqual([
      [
        [true, 3],
        [true, 4],
      ],
      ...[false, ["job0", "job1", "job2", "job3"]],
    ]);
    expect([over.run.collecting.answered, over.run.spent]).toEqual([4, { submissions: 0, credits: 8 }]);
  });

  it("asks for nothing that is due later, and for nothing once the run is over or has ended its questions", async () => {
    const later = runOver([{ notBefore: Date.UTC(2026, 2, 2, 10) + 1 }]);
    const over = runOver([{}], {}, { endsAt: Date.UTC(2026, 2, 2, 10) });
    const ended = runOver([{}]);
    ended.run.collecting.ended = new Error("ended");
    for (const one of [later, over, ended]) {
      schedule(one.run, one.keys);
      await all(collectDue(one.run));
      expect(one.asked).toEqual([]);
    }
    later.service.now += 1;
    await all(collectDue(later.run));
    expect(later.asked).toEqual(["job0"]);
  });

  it("takes from the other stream what it has kept, and asks for the rest", async () => {
    const answers = new Map([["job0", answerOf("i0.example")]]);
    const shared = { answers, asked: new Set<string>(), hasSeenAll: false, suppressed: 0 };
    const over = runOver([{}, {}], { 1: [answered("i1.example")] }, { shared });
    await collect(over);
    expect([over.asked, [...shared.asked], [...answers.keys()]]).toEqual([
      ["job1"],
      ["job1"],
      ["job0", "job1"],
    ]);
  });

  it("fails the run for a question that could not be asked, and delivers what came beside it", async () => {
    const over = runOver([{}, {}], { 1: [answered("i1.example")] });
    const { client } = over.run.context;
    const ask = async (job: string) => {
      if (job === "job0") throw new Error("no socket");
      return client.ask(job);
    };
    over.run = new JobRun({ ...over.run.context, client: { ...client, ask } });
    await collect(over);
    expect([over.run.collecting.answered, collectFailure(over.run)?.message]).toEqual([1, "no socket"]);
    expect(over.run.failures.ended).toBe(true);
  });

  it("remembers when a job was found unanswered, and that it brought something", async () => {
    const over = runOver([{ ago: HOUR, misses: 2, code: "x" }], {
      0: [{ kind: "pending", notBefore: null }],
    });
    over.service.now += HOUR;
    await collect(over);
    const asked = over.service.now;
    expect(over.sub(0)).toMatchObject({ asked, notBefore: null, misses: 0, code: null, step: "open" });
    expect(over.run.nextDue).toBe(asked + 5_000);
    expect([...over.run.collecting.proper]).toEqual(over.ids);
  });

  it.each([
    [2 * DAY - 1, null, undefined],
    [2 * DAY, null, "processing"],
    [3 * DAY, Date.UTC(2026, 2, 3), undefined],
  ])("is patient with a job of %i ms that is not to be answered before %s", async (ago, notBefore, code) => {
    const over = runOver([{ ago }], { 0: [{ kind: "pending", notBefore }] });
    await collect(over);
    expect([over.sub(0)?.code ?? undefined, over.sub(0)?.notBefore]).toEqual([code, notBefore]);
    expect(collectFailure(over.run)).toBeUndefined();
  });

  it.each([
    ["says another item", { domain: "other.example" }, "the answer names another item"],
    ["says the item", { domain: "i0.example" }, undefined],
    ["spells the item otherwise", { domain: "HTTPS://I0.Example/" }, undefined],
    ["says no item", {}, undefined],
    ["says what is no item", { domain: "?" }, undefined],
    ["says what is no text", { domain: 7 }, undefined],
  ])("takes no answer for that of another item: it %s", async (_, value, code) => {
    const over = runOver([{}], { 0: [answered("i0.example", { value })] });
    await collect(over);
    expect([over.run.collecting.answered, over.sub(0)?.code]).toEqual(
      code === undefined ? [1, undefined] : [0, code],
    );
    expect(collectFailure(over.run)?.message).toBe(
      code === undefined
        ? undefined
        : 'Cannot collect a company look-up: the answer about the job "job0" names another item. Tell the service\'s owner',
    );
  });
});

describe("what brings nothing of use", () => {
  it.each([
    [trouble("unusable", { isRetryable: true }), 3],
    [trouble("known", { isRetryable: true }), 3],
    [trouble("denied", { isRetryable: true }), 1],
    [trouble("unusable", { isRetryable: false }), 1],
    [trouble("unusable"), 1],
  ])("is asked for again as long as that may help: %j", async (reply, times) => {
    const over = runOver([{ notBefore: 1 }], { 0: [reply] });
    schedule(over.run, over.keys);
    for (let nth = 0; nth < 5; nth++) {
      await all(collectDue(over.run));
      over.service.now = over.run.nextDue ?? over.service.now;
    }
    expect([over.asked.length, over.sub(0)?.code, over.sub(0)?.notBefore]).toEqual([times, reply.code, null]);
    expect(over.sub(0)?.asked).toBeGreaterThanOrEqual(over.now);
  });

  it("is forgotten once the job is answered properly", async () => {
    const over = runOver([{}, {}], { 0: [trouble("known", { isRetryable: true }), PENDING], 1: [PENDING] });
    schedule(over.run, over.keys);
    await all(collectDue(over.run));
    expect(over.run.collecting.jobs.get(over.ids[0] ?? "")?.trouble).toBeDefined();
    over.service.now = over.run.nextDue ?? 0;
    await all(collectDue(over.run));
    expect(over.run.collecting.jobs.get(over.ids[0] ?? "")?.trouble).toBeUndefined();
    await moveSchedules(over.run);
    expect(over.sub(0)).toMatchObject({ misses: 0, code: null });
  });

  it("ends the questions after three in a row without any answer, and no sooner", async () => {
    const silent = trouble("silent");
    const three = runOver(Array(6).fill({}), { 0: [silent], 1: [silent], 2: [silent] });
    await collect(three);
    expect([three.asked.length, collectFailure(three.run)?.message]).toEqual([3, "it is silent"]);
    for (const reply of [PENDING, trouble("known"), answered("i2.example")]) {
      const broken = runOver(Array(6).fill({}), {
        ...{ 0: [silent], 1: [silent], 2: [reply], 3: [silent], 4: [silent] },
      });
      await collect(broken);
      expect([broken.asked.length, broken.run.collecting.ended]).toEqual([6, undefined]);
    }
  });

  it("ends the questions after fifty, if none was answered properly", async () => {
    const jobs = Array(60).fill({});
    const vain = Object.fromEntries(jobs.map((_, nth) => [nth, [trouble("known")]]));
    const over = runOver(jobs, vain);
    await collect(over);
    // Three are under way at once.
    expect([over.asked.length, collectFailure(over.run)?.message]).toEqual([51, "it is known"]);
    const proper = runOver(jobs, { ...vain, 7: [answered("i7.example")] });
    await collect(proper);
    expect([proper.asked.length, collectFailure(proper.run)]).toEqual([60, undefined]);
  });

  it("is charged once if it is too long to take in, and then nothing more is bought", async () => {
    const over = runOver([{}, {}], { 0: [trouble("known", { cost: 7 })], 1: [trouble("known")] });
    await collect(over);
    expect([over.run.spent.credits, over.run.collecting.charged, over.run.failures.ended]).toEqual([
      7,
      7,
      true,
    ]);
    expect(over.written.flatMap(({ spent = [] }) => spent.map((one) => one[5]))).toEqual([7]);
    const again = new JobRun(over.run.context);
    schedule(again, over.keys.slice(0, 1));
    await all(collectDue(again));
    expect([again.spent.credits, again.collecting.charged, again.failures.ended]).toEqual([0, 0, false]);
  });
});

describe("moveSchedules()", () => {
  it.each([
    ["alone", { 0: [trouble("known")] }, [0]],
    ["beside others in vain", { 0: [trouble("known")], 1: [trouble("known")] }, [0, 0]],
    ["beside one that was answered", { 0: [trouble("known")], 1: [answered("i1.example")] }, [1, undefined]],
    ["beside one that is pending", { 0: [trouble("known")], 1: [PENDING] }, [1, 0]],
    [...["beside two that are pending", { 0: [trouble("known")], 1: [PENDING], 2: [PENDING] }], [1, 0, 0]],
  ] as [string, Record<number, readonly JobReply[]>, readonly (number | undefined)[]][])(
    "counts a miss of a job only if another was answered properly: %s",
    async (_, replies, misses) => {
      const over = runOver(
        misses.map(() => ({})),
        replies,
      );
      await collect(over);
      over.written.length = 0;
      await moveSchedules(over.run);
      expect(misses.map((_one, nth) => over.sub(nth)?.misses)).toEqual(misses);
      const inVain = Object.values(replies).filter(([reply]) => reply?.kind === "known").length;
      expect(over.written).toHaveLength(inVain);
    },
  );

  it("counts no miss of a job that was answered properly before it was not, but for others", async () => {
    const over = runOver([{}], { 0: [PENDING, trouble("known")] });
    await collect(over);
    over.service.now += HOUR;
    await all(collectDue(over.run));
    await moveSchedules(over.run);
    expect(over.sub(0)).toMatchObject({ misses: 0, code: "code known" });
  });
});

describe("collectFailure()", () => {
  const failing = async (jobs: readonly Open[], replies: readonly JobReply[]) => {
    const over = runOver(jobs, Object.fromEntries(replies.map((reply, nth) => [nth, [reply]])));
    await collect(over);
    return collectFailure(over.run);
  };
  const denied = trouble("denied");
  /** Fails the stream if nothing before it does. */
  const OTHER = trouble("unusable", { error: new Error("another") });

  it("blames the key that may read none of at least three jobs", async () => {
    expect(await failing([{}, {}], [denied, denied])).toBeUndefined();
    const error = await failing([{}, {}, {}, {}], [denied, denied, trouble("known"), denied]);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error?.message).toBe(
      "Cannot collect results: this key may not read any of the 3 jobs that were asked for. Use the key " +
        "that submitted them. Nothing is lost: they are asked for again",
    );
    expect(error?.cause).toBe(denied.error);
    expect(await failing([{}, {}, {}, {}], [denied, denied, denied, PENDING])).toBeUndefined();
  });

  it.each([
    ["unusable", 0, true],
    ["silent", 0, true],
    ["known", 0, false],
    ["denied", 0, false],
    ["unusable", 7 * DAY - 1, true],
    ["unusable", 7 * DAY, false],
    ["silent", 7 * DAY, false],
  ] as const)(
    "fails the stream for a job that is %s, %i ms after its submission: %s",
    async (kind, ago, fails) => {
      expect((await failing([{}, { ago }, {}], [trouble("known"), trouble(kind), OTHER]))?.message).toBe(
        fails ? `it is ${kind}` : OTHER.error.message,
      );
      expect(await failing([{ ago }, {}], [trouble(kind), PENDING])).toBeUndefined();
    },
  );
});

describe("deliver()", () => {
  const failed = (code: string | null): Partial<Answer> => ({ failed: true, cost: 0, code });

  it("has the purchase on the disk before its records leave, and counts it once", async () => {
    const over = runOver([{}]);
    const job = { key: over.keys[0] ?? "", id: over.ids[0] ?? "", job: "job0" };
    const events = deliver(over.run, job, answerOf("i0.example"));
    expect((await events.next()).value).toMatchObject({ kind: "records", stream: LOOKUPS });
    expect(over.written).toHaveLength(1);
    await all(events);
    await all(deliver(over.run, job, answerOf("i0.example")));
    expect([over.written.length, over.run.spent.credits, over.run.collecting.answered]).toEqual([1, 2, 2]);
    expect(over.book.owes(LOOKUPS ?? "", job.key)).toBe(false);
  });

  it("ends every state before it with records behind it", async () => {
    const over = runOver([{}]);
    over.run.states.covering = {};
    const job = { key: over.keys[0] ?? "", id: over.ids[0] ?? "", job: "job0" };
    const cursor = "2026-03-01T00:00:00.000Z";
    await deliver(over.run, job, answerOf("i0.example", { cursor })).next();
    const first = over.run.states.cursor;
    await all(deliver(over.run, job, answerOf("i0.example", { cursor })));
    expect([first, over.run.states.cursor]).toEqual([null, cursor]);
  });

  it.each<[string, Partial<Answer>, string | undefined]>([
    ["no failure", {}, undefined],
    ["a failure", failed("INTERNAL_ERROR"), "failed"],
    ["a failure without a code", failed(null), "failed"],
    ["an account that has run dry", failed("INSUFFICIENT_CREDITS"), "unpaid"],
    ["a quota that is used up", failed("QUOTA_EXCEEDED"), "unpaid"],
  ])("keeps %s apart", async (_, changes, step) => {
    const over = runOver([{}, {}], { 0: [answered("i0.example", { sources: ["s"], ...changes })] });
    const events = await collect(over);
    expect([recordsIn(events), over.sub(0)?.step]).toEqual([1, step]);
    if (step !== undefined)
      expect(over.sub(0)).toMatchObject({ ended: over.now, sources: ["s"], code: changes.code ?? null });
    expect(over.book.get(over.keys[0] ?? "").day).toBe(step === undefined ? "2026-03-02" : "");
    // Jobs of earlier runs say nothing of the account of today.
    expect([over.run.failures.isOutOfCredits, over.run.failures.ended]).toEqual([false, false]);
  });

  it("stops buying when a job of this run finds the account dry", async () => {
    const over = runOver([{}], { 0: [answered("i0.example", failed("QUOTA_EXCEEDED"))] });
    over.run.submitting.own.add(over.ids[0] ?? "");
    await collect(over);
    expect([over.run.failures.isOutOfCredits, over.run.failures.ended]).toEqual([true, true]);
  });

  it("takes the fourth failure of an item for its answer", async () => {
    const over = runOver([{ ago: 40 * DAY }]);
    const key = over.keys[0] ?? "";
    const steps: string[] = [];
    for (let nth = 0; nth < 4; nth++) {
      const { id } = over.book.intend(key, over.now - (30 - nth) * DAY);
      over.book.change(key, id, { step: "open", job: `more${nth}` });
      await all(deliver(over.run, { key, id, job: `more${nth}` }, answerOf("i0.example", failed("X"))));
      steps.push(over.book.get(key).subs[id]?.step ?? "answered");
    }
    expect(steps).toEqual(["failed", "failed", "failed", "answered"]);
  });

  it.each([
    [true, undefined, 6],
    [false, 1_999, 2_000],
    [false, 2_000, 2_000],
  ])("keeps an answer for the other stream while there are fewer than 2,000", async (isAlone, held, kept) => {
    const answers = isAlone
      ? undefined
      : new Map(Array.from({ length: held ?? 0 }, (_, nth) => [`x${nth}`, answerOf("x")]));
    const shared = { answers, asked: new Set<string>(), hasSeenAll: false, suppressed: 0 };
    const over = runOver([{}], { 0: [answered("i0.example")] }, { shared });
    await collect(over);
    expect(shared.answers?.size).toBe(isAlone ? undefined : kept);
    expect(shared.answers?.has("job0") ?? false).toBe(held === 1_999);
  });

  it.each([
    [[HOUR], [undefined], HOUR / 2],
    [[HOUR], [10_000], 10_000],
    [[HOUR, 2 * HOUR], [9_000, 8_000], 8_000],
  ])("knows how quickly the jobs of this run are answered: %j %j", async (agos, waits, quickest) => {
    const replies = agos.map((_, nth) => [answered(`i${nth}.example`)]);
    const over = runOver(
      agos.map((ago) => ({ ago })),
      Object.fromEntries(replies.entries()),
    );
    for (const id of over.ids) over.run.submitting.own.add(id);
    schedule(over.run, over.keys);
    for (const [nth, job] of over.run.collecting.agenda.entries())
      if (waits[nth] !== undefined) job.waited = waits[nth];
    await all(collectDue(over.run));
    expect(over.run.collecting.quickest).toBe(quickest);
  });

  it.each([
    [LOOKUPS, true],
    [CONTACTS, false],
  ])("tells %s whether an earlier answer was delivered to it", async (stream, isRefresh) => {
    const over = runOver([{}, {}], { 0: [answered("i0.example")] });
    await collect(over);
    const seen: boolean[] = [];
    const { type, task } = over.run.context;
    const records: typeof type.records = (_stream, about) => {
      seen.push(about.isRefresh);
      return [];
    };
    const spec = { ...task.spec, name: stream ?? "" };
    const run = new JobRun({
      ...over.run.context,
      type: { ...type, records },
      task: { ...task, spec },
    } as JobContext);
    for (const nth of [0, 1])
      await all(
        deliver(run, { key: over.keys[nth] ?? "", id: over.ids[nth] ?? "", job: "x" }, answerOf("x")),
      );
    // The newest answer is on its way for the first time: what counts is whether there was one before.
    const key = over.keys[0] ?? "";
    const { id } = over.book.intend(key, over.now + 40 * DAY);
    over.book.change(key, id, { step: "open", job: "later" });
    await all(deliver(run, { key, id, job: "later" }, answerOf("x")));
    expect(seen).toEqual([isRefresh, false, true]);
  });

  it("learns nothing of this run's pace from the jobs of others", async () => {
    const over = runOver([{ ago: HOUR }], { 0: [answered("i0.example")] });
    await collect(over);
    expect(over.run.collecting.quickest).toBeUndefined();
  });
});
