import { readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { parseCommand } from "../../src/cli.ts";
import { runProgram } from "../../src/main.ts";
import { parseTapCommand } from "../../src/tap-cli.ts";
import { hurriedClock } from "../support/in-process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Kept, Terminal, testProcess } from "../support/terminal.ts";

const NOON = "2026-03-20T12:00:00Z";
const ACCOUNT = {
  ...{ people: 400, undated: 3, companies: 4, sources: 1, seed: 7, days: 60 },
  now: NOON,
} satisfies SandboxOptions;

type Story = {
  readonly options?: SandboxOptions;
  readonly settings?: object;
  /** Command lines; `tap …`: the tap, in a pipe; `!…` changes the account. */
  readonly lines: readonly string[];
};

const STORIES: Readonly<Record<string, Story>> = {
  "a folder": {
    lines: [
      ...["check", "discover", "discover --json", "read"],
      ...["read --output contacts", "!arrive", "read --output contacts"],
      ...["read --output contacts --stream people --full-refresh", "read --output contacts"],
      ...["state show contacts/state.json", "read --dry-run --output contacts"],
    ],
  },
  "an export that breaks off": {
    options: { faults: ["midline:after=10:times=2:path=people/stream"] },
    lines: [
      ...["read --output contacts --stream people", "!faults status=500:path=people/stream:times=always"],
      ...["read --output contacts --stream people", "!faults", "read --output contacts --stream people"],
    ],
  },
  "a service that fails": {
    lines: [
      ...["!faults status=500:times=always", "check", "read --output contacts --stream sources"],
      ...["!faults status=401:times=always", "check", "read --output contacts"],
      ...["!faults status=429:times=2", "read --output contacts --stream people"],
      "!faults redirect=https://elsewhere.example/x:times=always",
      ...["check", "read --output contacts --stream people"],
      ...["!faults status=403:code=ENDPOINT_NOT_ON_PLAN:path=companies:times=always", "discover"],
    ],
  },
  "a Singer tap": {
    options: { people: 3, undated: 1, companies: 1 },
    lines: [
      ...["tap", "tap --test", "!faults status=403:path=companies:times=always"],
      "tap --log-level warning",
    ],
  },
  "look-ups and verifications": {
    options: { people: 3, jobs: { lookupSeconds: 0 } },
    settings: {
      company_lookup: { domains: ["1.example", "2.example", "no host"] },
      email_verification: { emails: ["a@x.example", "b@x.example"], max_per_day: 1 },
    },
    lines: [
      ...["check", "jobs", "read --output contacts", "jobs --state contacts/state.json"],
      "read --output contacts",
    ],
  },
  "an account in shards, and a table that is compared": {
    lines: [
      ...["plan --shards 2", "plan --shards 2 --json > plan.jsonl"],
      "read --plan plan.jsonl --shard 0 --output contacts",
      "read --plan plan.jsonl --shard open --output contacts",
      "read --plan plan.jsonl --shard 9 --output contacts",
      "state merge contacts/shard-*",
      "state merge contacts/shard-* --json > state.json",
      "!keys",
      "reconcile --table keys.csv --output found",
      "reconcile --table keys.csv --recheck state.json",
    ],
  },
};

/** Waits take a twentieth of their time, and the day of the account is today. */
function clockAtNoon(speed = 20) {
  const clock = hurriedClock(speed);
  const began = clock.now();
  return { ...clock, now: () => Date.parse(NOON) + clock.now() - began };
}

/** Changes the account, or what lies in the folder. */
async function change(words: readonly string[], sandbox: Sandbox, folder: string): Promise<void> {
  const [what, ...rest] = words;
  if (what === "!arrive") sandbox.arrive(3);
  if (what === "!faults") sandbox.fault(...rest);
  if (what === "!keys") {
    const rows = sandbox.people().slice(2) as unknown as { id: string; discoveredAt: string | null }[];
    const lines = rows.map(({ id, discoveredAt }) => `${id},${discoveredAt ?? ""}\n`);
    await writeFile(
      join(folder, "keys.csv"),
      `id,discoveredAt\n${lines.join("")}erased,2026-02-01T00:00:00Z\n`,
    );
  }
  // A count knows its moment to the second: what came before stands before it, however fast the machine is.
  sandbox.advance(5_000);
}

const isFile = /\.(json|jsonl|csv)$|^(contacts|found)$/;

async function shown({ options, settings, lines }: Story): Promise<string> {
  await using sandbox = await startSandbox({ ...ACCOUNT, ...options });
  const folder = await tempDir();
  const home = join(folder, "home");
  await mkdir(home);
  const keys = { base_url: sandbox.url, api_key: sandbox.key, requests_per_minute: 6_000 };
  const external_api = { api_url: sandbox.url, api_key: sandbox.key };
  const config = join(folder, "config.json");
  await writeFile(config, JSON.stringify({ ...keys, external_api, num_workers: 1, ...settings }));
  const parts: string[] = [];
  for (const line of lines) {
    parts.push(`$ ${line}`);
    const [command = "", file] = line.split(" > ");
    const words = command.split(" ").flatMap((word) => {
      if (!word.endsWith("/shard-*")) return isFile.test(word) ? join(folder, word) : word;
      const names = readdirSync(join(folder, "contacts")).filter((name) => name.startsWith("shard-"));
      return names.sort().map((name) => join(folder, "contacts", name));
    });
    if (line.startsWith("!")) {
      await change(words, sandbox, folder);
      continue;
    }
    const isTap = words[0] === "tap";
    const [stdout, stderr] = isTap ? [new Kept(), new Kept()] : [new Terminal(), new Terminal()];
    const args = [
      ...(isTap ? words.slice(1) : words),
      ...(/^(state|output)/.test(line) ? [] : ["--config", config]),
    ];
    const environment = { TERM: "dumb", XDG_STATE_HOME: home };
    const runtime = testProcess({ stdout, stderr, environment, clock: clockAtNoon() });
    const code = await runProgram(async () => (isTap ? parseTapCommand : parseCommand), args, runtime);
    if (file !== undefined) await writeFile(join(folder, file), stdout.text);
    parts.push(file === undefined ? stdout.text : "", stderr.text, `exit ${code}`);
  }
  return masked(parts, folder, sandbox);
}

/** What differs from run to run is masked, and a long line is cut. */
const masked = (parts: readonly string[], folder: string, { url }: Sandbox): string =>
  parts
    .map((part) => part.trimEnd())
    .filter((part) => part !== "")
    .join("\n")
    .replaceAll(/("(?:pid|ts|value)": ?)[\d.]+/g, "$10")
    .replaceAll(/2026-03-20T1[12]:[\d:.]+Z/g, "NOON")
    .replaceAll(/20260320T\d{6}Z/g, "NOON")
    .replaceAll(/\b\d+(?:\.\d+)? (?:s|min)\b/g, "TIME")
    .replaceAll(/(?<=shard-|part of the plan )\w+|(?<="plan":")\w+/g, "PLAN")
    .replaceAll(folder, "FOLDER")
    .replaceAll(url, "URL")
    .replaceAll(new URL(url).host, "HOST")
    .replaceAll(/^(.{300}).+$/gm, "$1…");

it.each(Object.keys(STORIES))("at a terminal: %s", async (name) => {
  const text = await shown(STORIES[name] as Story);
  await expect(`${text}\n`).toMatchFileSnapshot(`../golden/stories/${name.replaceAll(/,? /g, "-")}.txt`);
});

it.each([40, 80])(
  "progress fits into %d columns, counts a wait down, and names missing rows",
  async (columns) => {
    await using sandbox = await startSandbox({
      ...ACCOUNT,
      people: 3_000,

      latencyMs: 120,
    });
    sandbox.fault("429=60:times=1:path=people/stream", "end:times=4");
    const keys = { base_url: sandbox.url, api_key: sandbox.key, requests_per_minute: 6_000 };
    const folder = await tempDir();
    const config = join(folder, "config.json");
    await writeFile(config, JSON.stringify(keys));
    const stderr = new Terminal(columns);
    const args = ["read", "--config", config, "--output", join(folder, "contacts"), "--stream", "people"];
    const runtime = testProcess({ stderr, environment: {}, clock: clockAtNoon(50) });
    const code = await runProgram(async () => parseCommand, args, runtime);
    expect(code).toBe(0);
    // Goes to the start of the line and clears it.
    const drawn = stderr.text.split("\r\u001b[K").filter((text) => /^[^\x20-\x7e]/.test(text));
    expect(drawn.filter((text) => text.length >= columns || text.includes("\n"))).toEqual([]);
    const waits = drawn.flatMap((text) => /people: .*waiting (\d+) s \(rate limit\)$/.exec(text)?.[1] ?? []);
    expect(new Set(waits).size).toBeGreaterThan(3);
    expect(drawn.join("\n")).toMatch(/people: (\d+%, )?[\d,]+ rows missing/);
  },
);
