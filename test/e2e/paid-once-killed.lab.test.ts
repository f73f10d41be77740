import type { ChildProcess } from "node:child_process";
import { watch } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run, TAP } from "../support/cli.ts";
import { CountingService } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { airbyteCatalogOf, jobConfig } from "../support/job-stage.ts";
import { runs } from "../support/runs.ts";
import { tempDir } from "../support/temp-dir.ts";

/** How often each test kills; CONTACT_INTELLIGENCE_KILLS asks for more. */
const KILLS = Number(process.env["CONTACT_INTELLIGENCE_KILLS"] ?? runs(1, 3));
/** After so many kills a life ends: runs that end by themselves collect what is left, and other items begin another life. */
const KILLS_AN_ACCOUNT = 10;
/** After the first output. */
const LATEST_KILL_MS = 2_000;
const RECEIPTS = "receipts.jsonl";
/** The streams, each with its setting and where the service takes its items. */
const STREAMS = [
  ["company_lookups", "company_lookup", "/company-lookup"],
  ["company_lookup_contacts", "company_lookup", "/company-lookup"],
  ["email_checks", "email_check", "/verify"],
  ["email_verifications", "email_verification", "/verify-email"],
] as const;
const NAMES = STREAMS.map(([name]) => name);
const TAP_CATALOG = {
  streams: NAMES.map((stream) => ({
    ...{ stream, schema: { type: "object", properties: { domain: {}, email: {} } } },
    metadata: [[], ["properties", "domain"], ["properties", "email"]].map((breadcrumb) => ({
      ...{ breadcrumb, metadata: { selected: true, "replication-method": "INCREMENTAL" } },
    })),
  })),
};

type Language = "airbyte" | "singer";
type Memory = "both" | "state lost" | "receipts lost";

/** Is given what ends a run at once, and when its first output came. */
type Kill = (end: () => void, firstOutput: Promise<void>) => void;

type Forecast = { readonly setting: string; readonly items: readonly { item: string; step: string }[] };
type Connection = {
  readonly service: CountingService;
  readonly language: Language;
  readonly memory: Memory;
  readonly receipts: string;
};

/** One life of a connection: items that grow in number, runs that are killed, and what reached the destination. */
class Account {
  readonly #domains: string[] = [];
  readonly #emails: string[] = [];
  /** Such as "company_lookups d1.example". */
  readonly #delivered = new Set<string>();
  /** How long (s) runs that are killed wait for answers. */
  readonly #wait = Math.random() < 0.5 ? 20 : 0;
  readonly #states = new Map<string, unknown>();
  readonly #of: Connection;

  constructor(connection: Connection) {
    this.#of = connection;
  }

  addItems(): void {
    for (const nth of [0, 1]) {
      this.#domains.push(`d${this.#domains.length}-${nth}.example`);
      this.#emails.push(`e${this.#emails.length}-${nth}@x.example`);
    }
  }

  /** Runs the program; says how it ended. */
  async sync(kill?: Kill): Promise<string> {
    if (this.#of.memory === "receipts lost") await rm(this.#of.receipts, { force: true });
    if (this.#of.memory === "state lost") this.#states.clear();
    const isAirbyte = this.#of.language === "airbyte";
    const config = await this.#config(kill === undefined ? 20 : this.#wait);
    const catalog = isAirbyte ? airbyteCatalogOf(NAMES) : TAP_CATALOG;
    const args = ["--config", config, "--catalog", await file("catalog.json", catalog)];
    if (this.#state !== undefined) args.push("--state", await file("state.json", this.#state));
    const started = (child: ChildProcess): void => {
      const firstOutput = new Promise<void>((resolve) => child.stdout?.once("data", () => resolve()));
      kill?.(() => child.kill("SIGKILL"), firstOutput);
    };
    const options = kill === undefined ? { clock: hurriedClock(20) } : { started };
    const { code, stdout, stderr } = isAirbyte
      ? await run(CONNECTOR, ["read", ...args], options)
      : await run(TAP, args, options);
    for (const line of stdout.slice(0, stdout.lastIndexOf("\n") + 1).split("\n"))
      if (line !== "") this.#take(line);
    return code === 0 ? "complete" : `code ${code}: ${[stdout, stderr].join("\n").slice(-4_000)}`;
  }

  /**
   * Items that the service took and that were never delivered. A submission that died with its run may have been bought
   * without a known job: the program itself says, by the last state, which items are unknown.
   */
  async missing(): Promise<readonly string[]> {
    const state = await file("state.json", this.#state ?? {});
    const args = ["jobs", "--config", await this.#config(0), "--json", "--state", state];
    const forecasts = JSON.parse((await run(CONNECTOR, args)).stdout) as readonly Forecast[];
    return STREAMS.flatMap(([stream, setting, path]) => {
      const items = forecasts.find((one) => one.setting === setting)?.items ?? [];
      const unknown = items.flatMap(({ item, step }) => (step === "unknown" ? [item] : []));
      const isMissing = (item: string): boolean =>
        this.#of.service.orders.some((order) => order.endsWith(`${path} ${item}`)) &&
        !this.#delivered.has(`${stream} ${item}`) &&
        !unknown.includes(item);
      return (setting === "company_lookup" ? this.#domains : this.#emails).filter(isMissing);
    });
  }

  #config(wait: number): Promise<string> {
    const settings = {
      receipts_file: this.#of.receipts,
      company_lookup: { domains: this.#domains, max_wait_seconds: wait, max_credits_per_sync: 1000 },
      email_check: { emails: this.#emails, max_wait_seconds: wait },
      email_verification: { emails: this.#emails },
    };
    return file("config.json", jobConfig(this.#of.service, settings));
  }

  /** A state per stream in Airbyte, one for all in Singer. */
  get #state(): unknown {
    return this.#of.language === "airbyte" ? [...this.#states.values()] : this.#states.get("");
  }

  #take(line: string): void {
    const { type, stream, record, value, state } = JSON.parse(line);
    if (type === "STATE") {
      const name = state?.stream.stream_descriptor.name ?? "";
      this.#states.set(name, state === undefined ? value : { type: "STREAM", ...state });
    }
    if (type !== "RECORD") return;
    const { domain, email } = record.data ?? record;
    this.#delivered.add(`${stream ?? record.stream} ${domain ?? email}`);
  }
}

/**
 * Kills at a random moment: some ms after the first output, after some steps of requests, or after some changes of the
 * receipts. A run that does not get there is killed while it waits for answers.
 */
function killer(service: CountingService, folder: string): Kill {
  return (end, firstOutput) => {
    const way = Math.random() * 3;
    let left = 1 + Math.floor(Math.random() * 30);
    const step = (): void => {
      left -= 1;
      if (left <= 0) end();
    };
    void firstOutput.then(() => setTimeout(end, LATEST_KILL_MS).unref());
    if (way < 1) void firstOutput.then(() => setTimeout(end, Math.random() * 400));
    else if (way < 2) service.behaviour = { until: delay, onStep: step };
    else watch(folder, { persistent: false }, (_, name) => name === RECEIPTS && step());
  };
}

/** Each answer waits for this. */
const delay = () => new Promise<void>((resolve) => setTimeout(resolve, Math.random() * 30));

async function live(language: Language, memory: Memory, kills: number): Promise<void> {
  await using service = await CountingService.start();
  const folder = await tempDir();
  const life = new Account({ service, language, memory, receipts: join(folder, RECEIPTS) });
  for (let kill = 0; kill < kills; kill++) {
    life.addItems();
    service.behaviour = { until: delay };
    await life.sync(killer(service, folder));
  }
  service.behaviour = { until: delay };
  life.addItems();
  // A sync or the next one collects what it submits.
  for (let before = -1; before < service.orders.length; ) {
    before = service.orders.length;
    expect(await life.sync()).toBe("complete");
  }
  expect(service.orderedTwice).toEqual([]);
  expect(await life.missing()).toEqual([]);
}

describe.each<Language>(["airbyte", "singer"])("%s", { timeout: 60_000 + KILLS * 20_000 }, (language) => {
  it.concurrent.each<Memory>(["both", "state lost", "receipts lost"])(
    "buys nothing twice when runs are killed, and delivers every answer that is known: %s",
    async (memory) => {
      for (let kills = KILLS; kills > 0; kills -= KILLS_AN_ACCOUNT)
        await live(language, memory, Math.min(kills, KILLS_AN_ACCOUNT));
    },
  );
});
