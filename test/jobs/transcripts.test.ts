import { expect, it } from "vitest";
import { readJobs } from "../../src/jobs/run.ts";
import { CAPS, DAY, JobService, type RunOptions, Tape } from "../support/job-model.ts";

/** What the service does with submissions, and what it says when it is asked; see `JobService`. */
const [TAKEN, LOST, DROPPED, LATER] = [0, 3, 4, 5];
const [READY, FAILED, PENDING, QUEUED, UNUSABLE, DENIED, SILENT] = [0, 2, 3, 4, 5, 6, 7];
const FATES_OF_QUESTIONS = 8;
const HOUR = DAY / 24;

type Situation = RunOptions & {
  readonly items: number;
  /** What becomes of the next submissions, and of the next questions; when these end, all goes well. */
  readonly submitted?: readonly number[];
  readonly asked?: readonly number[];
  /** How long (ms) a job takes. */
  readonly takes?: number;
  readonly prices?: readonly number[];
  /** Ms before each run. */
  readonly runs?: readonly number[];
  /** How long (ms) it takes to write a state. */
  readonly stateTakes?: number;
};

const times = (many: number, ...fates: readonly number[]): number[] => Array(many).fill(fates).flat();
const capped = (submissions: object, credits: object = {}) => ({
  caps: {
    submissions: { ...CAPS.submissions, ...submissions },
    credits: { ...CAPS.credits, ...credits },
  },
});

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "answers that are there at once": { items: 9, runs: [0, HOUR] },
  "answers after 12 seconds": { items: 47, takes: 12_000, prices: [3, 1, 0], runs: [0, HOUR] },
  "answers after 100 seconds, without receipts": { items: 12, takes: 100_000, hasReceipts: false },
  "answers after the run": { items: 9, takes: 2 * HOUR, runs: [0, HOUR, HOUR, DAY] },
  "caps of submissions": { items: 9, runs: [0, HOUR, DAY, DAY], ...capped({ sync: 3, day: 5 }) },
  "caps of credits": {
    ...{ items: 30, prices: [4, 9, 2], takes: 9_000, runs: [0, HOUR, DAY, 31 * DAY] },
    ...capped({}, { sync: 25, day: 40, month: 60 }),
  },
  "submissions whose answers are lost": { items: 9, submitted: times(9, LOST), runs: [0, HOUR, DAY, DAY] },
  "submissions that are dropped now and then": {
    ...{ items: 9, submitted: times(9, TAKEN, DROPPED), runs: [0, HOUR, DAY] },
  },
  "submissions that have to wait": { items: 9, submitted: times(12, LATER), runs: [0, HOUR, DAY] },
  "jobs that fail": { items: 4, asked: times(20, FAILED), runs: [0, HOUR, DAY, 3 * DAY, 8 * DAY] },
  "jobs that are not ready": { items: 5, asked: times(3, PENDING, PENDING, PENDING, READY), runs: [0, HOUR] },
  "jobs that are queued for hours": { items: 5, asked: times(5, QUEUED), runs: [0, HOUR, 8 * HOUR, DAY] },
  "jobs that nobody knows": {
    ...{ items: 4, asked: times(20, UNUSABLE) },
    runs: [0, HOUR, DAY, 7 * DAY, 7 * DAY, 100 * DAY, 31 * DAY],
  },
  "jobs that are denied": { items: 5, asked: times(9, DENIED), runs: [0, HOUR, DAY, 8 * DAY] },
  "a service that falls silent": { items: 5, asked: times(9, SILENT), runs: [0, HOUR, DAY] },
  "some of everything": {
    items: 20,
    submitted: [TAKEN, LOST, TAKEN, DROPPED, TAKEN, TAKEN, LATER, LOST, TAKEN, LOST, LOST, LOST],
    asked: [READY, FAILED, PENDING, UNUSABLE, SILENT, QUEUED, DENIED, READY, FAILED, FAILED, UNUSABLE],
    takes: 7_000,
    runs: [0, HOUR, DAY, DAY, 8 * DAY, 31 * DAY],
  },
  "states that take half a minute": { items: 45, takes: 20_000, stateTakes: 30_000, runs: [0, HOUR] },
  "a full refresh": { items: 9, takes: 2 * HOUR, isFullRefresh: true, runs: [0, DAY] },
};

class Tapes extends Tape {
  readonly #submitted: Tape;
  readonly #asked: Tape;

  constructor(submitted: readonly number[] = [], asked: readonly number[] = []) {
    super([]);
    [this.#submitted, this.#asked] = [new Tape(submitted), new Tape(asked)];
  }

  override choose<Choice>(...choices: readonly [Choice, ...Choice[]]): Choice {
    const tape = choices.length === FATES_OF_QUESTIONS ? this.#asked : this.#submitted;
    return tape.choose(...choices);
  }
}

const shown = (ms: number): string => `${ms / 1_000} s`;

/** Everything that the service is asked, with what came of it, and each event; in seconds since the run began. */
async function told(name: string, situation: Situation): Promise<string> {
  const { items, submitted, asked, takes, prices, runs = [0], stateTakes = 0, ...options } = situation;
  const service = new JobService(new Tapes(submitted, asked), prices, takes);
  const names = Array.from({ length: items }, (_, nth) => `i${nth}.example`);
  const lines = [`# ${name}`];
  let state: unknown;
  for (const [nth, pause] of runs.entries()) {
    service.now += pause;
    const began = service.now;
    const log = (text: string): void => void lines.push(`  ${shown(service.now - began)}: ${text}`);
    const context = service.context(names, state, options);
    const { submit, ask, backOff } = context.client;
    lines.push(`Run ${nth + 1}`);
    const events = readJobs({
      ...context,
      client: {
        ...context.client,
        submit: async (item) => {
          const became = await submit(item);
          log(`submit ${item}: ${became.kind}`);
          return became;
        },
        ask: async (job) => {
          const reply = await ask(job);
          log(`ask ${job}: ${reply.kind}`);
          return reply;
        },
        backOff: async (failures) => {
          log(`back off after ${failures}`);
          await backOff(failures);
        },
      },
    });
    try {
      for await (const event of events) {
        if (event.kind === "checkpoint") {
          service.now += stateTakes;
          state = JSON.parse(JSON.stringify(event.state));
          log(
            `state${event.announces === true ? " that announces" : ""}, spent ${JSON.stringify(event.spent)}`,
          );
        } else if (event.kind === "records")
          log(`records of ${event.lines.map((line) => JSON.parse(line).domain)}`);
        else log(JSON.stringify(event, (key, value) => (key === "error" ? String(value) : value)));
      }
    } catch (error) {
      log(String(error));
    }
    service.kill();
    lines.push(`  ${JSON.stringify(state)}`);
  }
  return [...lines, ""].join("\n");
}

/** After a change that is meant: `npx vitest run test/jobs/transcripts.test.ts -u`, and read what it changed. */
it("buys and asks like this, and leaves these states", async () => {
  const parts: string[] = [];
  for (const [name, situation] of Object.entries(SITUATIONS)) parts.push(await told(name, situation));
  await expect(parts.join("\n")).toMatchFileSnapshot("../golden/job-transcripts.txt");
});
