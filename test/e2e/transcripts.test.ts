import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import type { Clock } from "../../src/api/clock.ts";
import { isObject } from "../../src/json.ts";
import { CONNECTOR, run, TAP } from "../support/cli.ts";
import { hurriedClock } from "../support/in-process.ts";
import { tempDir } from "../support/temp-dir.ts";

const ACCOUNT = {
  ...{ people: 40, undated: 2, companies: 4, sources: 2, seed: 7, days: 60, requestsPerMinute: 0 },
  now: "2026-03-20T12:00:00Z",
} satisfies SandboxOptions;
const SETTINGS = { num_workers: 1, requests_per_minute: 6_000 };
const LOOKUPS = { company_lookup: { domains: ["1.example", "2.example", "x"], max_wait_seconds: 60 } };
const VERIFIES = { email_verification: { emails: ["a@x.example", "b@x.example"], max_per_day: 1 } };

type Situation = {
  readonly options?: SandboxOptions;
  readonly settings?: object;
  readonly files?: Readonly<Record<string, string>>;
  /** Command lines in a folder of their own; the config is added where there is one. `tap …`: the tap. `!…` changes the account. */
  readonly lines: readonly string[];
};

const PEOPLE = "read --stream people --format jsonl";

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "a first look": {
    lines: [
      "check",
      "check --exit-code",
      "discover",
      "read --dry-run",
      "read --limit 3 --format jsonl --stream people",
    ],
  },
  "a wrong key": {
    settings: { api_key: "svc_00000000_00112233445566778899aabbccddee00" },
    lines: ["check", "discover", "read", PEOPLE, "tap", "tap --test"],
  },
  "a plan that covers nothing": {
    options: { plan: "agency" },
    lines: ["check", "read", PEOPLE, "tap --test"],
  },
  "settings that are wrong": {
    settings: {
      lookback_window_days: 0,
      num_worker: 3,
      start_date: "March",
      drop_fields: ["email"],
      hash_salt: "",
    },
    lines: ["check", "read", "tap"],
  },
  "Airbyte messages": {
    lines: ["read --summary summary.json", "read --stream people --full-refresh", "read --stream nobody"],
  },
  "bare records, with a state file": {
    lines: [
      `${PEOPLE} --state-file s.json --summary summary.json`,
      "!arrive",
      `${PEOPLE} --state-file s.json`,
      "state show s.json",
    ],
  },
  "a folder": {
    lines: [
      ...[
        "read --output out --summary summary.json",
        "!arrive",
        "!recheck",
        "read --output out",
        "read --output out --full-refresh",
      ],
      ...[
        "read --output out --state s.json",
        "output compact out",
        "output compact --newest out",
        "output compact gone",
      ],
    ],
  },
  "a Singer tap": { lines: ["tap", "tap --test", "tap --discover", "tap --state gone.json"] },
  "fields that do not leave": {
    settings: {
      drop_fields: ["people.email"],
      hash_fields: ["companyDomain"],
      hash_salt: "0123456789abcdef",
    },
    lines: ["read", "discover"],
  },
  "proofs as a stream": {
    settings: { proof_stream: true, max_window_rows: 1_000 },
    lines: ["read --stream sync_windows --stream people"],
  },
  "an export that breaks off": {
    options: { faults: ["midline:after=10:times=2:path=people/stream"] },
    lines: [`${PEOPLE} --summary summary.json`],
  },
  "an export that always breaks off": {
    options: { faults: ["end:after=1:times=always:path=people/stream"] },
    lines: [PEOPLE, "read --stream people", "tap"],
  },
  "a service that fails": {
    options: { faults: ["status=500:times=always"] },
    lines: ["check", PEOPLE, "read --stream people", "tap", "read --output out"],
  },
  "a service that asks for patience": {
    options: { faults: ["status=429:times=3"] },
    lines: [PEOPLE, "read --stream sources"],
  },
  "a service that has moved": {
    options: { faults: ["redirect=https://elsewhere.example/x:times=always"] },
    lines: ["check", PEOPLE],
  },
  "look-ups": {
    options: { jobs: { lookupSeconds: 0 } },
    settings: LOOKUPS,
    lines: [
      "jobs",
      "read --dry-run",
      "read --stream company_lookups --summary summary.json",
      "jobs",
      "read --stream company_lookups",
    ],
  },
  verifications: {
    settings: VERIFIES,
    lines: [
      "check",
      "read --stream email_verifications --output out",
      "jobs",
      "read --stream email_verifications --format jsonl",
    ],
  },
  shards: {
    lines: [
      "plan --shards 2 > plan.jsonl",
      "read --plan plan.jsonl --shard 0 --output rows",
      "read --plan plan.jsonl --shard 0 --output rows",
      "read --plan plan.jsonl --shard 9 --output rows",
    ],
  },
  "a table that lacks rows": {
    files: { "keys.csv": "id,discoveredAt\n" },
    lines: [
      "reconcile --table keys.csv",
      "reconcile --table keys.csv --full --output found",
      "reconcile --sql duckdb --table people",
      "reconcile --table gone.csv",
    ],
  },
  "files that are wrong": {
    files: {
      "s.json": "[1]",
      "cat.json": "{}",
      "plan.jsonl": "{}\n",
      "v9.json": '{"bookmarks":{"people":{"version":9}}}',
    },
    lines: [
      ...[
        "read --state s.json",
        "read --catalog cat.json",
        "read --plan plan.jsonl --shard 0",
        "state show s.json",
        "state show v9.json",
      ],
      ...[
        "state merge s.json",
        `${PEOPLE} --state v9.json`,
        "tap --catalog cat.json",
        "tap --state s.json",
        "read --state gone.json",
      ],
    ],
  },
};

/**
 * The machine's clock, hurried, as if it were the sandbox's. How much time has passed is told by sleeps alone: a state follows
 * another sooner or later by how long the machine took to write the one before.
 */
function clockOf(): Clock {
  const clock = hurriedClock(20);
  const ahead = Date.parse(ACCOUNT.now) - clock.now();
  let passed = 0;
  const sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    await clock.sleep(ms, signal);
    passed += ms;
  };
  return { now: () => clock.now() + ahead, monotonic: () => passed, sleep };
}

/**
 * What differs from run to run, and where the test stands. Waits before retries are drawn at random, so that a run takes some
 * seconds or some minutes.
 */
function masked(text: string, folder: string, { url, key }: Sandbox): string {
  const numbers = "pid|ts|emitted_at|seconds|waited_seconds|bytes_received|value";
  return text
    .replaceAll(folder, "FOLDER")
    .replaceAll(url, "URL")
    .replaceAll(key, "KEY")
    .replaceAll(new URL(url).host, "HOST")
    .replaceAll(new RegExp(`("(?:${numbers})": ?)[\\d.]+`, "g"), "$10")
    .replaceAll(/("(?:service|salt|plan|digests?|key)": ?")[^"]*/g, "$1…")
    .replaceAll(/2026-03-20T1[12]:[\d:.]+Z/g, "NOON")
    .replaceAll(/20260320T\d{6}Z/g, "NOON")
    .replaceAll(/\b\d+(\.\d+)? (?:s|min)\b/g, "N s")
    .replaceAll(/\b\d+ ms\b/g, "N ms")
    .replaceAll(/receipts-[0-9a-f]{16}/g, "receipts-…")
    .replaceAll(/job_\w{6,}/g, "job_…")
    .replaceAll(/^(.*)$(?:\n\1$)+/gm, "$1 (more than once)");
}

/** Of what jobs remember, whose keys are new each time, the steps of those that are open and how many others there are. */
function plain(_name: string, value: unknown): unknown {
  if (!isObject(value) || !("salt" in value) || !Array.isArray(value["jobs"])) return value;
  const lists = Object.entries(value).filter(([, list]) => Array.isArray(list)) as [string, unknown[]][];
  const steps =
    JSON.stringify(value["jobs"])
      .match(/"step":"\w+"/g)
      ?.join(" ") ?? null;
  return { ...value, ...Object.fromEntries(lists.map(([name, list]) => [name, list.length])), steps };
}

/** Of records that follow each other the first, and how many they are. */
function shortened(text: string): string {
  const lines: string[] = [];
  let records = 0;
  for (const line of [...text.split("\n"), ""]) {
    const isRecord = /^\{"type":"RECORD"|^\{"(?:id|domain|slug)":/.test(line);
    if (isRecord) records += 1;
    if (isRecord && records > 1) continue;
    if (!isRecord && records > 1) lines.push(`(${records} records)`);
    if (!isRecord) records = 0;
    if (line !== "") lines.push(line.startsWith('{"') ? JSON.stringify(JSON.parse(line), plain) : line);
  }
  return lines.join("\n");
}

async function told({ options, settings, files = {}, lines }: Situation): Promise<string> {
  const sandbox = await startSandbox({ ...ACCOUNT, ...options });
  const folder = await tempDir();
  try {
    const external_api = { api_url: sandbox.url, api_key: sandbox.key };
    const config = join(folder, "config.json");
    const keys = { base_url: sandbox.url, api_key: sandbox.key, external_api };
    await writeFile(config, JSON.stringify({ ...keys, ...SETTINGS, ...settings }));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const home = join(folder, "home");
    await mkdir(home);
    const parts: string[] = [];
    for (const line of lines) {
      parts.push(`$ ${line}`);
      if (line === "!arrive") sandbox.arrive(3);
      if (line === "!recheck") sandbox.recheck(2);
      if (line.startsWith("!")) {
        // A count knows its moment to the second: all that came stands before it, however fast the machine is.
        sandbox.advance(5_000);
        continue;
      }
      const [command = "", target] = line.split(" > ");
      const [program, words] = command.startsWith("tap") ? [TAP, command.slice(4)] : [CONNECTOR, command];
      const isPath = /\.(json|jsonl|csv)$|^(out|rows|found|gone)$/;
      const args = words
        .split(" ")
        .filter((word) => word !== "")
        .map((word) => (isPath.test(word) ? join(folder, word) : word));
      const takesConfig =
        program === TAP || /^(check|discover|read|jobs|plan|reconcile(?! --sql))/.test(command);
      const before = sandbox.requests.length;
      const env = { XDG_STATE_HOME: home };
      const ended = await run(program, [...args, ...(takesConfig ? ["--config", config] : [])], {
        env,
        clock: clockOf(),
      });
      if (target !== undefined) await writeFile(join(folder, target), ended.stdout);
      const asked = sandbox.requests
        .slice(before)
        .map(({ method, path, query }) =>
          `${method} ${path} ${new URLSearchParams(query as Record<string, string>)}`.trim(),
        );
      parts.push(
        ...asked.map((one) => `> ${one}`),
        shortened(ended.stdout),
        shortened(ended.stderr),
        `exit ${ended.code}`,
      );
      if (!line.includes("summary.json")) continue;
      const summary = await readFile(join(folder, "summary.json"), "utf8");
      parts.push(JSON.stringify(JSON.parse(summary), plain, 2));
    }
    return masked(parts.filter((part) => part !== "").join("\n"), folder, sandbox);
  } finally {
    await sandbox.close();
  }
}

/** After a change that is meant: `npx vitest run test/e2e/transcripts.test.ts -u`, and read what it changed. */
it.each(Object.keys(SITUATIONS))("tells of %s like this", async (name) => {
  const text = await told(SITUATIONS[name] as Situation);
  await expect(`${text}\n`).toMatchFileSnapshot(
    `../golden/transcripts/${name.replaceAll(" ", "-").replaceAll(",", "")}.txt`,
  );
});
