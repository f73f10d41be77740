import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { beforeAll, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import type { Clock } from "../../src/api/clock.ts";
import { type ReadOptions, read } from "../../src/commands/read.ts";
import { isObject, type JsonObject, objectOf } from "../../src/json.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import { Dice } from "../lab/fuzz/dice.ts";
import { airbyteCatalogOf } from "../support/job-catalogs.ts";
import { jobConfig } from "../support/job-stage.ts";
import { hasHistory, released } from "../support/released.ts";
import { runs } from "../support/runs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testProcess } from "../support/terminal.ts";

/** Version 0.1.0 knows the first two. */
const STREAMS = ["people", "company_lookups", "company_lookup_contacts"];
const DAY = 86_400_000;
/** What a refusal of a newer state or of newer receipts names as a way out. */
const WAY_OUT = /update the program|restore it|remove it/i;

type Build = "released" | "today" | "future";
/** Who keeps the state: the platform, a state file, or the folder that takes the rows. */
type Keeper = "platform" | "state file" | "folder";

const BUILDS: readonly Build[] = ["released", "today", "future"];
/** How many are played; CONTACT_INTELLIGENCE_HISTORIES asks for more (1,000 take half an hour). */
const HISTORIES = Number(process.env["CONTACT_INTELLIGENCE_HISTORIES"] ?? runs(4, 20));
const KEEPERS: readonly Keeper[] = ["platform", "state file", "folder"];

const canBuild = hasHistory() || process.env["CI"] !== undefined;

let old: Awaited<ReturnType<typeof released>>;
beforeAll(async () => {
  if (canBuild) old = await released();
}, 120_000);

/** Takes what a run writes, until its reader goes away. */
class Reader extends Writable {
  text = "";
  #left: number;

  constructor(chunks: number) {
    super();
    this.#left = chunks;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#left -= 1;
    if (this.#left >= 0) this.text += chunk.toString("utf8");
    done(this.#left >= 0 ? undefined : Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  }

  get isGone(): boolean {
    return this.#left < 0;
  }
}

/** What is kept of a life, as texts. */
type Kept = { readonly states: string; readonly file: string; readonly receipts: string };

/** One connection over its life: builds that take turns over one state, one receipts file and one folder. */
class Life {
  readonly people = new Set<string>();
  readonly items = new Set<string>();
  readonly bought: string[] = [];
  readonly #unsaved = new Set<string>();
  refusals = 0;
  readonly #sandbox: Sandbox;
  readonly #folder: string;
  readonly #keeper: Keeper;
  readonly #states = new Map<string, unknown>();
  readonly #domains: string[] = [];
  #offset = 0;

  constructor(sandbox: Sandbox, folder: string, keeper: Keeper) {
    this.#sandbox = sandbox;
    this.#folder = folder;
    this.#keeper = keeper;
  }

  addItems(): void {
    this.#domains.push(`${this.#domains.length}.example`);
  }

  /**
   * Items that were not delivered, beyond those of which the state says that nobody knows what became of them: version 0.1.0
   * went away between a submission and its answer.
   */
  async lacking(): Promise<number> {
    const { states, file } = await this.#snapshot();
    const { company_lookups: state } = objectOf(objectOf(JSON.parse(file === "" ? "{}" : file))["bookmarks"]);
    const text = this.#keeper === "platform" ? states : JSON.stringify(state ?? {});
    const unknown = new Set(
      [...text.matchAll(/"item":"([\w-]+)","subs":\[\{[^\]]*"step":"unknown"/g)].map(([, item]) => item),
    );
    return (
      this.#domains.filter((domain) => !this.items.has(`company_lookups ${domain}`)).length - unknown.size
    );
  }

  pass(ms: number): void {
    this.#offset += ms;
    this.#sandbox.advance(ms);
  }

  /** @param chunks how many writes the run's reader takes before it goes away */
  async run(build: Build, chunks = Number.POSITIVE_INFINITY): Promise<void> {
    const [asked, bought] = [this.#sandbox.requests.length, this.#sandbox.submissions.length];
    const stdout = new Reader(chunks);
    const stderr = new Reader(Number.POSITIVE_INFINITY);
    const runtime = testProcess({ clock: this.#clock, stdout, stderr });
    const code = await this.#read(build, runtime).catch((error: unknown) => {
      if (!stdout.isGone) throw error;
      return 1;
    });
    await this.#take(stdout.text);
    for (const { item } of this.#sandbox.submissions.slice(bought)) {
      // Version 0.1.0 knows no receipts: it cannot know what a newer build bought before its reader went away.
      if (build !== "released" || !this.#unsaved.has(item)) this.bought.push(item);
      if (build !== "released" && stdout.isGone) this.#unsaved.add(item);
    }
    const said = stdout.text + stderr.text;
    if (code !== 0 && !stdout.isGone) {
      // Only what a newer build has written may be refused, and before anything is asked or bought.
      expect({ build, said: WAY_OUT.test(said) ? "" : said.slice(-3_000) }).toEqual({
        build: "released",
        said: "",
      });
      this.#askedNothing(said, asked);
      this.refusals += 1;
    }
    if (build === "future") await this.#change(decorated);
  }

  /** A state, or receipts, of a version that is not known yet: refused before anything is asked, and left as they are. */
  async refuse(what: "state" | "receipts"): Promise<void> {
    const before = await this.#snapshot();
    if (!(await this.#change(what === "state" ? raised : undefined, what === "receipts"))) return;
    const changed = await this.#snapshot();
    const [asked, bought] = [this.#sandbox.requests.length, this.#sandbox.submissions.length];
    const stdout = new Reader(Number.POSITIVE_INFINITY);
    const stderr = new Reader(Number.POSITIVE_INFINITY);
    const code = await this.#read("today", testProcess({ clock: this.#clock, stdout, stderr }));
    expect(code).toBe(this.#keeper === "folder" ? 2 : 1);
    expect(stdout.text + stderr.text).toMatch(/newer version/);
    if (what === "state") this.#askedNothing(stdout.text, asked);
    // A stream that has no state yet is not refused.
    const isNew = what === "state" && !`${before.states}${before.file}`.includes("company_lookups");
    if (!isNew) expect(this.#sandbox.submissions.slice(bought)).toEqual([]);
    if (what === "receipts") expect((await this.#snapshot()).receipts).toBe(changed.receipts);
    await this.#take(stdout.text);
    await this.#restore(before, what);
  }

  /** A stream that was refused has asked for nothing. */
  #askedNothing(said: string, before: number): void {
    const paths = this.#sandbox.requests.slice(before).map(({ path }) => path);
    const refused = [...said.matchAll(/"failure_type":"config_error","stream_descriptor":\{"name":"(\w+)"/g)];
    for (const [, stream] of refused)
      expect(
        paths.filter((path) => path.includes(stream === "people" ? "/people" : "/company-lookup")),
      ).toEqual([]);
  }

  get #receipts(): string {
    return join(this.#folder, "receipts.jsonl");
  }

  get #stateFile(): string {
    return join(this.#folder, this.#keeper === "folder" ? "out/state.json" : "state.json");
  }

  get #clock(): Clock {
    return {
      now: () => Date.now() + this.#offset,
      monotonic: () => performance.now() + this.#offset,
      sleep: async (ms, signal) => {
        signal?.throwIfAborted();
        this.pass(ms);
        await turn();
      },
    };
  }

  async #read(build: Build, runtime: Runtime): Promise<number> {
    const path = async (name: string, value: unknown): Promise<string> => {
      await writeFile(join(this.#folder, name), JSON.stringify(value));
      return join(this.#folder, name);
    };
    const isOld = build === "released";
    const config = jobConfig(this.#sandbox, {
      ...(isOld ? {} : { receipts_file: this.#receipts }),
      company_lookup: { domains: this.#domains, max_wait_seconds: 0 },
    });
    const isKept = this.#keeper !== "platform";
    const states = [...this.#states.values()];
    const options: ReadOptions = {
      config: await path("config.json", config),
      catalog: await path("catalog.json", airbyteCatalogOf(isOld ? STREAMS.slice(0, 2) : STREAMS)),
      state: isKept || states.length === 0 ? undefined : await path("given.json", states),
      streams: [],
      format: "airbyte",
      ...(isKept && (isOld || this.#keeper === "state file") && { stateFile: this.#stateFile }),
      ...(this.#keeper === "folder" && !isOld && { output: join(this.#folder, "out") }),
    };
    // Version 0.1.0 makes no folder, but keeps its state in one that is there.
    if (this.#keeper === "folder") await mkdir(join(this.#folder, "out"), { recursive: true });
    return await (isOld ? old.read(options, runtime) : read(options, runtime));
  }

  /** What reached the destination: of an output whole lines, of a folder its visible files. */
  async #take(text: string): Promise<void> {
    for (const line of text.slice(0, text.lastIndexOf("\n") + 1).split("\n")) {
      const message = line === "" ? {} : (JSON.parse(line) as JsonObject);
      const { stream, data } = objectOf(message["record"]);
      if (message["type"] === "RECORD") this.#deliver(String(stream), objectOf(data));
      if (message["type"] !== "STATE") continue;
      const state = objectOf(message["state"]);
      const { name } = objectOf(objectOf(state["stream"])["stream_descriptor"]);
      this.#states.set(String(name), state);
    }
    for (const stream of this.#keeper === "folder" ? STREAMS : []) {
      const folder = join(this.#folder, "out", stream);
      for (const name of (await readdir(folder).catch(() => [])).filter((one) => !one.startsWith(".")))
        for (const line of (await readFile(join(folder, name), "utf8")).split("\n"))
          if (line !== "") this.#deliver(stream, JSON.parse(line));
    }
  }

  #deliver(stream: string, row: JsonObject): void {
    if (stream === "people") this.people.add(String(row["id"]));
    else this.items.add(`${stream} ${row["domain"]}`);
  }

  async #snapshot(): Promise<Kept> {
    const text = (path: string): Promise<string> => readFile(path, "utf8").catch(() => "");
    return {
      states: JSON.stringify([...this.#states]),
      ...{ file: await text(this.#stateFile), receipts: await text(this.#receipts) },
    };
  }

  async #restore({ states, file, receipts }: Kept, what: string): Promise<void> {
    if (what === "receipts") await writeFile(this.#receipts, receipts);
    else if (this.#keeper !== "platform") await writeFile(this.#stateFile, file);
    else for (const [name, state] of JSON.parse(states)) this.#states.set(name, state);
  }

  /** Writes what is kept as another build would. Returns whether there was anything to write. */
  async #change(change?: (state: JsonObject) => JsonObject, raisesReceipts = false): Promise<boolean> {
    const { file, receipts } = await this.#snapshot();
    if (raisesReceipts) {
      if (receipts !== "")
        await writeFile(this.#receipts, receipts.replace(/"receipts":\d+/, '"receipts":99'));
      return receipts !== "";
    }
    if (change === undefined) return false;
    if (change === decorated && receipts !== "")
      await writeFile(this.#receipts, receipts.replaceAll(/^\{(?=.*\}$)/gm, '{"future":{"a":[1]},'));
    for (const [name, state] of this.#states) {
      const stream = objectOf(objectOf(state)["stream"]);
      const blob = change(objectOf(stream["stream_state"]));
      this.#states.set(name, { ...objectOf(state), stream: { ...stream, stream_state: blob } });
    }
    if (this.#keeper === "platform" || file === "")
      return this.#keeper === "platform" && this.#states.size > 0;
    const { bookmarks, ...rest } = JSON.parse(file) as JsonObject;
    const changed = Object.entries(objectOf(bookmarks)).map(([name, blob]) => [name, change(objectOf(blob))]);
    const more =
      change === decorated
        ? { future: [1], ...(isObject(rest["output"]) && { output: { ...rest["output"], future: 1 } }) }
        : {};
    await writeFile(
      this.#stateFile,
      JSON.stringify({ ...rest, ...more, bookmarks: Object.fromEntries(changed) }),
    );
    return changed.length > 0;
  }
}

const decorated = (state: JsonObject): JsonObject => ({ ...state, future: { a: [1] }, tomorrow: "x" });
const raised = (state: JsonObject): JsonObject => ({ ...state, version: 99 });

async function play(seed: number): Promise<number> {
  const dice = new Dice(seed);
  const sandbox = await startSandbox({ people: 20, companies: 0, requestsPerMinute: 0, seed });
  try {
    const life = new Life(sandbox, await tempDir(), KEEPERS[dice.below(3)] ?? "platform");
    const steps = 3 + dice.below(4);
    for (let step = 0; step < steps; step++) {
      life.addItems();
      sandbox.arrive(dice.below(3));
      sandbox.recheck(dice.below(3));
      life.pass(dice.below(3) * DAY);
      const build = BUILDS[dice.below(step === 0 ? 2 : 3)] ?? "today";
      await life.run(build, dice.below(2) === 0 ? dice.below(12) : Number.POSITIVE_INFINITY);
      if (dice.below(4) === 0) await life.refuse(dice.below(2) === 0 ? "state" : "receipts");
    }
    // A run that is not to wait for answers submits one item, and the next collects it.
    for (let end = 0; end < 2 * steps && (end < 3 || (await life.lacking()) > 0); end++) {
      life.pass(2 * DAY);
      await life.run("today");
    }
    expect(await life.lacking()).toBe(0);
    expect(
      sandbox
        .people()
        .map(({ id }) => id)
        .filter((id) => !life.people.has(String(id))),
    ).toEqual([]);
    expect(life.bought.filter((item, nth) => life.bought.indexOf(item) !== nth)).toEqual([]);
    return life.refusals;
  } finally {
    await sandbox.close();
  }
}

it.skipIf(!canBuild)(
  "no history of builds, old and new, over one state loses a row or buys twice",
  {
    timeout: 3_600_000,
  },
  async () => {
    let refusals = 0;
    for (let seed = 1; seed <= HISTORIES; seed++) {
      refusals += await play(seed).catch((error: unknown) => {
        throw new Error(`history ${seed}`, { cause: error });
      });
    }
    expect(refusals).toBeGreaterThan(0);
  },
);
