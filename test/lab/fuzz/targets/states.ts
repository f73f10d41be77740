import { writeFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { refusePrivate } from "../canary.ts";
import { type Asked, readWith, tapWith } from "../commands.ts";
import type { Dice } from "../dice.ts";
import { bent, mutated } from "../hostile.ts";
import { environmentOf, play, playApart } from "../play.ts";
import { faithfully, RECENT_ROWS, refusing } from "../small-service.ts";
import { openTarget, type Target } from "../target.ts";
import { judgeEnded, type Verdict } from "../verdict.ts";

/** States in every envelope, changed and damaged, given to each command that reads one. */
export const states = (): Promise<Target> =>
  openTarget((service, folder) => {
    const file = join(folder, "state.json");
    const environment = environmentOf(service.url, folder);
    return async (dice) => {
      const isUsual = dice.chance(0.03);
      service.answer = isUsual || dice.chance(0.6) ? faithfully : refusing;
      const state = dice.pick(STATES);
      const given = isUsual ? state : mutated(state, dice, dice.pick([0.01, 0.04, 0.12]));
      const json = JSON.stringify(given) ?? "";
      writeFileSync(file, !isUsual && dice.chance(0.04) ? bent(Buffer.from(json), dice) : json);
      const { language, command } = askedFor(dice, file);
      const playIn = dice.chance(0.005) ? playApart : play;
      const verdict = judgeEnded(language, await playIn(command, environment));
      const isMerge = command.kind === "state-merge";
      if (isUsual && !isMerge && !verdict.succeeded)
        throw new Error(`A good state fails: ${verdict.said.slice(-2_000)}`);
      if (language !== "text" && verdict.succeeded) checkRecent(verdict);
      if ("stateFile" in command && command.stateFile !== undefined) {
        refusePrivate("The state file", await readFile(file, "latin1"));
        await rm(`${file}.previous`, { force: true });
      }
      return 1;
    };
  });

function askedFor(dice: Dice, state: string): Asked {
  const way = dice.below(100);
  const streams = dice.pick([["people"], ["people"], ["companies"]]);
  if (way < 30) return readWith({ state, streams });
  if (way < 40) return readWith({ state, streams, format: "jsonl" });
  if (way < 44)
    return readWith({ stateFile: state, streams: ["people"], format: dice.pick(["airbyte", "jsonl"]) });
  if (way < 60) return tapWith({ state });
  if (way < 88) return { language: "text", command: { kind: "state", file: state } };
  if (way < 95)
    return {
      language: "text",
      command: { kind: "state-merge", partial: dice.chance(0.5), states: [state, state] },
    };
  return {
    language: "text",
    command: { kind: "jobs", config: undefined, state, stateFile: undefined, json: dice.chance(0.5) },
  };
}

/** Yesterday's and today's rows come in every run, but for a state that is ahead, or a stream that is delivered. */
function checkRecent({ records, said }: Verdict): void {
  const count = [...records.values()].flat().length;
  if (count >= RECENT_ROWS || said.includes("later than the service's clock")) return;
  throw new Error(
    `A run succeeds with ${count} rows of ${RECENT_ROWS} that always come: ${said.slice(-2_000)}`,
  );
}

const DATED = {
  version: 1,
  discoveredAt: "2026-01-02T23:59:59.999Z",
  missing_days: ["2025-12-31"],
  filters: { source_slug: null, is_user: "all" },
  from: null,
  undated: "done",
  undated_checked: "2026-01-02",
  undated_rows: 3,
  recheck: [["2025-12-01", "2025-12-02"]],
  gap: null,
  shard: null,
  full_refresh: null,
};
const ENDED = { asked: "2026-03-05T00:00:00.000Z", ended: "2026-03-05T00:00:01.000Z" };
const SHARD = { ...DATED, shard: { plan: "d1", index: 0, done: true, ...ENDED } };
const JOBS = {
  version: 1,
  created_at: null,
  jobs: [{ item: "A".repeat(16), step: "submitted", at: "2026-03-01T00:00:00.000Z", job_id: "job_1" }],
};
const DATED_2 = {
  ...{ version: 2, discoveredAt: DATED.discoveredAt, filters: DATED.filters, full_refresh: null },
  days: [
    ["0001-01-01", "2025-11-30", 12],
    ["2025-12-01", "2025-12-02", null, "again"],
    ["2025-12-31", "2025-12-31", null, "missing"],
  ],
  ...{ undated: { rows: 3, seen: null }, checked: "2026-01-02", plan: "d1", asked: ENDED.asked },
  ...{ service: null, witness: null, sources: null },
};
const STATES: readonly unknown[] = [
  [{ type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: DATED_2 } }],
  [{ type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: DATED } }],
  { type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: SHARD } },
  { type: "STREAM", stream: { stream_descriptor: { name: "company_lookups" }, stream_state: JOBS } },
  {
    bookmarks: {
      people: { ...DATED, replication_key: "discoveredAt", replication_key_value: DATED.discoveredAt },
    },
  },
  { type: "STATE", value: { bookmarks: { people: DATED, sources: { version: 1 } } } },
  { stateType: "stream", streamState: [{ streamDescriptor: { name: "people" }, streamState: DATED }] },
  {
    stateType: "global",
    globalState: { streamStates: [{ streamDescriptor: { name: "companies" }, streamState: DATED }] },
  },
  { people: { discoveredAt: "2026-03-01T00:00:00.000Z", missing_days: [] } },
];
