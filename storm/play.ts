import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Sandbox, SandboxOptions } from "../sandbox/server.ts";
import { stayed } from "../test/lab/faultlab/invariants.ts";
import { withSandbox } from "../test/lab/faultlab/read-once.ts";
import { type Contestant, commandOf } from "./contestant.ts";
import { type Exit, isTold, repeatedIn, type Verdict, Warehouse } from "./judge.ts";
import { type DeliveredRow, type Output, readOutput, snapshotOf, writtenSince } from "./output.ts";
import { DAYS, PEOPLE, type Situation } from "./situations.ts";

const DAY_MS = 86_400_000;
/** A run that has not ended by then is stopped. */
const MOST_SECONDS = 600;
/** How long a run that is to be killed has to pass on what came before the silence. */
const GRACE_MS = 4_000;
/** What everybody is told as the first day: shortly before there was anybody. */
const START_DAYS = DAYS + 5;

export type Played = { readonly verdict: Verdict; readonly output: Output };

/** Plays a situation against a contestant: the run, and an ordinary run after it. `folder` is empty and theirs alone. */
export async function play(
  contestant: Contestant,
  situation: Situation,
  folder: string,
  noise: ReadonlySet<string>,
): Promise<Played> {
  const elsewhere = await startElsewhere();
  try {
    return await withSandbox(sandboxOf(situation), async (sandbox) => {
      const faults = situation.faults.map((fault) => fault.replace("{elsewhere}", elsewhere.url));
      const stage = new Stage(contestant, folder, sandbox);
      const { exit, output, seconds, met, statuses, before } = await stage.judged(situation.plot, faults);
      const lost = stage.warehouse.lacks(stayed(before, sandbox.people()));
      await stage.next();
      const served = sandbox.people();
      const strangers = stage.warehouse.strangers(served);
      // Refusals that no fault makes.
      const refused = faults.some((fault) => fault.startsWith("429"))
        ? []
        : statuses.filter((status) => status === 429);
      const notes = [
        [output.junk, "rows that are no people"],
        [strangers, "people of another account"],
        [elsewhere.keys(), "requests with the key to the other server"],
        [refused.length, "requests above the limit"],
      ] as const;
      return {
        output,
        verdict: {
          lost,
          lostForGood: stage.warehouse.lacks(served),
          twice: repeatedIn(output),
          exit,
          told: isTold(exit, output, noise),
          met,
          notes: notes.flatMap(([count, what]) => (count > 0 ? [`${count} ${what}`] : [])),
          requests: statuses.length,
          seconds: Math.round(seconds),
        },
      };
    });
  } finally {
    await elsewhere.close();
  }
}

/** The account that everybody reads. Its dates end where today begins, so that every play of a day has the same days. */
export function sandboxOf(
  { sandbox, plot }: Pick<Situation, "sandbox" | "plot">,
  now = Date.now(),
): SandboxOptions {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const ago = plot === "other account" ? 5 : 0;
  return {
    people: PEOPLE,
    undated: 0,
    days: DAYS,
    newest: new Date(today - ago * DAY_MS).toISOString(),
    ...(ago > 0 ? { now: new Date(now - ago * DAY_MS).toISOString() } : {}),
    ...sandbox,
  };
}

type Run = { readonly exit: Exit; readonly seconds: number; readonly output: Output };
type Judged = Run & {
  readonly met: boolean;
  /** The statuses of the answers to the run's requests. */
  readonly statuses: readonly number[];
  /** Who was served before it. */
  readonly before: readonly DeliveredRow[];
};

/** A contestant with its folder, its destination and the service. */
class Stage {
  readonly warehouse = new Warehouse();
  readonly #contestant: Contestant;
  readonly #folder: string;
  readonly #sandbox: Sandbox;

  constructor(contestant: Contestant, folder: string, sandbox: Sandbox) {
    this.#contestant = contestant;
    this.#folder = folder;
    this.#sandbox = sandbox;
  }

  /** The run that is judged, with what the situation has before it. */
  async judged(plot: Situation["plot"], faults: readonly string[]): Promise<Judged> {
    if (plot === "other account") return await this.#misled();
    const sandbox = this.#sandbox;
    const before = sandbox.people();
    sandbox.fault(...faults);
    const isDead = plot === "killed" ? await this.#killed() : false;
    if (isDead) sandbox.fault();
    const run = await this.next();
    const met = isDead || faults.length === 0 || sandbox.strikes().some((strikes) => strikes > 0);
    const statuses = sandbox.requests.map(({ status }) => status);
    sandbox.fault();
    return { ...run, met, statuses, before };
  }

  next(): Promise<Run> {
    return this.#run(this.#sandbox.url).ended;
  }

  /** A complete run, five days in which 50 people are found, and a run that reads another account. */
  async #misled(): Promise<Judged> {
    await this.next();
    this.#sandbox.advance(2 * DAY_MS);
    this.#sandbox.arrive(50);
    this.#sandbox.advance(3 * DAY_MS);
    return await withSandbox({ ...sandboxOf({}), people: 300, seed: 2 }, async (other) => {
      const run = await this.#run(other.url).ended;
      const statuses = other.requests.map(({ status }) => status);
      return { ...run, met: true, statuses, before: this.#sandbox.people() };
    });
  }

  /** Whether a run met the fault, and was killed. */
  async #killed(): Promise<boolean> {
    const { child, ended } = this.#run(this.#sandbox.url);
    let over = false;
    void ended.finally(() => {
      over = true;
    });
    while (!over && this.#sandbox.strikes().every((strikes) => strikes === 0)) await delay(50);
    if (!over) await Promise.race([ended, delay(GRACE_MS)]);
    const isStruck = !over;
    if (isStruck) killGroup(child);
    await ended;
    return isStruck;
  }

  #run(url: string): { readonly child: ChildProcess; readonly ended: Promise<Run> } {
    const folder = this.#folder;
    const { speaks, rows = "", settings = ["base_url", "api_key", "start_date"] } = this.#contestant;
    const config: Readonly<Record<string, string>> = {
      base_url: url,
      api_key: this.#sandbox.key,
      start_date: new Date(Date.now() - START_DAYS * DAY_MS).toISOString().slice(0, 10),
    };
    const write = (name: string, value: unknown): void =>
      writeFileSync(join(folder, name), JSON.stringify(value));
    write("config.json", Object.fromEntries(settings.map((name) => [name, config[name]])));
    write("catalog.json", CATALOG);
    const before = snapshotOf(join(folder, rows));
    const { program, args, env } = commandOf(this.#contestant, existsSync(join(folder, "state.json")));
    const began = performance.now();
    const child = spawn(program, args, {
      cwd: folder,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = endOf(child).then(({ exit, stdout, stderr }): Run => {
      const files = speaks === "files" ? writtenSince(join(folder, rows), before) : "";
      const output = readOutput(this.#contestant, { stdout, stderr, files });
      if (output.state !== undefined) write("state.json", output.state);
      this.warehouse.take(output);
      return { exit, seconds: (performance.now() - began) / 1000, output };
    });
    return { child, ended };
  }
}

const CATALOG = {
  streams: [
    {
      stream: {
        name: "people",
        json_schema: { type: "object", properties: {} },
        supported_sync_modes: ["full_refresh", "incremental"],
        source_defined_cursor: true,
        default_cursor_field: ["discoveredAt"],
        source_defined_primary_key: [["id"]],
      },
      sync_mode: "incremental",
      destination_sync_mode: "append_dedup",
      cursor_field: ["discoveredAt"],
      primary_key: [["id"]],
    },
  ],
};

/** Ends a process and those that it started. */
function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

type Ended = { readonly exit: Exit; readonly stdout: string; readonly stderr: string };

async function endOf(child: ChildProcess): Promise<Ended> {
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout?.on("data", (chunk: Buffer) => chunks.stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => chunks.stderr.push(chunk));
  const late = setTimeout(() => killGroup(child), MOST_SECONDS * 1000);
  const exit = await new Promise<Exit>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? "stopped"));
  });
  clearTimeout(late);
  const text = (parts: readonly Buffer[]): string => Buffer.concat(parts).toString("utf8");
  return { exit, stdout: text(chunks.stdout), stderr: text(chunks.stderr) };
}

type Elsewhere = {
  readonly url: string;
  /** How many requests carried a key. */
  readonly keys: () => number;
  readonly close: () => Promise<void>;
};

/** A server of somebody else, which answers everything with a login page. */
async function startElsewhere(): Promise<Elsewhere> {
  let keys = 0;
  const server = createServer(({ headers }, response) => {
    if (headers["x-api-key"] !== undefined || headers.authorization !== undefined) keys++;
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>Sign in</title>\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keys: () => keys,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
