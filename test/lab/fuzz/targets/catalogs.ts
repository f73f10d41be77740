import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadSchema } from "../../../../src/catalog/schema.ts";
import { type Asked, readWith, tapWith } from "../commands.ts";
import type { Dice } from "../dice.ts";
import { bent, mutated } from "../hostile.ts";
import { environmentOf, play, playApart } from "../play.ts";
import { COLLECTIONS, type Collection, KEY_NAMES } from "../service.ts";
import { faithfully, ROWS, refusing } from "../small-service.ts";
import { openTarget, type Target } from "../target.ts";
import { judgeEnded, type Verdict } from "../verdict.ts";

/** Catalogs of both languages, changed and damaged, given to a sync. */
export const catalogs = (): Promise<Target> =>
  openTarget((service, folder) => {
    const file = join(folder, "catalog.json");
    const environment = environmentOf(service.url, folder);
    return async (dice) => {
      const isUsual = dice.chance(0.03);
      const isSinger = dice.chance(0.5);
      // Most of them are read to their last word before a service that refuses everything is asked.
      service.answer = isUsual || dice.chance(0.3) ? faithfully : refusing;
      const names = dice.chance(0.9) ? [dice.pick(COLLECTIONS)] : COLLECTIONS;
      const streams = names.map((name) => (isSinger ? singerEntry(name) : airbyteEntry(name, dice)));
      const rate = isUsual ? 0 : dice.pick([0.005, 0.02, 0.06]);
      const catalog = rate === 0 ? { streams } : mutated({ streams }, dice, rate);
      writeFileSync(file, textOf(catalog, isUsual, dice));
      const { language, command } = isSinger
        ? tapWith({ catalog: file })
        : readWith(optionsFor(dice, file, isUsual));
      const playIn = dice.chance(0.005) ? playApart : play;
      const verdict = judgeEnded(language, await playIn(command, environment));
      if (isUsual && !verdict.succeeded)
        throw new Error(`A good catalog fails: ${verdict.said.slice(-2_000)}`);
      checkWhole(verdict);
      return 1;
    };
  });

const optionsFor = (
  dice: Dice,
  catalog: string,
  isUsual: boolean,
): Partial<Extract<Asked["command"], { kind: "read" }>> =>
  dice.chance(0.1) && !isUsual ? { catalog, streams: ["people"] } : { catalog };

/** As a file, or within the message that brought it; now and then damaged. */
function textOf(catalog: unknown, isUsual: boolean, dice: Dice): Buffer {
  const json = JSON.stringify(catalog) ?? "";
  const text = dice.chance(0.05) ? `{"type":"LOG"}\n{"type":"CATALOG","catalog":${json}}\n` : json;
  if (isUsual) return Buffer.from(json);
  return dice.chance(0.04) ? bent(Buffer.from(text), dice) : Buffer.from(text);
}

/** A stream that is complete, as the protocol says, has brought every row. */
function checkWhole({ complete, records }: Verdict): void {
  for (const id of complete) {
    const name = id.slice(id.lastIndexOf("/") + 1);
    const count = records.get(name)?.length ?? 0;
    if (count < ROWS) throw new Error(`"${name}" is COMPLETE with ${count} rows of ${ROWS}`);
  }
}

const airbyteEntry = (name: Collection, dice: Dice): object => ({
  stream: {
    name,
    json_schema: loadSchema(name),
    supported_sync_modes: ["full_refresh", "incremental"],
    source_defined_cursor: true,
    default_cursor_field: ["discoveredAt"],
    namespace: null,
  },
  sync_mode: dice.pick(["incremental", "full_refresh"]),
  destination_sync_mode: dice.pick(["append", "append_dedup", "overwrite"]),
  generation_id: 1,
  minimum_generation_id: 0,
  sync_id: 2,
  cursor_field: ["discoveredAt"],
  primary_key: [[KEY_NAMES[name]]],
});

const singerEntry = (name: Collection): object => ({
  tap_stream_id: name,
  stream: name,
  schema: loadSchema(name),
  key_properties: [KEY_NAMES[name]],
  metadata: [
    { breadcrumb: [], metadata: { selected: true, "table-key-properties": [KEY_NAMES[name]] } },
    { breadcrumb: ["properties", "email"], metadata: { selected: false } },
    { breadcrumb: ["properties", KEY_NAMES[name]], metadata: { inclusion: "automatic" } },
  ],
});
