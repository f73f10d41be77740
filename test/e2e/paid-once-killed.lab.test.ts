import { watch } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, type RunOptions, run, TAP } from "../support/cli.ts";
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
/** Bare records are of one stream. Only receipts know how a stream that no run has read so far gets an answer. */
const BARE: readonly string[] = NAMES.filter((name) => name !== "company_lookup_contacts");
const TAP_CATALOG = {
  streams: NAMES.map((stream) => ({
    ...{ stream, schema: { type: "object", properties: { domain: {}, email: {} } } },
    metadata: [[], ["properties", "domain"], ["properties", "email"]].map((breadcrumb) => ({
      ...{ breadcrumb, metadata: { selected: true, "replication-method": "INCREMENTAL" } },
    })),
  })),
};

type Language = "airbyte" | "singer" | "jsonl";
type Memory = "both" | "state lost" | "receipts lost";

/** Is given what ends a run at once, and when its first output came. */
type Kill = (end: () => void, firstOutput: Promise<void>) => void;

type Forecast = { readonly setting: string; readonly items: readonly { item: string; step: string }[] };
type Connection = {
  readonly service: CountingService;
  readonly language: Language;
  readonly memory: Memory;
  readonly receipts: string;
  /** The state of the language that keeps it itself. */
  readonly stateFile: string;
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
    if (this.#of.memory === "state lost") {
      this.#states.clear();
      await rm(this.#of.stateFile, { force: true });
    }
    const config = await this.#config(kill === undefined ? 20 : this.#wait);
    if (this.#of.language !== "jsonl") return await this.#syncAll(config, kill);
    const names = kill === undefined ? BARE : [BARE[Math.floor(Math.random() * BARE.length)] ?? ""];
    const ends: string[] = [];
    for (const name of names) ends.push(await this.#syncOne(name, config, kill));
    return ends.find((end) => end !== "complete") ?? "complete";
  }

  /** Reads the bare records of a stream. */
  async #syncOne(stream: string, config: string, kill?: Kill): Promise<string> {
    const { stateFile } = this.#of;
    const args = ["--config", config, "--stream", stream, "--format", "jsonl", "--state-file", stateFile];
    const { code, stdout, stderr } = await run(CONNECTOR, ["read", ...args], optionsOf(kill));
    for (const line of wholeLines(stdout)) this.#deliver(stream, JSON.parse(line));
    return endOf(code, stdout, stderr);
  }

  async #syncAll(config: string, kill?: Kill): Promise<string> {
    const isAirbyte = this.#of.language === "airbyte";
    const catalog = isAirbyte ? airbyteCatalogOf(NAMES) : TAP_CATALOG;
    const args = ["--config", config, "--catalog", await file("catalog.json", catalog)];
    if (this.#state !== undefined) args.push("--state", await file("state.json", this.#state));
    const { code, stdout, stderr } = isAirbyte
      ? await run(CONNECTOR, ["read", ...args], optionsOf(kill))
      : await run(TAP, args, optionsOf(kill));
    for (const line of wholeLines(stdout)) this.#take(line);
    return endOf(code, stdout, stderr);
  }

  /**
   * Items that the service took and that were never delivered. A submission that died with its run may have been bought
   * without a known job: the program itself says, by the last state, which items are unknown.
   */
  async missing(): Promise<readonly string[]> {
    const { language, stateFile } = this.#of;
    const state =
      language === "jsonl"
        ? ["--state-file", stateFile]
        : ["--state", await file("state.json", this.#state ?? {})];
    const args = ["jobs", "--config", await this.#config(0), "--json", ...state];
    const forecasts = JSON.parse((await run(CONNECTOR, args)).stdout) as readonly Forecast[];
    const streams = language === "jsonl" ? STREAMS.filter(([name]) => BARE.includes(name)) : STREAMS;
    return streams.flatMap(([stream, setting, path]) => {
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
    this.#deliver(stream ?? record.stream, record.data ?? record);
  }

  #deliver(stream: string, { domain, email }: { domain?: string; email?: string }): void {
    this.#delivered.add(`${stream} ${domain ?? email}`);
  }
}

/** A run that is killed is a process; any other hurries. */
function optionsOf(kill: Kill | undefined): RunOptions {
  if (kill === undefined) return { clock: hurriedClock(20) };
  return {
    started: (child) => {
      const firstOutput = new Promise<void>((resolve) => {
        for (const stream of [child.stdout, child.stderr]) stream?.once("data", () => resolve());
      });
      kill(() => child.kill("SIGKILL"), firstOutput);
    },
  };
}

const wholeLines = (text: string): string[] =>
  text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "");

const endOf = (code: number | null, stdout: string, stderr: string): string =>
  code === 0 ? "complete" : `code ${code}: ${[stdout, stderr].join("\n").slice(-4_000)}`;

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
  const life = new Account({
    service,
    language,
    memory,
    receipts: join(folder, RECEIPTS),
    stateFile: join(folder, "state.json"),
  });
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

describe.each<Language>(["airbyte", "singer", "jsonl"])(
  "%s",
  { timeout: 60_000 + KILLS * 20_000 },
  (language) => {
    it.concurrent.each<Memory>(["both", "state lost", "receipts lost"])(
      "buys nothing twice when runs are killed, and delivers every answer that is known: %s",
      async (memory) => {
        for (let kills = KILLS; kills > 0; kills -= KILLS_AN_ACCOUNT)
          await live(language, memory, Math.min(kills, KILLS_AN_ACCOUNT));
      },
    );
  },
);
