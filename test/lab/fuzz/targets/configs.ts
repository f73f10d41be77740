import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { KEY } from "../canary.ts";
import { type Asked, checkWith, discoverWith, readWith, tapWith } from "../commands.ts";
import type { Dice } from "../dice.ts";
import { bent, mutated } from "../hostile.ts";
import { play, playApart, safeEnvironment } from "../play.ts";
import { answerer, faithfully } from "../small-service.ts";
import { openTarget, type Target } from "../target.ts";
import { judgeEnded } from "../verdict.ts";

/** Files of settings, changed and damaged, given to each command that reads one. */
export async function configs(): Promise<Target> {
  const before = process.cwd();
  const target = await openTarget((service, folder) => {
    const file = join(folder, "config.json");
    // A setting that names a file may name one above the folder in which a command runs.
    const home = join(folder, "home");
    const inner = join(home, "a/b/c");
    mkdirSync(inner, { recursive: true });
    process.chdir(inner);
    return async (dice) => {
      const isUsual = dice.chance(0.03);
      const usual = Buffer.from(JSON.stringify(configFor(service.url)));
      const bytes = isUsual ? usual : changed(dice, service.url);
      writeFileSync(file, bytes);
      const isApart = dice.chance(0.003);
      service.answer = isUsual || isApart ? faithfully : answerer(dice);
      const variables = !isUsual && dice.chance(0.1) ? { [dice.pick(VARIABLES)]: dice.pick(TEXTS) } : {};
      const { language, command, alwaysZero } = askedFor(dice, file);
      const environment = { ...safeEnvironment(service.url, home), ...variables };
      const ended = await (isApart ? playApart : play)(command, environment);
      const verdict = judgeEnded(language, ended, alwaysZero);
      if (isUsual && !verdict.succeeded)
        throw new Error(`A good config fails: ${verdict.said.slice(-2_000)}`);
      const mayDiscover = command.kind === "tap" && command.mode === "discover";
      if (verdict.succeeded && !mayDiscover && !isConfig(bytes)) {
        throw new Error(
          `It succeeds with a config that is none: ${bytes.toString("latin1").slice(0, 1_000)}`,
        );
      }
      return 1;
    };
  });
  return {
    play: target.play,
    close() {
      process.chdir(before);
      return target.close();
    },
  };
}

const configFor = (url: string): object => ({
  base_url: url,
  api_key: KEY,
  start_date: "2026-01-02",
  end_date: null,
  source_slug: "acme",
  is_user: "all",
  lookback_window_days: 1,
  max_window_rows: 5_000,
  max_run_seconds: 3_600,
  num_workers: 2,
  requests_per_minute: 600,
  verify_counts: true,
  ignore_missing_days: ["2026-01-05"],
  drop_fields: ["people.lastName"],
  hash_fields: ["email"],
  hash_salt: "a long salt that nobody guesses",
  allow_insecure_http: false,
  receipts_file: "",
  endpoints: { companies: "/api/v1/public/companies" },
  external_api: { api_url: url, api_key: KEY },
  company_lookup: {
    domains: ["example.com"],
    max_credits_per_sync: 5,
    webhook_url: "https://example.com/hook",
  },
  email_check: { emails: ["a@example.com"], refresh_after_days: 30 },
  email_verification: { emails: ["b@example.com"], max_per_day: 3 },
});

/** Some settings or all, with some of them changed; or a file whose bytes are. */
function changed(dice: Dice, url: string): Buffer {
  const all = Object.entries(configFor(url));
  const some = dice.chance(0.5) ? all : all.filter(([name]) => REQUIRED.has(name) || dice.chance(0.3));
  const json = JSON.stringify(mutated(Object.fromEntries(some), dice, dice.pick([0.01, 0.04, 0.12]))) ?? "";
  if (dice.chance(0.05)) return bent(Buffer.from(json), dice);
  return Buffer.from(dice.chance(0.05) ? `\ufeff${json}` : json);
}

const REQUIRED: ReadonlySet<string> = new Set(["base_url", "api_key"]);

const VARIABLES = "IS_USER ENDPOINTS__X ENDPOINTS__COMPANIES START_DATE DROP_FIELDS NUM_WORKERS"
  .split(" ")
  .map((name) => `CONTACT_INTELLIGENCE_${name}`);
const TEXTS = ["", "x", "{}", "[]", '["email"]', "2026-01-02", "\u001b[2J", "1e9", "true", "\ud800", "../x"];

function askedFor(dice: Dice, config: string): Asked {
  const way = dice.below(100);
  if (way < 50) return checkWith(config, dice.chance(0.5));
  if (way < 62) return readWith({ config, streams: ["people"], format: dice.pick(["airbyte", "jsonl"]) });
  if (way < 66) return readWith({ config });
  if (way < 72) return discoverWith(config);
  if (way < 80) return tapWith({ configs: [config] });
  if (way < 84) return tapWith({ configs: [config, config], mode: "discover" });
  if (way < 87) return tapWith({ configs: [config], mode: "test" });
  if (way < 91) return { language: "text", command: { kind: "plan", config, stream: "people", shards: 3 } };
  const json = dice.chance(0.5);
  return {
    language: "text",
    command: { kind: "jobs", config, state: undefined, stateFile: undefined, json },
  };
}

/** Whether a file says at least what every config must. */
function isConfig(bytes: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8").replace(/^\ufeff/, ""));
    if (typeof value !== "object" || value === null) return false;
    const { base_url: url, api_key: key } = value as Record<string, unknown>;
    return typeof url === "string" && url.trim() !== "" && typeof key === "string" && key.trim() !== "";
  } catch {
    return false;
  }
}
