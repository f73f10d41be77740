import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/errors.ts";
import type { JobContext } from "../../../src/jobs/job-run.ts";
import type { Delta } from "../../../src/jobs/lattice.ts";
import { readJobs } from "../../../src/jobs/run.ts";
import type { Event } from "../../../src/streams/event.ts";
import { DAY, JobService, Tape } from "../../support/job-model.ts";

const SECOND = 1_000;
const HOUR = DAY / 24;

/** The events of a run, each with the moment (ms from its begin) at which it came, and what it throws. */
async function ranWith(service: JobService, context: JobContext) {
  const began = service.now;
  const events: { readonly at: number; readonly event: Event }[] = [];
  let error: unknown;
  try {
    for await (const event of readJobs(context)) events.push({ at: service.now - began, event });
  } catch (thrown) {
    error = thrown;
  }
  const texts = events.flatMap(({ event }) => (event.kind === "log" ? [event.text] : []));
  const close = events.flatMap(({ event }) => (event.kind === "close" ? [event.complete] : []));
  return { events, error, texts, close, took: service.now - began };
}

const isProgress = (event: Event): boolean => event.kind === "log" && event.text.includes("waiting for");

describe("readJobs() while it waits for answers", () => {
  it("says every thirty seconds what it waits for, and ends when all is answered", async () => {
    const service = new JobService(new Tape([]), [2], 200 * SECOND);
    const { events, texts, took, close } = await ranWith(service, service.context(["a.example"], null));
    const told = events.filter(({ event }) => isProgress(event)).map(({ at }) => at);
    expect(told.length).toBeGreaterThanOrEqual(4);
    for (const [nth, at] of told.entries())
      expect(at - (told[nth - 1] ?? 0)).toBeGreaterThanOrEqual(30 * SECOND);
    expect(texts.at(-1)).toMatch(/^1 answered, 1 submitted.*0 jobs left open/);
    expect([service.bought, close, took < 300 * SECOND]).toEqual([["a.example"], [true], true]);
  });

  it("waits no longer than it may, and leaves the rest to the next run", async () => {
    const service = new JobService(new Tape([]), [2], DAY);
    const context = service.context(["a.example"], null);
    const { texts, took, close, error } = await ranWith(service, context);
    expect(texts.at(-1)).toMatch(/^0 answered, 1 submitted.*1 job left open/);
    expect([close, error, took <= 300 * SECOND, took > 200 * SECOND]).toEqual([
      [true],
      undefined,
      true,
      true,
    ]);
    const short = new JobService(new Tape([]), [2], DAY);
    const end = short.now + 50 * SECOND;
    const ended = await ranWith(short, { ...short.context(["a.example"], null), endsAt: end });
    expect([ended.took <= 50 * SECOND, ended.close]).toEqual([true, [true]]);
  });

  it("does not wait for what another stream of its setting has asked for", async () => {
    const service = new JobService(new Tape([]), [2], DAY);
    const context = service.context(["a.example"], null);
    const task = { ...context.task, isSecond: true, buys: false };
    const { took, texts } = await ranWith(service, { ...context, task });
    expect([took, texts, service.bought]).toEqual([0, ["0 answered"], []]);
  });

  it("ends with the reason of a signal, and says what it did before", async () => {
    const service = new JobService(new Tape([]), [2], DAY);
    const context = service.context(["a.example"], null);
    const sleep = async () => {
      throw new Error("SIGTERM");
    };
    const { error, texts, close } = await ranWith(service, {
      ...context,
      clock: { ...context.clock, sleep },
    });
    expect([String(error), close]).toEqual(["Error: SIGTERM", []]);
    expect(texts.at(-1)).toContain("1 submitted");
  });
});

describe("readJobs() beside a clock that is off", () => {
  it.each([
    [26 * HOUR, undefined],
    [-26 * HOUR, undefined],
    [26 * HOUR + 1, "26 hours ahead of"],
    [-72 * HOUR, "72 hours behind"],
  ])("submits nothing if the service's is %i ms later", async (skew, said) => {
    const service = new JobService(new Tape([]));
    const context = service.context(["a.example"], null);
    const clock = { ...context.clock, now: () => service.now - skew };
    const { texts, close, error } = await ranWith(service, { ...context, clock });
    const warnings = texts.filter((text) => text.includes("clock"));
    expect(warnings).toEqual(
      said === undefined
        ? []
        : [
            `company_lookups: the service's clock is ${said} this machine's, so nothing is submitted, because caps by day ` +
              "would not hold. Correct this machine's clock, or tell the service's owner",
          ],
    );
    expect([service.bought.length, close, error]).toEqual([said === undefined ? 1 : 0, [true], undefined]);
  });
});

describe("readJobs() at its end", () => {
  it.each([
    [true, 7, true],
    [true, null, false],
    [false, 7, false],
  ])(
    "remembers that a refresh began blind: truncates %s, generation %j",
    async (truncates, generation, isKept) => {
      const service = new JobService(new Tape([]));
      const base = service.context(["a.example"], null, { isFullRefresh: truncates });
      const written: Delta[] = [];
      const write: JobContext["memory"]["write"] = async (_setting, deltas) => void written.push(...deltas);
      const task = { ...base.task, generation, buys: false };
      const { close } = await ranWith(service, { ...base, task, memory: { ...base.memory, write } });
      expect(written).toHaveLength(isKept ? 1 : 0);
      // Nobody knows what the platform would lose.
      expect(close).toEqual([!truncates]);
    },
  );

  it("says how many were suppressed, once for both streams, and whether every item was looked at", async () => {
    for (const isSecond of [false, true]) {
      const service = new JobService(new Tape([]));
      const base = service.context(["a.example"], null);
      base.inputs.suppressed = 3;
      const shared = { ...base.shared, suppressed: 1 };
      const { events } = await ranWith(service, { ...base, shared, task: { ...base.task, isSecond } });
      const held = events.flatMap(({ event }) => (event.kind === "records" ? [event.facts?.held ?? 0] : []));
      expect(held.reduce((sum, one) => sum + one, 0)).toBe(isSecond ? 0 : 3);
      expect([shared.suppressed, shared.hasSeenAll]).toEqual(isSecond ? [1, false] : [4, true]);
    }
  });

  it("fails for what blocks its memory, and submits nothing", async () => {
    const service = new JobService(new Tape([]));
    const base = service.context(["a.example"], null);
    const memory = { ...base.memory, blocked: new ConfigError("damaged") };
    const { error, close } = await ranWith(service, { ...base, memory });
    expect([String(error), close, service.bought]).toEqual(["ConfigError: damaged", [], []]);
  });
});
