import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run, TAP } from "../support/cli.ts";
import { CountingService } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";

/** How often each test kills; CONTACT_INTELLIGENCE_KILLS asks for more. */
const KILLS = Number(process.env["CONTACT_INTELLIGENCE_KILLS"] ?? 1);
const STREAMS = ["company_lookups", "company_lookup_contacts", "email_checks", "email_verifications"];
const DOMAINS = Array.from({ length: 5 }, (_, nth) => `d${nth}.example`);
const EMAILS = Array.from({ length: 4 }, (_, nth) => `e${nth}@x.example`);

type Language = "airbyte" | "singer";
type Memory = "both" | "state lost" | "receipts lost";

type Message = {
  readonly type: string;
  readonly stream?: string;
  readonly record?: Readonly<Record<string, unknown>>;
  readonly value?: unknown;
  readonly state?: { readonly stream: { readonly stream_descriptor: { readonly name: string } } };
};

/** A platform that keeps of a run what it wrote in whole lines. */
class Platform {
  readonly delivered = new Set<string>();
  readonly #service: CountingService;
  readonly #language: Language;
  readonly #memory: Memory;
  #state: unknown;
  readonly #states = new Map<string, unknown>();

  constructor(service: CountingService, language: Language, memory: Memory) {
    this.#service = service;
    this.#language = language;
    this.#memory = memory;
  }

  /** Runs the program, and kills it after so many ms of its first output. */
  async sync(folder: string, killAfter?: number): Promise<number | null> {
    const { url } = this.#service;
    if (this.#memory === "receipts lost") await rm(join(folder, "receipts.jsonl"), { force: true });
    if (this.#memory === "state lost") {
      this.#state = undefined;
      this.#states.clear();
    }
    const settings = {
      base_url: url,
      api_key: "k",
      requests_per_minute: 6000,
      receipts_file: join(folder, "receipts.jsonl"),
      external_api: { api_url: url, api_key: "k" },
      company_lookup: { domains: DOMAINS, max_wait_seconds: 20 },
      email_check: { emails: EMAILS, max_wait_seconds: 20 },
      email_verification: { emails: EMAILS },
    };
    const args = [
      "--config",
      await file("config.json", settings),
      "--catalog",
      await file("catalog.json", this.#catalog()),
    ];
    const state = this.#language === "airbyte" ? [...this.#states.values()] : this.#state;
    if (state !== undefined) args.push("--state", await file("state.json", state));
    const program = this.#language === "airbyte" ? CONNECTOR : TAP;
    const kill = (child: ChildProcess): void =>
      void child.stdout?.once("data", () => setTimeout(() => child.kill("SIGKILL"), killAfter));
    const words = this.#language === "airbyte" ? ["read", ...args] : args;
    const { code, stdout } = await run(
      program,
      words,
      killAfter === undefined ? { clock: hurriedClock() } : { started: kill },
    );
    for (const line of stdout.slice(0, stdout.lastIndexOf("\n") + 1).split("\n"))
      if (line !== "") this.#take(JSON.parse(line));
    return code;
  }

  #take({ type, stream, record, value, state }: Message): void {
    if (type === "STATE" && this.#language === "singer") this.#state = value;
    if (type === "STATE" && state !== undefined)
      this.#states.set(state.stream.stream_descriptor.name, { type: "STREAM", ...state });
    if (type !== "RECORD" || record === undefined) return;
    const data = (this.#language === "airbyte" ? record["data"] : record) as Readonly<
      Record<string, unknown>
    >;
    const name = this.#language === "airbyte" ? record["stream"] : stream;
    this.delivered.add(`${name} ${data["domain"] ?? data["email"]}`);
  }

  #catalog(): object {
    if (this.#language === "airbyte")
      return {
        streams: STREAMS.map((name) => ({ stream: { name, json_schema: {} }, sync_mode: "incremental" })),
      };
    const metadata = [{ breadcrumb: [], metadata: { selected: true, "replication-method": "INCREMENTAL" } }];
    return {
      streams: STREAMS.map((name) => ({
        tap_stream_id: name,
        stream: name,
        schema: { type: "object", properties: Object.fromEntries(FIELDS.map((field) => [field, {}])) },
        metadata: [
          ...metadata,
          ...FIELDS.map((field) => ({ breadcrumb: ["properties", field], metadata: { selected: true } })),
        ],
      })),
    };
  }
}

const FIELDS = [
  "job_id",
  "position",
  "domain",
  "email",
  "source",
  "created_at",
  "checked_at",
  "verified_at",
  "response",
  "contacts",
];

const everything = [
  ...DOMAINS.flatMap((domain) => [`company_lookups ${domain}`, `company_lookup_contacts ${domain}`]),
  ...EMAILS.flatMap((email) => [`email_checks ${email}`, `email_verifications ${email}`]),
];

describe.each<Language>(["airbyte", "singer"])("%s", { timeout: 60_000 + KILLS * 4_000 }, (language) => {
  it.each<Memory>(["both", "state lost", "receipts lost"])(
    "buys nothing twice when runs are killed: %s",
    async (memory) => {
      await using service = await CountingService.start();
      service.behaviour = { delay: () => Math.random() * 30 };
      const folder = await mkdtemp(join(tmpdir(), "job-kills-"));
      const platform = new Platform(service, language, memory);
      for (let kill = 0; kill < KILLS; kill++) await platform.sync(folder, Math.random() * 400);
      await platform.sync(folder);
      await platform.sync(folder);
      expect(service.boughtTwice.filter((item) => DOMAINS.includes(item))).toEqual([]);
      // An e-mail is bought for two settings.
      for (const email of EMAILS)
        expect(service.bought.filter((item) => item === email).length).toBeLessThanOrEqual(2);
      const missing = everything.filter((one) => !platform.delivered.has(one));
      // A submission that died with its run may have been bought, and nobody knows its job.
      if (memory === "both") expect(missing.length).toBeLessThanOrEqual(2 * KILLS);
      if (KILLS === 0) expect(missing).toEqual([]);
      await rm(folder, { recursive: true });
    },
  );
});

describe("two runs at once", { timeout: 30_000 }, () => {
  it("refuses the second before any request", async () => {
    await using service = await CountingService.start();
    service.behaviour = { delay: () => 100 };
    const folder = await mkdtemp(join(tmpdir(), "job-kills-"));
    const one = new Platform(service, "airbyte", "both");
    const other = new Platform(service, "airbyte", "both");
    const first = one.sync(folder);
    await expect.poll(() => service.requests.length, { timeout: 20_000 }).toBeGreaterThan(0);
    const code = await other.sync(folder);
    expect(code).toBe(1);
    expect(await first).toBe(0);
    expect(service.boughtTwice.filter((item) => DOMAINS.includes(item))).toEqual([]);
    await rm(folder, { recursive: true });
  });
});
