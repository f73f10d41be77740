import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
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
  readonly lines: readonly string[];
};

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

async function shown({ options, settings, lines }: Screen): Promise<string> {
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
  const parts: string[] = [];
  for (const line of lines) {
    const [stdout, stderr] = [new Terminal(), new Terminal()];
    const args = [...line.split(" "), ...(line.includes("--help") ? [] : ["--config", config])];
    const runtime = testProcess({ stdout, stderr, environment: { TERM: "dumb", XDG_STATE_HOME: home } });
    const code = await runProgram(async () => parseCommand, args, runtime);
    parts.push(`$ ${line}`, stdout.text, stderr.text, `exit ${code}`);
  }
  return parts
    .map((part) => part.trimEnd())
    .filter((part) => part !== "")
    .join("\n")
    .replaceAll(/^\d{4}-\d\d-\d\dT[\d:.]+Z/gm, "TIME")
    .replaceAll(folder, "FOLDER")
    .replaceAll(sandbox.url, "URL")
    .replaceAll(new URL(sandbox.url).host, "HOST");
}

it.each(Object.keys(SCREENS))("shows a person at a terminal: %s", async (name) => {
  const text = await shown(SCREENS[name] as Screen);
  await expect(`${text}\n`).toMatchFileSnapshot(`../golden/screens/${name.replaceAll(" ", "-")}.txt`);
});
