import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Behaviour, envelope, refusing } from "../support/counting-service.ts";
import { countingStage, DAY, HOUR, type Sync } from "../support/job-stage.ts";
import { ROOT } from "../support/run.ts";

const ITEMS = ["a.example", "b.example", "c.example", "d.example"];
const SIX = [...ITEMS, "e.example", "f.example"];

type Scene = Sync & {
  readonly bought: readonly string[];
  /** A complete sync came before. */
  readonly isSecond?: boolean;
  /** The next syncs, one after the other. */
  readonly later: readonly Sync[];
};

/** The answers to the submissions of these items are lost. */
const lost = (...items: readonly string[]): Behaviour => ({
  wild: { method: "POST", items, answer: (response) => response.destroy() },
});
const result = (answer: ReturnType<typeof envelope>): Behaviour => ({
  result: (_id, item) => (item === "b.example" ? answer : undefined),
});
/** A job that brings nothing is not asked for too early, and is delivered once it answers. */
const withoutResult = (status: number, code: string): Scene => {
  const behaviour = result(envelope(status, code));
  return {
    ...{ behaviour, warns: `no result for 1 job (${code})`, bought: ITEMS },
    later: [
      { after: HOUR / 2, bought: [], delivered: [] },
      {
        // A job of this sync is answered properly, so that the next question waits for longer.
        ...{ after: HOUR, behaviour, settings: { domains: [...ITEMS, "e.example"] } },
        ...{ bought: ["e.example"], delivered: ["e.example"] },
      },
      { after: HOUR, bought: [], delivered: [] },
      { after: DAY, bought: [], delivered: ["b.example"] },
    ],
  };
};
const WRONG_KEY = { ...refusing(401, "INVALID_API_KEY"), result: () => envelope(401, "INVALID_API_KEY") };
const PEOPLE = ["first", "second"].map((id) => ({
  ...{ id, companyDomain: `${id}.example`, discoveredAt: "2026-01-01T00:00:00Z" },
}));
const NOTHING: Sync = { after: 40 * DAY, bought: [], delivered: [], tried: 0 };

/** Every way a sync can end, by the words of the page. */
const SCENES: Readonly<Record<string, Scene>> = {
  "every item is answered": {
    bought: ITEMS,
    delivered: ITEMS,
    says: "4 answered, 4 submitted; 4 credits used in this sync, 4 today, 4 this month; 0 jobs left open until the next sync; 0 items left for later syncs",
    later: [NOTHING],
  },
  "answers are not there after `max_wait_seconds`": {
    behaviour: { result: () => ({ status: 200, body: { status: "processing" } }) },
    settings: { max_wait_seconds: 200 },
    // Until the first answer one look-up is in flight.
    bought: ["a.example"],
    delivered: [],
    later: [
      { settings: { max_lookups_per_sync: 0 }, bought: [], delivered: ["a.example"] },
      { bought: ["b.example", "c.example", "d.example"] },
    ],
  },
  "the answer to a submission is lost": {
    behaviour: lost("b.example"),
    warns: "set company_lookup.retry_unknown to true",
    bought: ITEMS,
    delivered: ["a.example", "c.example", "d.example"],
    later: [
      NOTHING,
      { settings: { retry_unknown: true }, bought: ["b.example"], delivered: ["b.example"] },
      NOTHING,
    ],
  },
  "three answers in a row are lost": {
    settings: { domains: SIX },
    behaviour: lost(...SIX),
    bought: ["a.example", "b.example", "c.example"],
    later: [
      {
        settings: { domains: SIX },
        behaviour: refusing(401, "INVALID_API_KEY"),
        ...{ bought: [], tried: ["d.example"] },
      },
      { bought: ["d.example"], delivered: ["d.example"] },
    ],
  },
  "a job answers 404, an error, nonsense or for another item": withoutResult(404, "JOB_NOT_FOUND"),
  "the key may not see a job (403)": withoutResult(403, "ACCESS_DENIED"),
  "a result is longer than 32 MiB": {
    behaviour: result({ status: 200, body: `{"credits_used":7,"x":"${" ".repeat(33 * 2 ** 20)}"}` }),
    ...{ bought: ITEMS, delivered: ["a.example", "c.example", "d.example"], says: "an answer of 34 MiB" },
    warns: "answers that are longer than 32 MiB cost 7 credits, so nothing more was submitted in this sync",
    later: [
      { after: HOUR / 2, bought: [], delivered: [] },
      { after: HOUR, bought: [], delivered: ["b.example"] },
    ],
  },
  "out of credits or quota": {
    behaviour: refusing(402, "INSUFFICIENT_CREDITS"),
    warns: "out of credits or quota, with 4 items waiting. The next sync tries one",
    bought: [],
    tried: 1,
    later: [{ behaviour: refusing(402, "INSUFFICIENT_CREDITS"), bought: [], tried: 1 }, { bought: ITEMS }],
  },
  "the service refuses an item": {
    behaviour: refusing(400, "SOURCE_NOT_VERIFIABLE", ["b.example"]),
    warns: "company_lookup.domains[1] (SOURCE_NOT_VERIFIABLE)",
    bought: ["a.example", "c.example", "d.example"],
    later: [
      { after: 29 * DAY, bought: [], tried: 0 },
      { after: 2 * DAY, bought: ["b.example"] },
    ],
  },
  "three items are refused for their form before any is taken": {
    behaviour: refusing(400, "INVALID_BODY"),
    bought: [],
    tried: 3,
    later: [{ bought: ITEMS }],
  },
  "the key is wrong": {
    behaviour: WRONG_KEY,
    bought: [],
    later: [
      { settings: { max_wait_seconds: 0 }, bought: ["a.example"], delivered: [] },
      { behaviour: WRONG_KEY, bought: [], delivered: [] },
      { bought: ["b.example", "c.example", "d.example"], delivered: ITEMS },
    ],
  },
  "rows that name items are missing": {
    behaviour: { people: PEOPLE, omitted: 1 },
    settings: { from_people: true },
    says: "the export showed 1 row, and the service counts 2",
    bought: [...ITEMS, "second.example"],
    later: [{ behaviour: { people: PEOPLE }, settings: { from_people: true }, bought: ["first.example"] }],
  },
  "a cap is reached": {
    says: "1 answered, 1 submitted; 1 credit used in this sync, 1 today, 1 this month; 0 jobs left open until the next sync; 3 items left for later syncs",
    settings: { max_lookups_per_sync: 1 },
    bought: ["a.example"],
    later: [
      { settings: { max_lookups_per_sync: 1 }, bought: ["b.example"] },
      // Two credits were used today.
      { settings: { max_credits_per_day: 3 }, bought: ["c.example"] },
      { after: DAY, settings: { max_credits_per_day: 3 }, bought: ["d.example"] },
    ],
  },
  "a full refresh": {
    isSecond: true,
    ...{ syncMode: "full_refresh", bought: [], delivered: ITEMS },
    later: [NOTHING],
  },
  "the service's clock is more than 26 hours off": {
    ...{ clockMoves: 30 * HOUR, settings: { from_people: true }, behaviour: { people: PEOPLE } },
    bought: [],
    later: [
      { clockMoves: -60 * HOUR, bought: [], warns: "30 hours behind" },
      { clockMoves: 30 * HOUR, bought: ITEMS, delivered: ITEMS },
    ],
  },
};
/** Played with processes of their own. */
const KILLED = "the process is killed";

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
    const scene = SCENES[what];
    if (scene === undefined) throw new Error("no such scene");
    const stage = await countingStage("company_lookup", { domains: ITEMS });
    if (scene.isSecond === true) await stage.play({ bought: ITEMS });
    const [, fails] = /^fails, `(\w+)`/.exec(ends) ?? [];
    const ran = await stage.play({ ...scene, fails });
    if (paid === "nothing") expect(scene.bought).toEqual([]);
    // A first sync always says that nothing is known of what was bought before.
    const unknown = "there is no state, and the receipts are new, so nothing is known";
    const warnings = ran.warnings().filter((text) => !text.includes(unknown));
    if (ends.startsWith("complete, with a warning")) expect(warnings).not.toEqual([]);
    if (ends === "complete") expect(warnings).toEqual([]);
    for (const sync of scene.later) await stage.play({ fails: null, ...sync });
  });
});
