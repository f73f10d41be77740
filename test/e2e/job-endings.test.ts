import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Behaviour, CountingService, envelope } from "../support/counting-service.ts";
import { JobWorld, type Ran } from "../support/job-world.ts";
import { ROOT } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";

const HOUR = 3_600_000;
const ITEMS = ["a.example", "b.example", "c.example", "d.example"];

type Scene = {
  readonly behaviour?: Behaviour;
  readonly settings?: object;
  /** What is bought in this sync. */
  readonly bought: readonly string[];
  /** A complete sync came before. */
  readonly isSecond?: boolean;
  readonly syncMode?: string;
  readonly clockOff?: number;
};

const only =
  <Answer>(item: string, answer: Answer) =>
  (asked: string) =>
    asked === item ? answer : undefined;
const result = (item: string, answer: ReturnType<typeof envelope>): Behaviour => ({
  result: (_id, asked) => only(item, answer)(asked),
});

/** Every way a sync can end, by the words of the page. */
const SCENES: Readonly<Record<string, Scene>> = {
  "every item is answered": { bought: ITEMS },
  "answers are not there after `max_wait_seconds`": {
    behaviour: { result: () => ({ status: 200, body: { status: "processing" } }) },
    settings: { max_wait_seconds: 200 },
    // Until the first answer one look-up is in flight.
    bought: ["a.example"],
  },
  "the answer to a submission is lost": {
    behaviour: { losesAnswer: (item) => item === "b.example" },
    bought: ITEMS,
  },
  "three answers in a row are lost": {
    behaviour: { losesAnswer: () => true },
    bought: ["a.example", "b.example", "c.example"],
  },
  "a job answers 404, an error or nonsense": {
    behaviour: result("b.example", envelope(404, "JOB_NOT_FOUND")),
    bought: ITEMS,
  },
  "the key may not see a job (403)": {
    behaviour: result("b.example", envelope(403, "ACCESS_DENIED")),
    bought: ITEMS,
  },
  "out of credits or quota": {
    behaviour: { refuse: () => envelope(402, "INSUFFICIENT_CREDITS") },
    bought: [],
  },
  "the service refuses an item": {
    behaviour: { refuse: only("b.example", envelope(400, "SOURCE_NOT_VERIFIABLE")) },
    bought: ["a.example", "c.example", "d.example"],
  },
  "three items are refused for their form before any is taken": {
    behaviour: { refuse: () => envelope(400, "INVALID_BODY") },
    bought: [],
  },
  "the key is wrong": { behaviour: { refuse: () => envelope(401, "INVALID_API_KEY") }, bought: [] },
  "a cap is reached": { settings: { max_lookups_per_sync: 1 }, bought: ["a.example"] },
  "a full refresh": { isSecond: true, syncMode: "full_refresh", bought: [] },
  "the service's clock is more than 26 hours off": { clockOff: 30 * HOUR, bought: [] },
};
/** Played with a process of its own. */
const KILLED = "the process is killed";

async function play(scene: Scene): Promise<{ readonly ran: Ran; readonly bought: readonly string[] }> {
  await using service = await CountingService.start();
  const { url } = service;
  const config = {
    base_url: url,
    api_key: "k",
    requests_per_minute: 6000,
    receipts_file: join(await tempDir(), "receipts.jsonl"),
    external_api: { api_url: url, api_key: "k" },
    company_lookup: { domains: ITEMS, ...scene.settings },
  };
  const world = new JobWorld(config, service);
  if (scene.isSecond === true) await world.readStream("company_lookups");
  else await world.discover();
  service.behaviour = scene.behaviour ?? {};
  service.advance(scene.clockOff ?? 0);
  const before = service.bought.length;
  const { syncMode } = scene;
  const ran = await world.readStream("company_lookups", syncMode === undefined ? {} : { syncMode });
  return { ran, bought: service.bought.slice(before).toSorted() };
}

const page = await readFile(join(ROOT, "docs/jobs.md"), "utf8");
const rows = page
  .slice(page.indexOf("| what happens |"), page.indexOf("## Caps"))
  .split("\n")
  .slice(2)
  .filter((line) => line.startsWith("|"))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .map(([, what = "", ends = "", paid = ""]) => ({ what, ends, paid }));

describe("the table of docs/jobs.md", () => {
  it("has every scene, and no other", () => {
    expect(rows.map(({ what }) => what).toSorted()).toEqual([...Object.keys(SCENES), KILLED].toSorted());
  });

  it.each(rows.filter(({ what }) => what !== KILLED))("is true of: $what", async ({ what, ends, paid }) => {
    const scene = SCENES[what] ?? { bought: [] };
    const { ran, bought } = await play(scene);
    expect(bought).toEqual(scene.bought);
    if (paid === "nothing") expect(bought).toEqual([]);
    const [, failure] = /^fails, `(\w+)`/.exec(ends) ?? [];
    expect(ran.errors().map(({ failure_type }) => failure_type)).toEqual(
      failure === undefined ? [] : [failure],
    );
    expect(ran.code).toBe(failure === undefined ? 0 : 1);
    // A first sync always says that nothing is known of what was bought before.
    const warnings = ran.warnings().filter((text) => !text.includes("nothing is known"));
    if (ends.startsWith("complete, with a warning")) expect(warnings).not.toEqual([]);
    if (ends === "complete") expect(warnings).toEqual([]);
  });
});
