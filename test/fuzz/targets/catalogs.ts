import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadSchema } from "../../../src/catalog/schema.ts";
import { type Asked, readWith, tapWith } from "../commands.ts";
import type { Dice } from "../dice.ts";
import { bent, mutated } from "../hostile.ts";
import { environmentOf, play, playApart } from "../play.ts";
import { Service } from "../service.ts";
import { faithfully, ROWS, refusing } from "../small-service.ts";
import { openFolder, type Target } from "../target.ts";
import { judgeEnded, type Verdict } from "../verdict.ts";

/** Catalogs of both languages, changed and damaged, given to a sync. */
export async function catalogs(): Promise<Target> {
  const service = await Service.open();
  const folder = await openFolder();
  const file = join(folder.path, "catalog.json");
  const environment = environmentOf(service.url, folder.path);
  return {
    async play(dice) {
      const isUsual = dice.chance(0.03);
      const isSinger = dice.chance(0.5);
      // Most of them are read to their last word before a service that refuses everything is asked.
      service.answer = isUsual || dice.chance(0.3) ? faithfully : refusing;
      const names = dice.chance(0.9)
        ? [dice.pick(["people", "companies", "sources"])]
        : ["people", "companies", "sources"];
      const catalog = {
        streams: names.map((name) => (isSinger ? singerEntry(name) : airbyteEntry(name, dice))),
      };
      const rate = isUsual ? 0 : dice.pick([0.005, 0.02, 0.06]);
      writeFileSync(file, textOf(rate === 0 ? catalog : mutated(catalog, dice, rate), isUsual, dice));
      const { language, command } = isSinger
        ? tapWith({ catalog: file })
        : readWith(optionsFor(dice, file, isUsual));
      const playIn = dice.chance(0.005) ? playApart : play;
      const verdict = judgeEnded(language, await playIn(command, environment));
      if (isUsual && !verdict.succeeded)
        throw new Error(`A good catalog fails: ${verdict.said.slice(-2_000)}`);
      checkWhole(verdict);
      return 1;
    },
    async close() {
      await service.close();
      await folder.remove();
    },
  };
}

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

const SCHEMAS = {
  people: loadSchema("people.json"),
  companies: loadSchema("companies.json"),
  sources: loadSchema("sources.json"),
};
const KEYS: Readonly<Record<string, string>> = { people: "id", companies: "domain", sources: "slug" };

const airbyteEntry = (name: string, dice: Dice): object => ({
  stream: {
    name,
    json_schema: SCHEMAS[name as keyof typeof SCHEMAS],
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
  primary_key: [[KEYS[name]]],
});

const singerEntry = (name: string): object => ({
  tap_stream_id: name,
  stream: name,
  schema: SCHEMAS[name as keyof typeof SCHEMAS],
  key_properties: [KEYS[name]],
  metadata: [
    { breadcrumb: [], metadata: { selected: true, "table-key-properties": [KEYS[name]] } },
    { breadcrumb: ["properties", "email"], metadata: { selected: false } },
    { breadcrumb: ["properties", KEYS[name]], metadata: { inclusion: "automatic" } },
  ],
});
