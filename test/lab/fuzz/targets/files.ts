import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { loadSchema } from "../../../../src/catalog/schema.ts";
import { ROOT } from "../../../support/run.ts";
import type { Dice } from "../dice.ts";
import { bent, mutated } from "../hostile.ts";
import { parsed, SALT } from "../rows.ts";
import { environmentOf, runAndJudge, safeEnvironment } from "../run.ts";
import {
  COLLECTIONS,
  type Collection,
  elsewhere,
  faithfully,
  KEY_NAMES,
  openTarget,
  RECENT_ROWS,
  ROWS,
  refusing,
  type Target,
} from "../service.ts";
import { KEY, refusePrivate, type Verdict } from "../verdict.ts";

/** Writes a value; changed, or with other bytes, unless the file is to be as it should be. */
function writeOdd(dice: Dice, file: string, value: unknown, isUsual: boolean): Buffer {
  const json = JSON.stringify(isUsual ? value : mutated(value, dice, dice.pick([0.01, 0.03, 0.1]))) ?? "";
  const marked = Buffer.from(!isUsual && dice.chance(0.03) ? `\ufeff${json}` : json);
  const bytes = !isUsual && dice.chance(0.04) ? bent(marked, dice) : marked;
  writeFileSync(file, bytes);
  return bytes;
}

function mustSucceed({ succeeded, said }: Verdict, isUsual: boolean): void {
  if (isUsual && !succeeded) throw new Error(`A good file is refused: ${said.slice(-2_000)}`);
}

/** Files of settings, changed and damaged, given to each command that reads one. */
export async function configs(): Promise<Target> {
  const before = process.cwd();
  const target = await openTarget((service, folder) => {
    const file = join(folder, "config.json");
    // A setting that names a file may name one above the folder in which a command runs.
    const home = join(folder, "home");
    mkdirSync(join(home, "a/b/c"), { recursive: true });
    process.chdir(join(home, "a/b/c"));
    return async (dice) => {
      const isUsual = dice.chance(0.03);
      const all = Object.entries(configFor(service.url));
      const some = all.filter(([name]) => isUsual || /^(base_url|api_key)$/.test(name) || dice.chance(0.6));
      const bytes = writeOdd(dice, file, Object.fromEntries(some), isUsual);
      service.answer = isUsual || dice.chance(0.4) ? faithfully : dice.pick(elsewhere);
      const variable = `CONTACT_INTELLIGENCE_${dice.pick(VARIABLES)}`;
      const line = dice.pick(WITH_CONFIG);
      const environment = {
        ...safeEnvironment(service.url, home),
        ...(!isUsual && dice.chance(0.1) && { [variable]: dice.pick(TEXTS) }),
      };
      const verdict = await runAndJudge(line, environment, file);
      mustSucceed(verdict, isUsual);
      if (verdict.succeeded && !line.includes("--discover") && !isConfig(bytes))
        throw new Error(`It succeeds with a config that is none: ${bytes.toString().slice(0, 1_000)}`);
      return 1;
    };
  });
  return { ...target, close: () => target.close().finally(() => process.chdir(before)) };
}

const configFor = (url: string): object => ({
  ...{ base_url: url, api_key: KEY, start_date: "2026-01-02", end_date: null, source_slug: "acme" },
  ...{ is_user: "all", lookback_window_days: 1, max_window_rows: 5_000, max_run_seconds: 3_600 },
  ...{ num_workers: 2, requests_per_minute: 600, verify_counts: true, ignore_missing_days: ["2026-01-05"] },
  ...{ drop_fields: ["people.lastName"], hash_fields: ["email"], hash_salt: SALT, receipts_file: "" },
  ...{ allow_insecure_http: false, endpoints: { companies: "/api/v1/public/companies" } },
  external_api: { api_url: url, api_key: KEY },
  company_lookup: { domains: ["example.com"], webhook_url: "https://example.com/hook" },
  email_check: { emails: ["a@example.com"], refresh_after_days: 30 },
  email_verification: { emails: ["b@example.com"], max_per_day: 3 },
});

const VARIABLES = "IS_USER ENDPOINTS__X ENDPOINTS__COMPANIES START_DATE DROP_FIELDS NUM_WORKERS".split(" ");
const TEXTS = ["", "x", "{}", "[]", '["email"]', "2026-01-02", "\u001b[2J", "1e9", "true", "\ud800", "../x"];

const WITH_CONFIG: readonly string[] = [
  ...["connector check", "connector check", "connector check --exit-code", "connector discover"],
  ...["connector read --format airbyte --stream people", "connector read --format jsonl --stream people"],
  ...["tap", "tap --config $ --discover", "tap --test"],
  ...["connector plan --shards 3", "connector jobs", "connector jobs --json"],
].map((line) => `${line} --config $`);

/** Whether a file says at least what every config must. */
function isConfig(bytes: Buffer): boolean {
  const { base_url: url, api_key: key } = Object(parsed(bytes.toString().replace(/^\ufeff/, "")));
  return [url, key].every((value) => typeof value === "string" && value.trim() !== "");
}

/** Catalogs of both languages, changed and damaged, given to a sync. */
export const catalogs = (): Promise<Target> =>
  openTarget((service, folder) => {
    const file = join(folder, "catalog.json");
    return async (dice) => {
      const isUsual = dice.chance(0.03);
      const isSinger = dice.chance(0.5);
      // Most of them are read to their last word before a service that refuses everything is asked.
      service.answer = isUsual || dice.chance(0.3) ? faithfully : refusing;
      const names = dice.chance(0.9) ? [dice.pick(COLLECTIONS)] : COLLECTIONS;
      const streams = names.map((name) => (isSinger ? singerEntry(name) : airbyteEntry(name, dice)));
      writeOdd(dice, file, { streams }, isUsual);
      const more = !isUsual && dice.chance(0.1) ? " --stream people" : "";
      const line = isSinger ? "tap --catalog $" : `connector read --format airbyte --catalog $${more}`;
      const verdict = await runAndJudge(line, environmentOf(service.url, folder), file);
      mustSucceed(verdict, isUsual);
      for (const id of verdict.complete) {
        const name = id.slice(id.lastIndexOf("/") + 1);
        const count = verdict.records.filter(({ stream }) => stream === name).length;
        if (count < ROWS) throw new Error(`"${name}" is COMPLETE with ${count} rows of ${ROWS}`);
      }
      return 1;
    };
  });

const airbyteEntry = (name: Collection, dice: Dice): object => ({
  stream: {
    ...{ name, json_schema: loadSchema(name), supported_sync_modes: ["full_refresh", "incremental"] },
    ...{ source_defined_cursor: true, default_cursor_field: ["discoveredAt"], namespace: null },
  },
  sync_mode: dice.pick(["incremental", "full_refresh"]),
  destination_sync_mode: dice.pick(["append", "append_dedup", "overwrite"]),
  ...{ generation_id: 1, minimum_generation_id: 0, sync_id: 2 },
  ...{ cursor_field: ["discoveredAt"], primary_key: [[KEY_NAMES[name]]] },
});

const singerEntry = (name: Collection): object => ({
  ...{ tap_stream_id: name, stream: name, schema: loadSchema(name), key_properties: [KEY_NAMES[name]] },
  metadata: [
    { breadcrumb: [], metadata: { selected: true, "table-key-properties": [KEY_NAMES[name]] } },
    { breadcrumb: ["properties", "email"], metadata: { selected: false } },
    { breadcrumb: ["properties", KEY_NAMES[name]], metadata: { inclusion: "automatic" } },
  ],
});

/** States in every envelope, changed and damaged, given to each command that reads one. */
export const states = (): Promise<Target> =>
  openTarget((service, folder) => {
    const file = join(folder, "state.json");
    return async (dice) => {
      const isUsual = dice.chance(0.03);
      service.answer = isUsual || dice.chance(0.6) ? faithfully : refusing;
      writeOdd(dice, file, dice.pick(STATES), isUsual);
      const line = dice.pick(WITH_STATE);
      const verdict = await runAndJudge(line, environmentOf(service.url, folder), file);
      if (!line.includes("merge")) mustSucceed(verdict, isUsual);
      // Yesterday's and today's rows come in every run, but for a state that is ahead, or a stream that is delivered.
      const isShort = /^tap|read/.test(line) && verdict.succeeded && verdict.records.length < RECENT_ROWS;
      if (isShort && !verdict.said.includes("later than the service's clock"))
        throw new Error(`A run succeeds without rows that always come: ${verdict.said.slice(-2_000)}`);
      if (line.includes("--state-file")) refusePrivate("the state file", await readFile(file, "utf8"));
      await rm(`${file}.previous`, { force: true });
      return 1;
    };
  });

const WITH_STATE: readonly string[] = [
  ...["people", "people", "companies"].map(
    (name) => `connector read --format airbyte --state $ --stream ${name}`,
  ),
  ...["connector read --format jsonl --state $ --stream people", "tap --state $", "tap --state $"],
  ...["connector read --format airbyte --state-file $ --stream people", "connector jobs --state $"],
  ...["connector state show $", "connector state show $", "connector state show $"],
  ...["connector state merge $ $", "connector state merge $ $ --partial"],
];

const span = (from: string, to: string, status: string, rows = 0) => ({ from, to, status, rows });
const PEOPLE = {
  ...{ version: 4, discoveredAt: "2026-01-02T23:59:59.999Z", full_refresh: null },
  ...{ filters: { source_slug: null, is_user: "all" }, service: null, key: null, sources: null },
  ...{ undated: { rows: 3 }, checked: "2026-01-02", asked: "2026-03-05T00:00:00.000Z" },
  days: [
    span("1970-01-02", "2025-11-30", "proven", 12),
    span("2025-12-01", "2025-12-02", "again"),
    span("2025-12-31", "2025-12-31", "missing"),
  ],
};
const { company_lookups: JOBS } = JSON.parse(readFileSync(`${ROOT}test/formats/jobs/state.json`, "utf8"));
const stream = (name: string, state: object): object => ({
  type: "STREAM",
  stream: { stream_descriptor: { name }, stream_state: state },
});
const replicated = { replication_key: "discoveredAt", replication_key_value: PEOPLE.discoveredAt };
const STATES: readonly unknown[] = [
  [stream("people", PEOPLE)],
  stream("people", PEOPLE),
  stream("company_lookups", JOBS),
  { bookmarks: { people: { ...PEOPLE, ...replicated } } },
  { type: "STATE", value: { bookmarks: { people: PEOPLE, sources: { version: 4 } } } },
  { people: { discoveredAt: "2026-03-01T00:00:00.000Z" } },
];
