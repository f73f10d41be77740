import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Behaviour, CountingService, envelope } from "../support/counting-service.ts";
import { JobRuntime, type Ran } from "../support/job-runtime.ts";
import { ROOT } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ITEMS = ["a.example", "b.example", "c.example", "d.example"];

/** What the service and the clock do before a sync, and what comes of it. */
type Sync = {
  /** How much later (ms) than the sync before. */
  readonly after?: number;
  readonly behaviour?: Behaviour;
  readonly settings?: object;
  readonly syncMode?: string;
  /** How far (ms) the service's clock moves against this machine's. */
  readonly clockMoves?: number;
  readonly bought: readonly string[];
  /** Domains of the records. */
  readonly delivered?: readonly string[];
  /** How many submissions the service sees, those that it refuses included. */
  readonly submissions?: number;
  /** The item of the first one. */
  readonly first?: string;
};

type Scene = Sync & {
  /** A complete sync came before. */
  readonly isSecond?: boolean;
  /** The page's words for what the next sync does. */
  readonly next: string;
  /** The next syncs, one after the other. */
  readonly later: readonly Sync[];
};

const only =
  <Answer>(item: string, answer: Answer) =>
  (asked: string) =>
    asked === item ? answer : undefined;
const result = (item: string, answer: ReturnType<typeof envelope>): Behaviour => ({
  result: (_id, asked) => only(item, answer)(asked),
});
const ASKED_AGAIN = "asks for the job again after an hour, a day, a week, then weekly, after 90 days monthly";
/** A job that brings nothing is not asked for too early, and is delivered once it answers. */
const askedAgain = (behaviour: Behaviour): readonly Sync[] => [
  { after: HOUR / 2, behaviour: {}, bought: [], delivered: [] },
  {
    // A job of this sync is answered properly, so that the next question waits for longer.
    ...{ after: HOUR, behaviour, settings: { domains: [...ITEMS, "e.example"] } },
    ...{ bought: ["e.example"], delivered: ["e.example"] },
  },
  { after: HOUR, behaviour: {}, bought: [], delivered: [] },
  { after: DAY, behaviour: {}, bought: [], delivered: ["b.example"] },
];
const WRONG_KEY: Behaviour = {
  refuse: () => envelope(401, "INVALID_API_KEY"),
  result: () => envelope(401, "INVALID_API_KEY"),
};
const NOTHING: Sync = { after: 40 * DAY, bought: [], delivered: [], submissions: 0 };

/** Every way a sync can end, by the words of the page. */
const SCENES: Readonly<Record<string, Scene>> = {
  "every item is answered": { bought: ITEMS, delivered: ITEMS, next: "nothing", later: [NOTHING] },
  "answers are not there after `max_wait_seconds`": {
    behaviour: { result: () => ({ status: 200, body: { status: "processing" } }) },
    settings: { max_wait_seconds: 200 },
    // Until the first answer one look-up is in flight.
    bought: ["a.example"],
    delivered: [],
    next: "collects them for free, then submits more",
    later: [
      { settings: { max_lookups_per_sync: 0 }, bought: [], delivered: ["a.example"] },
      { bought: ["b.example", "c.example", "d.example"] },
    ],
  },
  "the answer to a submission is lost": {
    behaviour: { losesAnswer: (item) => item === "b.example" },
    bought: ITEMS,
    delivered: ["a.example", "c.example", "d.example"],
    next: "leaves the item alone; with `retry_unknown` it submits the item again",
    later: [
      NOTHING,
      { settings: { retry_unknown: true }, bought: ["b.example"], delivered: ["b.example"] },
      NOTHING,
    ],
  },
  "three answers in a row are lost": {
    settings: { domains: [...ITEMS, "e.example", "f.example"] },
    behaviour: { losesAnswer: () => true },
    bought: ["a.example", "b.example", "c.example"],
    next: "tries one item first",
    later: [
      {
        settings: { domains: [...ITEMS, "e.example", "f.example"] },
        behaviour: { refuse: () => envelope(401, "INVALID_API_KEY") },
        ...{ bought: [], submissions: 1, first: "d.example" },
      },
      { bought: ["d.example"], delivered: ["d.example"] },
    ],
  },
  "a job answers 404, an error or nonsense": {
    behaviour: result("b.example", envelope(404, "JOB_NOT_FOUND")),
    bought: ITEMS,
    next: ASKED_AGAIN,
    later: askedAgain(result("b.example", envelope(404, "JOB_NOT_FOUND"))),
  },
  "the key may not see a job (403)": {
    behaviour: result("b.example", envelope(403, "ACCESS_DENIED")),
    bought: ITEMS,
    next: "asks for the job again, as above",
    later: askedAgain(result("b.example", envelope(403, "ACCESS_DENIED"))),
  },
  "out of credits or quota": {
    behaviour: { refuse: () => envelope(402, "INSUFFICIENT_CREDITS") },
    bought: [],
    submissions: 1,
    next: "tries one item, and goes on if the service takes it",
    later: [
      { behaviour: { refuse: () => envelope(402, "INSUFFICIENT_CREDITS") }, bought: [], submissions: 1 },
      { behaviour: {}, bought: ITEMS },
    ],
  },
  "the service refuses an item": {
    behaviour: { refuse: only("b.example", envelope(400, "SOURCE_NOT_VERIFIABLE")) },
    bought: ["a.example", "c.example", "d.example"],
    next: "submits the item again after 30 days",
    later: [
      { after: 29 * DAY, behaviour: {}, bought: [], submissions: 0 },
      { after: 2 * DAY, bought: ["b.example"] },
    ],
  },
  "three items are refused for their form before any is taken": {
    behaviour: { refuse: () => envelope(400, "INVALID_BODY") },
    bought: [],
    submissions: 3,
    next: "begins with other items",
    later: [{ behaviour: {}, bought: ITEMS, first: "d.example" }],
  },
  "the key is wrong": {
    behaviour: WRONG_KEY,
    bought: [],
    next: "goes on once the key is right; open jobs are kept",
    later: [
      { behaviour: {}, settings: { max_wait_seconds: 0 }, bought: ["a.example"], delivered: [] },
      { behaviour: WRONG_KEY, bought: [], delivered: [] },
      { behaviour: {}, bought: ["b.example", "c.example", "d.example"], delivered: ITEMS },
    ],
  },
  "a cap is reached": {
    settings: { max_lookups_per_sync: 1 },
    bought: ["a.example"],
    next: "goes on where the cap allows it",
    later: [
      { settings: { max_lookups_per_sync: 1 }, bought: ["b.example"] },
      // Two credits were used today.
      { settings: { max_credits_per_day: 3 }, bought: ["c.example"] },
      { after: DAY, settings: { max_credits_per_day: 3 }, bought: ["d.example"] },
    ],
  },
  "a full refresh": {
    isSecond: true,
    syncMode: "full_refresh",
    bought: [],
    delivered: ITEMS,
    next: "nothing: the refresh has delivered again what the receipts know",
    later: [NOTHING],
  },
  "the service's clock is more than 26 hours off": {
    clockMoves: 30 * HOUR,
    bought: [],
    next: "goes on once the clock is right",
    later: [{ clockMoves: -30 * HOUR, bought: ITEMS, delivered: ITEMS }],
  },
};
/** Played with processes of their own. */
const KILLED = "the process is killed";

/** A connection with its service, its receipts and its state. */
class Stage implements AsyncDisposable {
  readonly #service: CountingService;
  readonly #receipts: string;
  #runtime: JobRuntime;
  #state: unknown;
  #clockIsOff = 0;

  private constructor(service: CountingService, receipts: string) {
    this.#service = service;
    this.#receipts = receipts;
    this.#runtime = this.#runtimeWith({});
  }

  static async open(): Promise<Stage> {
    const stage = new Stage(await CountingService.start(), join(await tempDir(), "receipts.jsonl"));
    await stage.#runtime.discover();
    return stage;
  }

  /** Plays a sync and holds it against what should come of it. */
  async play(sync: Sync): Promise<Ran> {
    const service = this.#service;
    this.#runtime = this.#runtimeWith(sync.settings ?? {});
    // A world that is new takes the service's clock for its own.
    service.advance(-this.#clockIsOff);
    await this.#runtime.discover();
    this.#runtime.pass(sync.after ?? 0);
    this.#clockIsOff += sync.clockMoves ?? 0;
    service.advance(this.#clockIsOff);
    const tried: string[] = [];
    const refuse = (item: string): ReturnType<NonNullable<Behaviour["refuse"]>> => {
      tried.push(item);
      return sync.behaviour?.refuse?.(item);
    };
    service.behaviour = { ...sync.behaviour, refuse };
    const before = service.bought.length;
    const ran = await this.#runtime.readStream("company_lookups", {
      state: this.#state,
      ...(sync.syncMode !== undefined && { syncMode: sync.syncMode }),
    });
    this.#state = ran.state() ?? this.#state;
    const delivered = ran.records().map(({ domain }) => domain);
    expect(service.bought.slice(before).toSorted(), "bought").toEqual(sync.bought);
    if (sync.delivered !== undefined) expect(delivered.toSorted(), "delivered").toEqual(sync.delivered);
    if (sync.submissions !== undefined) expect(tried.length, "submissions").toBe(sync.submissions);
    if (sync.first !== undefined) expect(tried[0], "first").toBe(sync.first);
    return ran;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service[Symbol.asyncDispose]();
  }

  #runtimeWith(settings: object): JobRuntime {
    const { url } = this.#service;
    const config = {
      base_url: url,
      api_key: "k",
      requests_per_minute: 6000,
      receipts_file: this.#receipts,
      external_api: { api_url: url, api_key: "k" },
      company_lookup: { domains: ITEMS, ...settings },
    };
    return new JobRuntime(config, this.#service);
  }
}

const page = await readFile(join(ROOT, "docs/jobs.md"), "utf8");
const rows = page
  .slice(page.indexOf("| what happens |"), page.indexOf("## Caps"))
  .split("\n")
  .slice(2)
  .filter((line) => line.startsWith("|"))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .map(([, what = "", ends = "", paid = "", next = ""]) => ({ what, ends, paid, next }));

describe("the table of docs/jobs.md", () => {
  it("has every scene, and no other", () => {
    expect(rows.map(({ what }) => what).toSorted()).toEqual([...Object.keys(SCENES), KILLED].toSorted());
  });

  it.each(rows.filter(({ what }) => what !== KILLED))(
    "is true of: $what",
    async ({ what, ends, paid, next }) => {
      const scene = SCENES[what];
      if (scene === undefined) throw new Error("no such scene");
      await using stage = await Stage.open();
      if (scene.isSecond === true) await stage.play({ bought: ITEMS });
      const ran = await stage.play(scene);
      if (paid === "nothing") expect(scene.bought).toEqual([]);
      const [, failure] = /^fails, `(\w+)`/.exec(ends) ?? [];
      expect(ran.errors().map(({ failure_type }) => failure_type)).toEqual(
        failure === undefined ? [] : [failure],
      );
      expect(ran.code).toBe(failure === undefined ? 0 : 1);
      // A first sync always says that nothing is known of what was bought before.
      const warnings = ran.warnings().filter((text) => !text.includes("nothing is known"));
      if (ends.startsWith("complete, with a warning")) expect(warnings).not.toEqual([]);
      if (ends === "complete") expect(warnings).toEqual([]);
      expect(next).toBe(scene.next);
      for (const sync of scene.later) await stage.play(sync);
    },
  );
});
