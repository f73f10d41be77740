import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import type { Candidate } from "../../../src/jobs/inputs.ts";
import { type JobContext, JobRun } from "../../../src/jobs/job-run.ts";
import type { Answer, Refusal, Submission } from "../../../src/jobs/job-type.ts";
import { jobTypeOf } from "../../../src/jobs/kinds.ts";
import type { Delta, Sub } from "../../../src/jobs/lattice.ts";
import { findItems, submitNext } from "../../../src/jobs/submit.ts";
import type { Event } from "../../../src/streams/event.ts";
import { CAPS, DAY, JobService, Tape } from "../../support/job-model.ts";

/** A run goes on without a state for so many times as long as the last one took. */
const PAUSES = 20;
const HOUR = DAY / 24;
const MINUTE = HOUR / 60;
const ERROR = new Error("no");
const UNKNOWN: Submission = { kind: "unknown", error: ERROR };
const refused = (why: Refusal, code = "CODE") => ({ kind: "refused", error: ERROR, why, code }) as const;
const FOUND = { item: "x.example", kind: "domain", text: "x.example" } as const;
const ANSWER: Answer = { value: {}, cursor: null, cost: 1, failed: false, code: null, sources: [] };

type Changes = {
  readonly task?: Partial<JobContext["task"]>;
  readonly memory?: Partial<JobContext["memory"]>;
  readonly client?: Partial<JobContext["client"]>;
  readonly type?: Partial<JobContext["type"]>;
} & Partial<Omit<JobContext, "task" | "memory" | "client" | "type">>;

/** A run that has as many items to submit. `fates`: what becomes of the submissions, one after the other; then all are taken. */
function runWith(count: number, fates: readonly Submission[] = [], changes: Changes = {}) {
  const service = new JobService(new Tape([]));
  const base = service.context([], null);
  const left = [...fates];
  const submitted: string[] = [];
  const steps: string[] = [];
  const written: Delta[] = [];
  const { task, memory, client, type, ...others } = changes;
  const context: JobContext = {
    ...{ ...base, ...others },
    task: { ...base.task, ...task },
    type: { ...base.type, ...type },
    memory: {
      ...base.memory,
      write: async (_setting, deltas) => {
        steps.push("write");
        written.push(...deltas);
      },
      ...memory,
    },
    client: {
      ...base.client,
      requestSlot: async () => void steps.push("slot"),
      submit: async (item) => {
        steps.push("submit");
        submitted.push(item);
        return left.shift() ?? { kind: "taken", jobId: `job of ${item}`, notBefore: null };
      },
      ...client,
    },
  };
  const run = new JobRun(context);
  const candidates = Array.from({ length: count }, (_, nth): Candidate => {
    const item = `i${nth}.example`;
    return { key: base.book.keyOf({ item, kind: "domain", text: item }), item, place: `place ${nth}` };
  });
  run.submitting.queue.push(...candidates);
  const subs = (nth: number): readonly Sub[] => Object.values(base.book.get(candidates[nth]?.key ?? "").subs);
  return { run, service, book: base.book, candidates, submitted, steps, written, subs };
}

type Ran = ReturnType<typeof runWith>;

async function all<Result>(
  events: AsyncGenerator<Event, Result>,
): Promise<readonly [Result, readonly Event[]]> {
  const seen: Event[] = [];
  for (;;) {
    const next = await events.next();
    if (next.done === true) return [next.value, seen];
    seen.push(next.value);
  }
}

/** Submits until nothing goes any more. Returns how many went each time. */
async function rounds({ run, submitted }: Ran, most = 50): Promise<readonly number[]> {
  const sizes: number[] = [];
  for (let before = submitted.length; sizes.length < most; before = submitted.length) {
    const [went] = await all(submitNext(run));
    if (!went) return sizes;
    sizes.push(submitted.length - before);
  }
  return sizes;
}

/** A run whose jobs are answered within seconds. */
function quick(count: number, fates: readonly Submission[] = [], changes: Changes = {}): Ran {
  const ran = runWith(count, fates, changes);
  ran.run.failures.taken();
  ran.run.collecting.quickest = 1_000;
  return ran;
}

describe("submitNext()", () => {
  it("has one look-up under way before the first answer, and one more for each that is silent for five minutes", async () => {
    const ran = runWith(30);
    expect(await rounds(ran)).toEqual([1]);
    ran.service.now += 5 * MINUTE - 1;
    expect(await rounds(ran)).toEqual([]);
    ran.service.now += 1;
    expect(await rounds(ran)).toEqual([1]);
    const sizes = [];
    for (let nth = 0; nth < 4; nth++) {
      ran.service.now += 5 * MINUTE;
      sizes.push((await rounds(ran)).reduce((a, b) => a + b, 0));
    }
    // Five at most.
    expect([sizes, ran.submitted.length]).toEqual([[1, 1, 1, 0], 5]);
  });

  it("has twenty look-ups under way once one was answered, four posts at a time", async () => {
    const ran = quick(50);
    expect(await rounds(ran)).toEqual([4, 4, 4, 4, 4]);
    expect(ran.run.submitting.queue).toHaveLength(30);
    expect(ran.run.spent.submissions).toBe(20);
  });

  it("counts no job among them that waits for longer than an hour", async () => {
    const [long, short] = [HOUR + 1, HOUR].map((ms) => {
      const taken = Array(20).fill({ kind: "taken", jobId: "j", notBefore: Date.UTC(2026, 2, 2, 10) + ms });
      return quick(50, taken);
    }) as [Ran, Ran];
    await rounds(long, 5);
    expect(await rounds(long)).toEqual([4, 4, 4, 4, 4]);
    await rounds(short, 5);
    expect(await rounds(short)).toEqual([]);
    // Nor one that was submitted longer ago.
    short.service.now += HOUR;
    expect(await rounds(short, 1)).toEqual([]);
    short.service.now += 1;
    expect(await rounds(short, 1)).toEqual([4]);
  });

  /** Lets the last state have taken so long (ms). */
  const stateTook = ({ run }: Ran, ms: number): void => {
    run.states.share.begin(0);
    run.states.share.end(ms);
  };

  it.each([
    [1, 20],
    [1_000, 8],
    [Number.POSITIVE_INFINITY, 4],
  ])(
    "sends as many with one state as leave while none is written: of %f ms each %i",
    async (msEach, size) => {
      const ran = quick(30);
      stateTook(ran, 250);
      expect(ran.run.states.share.pauseMs).toBe(PAUSES * 250);
      ran.run.submitting.msEach = msEach;
      expect((await rounds(ran, 1))[0]).toBe(size);
      // It learns how long one took.
      expect(ran.run.submitting.msEach).toBe(1);
    },
  );

  it.each([
    [5_000 / PAUSES, [4, 1]],
    [5_001 / PAUSES, []],
  ])("waits for places where states take long: %f ms", async (ms, sizes) => {
    const ran = quick(35);
    const rest = ran.run.submitting.queue.splice(15);
    expect(await rounds(ran)).toEqual([4, 4, 4, 3]);
    ran.run.submitting.queue.push(...rest);
    stateTook(ran, ms);
    ran.run.submitting.msEach = sizes.length > 0 ? Number.POSITIVE_INFINITY : 1;
    expect(await rounds(ran)).toEqual(sizes);
  });

  it("lets e-mail checks and verifications go without waiting for places", async () => {
    const url = { base_url: "https://service.example", api_key: "k" };
    const config = parseConfig(
      {
        ...url,
        external_api: { api_url: url.base_url, api_key: "k" },
        email_verification: { emails: ["a@b.example"] },
      },
      {},
    );
    const type = { ...jobTypeOf("emailVerification", config), caps: CAPS };
    const ran = quick(100, Array(100).fill({ kind: "answered", answer: ANSWER }), { type });
    const sizes = await rounds(ran);
    expect([sizes.reduce((a, b) => a + b, 0), new Set(sizes)]).toEqual([100, new Set([type.postsAtOnce])]);
  });

  it("submits one at a time until the service has taken one, and after an answer that was lost", async () => {
    const ran = quick(12, [...Array(4).fill(UNKNOWN)]);
    ran.run.failures.hasTaken = false;
    expect(await rounds(ran, 2)).toEqual([1, 1]);
    const lost = quick(12, [UNKNOWN]);
    expect(await rounds(lost, 3)).toEqual([4, 4, 4]);
    const last = quick(12, [...Array(3).fill({ kind: "taken", jobId: "j", notBefore: null }), UNKNOWN]);
    expect(await rounds(last, 3)).toEqual([4, 1, 4]);
    expect(last.run.spent.submissions).toBe(9);
  });

  it.each([
    ["the caps of a sync", { type: { caps: { ...CAPS, submissions: { ...CAPS.submissions, sync: 3 } } } }, 3],
    ["no submission at all", { task: { buys: false } }, 0],
    ["what this run may submit", { task: { mostSubmissions: 2 } }, 2],
    ["nothing once it is over", { endsAt: 0 }, 0],
  ] as [string, Changes, number][])("keeps to %s", async (_, changes, count) => {
    const ran = quick(12, [], changes);
    await rounds(ran);
    expect([ran.submitted.length, ran.run.submitting.queue.length]).toEqual([count, 12 - count]);
  });

  it("looks at every row first where a refresh needs that", async () => {
    const ran = quick(1, [], { task: { looksFirst: true } });
    ran.run.source = (async function* () {})();
    expect(await rounds(ran)).toEqual([]);
    ran.run.source = undefined;
    expect(await rounds(ran)).toEqual([1]);
  });

  it("has each intent on the disk before it asks for a slot, and looks at the locks before it writes and sends", async () => {
    const locks: string[] = [];
    const ran = quick(1, [], { checkLocks: async () => void locks.push(ran.steps.join(" ")) });
    await rounds(ran);
    expect(ran.steps).toEqual(["write", "slot", "submit", "write"]);
    expect(locks).toEqual(["", "write slot"]);
    expect(ran.subs(0)).toMatchObject([{ step: "open", job: "job of i0.example" }]);
  });

  it.each([true, false])(
    "announces by a state what leaves where only the state remembers it: receipts %s",
    async (hasReceipts) => {
      const ran = quick(4, [], { memory: { hasReceipts } });
      const [, events] = await all(submitNext(ran.run));
      const announced = events.map((event) => event.kind === "checkpoint" && event.announces === true);
      // Once before they leave, and once when the ids of their jobs are known.
      expect(announced.filter(Boolean)).toHaveLength(hasReceipts ? 0 : 2);
      const [first, last] = [events[0], events.at(-1)].map((event) =>
        JSON.stringify(event?.kind === "checkpoint" ? event.state : null).includes("job of i0.example"),
      );
      if (!hasReceipts) expect([first, last]).toEqual([false, true]);
    },
  );

  it("says in each state what was bought so far", async () => {
    const ran = quick(4, [], { memory: { hasReceipts: false } });
    const [, events] = await all(submitNext(ran.run));
    const spent = events.map((event) => event.kind === "checkpoint" && event.spent?.submissions);
    expect([spent[0], spent.at(-1)]).toEqual([0, 4]);
  });

  it("delivers what was answered at once, and takes its records for bought only then", async () => {
    const ran = quick(2, [
      { kind: "answered", answer: ANSWER },
      { kind: "answered", answer: ANSWER },
    ]);
    const [, events] = await all(submitNext(ran.run));
    expect(events.filter(({ kind }) => kind === "records")).toHaveLength(2);
    expect([ran.run.collecting.answered, ran.book.get(ran.candidates[0]?.key ?? "").day]).toEqual([
      2,
      "2026-03-02",
    ]);
  });

  it("submits nothing that came to light as bought meanwhile", async () => {
    const ran = quick(3);
    const { id } = ran.book.intend(ran.candidates[1]?.key ?? "", ran.service.now);
    ran.book.change(ran.candidates[1]?.key ?? "", id, { step: "open", job: "j" });
    await rounds(ran);
    expect(ran.submitted).toEqual(["i0.example", "i2.example"]);
  });

  it("takes all intents back if they cannot be written, and submits nothing more", async () => {
    const write = async () => {
      throw new Error("disk full");
    };
    const ran = quick(6, [], { memory: { write } });
    await rounds(ran);
    expect([ran.submitted, ran.run.failures.failure?.message]).toEqual([[], "disk full"]);
    expect(ran.run.submitting.own.size).toBe(0);
    for (const nth of [0, 1, 2, 3]) expect(ran.subs(nth).filter(({ step }) => step !== "void")).toEqual([]);
  });

  it("takes back what has not left when the run has to end, and keeps what may have", async () => {
    const client = {
      requestSlot: async () => {
        throw new Error("stop");
      },
    };
    const before = quick(3, [], { client });
    await rounds(before);
    expect([before.submitted, before.run.failures.failure?.message, before.run.spent.submissions]).toEqual([
      [],
      "stop",
      0,
    ]);
    expect(before.subs(0).filter(({ step }) => step !== "void")).toEqual([]);
    const after = quick(1, [], {
      client: {
        submit: async () => {
          throw new Error("stop");
        },
      },
    });
    await rounds(after);
    expect([after.subs(0).map(({ step }) => step), after.run.submitting.own.size]).toEqual([["unknown"], 1]);
  });

  it("withdraws the rest of a batch when submissions end in the middle of it", async () => {
    const ran = quick(8, [refused("credits")]);
    await rounds(ran);
    // What was under way beside it went on; nothing after it left.
    expect([ran.submitted.length, ran.run.failures.isOutOfCredits, ran.run.failures.failure]).toEqual([
      4,
      true,
      undefined,
    ]);
    expect(ran.run.spent.submissions).toBe(3);
  });

  it.each(["time", "limit"] as const)(
    "submits again, before all others, what was refused for %s",
    async (why) => {
      const waits: number[] = [];
      const client = { backOff: async (retries: number) => void waits.push(retries) };
      const ran = runWith(3, [refused(why), refused(why)], { client });
      for (let nth = 0; nth < 3; nth++) await all(submitNext(ran.run));
      expect(ran.submitted).toEqual(["i0.example", "i0.example", "i0.example"]);
      expect(waits).toEqual(why === "time" ? [1, 2] : []);
      expect([ran.run.spent.submissions, ran.run.submitting.queue.length]).toEqual([1, 2]);
    },
  );

  it("refuses an item that the service does not like only once it takes another", async () => {
    const ran = runWith(2, [refused("other-item", "BAD_DOMAIN")]);
    await all(submitNext(ran.run));
    expect([ran.run.submitting.refused, ran.subs(0).at(-1)]).toMatchObject([
      [],
      { step: "void", code: "BAD_DOMAIN" },
    ]);
    await all(submitNext(ran.run));
    expect([ran.run.submitting.refused, ran.subs(0).at(-1)]).toMatchObject([
      [{ place: "place 0", code: "BAD_DOMAIN" }],
      { step: "refused", code: "BAD_DOMAIN" },
    ]);
    expect(ran.run.submitting.doubted).toEqual([]);
    const later = quick(2, [refused("other-item", "BAD_DOMAIN")]);
    await all(submitNext(later.run));
    expect(later.run.submitting.refused).toEqual([{ place: "place 0", code: "BAD_DOMAIN" }]);
  });

  it("charges nothing that was not taken", async () => {
    for (const fate of [refused("other-item"), refused("limit"), refused("credits")]) {
      const ran = runWith(1, [fate]);
      await all(submitNext(ran.run));
      expect([ran.run.spent.submissions, ran.book.charged("2026-03-02" as never).sync.submitted]).toEqual([
        0, 0,
      ]);
      expect(ran.subs(0).at(-1)).toMatchObject({
        step: "void",
        code: fate.why === "other-item" ? fate.code : null,
      });
    }
    const lost = runWith(1, [UNKNOWN]);
    await all(submitNext(lost.run));
    expect([lost.run.spent.submissions, lost.book.charged("2026-03-02" as never).sync.submitted]).toEqual([
      1, 1,
    ]);
  });
});

describe("findItems()", () => {
  const batches = (...sizes: readonly number[]): JobRun["source"] =>
    (async function* () {
      for (const size of sizes)
        yield Array.from({ length: size }, (_, nth) => ({ key: `k${nth}`, item: `x${nth}`, place: "a row" }));
    })();

  const find = async (ran: Ran, source: JobRun["source"]) => {
    ran.run.source = source;
    const found = await findItems(ran.run);
    return [found, ran.run.submitting.queue.length, ran.run.source === undefined];
  };

  it("reads rows only when no item waits that may be bought", async () => {
    expect(await find(quick(0), undefined)).toEqual([false, 0, true]);
    expect(await find(quick(1), batches(2))).toEqual([false, 1, false]);
    expect(await find(quick(0), batches(2))).toEqual([true, 2, false]);
    expect(await find(quick(0), batches())).toEqual([true, 0, true]);
    expect(await find(quick(0, [], { endsAt: 0 }), batches(2))).toEqual([false, 0, false]);
    const spent = { task: { mostSubmissions: 0 } };
    expect(await find(quick(0, [], spent), batches(2))).toEqual([false, 0, false]);
    // Every row needs a look, and none of what it names is bought.
    expect(
      await find(quick(0, [], { task: { mostSubmissions: 0, readsAllRows: true } }), batches(2)),
    ).toEqual([true, 0, false]);
  });

  it("looks at all rows first and holds five thousand items of them", async () => {
    const ran = quick(1, [], { task: { looksFirst: true } });
    const source = batches(3_000, 3_000, 10);
    const turns = [
      await find(ran, source),
      await find(ran, source),
      await find(ran, source),
      await find(ran, source),
    ];
    expect(turns).toEqual([
      [true, 3_001, false],
      [true, 5_000, false],
      [true, 5_000, false],
      [true, 5_000, true],
    ]);
    const free = quick(0);
    expect(await find(free, batches(6_000))).toEqual([true, 6_000, false]);
  });

  it("waits for the service's clock only where something is to be bought or asked for", async () => {
    const asked: string[] = [];
    const client = {
      ready: async () => {
        asked.push("ready");
        throw new Error("no clock");
      },
    };
    const ran = quick(0, [], { client });
    await find(ran, batches(0));
    expect([asked, ran.run.failures.failure]).toEqual([[], undefined]);
    const key = ran.book.keyOf(FOUND);
    ran.book.change(key, ran.book.intend(key, 0).id, { step: "open", job: "j" });
    ran.run.context.inputs.found.set(key, FOUND.item);
    await find(ran, batches(0));
    expect([asked, ran.run.failures.failure?.message]).toEqual([["ready"], "no clock"]);
    const other = quick(0, [], { client });
    asked.length = 0;
    await find(other, batches(1));
    expect([asked, other.run.failures.failure?.message]).toEqual([["ready"], "no clock"]);
  });
});
