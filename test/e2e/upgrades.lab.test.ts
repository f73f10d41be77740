import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { CONNECTOR, type Ended, file, run } from "../support/cli.ts";
import { dice } from "../support/dice.ts";
import { hurriedClock } from "../support/in-process.ts";
import { airbyteCatalogOf, jobConfig } from "../support/job-stage.ts";
import { hasHistory, released } from "../support/released.ts";
import { runs } from "../support/runs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Kept, testProcess } from "../support/terminal.ts";

const STREAMS = ["people", "company_lookups"];
const DAY = 86_400_000;
const HISTORIES = Number(process.env["TEST_SEEDS"] ?? runs(2, 20));
const canBuild = hasHistory() || process.env["CI"] !== undefined;
/** What the refusal of a newer state names as a way out. */
const WAY_OUT = /update the program|restore it|remove it/i;

let old: Awaited<ReturnType<typeof released>>;
beforeAll(async () => {
  if (canBuild) old = await released();
}, 120_000);

type Build = "released" | "today";

/** One connection over its life: builds that take turns over one state file. */
class Life {
  /** Ids of people, and domains of answers. */
  readonly arrived = new Set<string>();
  readonly domains: string[] = [];
  refusals = 0;
  readonly #sandbox: Sandbox;
  readonly #state: string;
  #offset = 0;

  constructor(sandbox: Sandbox, folder: string) {
    this.#sandbox = sandbox;
    this.#state = join(folder, "state.json");
  }

  get missing(): string[] {
    const people = this.#sandbox.people().map(({ id }) => id);
    return [...people, ...this.domains].filter((key) => !this.arrived.has(key));
  }

  pass(ms: number): void {
    this.#offset += ms;
    this.#sandbox.advance(ms);
  }

  async run(build: Build): Promise<void> {
    const asked = this.#sandbox.requests.length;
    const before = await this.#saved();
    const { code, stdout, stderr } = await this.#read(build);
    const said = stdout + stderr;
    for (const line of said.split("\n").filter((one) => one.includes('"RECORD"'))) {
      const { data } = JSON.parse(line).record;
      this.arrived.add(data.id ?? data.domain);
    }
    if (code === 0) return;
    // Version 0.1.0 alone may refuse what a later build has written, before it asks or buys, and leaves it as it is.
    expect([build, WAY_OUT.test(said)], said.slice(-3_000)).toEqual(["released", true]);
    expect(this.#sandbox.requests.slice(asked).filter(({ path }) => path.includes("/people"))).toEqual([]);
    expect(JSON.parse(await this.#saved()).bookmarks.people).toEqual(JSON.parse(before).bookmarks.people);
    this.refusals += 1;
  }

  async #saved(): Promise<string> {
    return await readFile(this.#state, "utf8").catch(() => '{"bookmarks":{}}');
  }

  async #read(build: Build): Promise<Omit<Ended, "signal">> {
    const settings = {
      ...(build === "today" && { receipts_file: `${this.#state}.receipts` }),
      company_lookup: { domains: this.domains, max_wait_seconds: 0 },
    };
    const config = await file("config.json", jobConfig(this.#sandbox, settings));
    const catalog = await file("catalog.json", airbyteCatalogOf(STREAMS));
    const hurried = hurriedClock();
    const clock = { ...hurried, now: () => hurried.now() + this.#offset };
    const words = ["read", "--config", config, "--catalog", catalog, "--state-file", this.#state];
    if (build === "today") return await run(CONNECTOR, words, { clock });
    const [stdout, stderr] = [new Kept(), new Kept()];
    const options = {
      config,
      catalog,
      state: undefined,
      streams: [],
      format: "airbyte" as const,
      stateFile: this.#state,
    };
    const code = await old.read(options, testProcess({ clock, stdout, stderr }));
    return { code, stdout: stdout.text, stderr: stderr.text };
  }
}

async function play(seed: number): Promise<number> {
  const roll = dice(seed);
  await using sandbox = await startSandbox({ people: 20, companies: 0, requestsPerMinute: 0, seed });
  const life = new Life(sandbox, await tempDir());
  for (let step = 0; step < 4; step++) {
    life.domains.push(`${step}.example`);
    sandbox.arrive(roll(3));
    sandbox.recheck(roll(3));
    life.pass(roll(3) * DAY);
    await life.run(roll(2) === 0 ? "released" : "today");
  }
  for (let end = 0; end < 10 && (end < 2 || life.missing.length > 0); end++) {
    life.pass(2 * DAY);
    await life.run("today");
  }
  expect(life.missing).toEqual([]);
  const bought = sandbox.submissions.map(({ item }) => item);
  expect(bought).toHaveLength(new Set(bought).size);
  return life.refusals;
}

it("versions 0.1.0 and today, in turns over one state, lose no row and buy nothing twice", {
  timeout: 3_600_000,
}, async ({ skip }) => {
  skip(!canBuild, "This clone lacks the commit of version 0.1.0: fetch the whole history");
  let refusals = 0;
  for (let seed = 1; seed <= HISTORIES; seed++) {
    refusals += await play(seed).catch((error: unknown) => {
      throw new Error(`history ${seed}`, { cause: error });
    });
  }
  expect(refusals).toBeGreaterThan(0);
});
