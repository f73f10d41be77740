import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Job, nextMove, type RunSoFar, type Step } from "../../src/sync/job-moves.ts";
import { readJobs } from "../../src/sync/jobs.ts";
import { DAY, JobService, RULES, runOnce, Tape } from "../support/job-service.ts";

const NOW = Date.UTC(2026, 2, 2, 10);
const IDLE: RunSoFar = {
  submissions: 0,
  credits: 0,
  stopped: false,
  waited: 0,
  polls: new Map(),
  turned: new Set(),
};
const job = (step: Step, changes: Partial<Job> = {}): Job => ({
  step,
  at: NOW - DAY,
  jobId: "job_1",
  notBefore: null,
  tries: 0,
  resent: 0,
  ...changes,
});

const jobs = fc.array(
  fc.record({
    step: fc.constantFrom<Step>("submitting", "submitted", "again", "done", "lost", "denied"),
    at: fc.integer({ min: NOW - 30 * DAY, max: NOW + DAY }),
    jobId: fc.constant("job_1"),
    notBefore: fc.option(fc.integer({ min: NOW - DAY, max: NOW + DAY })),
    tries: fc.nat(2),
    resent: fc.nat(1),
  }),
  { maxLength: 6 },
);

describe("nextMove()", () => {
  it.each<[string, Job | undefined, string]>([
    ["submits what is new", undefined, "submit"],
    ["collects what was submitted", job("submitted"), "collect"],
    ["submits what is to be tried again", job("again"), "submit"],
    ["leaves alone what is unknown", job("submitting"), "park"],
    ["leaves alone what is done", job("done"), "park"],
    ["leaves alone what is lost", job("lost"), "park"],
    ["leaves alone what is denied", job("denied"), "park"],
    ["waits for what is due soon", job("submitted", { notBefore: NOW + 60_000 }), "wait"],
    ["parks what is due later than it may wait", job("submitted", { notBefore: NOW + DAY }), "park"],
  ])("%s", (_, known, kind) => {
    const all = new Map(known === undefined ? [] : [["a", known]]);
    expect(nextMove(["a"], all, IDLE, RULES, NOW).kind).toBe(kind);
  });

  it("buys again what is unknown only where it is told to", () => {
    const rules = { ...RULES, retryUnknown: true };
    expect(nextMove(["a"], new Map([["a", job("submitting")]]), IDLE, rules, NOW).kind).toBe("submit");
  });

  it("buys again what is old only where it is told to, and never what is denied", () => {
    const rules = { ...RULES, refreshAfter: DAY };
    expect(nextMove(["a"], new Map([["a", job("done")]]), IDLE, rules, NOW).kind).toBe("submit");
    expect(nextMove(["a"], new Map([["a", job("done")]]), IDLE, rules, NOW - 1).kind).toBe("park");
    expect(nextMove(["a"], new Map([["a", job("denied")]]), IDLE, rules, NOW).kind).toBe("park");
  });

  it("collects before it submits", () => {
    expect(nextMove(["a", "b"], new Map([["b", job("submitted")]]), IDLE, RULES, NOW)).toEqual({
      kind: "collect",
      key: "b",
    });
  });

  it("holds no place for a job that has been silent for hours, but one for a job that is queued", () => {
    const three = (changes: Partial<Job>): Map<string, Job> =>
      new Map(["a", "b", "c"].map((key) => [key, job("submitted", changes)]));
    const polled = new Map(["a", "b", "c"].map((key) => [key, { next: null, pause: 1, until: 1 }]));
    const run = { ...IDLE, polls: polled };
    expect(nextMove(["d"], three({}), run, RULES, NOW).kind).toBe("submit");
    expect(nextMove(["d"], three({ notBefore: NOW + 1 }), run, RULES, NOW).kind).toBe("park");
    expect(nextMove(["d"], three({ at: NOW - 60_000 }), run, RULES, NOW).kind).toBe("park");
  });

  it("submits nothing beyond a cap, whatever the state", () => {
    const beyond = fc.constantFrom<Partial<RunSoFar>>({ stopped: true }, { submissions: 5 }, { credits: 7 });
    fc.assert(
      fc.property(jobs, beyond, fc.boolean(), (list, run, retryUnknown) => {
        const all = new Map(list.map((known, nth) => [`i${nth}`, known]));
        const rules = { ...RULES, retryUnknown, refreshAfter: DAY, mostSubmissions: 5, mostCredits: 7 };
        expect(nextMove(["i0", "i1", "new"], all, { ...IDLE, ...run }, rules, NOW).kind).not.toBe("submit");
      }),
    );
  });

  it("asks for nothing before its time, and waits no longer than it may", () => {
    fc.assert(
      fc.property(jobs, fc.nat(400_000), (list, waited) => {
        const all = new Map(list.map((known, nth) => [`i${nth}`, known]));
        const move = nextMove([], all, { ...IDLE, waited }, RULES, NOW);
        if (move.kind === "collect") expect(all.get(move.key)?.notBefore ?? 0).toBeLessThanOrEqual(NOW);
        if (move.kind === "wait") expect(move.until - NOW).toBeLessThanOrEqual(RULES.maxWait - waited);
      }),
    );
  });
});

const ITEMS = ["a", "b", "c", "d", "e", "f", "g"];
const tape = fc.array(fc.nat(1000), { maxLength: 150 });
/** Where each run dies, and how the clock jumps after it. */
const lives = fc.array(
  fc.record({ diesAt: fc.nat(40), jump: fc.integer({ min: -2 * DAY, max: 10 * DAY }) }),
  { maxLength: 12 },
);
const CALM_RUNS = 40;

type Life = { readonly diesAt: number; readonly jump: number };

/** Runs that die, then runs that do not, a day apart, until nothing is left to be done. */
async function live(service: JobService, many: readonly Life[]): Promise<ReadonlyMap<string, Job>> {
  let state: ReadonlyMap<string, Job> | null = null;
  for (const { diesAt, jump } of many) {
    state = await runOnce(service, service.family(ITEMS), state, diesAt);
    service.now += jump;
  }
  for (let run = 0; run < CALM_RUNS; run++) {
    state = await runOnce(service, service.family(ITEMS), state);
    service.now += DAY;
  }
  return state ?? new Map();
}

const times = (list: readonly string[], item: string): number => list.filter((one) => one === item).length;

describe("readJobs()", () => {
  it("buys no item twice, whenever it dies and whatever the clocks do", async () => {
    await fc.assert(
      fc.asyncProperty(tape, lives, async (numbers, many) => {
        const service = new JobService(new Tape(numbers), { forgets: false, fails: false });
        await live(service, many);
        for (const item of ITEMS) expect(times(service.bought, item)).toBeLessThanOrEqual(1);
      }),
      { numRuns: 300 },
    );
  });

  it("buys an item again only for what the service lost or failed", async () => {
    await fc.assert(
      fc.asyncProperty(tape, lives, async (numbers, many) => {
        const service = new JobService(new Tape(numbers), { forgets: true, fails: true });
        await live(service, many);
        for (const item of ITEMS) {
          const reasons = 1 + times(service.forgotten, item) + times(service.failed, item);
          expect(times(service.bought, item)).toBeLessThanOrEqual(reasons);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("leaves no item for good: it is delivered, given up by the rules, or named unknown", async () => {
    await fc.assert(
      fc.asyncProperty(tape, lives, async (numbers, many) => {
        const service = new JobService(new Tape(numbers), { forgets: true, fails: true });
        const state = await live(service, many);
        for (const item of ITEMS) {
          const known = state.get(`#${item}`);
          expect(["done", "lost", "submitting"]).toContain(known?.step);
          if (known?.step === "done") expect(service.delivered).toContain(item);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("submits nothing once the credits are reached, and keeps three in flight at most", async () => {
    await fc.assert(
      fc.asyncProperty(tape, fc.integer({ min: 1, max: 9 }), async (numbers, mostCredits) => {
        const service = new JobService(new Tape(numbers), { forgets: false, fails: true });
        await runOnce(service, service.family(ITEMS, { mostCredits }), null);
        for (const credits of service.creditsBefore) expect(credits).toBeLessThan(mostCredits);
        expect(service.mostInFlight).toBeLessThanOrEqual(3);
      }),
      { numRuns: 200 },
    );
  });

  it("puts a checkpoint before each submission and after its answer", async () => {
    await fc.assert(
      fc.asyncProperty(tape, async (numbers) => {
        const service = new JobService(new Tape(numbers), { forgets: true, fails: true });
        const log: string[] = [];
        const family = service.family(ITEMS);
        const spied = {
          ...family,
          submit: (item: string) => {
            log.push(`post ${item}`);
            return family.submit(item);
          },
        };
        const toState = (all: ReadonlyMap<string, Job>): Readonly<Record<string, unknown>> => {
          const open = [...all].filter(([, { step }]) => step === "submitting").map(([key]) => key);
          return { open };
        };
        try {
          for await (const event of readJobs(spied, { jobs: null, cursor: null }, toState)) {
            if (event.kind === "checkpoint") log.push(`state ${event.state["open"]}`);
          }
        } catch {}
        for (const [nth, entry] of log.entries()) {
          if (!entry.startsWith("post ")) continue;
          expect(log[nth - 1]).toContain(`#${entry.slice(5)}`);
          expect(log[nth + 1]).toMatch(/^state /);
        }
      }),
    );
  });
});
