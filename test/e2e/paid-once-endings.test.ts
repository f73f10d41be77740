import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Behaviour, envelope, refusing } from "../support/counting-service.ts";
import { countingStage, DAY, HOUR, type Sync } from "../support/job-stage.ts";
import { ROOT } from "../support/run.ts";

const ITEMS = ["a.example", "b.example", "c.example", "d.example"];
const SIX = [...ITEMS, "e.example", "f.example"];

/** A sync, and the next ones, one after the other. */
type Scene = readonly [first: Sync, ...later: Sync[]];

/** The answers to the submissions of these items are lost. */
const lost = (...items: readonly string[]): Behaviour => ({
  wild: { method: "POST", items, answer: (response) => response.destroy() },
});
const result = (answer: ReturnType<typeof envelope>): Behaviour => ({
  result: (_id, item) => (item === "b.example" ? answer : undefined),
});
/** A job without a result is not asked for too early, and is delivered once it answers. */
const withoutResult = (status: number, code: string): Scene => {
  const behaviour = result(envelope(status, code));
  return [
    { behaviour, warns: `no result for 1 job (${code})`, bought: ITEMS },
    { after: HOUR / 2, bought: [], delivered: [] },
    { after: HOUR, bought: [], delivered: ["b.example"] },
  ];
};
const WRONG_KEY = { ...refusing(401, "INVALID_API_KEY"), result: () => envelope(401, "INVALID_API_KEY") };
const PEOPLE = ["first", "second"].map((id) => ({
  ...{ id, companyDomain: `${id}.example`, discoveredAt: "2026-01-01T00:00:00Z" },
}));
const OUT_OF_CREDITS: Sync = { behaviour: refusing(402, "INSUFFICIENT_CREDITS"), bought: [], tried: 1 };
/** A complete sync comes before. */
const SECOND = "a full refresh";
const NOTHING: Sync = { after: 40 * DAY, bought: [], delivered: [], tried: 0 };

const [A = [], B = [], C = [], D = []] = ITEMS.map((item) => [item]);
const NONE_OPEN = "0 jobs left open until the next sync";

/** Every way a sync can end, by the words of the page. */
const SCENES: Readonly<Record<string, Scene>> = {
  "every item is answered": [
    {
      ...{ bought: ITEMS, delivered: ITEMS },
      says: `4 answered, 4 submitted; 4 credits used in this sync, 4 today, 4 this month; ${NONE_OPEN}; 0 items left for later syncs`,
    },
    NOTHING,
  ],
  "answers are not there after `max_wait_seconds`": [
    {
      behaviour: { result: () => ({ status: 200, body: { status: "processing" } }) },
      // Until the first answer one look-up is in flight.
      ...{ settings: { max_wait_seconds: 200 }, bought: A, delivered: [] },
    },
    { settings: { max_lookups_per_sync: 0 }, bought: [], delivered: A },
    { bought: [...B, ...C, ...D] },
  ],
  "the answer to a submission is lost": [
    {
      ...{ behaviour: lost(...B), bought: ITEMS, delivered: [...A, ...C, ...D] },
      warns: "set company_lookup.retry_unknown to true",
    },
    NOTHING,
    { settings: { retry_unknown: true }, bought: B, delivered: B },
    NOTHING,
  ],
  "three answers in a row are lost": [
    { settings: { domains: SIX }, behaviour: lost(...SIX), bought: [...A, ...B, ...C] },
    { settings: { domains: SIX }, behaviour: refusing(401, "INVALID_API_KEY"), bought: [], tried: D },
    // One is tried a day, until an answer comes.
    { settings: { domains: SIX }, behaviour: lost(...SIX), bought: D },
    { settings: { domains: SIX }, bought: [] },
    { after: DAY, settings: { domains: SIX }, bought: ["e.example", "f.example"] },
  ],
  "a job answers 404, an error, nonsense or for another item": withoutResult(404, "JOB_NOT_FOUND"),
  "the key may not see a job (403)": withoutResult(403, "ACCESS_DENIED"),
  "a result cannot be used, and says its cost": [
    {
      behaviour: result({ status: 200, body: { status: "odd", credits_used: 7 } }),
      ...{ bought: ITEMS, delivered: [...A, ...C, ...D], warns: "no result for 1 job" },
      says: "10 credits used in this sync, 10 today",
    },
    { after: HOUR / 2, bought: [], delivered: [] },
    { after: HOUR, bought: [], delivered: B },
  ],
  "out of credits or quota": [
    { ...OUT_OF_CREDITS, warns: "out of credits or quota, with 4 items waiting. The next sync tries 1 item" },
    OUT_OF_CREDITS,
    { bought: ITEMS },
  ],
  "the service refuses an item": [
    {
      behaviour: refusing(400, "SOURCE_NOT_VERIFIABLE", B),
      warns: "company_lookup.domains[1] (SOURCE_NOT_VERIFIABLE)",
      bought: [...A, ...C, ...D],
    },
    { after: 29 * DAY, bought: [], tried: 0 },
    { after: 2 * DAY, bought: B },
  ],
  "three items are refused for their form before any is taken": [
    { behaviour: refusing(400, "INVALID_BODY"), bought: [], tried: 3 },
    { bought: ITEMS },
  ],
  "the key is wrong": [
    { behaviour: WRONG_KEY, bought: [] },
    { settings: { max_wait_seconds: 0 }, bought: A, delivered: [] },
    { behaviour: WRONG_KEY, bought: [], delivered: [] },
    { bought: [...B, ...C, ...D], delivered: ITEMS },
  ],
  "rows that name items are missing": [
    {
      ...{ settings: { from_people: true }, behaviour: { people: PEOPLE, omitted: 1 } },
      says: "1 day of people is incomplete. 2026-01-01: the service counts 2 rows and sends 1",
      bought: [...ITEMS, "second.example"],
    },
    { settings: { from_people: true }, behaviour: { people: PEOPLE }, bought: ["first.example"] },
  ],
  "a cap is reached": [
    {
      ...{ settings: { max_lookups_per_sync: 1 }, bought: A },
      says: `1 answered, 1 submitted; 1 credit used in this sync, 1 today, 1 this month; ${NONE_OPEN}; 3 items left for later syncs`,
    },
    { settings: { max_lookups_per_sync: 1 }, bought: B },
    // Two credits were used today.
    { settings: { max_credits_per_day: 3 }, bought: C },
    { after: DAY, settings: { max_credits_per_day: 3 }, bought: D },
  ],
  [SECOND]: [{ syncMode: "full_refresh", bought: [], delivered: ITEMS }, NOTHING],
  "the service's clock is more than 26 hours off": [
    { clockMoves: 30 * HOUR, settings: { from_people: true }, behaviour: { people: PEOPLE }, bought: [] },
    { clockMoves: -60 * HOUR, bought: [], warns: "30 hours behind" },
    { clockMoves: 30 * HOUR, bought: ITEMS, delivered: ITEMS },
  ],
};
/** Played with processes of their own. */
const KILLED = "the process is killed";

const page = await readFile(join(ROOT, "docs/dev/purchases.md"), "utf8");
const rows = page
  .slice(page.indexOf("| what happens |"))
  .split("\n")
  .slice(2)
  .filter((line) => line.startsWith("|"))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .map(([, what = "", ends = "", paid = ""]) => ({ what, ends, paid }));

describe("the table of docs/dev/purchases.md", () => {
  it("has one row for each tested case", () => {
    expect(rows.map(({ what }) => what).toSorted()).toEqual([...Object.keys(SCENES), KILLED].toSorted());
  });

  it.each(rows.filter(({ what }) => what !== KILLED))("is true of: $what", async ({ what, ends, paid }) => {
    const [first, ...later] = SCENES[what] ?? [];
    if (first === undefined) throw new Error("no such scene");
    const stage = await countingStage("company_lookup", { domains: ITEMS });
    if (what === SECOND) await stage.play({ bought: ITEMS });
    const [, fails] = /^fails, `(\w+)`/.exec(ends) ?? [];
    const ran = await stage.play({ ...first, fails });
    if (paid === "nothing") expect(first.bought).toEqual([]);
    // A first sync always says that earlier purchases are unknown.
    const unknown = "there is no state, and the receipts are new, so earlier purchases are unknown";
    const warnings = ran.warnings().filter((text) => !text.includes(unknown));
    if (ends.startsWith("complete, with a warning")) expect(warnings).not.toEqual([]);
    if (ends === "complete") expect(warnings).toEqual([]);
    for (const sync of later) await stage.play({ fails: null, ...sync });
  });
});
