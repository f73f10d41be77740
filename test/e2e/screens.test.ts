import { readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect, it } from "vitest";
import { type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { systemClock } from "../../src/api/clock.ts";
import { parseCommand } from "../../src/cli.ts";
import { runProgram } from "../../src/main.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

const ACCOUNT = {
  ...{ people: 400, undated: 3, companies: 4, sources: 1, seed: 7, days: 60, requestsPerMinute: 0 },
  now: "2026-03-20T12:00:00Z",
} satisfies SandboxOptions;

const ITEMS = {
  company_lookup: { domains: ["1.example", "2.example", "no host"], from_companies: true },
  email_check: { emails: ["a@x.example", "b@x.example"], max_per_day: 1 },
  proof_stream: true,
};

type Screen = {
  readonly options?: SandboxOptions;
  readonly settings?: object;
  /** Files of FOLDER. */
  readonly files?: (people: readonly Row[]) => Readonly<Record<string, unknown>>;
  /** As a shell reads them: with `*`, and a part of the output in a file. */
  readonly lines: readonly string[];
};

type Row = { readonly id: string; readonly discoveredAt: string | null };

const days = (...all: readonly string[]) => all.map((day) => [`2026-02-${day}`, `2026-02-${day}`, 5]);
const stateOf = (...all: readonly string[]) => ({
  ...{ version: 2, discoveredAt: "2026-02-20T01:02:03.000Z", undated: null },
  days: [["1970-01-02", "2026-01-31", 100], ...days(...all)],
});

const SCREENS: Readonly<Record<string, Screen>> = {
  "an account": { lines: ["check", "discover", "read --dry-run", "plan --shards 3", "jobs", "spec --help"] },
  "items and proofs": {
    settings: { ...ITEMS, suppress_file: "SUPPRESSED" },
    lines: ["check", "discover", "read --dry-run", "jobs"],
  },
  "a plan that lacks companies": {
    options: { plan: "agency" },
    lines: ["check", "discover", "read --dry-run"],
  },
  "a wrong key": {
    settings: { api_key: "svc_00000000_00112233445566778899aabbccddee00" },
    lines: ["check", "discover", "read --dry-run", "plan --shards 3"],
  },
};

/** What a state covers that lacks a day of each week. */
const HOLES = Array.from({ length: 8 }, (_, week) => {
  const [from, to] = [1, 6]
    .map((day) => Date.UTC(2026, 0, 7 * week + day))
    .map((ms) => new Date(ms).toISOString());
  return [week === 0 ? "1970-01-02" : from?.slice(0, 10), to?.slice(0, 10), 5];
});

const SHARDS: readonly string[] = [
  "plan --shards 3 --json > FOLDER/plan.jsonl",
  "plan --shards 3 --json | head 2 > FOLDER/cut.jsonl",
  "plan --resume FOLDER/cut.jsonl",
  "plan --resume FOLDER/plan.jsonl",
  "plan --resume FOLDER/cut.jsonl --stream companies",
  "plan --stream sources",
  "plan --stream nobody",
  ...["0 --dry-run", "0", "0", "1", "3", "open", "4 --dry-run"].map(
    (shard) => `read --plan FOLDER/plan.jsonl --output FOLDER/rows --shard ${shard}`,
  ),
  "read --plan FOLDER/cut.jsonl --output FOLDER/rows --shard 2",
  "read --plan FOLDER/cut.jsonl --output FOLDER/rows --shard open",
  "read --plan FOLDER/cut.jsonl --output FOLDER/rows --shard 0 --stream companies",
  "state merge FOLDER/rows/shard-* > FOLDER/merged.json",
  "state show FOLDER/merged.json",
  "state merge FOLDER/people.json FOLDER/companies.json",
  "state merge FOLDER/people.json FOLDER/sources.json",
  "state merge FOLDER/people.json FOLDER/none.json",
  "state merge FOLDER/rows FOLDER/people.json",
];

const FILES: readonly string[] = [
  "read",
  "read --stream peple --output FOLDER/out",
  "read --catalog FOLDER/catalog.json --stream companies --output FOLDER/out",
  "read --catalog FOLDER/catalog.json --stream peple --output FOLDER/out",
  "read --stream company_lookups --format jsonl",
  "read --stream company_lookups --limit 5",
  "read --stream people --limit 1 --format jsonl",
  "read --stream people --stream companies --output FOLDER/out",
  "read --stream people --output FOLDER/out --full-refresh",
  "read --output FOLDER/out",
  "read --dry-run --state-file FOLDER/holes.json --stream people",
  "output compact FOLDER/out",
  "read --output FOLDER/out",
  "output compact --newest FOLDER/out",
  "output compact --newest FOLDER/out",
  "output compact FOLDER/none",
  "state show FOLDER/out/state.json",
];

const COMPARISONS: readonly string[] = [
  "reconcile --table FOLDER/keys.csv",
  "reconcile --table FOLDER/keys.csv --state FOLDER/all.json",
  "reconcile --table FOLDER/keys.csv --full",
  "reconcile --table FOLDER/keys.csv --full --yes-gone 1 --output FOLDER/found",
  "reconcile --table FOLDER/slugs.csv --stream sources",
  "reconcile --table FOLDER/slugs.csv --stream sources --full",
  "reconcile --table FOLDER/none.csv",
  "reconcile --table FOLDER/keys.csv --state FOLDER/other.json",
  "reconcile --table FOLDER/keys.csv --state FOLDER/none.json",
  "reconcile --stream company_lookups --table FOLDER/keys.csv",
  "reconcile",
];

Object.assign(SCREENS, {
  "one account on several machines": {
    files: () => ({
      "people.json": { people: stateOf("01", "02") },
      "companies.json": { people: stateOf("03"), companies: stateOf("01") },
      "sources.json": { sources: { version: 2, full_refresh: null } },
    }),
    lines: SHARDS,
  },
  "rows in files": {
    files: () => ({
      "catalog.json": { streams: [{ name: "people" }] },
      "holes.json": { people: { ...stateOf(), days: HOLES } },
    }),
    lines: FILES,
  },
  "a table that is compared": {
    files: (people) => ({
      "keys.csv": keysOf(people),
      "all.json": { people: { ...stateOf(), days: [["1970-01-02", "2026-03-18", 400]] } },
      "other.json": { companies: stateOf("01") },
      "slugs.csv": "slug\nnobody\n",
    }),
    lines: COMPARISONS,
  },
} satisfies Record<string, Screen>);

/** Keys of a table that lacks some people, holds one old, one that is newer, and one who is gone. */
function keysOf(people: readonly Row[]): string {
  const dated = people.filter(({ discoveredAt }) => discoveredAt !== null);
  const undated = people.filter(({ discoveredAt }) => discoveredAt === null);
  const rows = [...dated.slice(0, 150), ...dated.slice(153), ...undated.slice(1)].map((row, nth) => {
    const at = nth === 7 ? "2020-01-01T00:00:00Z" : nth === 9 ? "2026-03-18T00:00:00Z" : row.discoveredAt;
    return `${row.id},${at ?? ""}`;
  });
  return `${["id,discoveredAt", ...rows, "erased,2026-02-01T00:00:00Z"].join("\n")}\n`;
}

/** The words of a line, as a shell makes them. */
function wordsOf(line: string, folder: string): readonly string[] {
  return line.split(" ").flatMap((word) => {
    const path = word.replace("FOLDER", folder);
    if (!path.endsWith("*")) return path;
    const names = readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path).slice(0, -1)));
    return names.sort().map((name) => join(dirname(path), name));
  });
}

const WITHOUT_CONFIG = /--help|^output|^state|^reconcile$/;

async function shown({ options, settings, files, lines }: Screen): Promise<string> {
  await using sandbox = await startSandbox({ ...ACCOUNT, ...options });
  const folder = await tempDir();
  const home = join(folder, "home");
  await mkdir(home);
  await writeFile(join(folder, "suppressed.txt"), "2.example\nx@x.example\n");
  const external_api = { api_url: sandbox.url, api_key: sandbox.key };
  const all = {
    base_url: sandbox.url,
    api_key: sandbox.key,
    external_api,
    requests_per_minute: 6_000,
    ...settings,
  };
  const config = join(folder, "config.json");
  await writeFile(config, JSON.stringify(all).replace("SUPPRESSED", join(folder, "suppressed.txt")));
  for (const [name, content] of Object.entries(files?.(sandbox.people() as unknown as Row[]) ?? {}))
    await writeFile(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
  const parts: string[] = [];
  const clock = { ...systemClock, now: () => Date.parse("2026-03-20T12:00:00Z") };
  for (const line of lines) {
    const [, command = "", most, file] = /^(.*?)(?: \| head (\d+))?(?: > (\S+))?$/.exec(line) ?? [];
    const [stdout, stderr] = [new Terminal(), new Terminal()];
    const args = [...wordsOf(command, folder), ...(WITHOUT_CONFIG.test(line) ? [] : ["--config", config])];
    const environment = { TERM: "dumb", XDG_STATE_HOME: home };
    const runtime = testProcess({ stdout, stderr, environment, ...(files && { clock }) });
    const code = await runProgram(async () => parseCommand, args, runtime);
    if (file !== undefined) {
      const kept =
        most === undefined ? stdout.text : stdout.text.split("\n").slice(0, Number(most)).join("\n");
      await writeFile(file.replace("FOLDER", folder), kept);
    }
    parts.push(`$ ${line}`, file === undefined ? stdout.text : "", stderr.text, `exit ${code}`);
  }
  return parts
    .map((part) => part.trimEnd())
    .filter((part) => part !== "")
    .join("\n")
    .replaceAll(/^\d{4}-\d\d-\d\dT[\d:.]+Z/gm, "TIME")
    .replaceAll(/\b\d+(?:\.\d)? s\b/g, "TIME")
    .replaceAll(/(?<=shard-|part of the plan )\w+|(?<="plan":")\w+/g, "PLAN")
    .replaceAll(folder, "FOLDER")
    .replaceAll(sandbox.url, "URL")
    .replaceAll(new URL(sandbox.url).host, "HOST");
}

it.each(Object.keys(SCREENS))("shows a person at a terminal: %s", async (name) => {
  const text = await shown(SCREENS[name] as Screen);
  await expect(`${text}\n`).toMatchFileSnapshot(`../golden/screens/${name.replaceAll(" ", "-")}.txt`);
});
