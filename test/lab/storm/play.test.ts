import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Contestant } from "../../../storm/contestant.ts";
import { outcomeOf, type Verdict } from "../../../storm/judge.ts";
import { play } from "../../../storm/play.ts";
import { SITUATIONS } from "../../../storm/situations.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** Reads one export, from the cursor of its state on if it has one, and believes whatever ends. */
const NAIVE = `
const { readFileSync, existsSync } = require("node:fs");
const { base_url, api_key } = JSON.parse(readFileSync("config.json"));
const since = existsSync("state.json") ? "?discovered_from=" + JSON.parse(readFileSync("state.json")).day : "";
fetch(base_url + "/api/v1/public/people/stream" + since, { headers: { "X-API-Key": api_key } })
  .then((response) => response.text())
  .then((text) => {
    const rows = text.split("\\n").filter(Boolean).map((line) => JSON.parse(line));
    const say = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
    for (const record of rows) say({ type: "RECORD", stream: "people", record });
    const day = rows.map(({ discoveredAt }) => discoveredAt.slice(0, 10)).sort().at(-1);
    if (day) say({ type: "STATE", value: { day } });
  })
  .catch((error) => { console.error("ERROR " + error); process.exitCode = 1; });
`;

const naive: Contestant = {
  order: 1,
  id: "naive",
  name: "a naive reader",
  reads: "one export",
  choice: "",
  versions: [],
  runtime: "node",
  speaks: "singer",
  complaint: "^ERROR",
  command: ["{node}", "-e", NAIVE],
};

async function played(name: string): Promise<Verdict> {
  const situation = SITUATIONS.find((one) => one.name === name);
  if (situation === undefined) throw new Error(`There is no situation "${name}"`);
  const folder = join(await tempDir(), "run");
  mkdirSync(folder);
  return (await play(naive, situation, folder, new Set())).verdict;
}

describe("play()", () => {
  it.concurrent.each([
    ["calm", "complete", { lost: 0, twice: 0, exit: 0, requests: 1 }],
    ["cut at the end of a line", "LOST", { lost: 2500, lostForGood: 2500, exit: 0, told: false, met: true }],
    ["cut in a line", "told, then complete", { lost: 5000, lostForGood: 0, exit: 1, told: true }],
    ["connection reset", "told, then complete", { lost: 5000, exit: 1 }],
    ["the second body cut", "complete", { met: false }],
    ["rows that exports repeat", "complete", { lost: 0, twice: 20 }],
    ["STREAM_FAILED", "told, then complete", { exit: 1 }],
    ["killed, started again", "complete", { lost: 0, exit: 0, met: true, requests: 2 }],
  ] as const)("judges a naive reader: %s", async (name, outcome, verdict) => {
    const judged = await played(name);
    expect(judged).toMatchObject(verdict);
    expect(outcomeOf(judged)).toBe(outcome);
  });

  it("sees rows of another account, and those that its date hides afterwards", async () => {
    expect(await played("another account by mistake")).toMatchObject({
      lost: 50,
      lostForGood: 50,
      exit: 0,
      notes: [expect.stringMatching(/^\d+ people of another account$/)],
    });
  });

  it("sees a key that is taken to another server", async () => {
    expect((await played("a redirect to a login page")).notes.join()).toMatch(
      /with the key to the other server/,
    );
  });
});
