import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../../sandbox/server.ts";
import { CONNECTOR, type Ended, run, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { atTerminal } from "../support/terminal.ts";

const FEW = { people: 500, undated: 2, companies: 3, sources: 2, requestsPerMinute: 0 };

/** What a shell says, with the program as `$1` and the config as `$2`. */
const shell = async (script: string, ...words: readonly string[]): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script, "bash", CONNECTOR, ...words], {
    timeout: 60_000,
  });
  return stdout + stderr;
};

describe("at a terminal", () => {
  it("discover shows a table of streams and what the key cannot read; --json prints the catalog", async () => {
    const { config } = await sandboxWith({ ...FEW, plan: "agency" });
    const { code, shown } = await atTerminal([CONNECTOR, "discover", "--config", config]);
    expect([code, shown]).toEqual([0, expect.stringMatching(/^stream +rows +fields +read$/m)]);
    expect(shown).toMatch(/^companies +not readable/m);
    const catalog = await atTerminal([CONNECTOR, "discover", "--config", config, "--json"]);
    expect(JSON.parse(catalog.shown)).toMatchObject({ type: "CATALOG" });
  });

  it("read asks where the rows go before it sends a request, and writes them there if --json says so", async () => {
    const { sandbox, config } = await sandboxWith({ ...FEW, people: 5 });
    const words = [CONNECTOR, "read", "--config", config, "--stream", "people"];
    expect([(await atTerminal(words)).code, sandbox.requests.length]).toEqual([2, 0]);
    const { code, shown } = await atTerminal([...words, "--json"]);
    expect([code, shown]).toEqual([0, expect.stringContaining(sandbox.people()[0]?.id ?? "?")]);
  });

  it("progress never mixes with rows that go to the same terminal", async () => {
    const { config } = await sandboxWith(FEW);
    const command = "node '$1' read -c '$2' --stream people --format jsonl | head -n 3";
    const shown = await shell(`env -u CI TERM=xterm script -qec "${command}" /dev/null`, config);
    const lines = shown.trim().split("\r\n");
    expect(lines.map((line) => Object.keys(JSON.parse(line))[0])).toEqual(["id", "id", "id"]);
  });
});

it("a reader that has had enough is no failure for bare records, and one for a platform", async () => {
  const { config } = await sandboxWith({ ...FEW, people: 2_000 });
  const codeOf = (words: string): Promise<string> =>
    shell(
      `node "$1" read -c "$2" ${words} 2>/dev/null | head -n 1 >/dev/null; echo \${PIPESTATUS[0]}`,
      config,
    );
  expect(await codeOf("--stream people --format jsonl")).toBe("0\n");
  expect(await codeOf("--stream people")).toBe("1\n");
});

it("config.json in the folder is used where no config is named and no variable is set", async () => {
  const { config } = await sandboxWith({ ...FEW, people: 5 });
  const folder = await tempDir();
  const check = 'cp "$2" "$3/config.json"; cd "$3"; env -i "$(command -v node)" "$1" check';
  const said = await shell(check, config, folder);
  expect(said).toContain("config.json");
  expect(said).toContain("SUCCEEDED");
  const own = check.replace("env -i", "env -i CONTACT_INTELLIGENCE_API_KEY=none");
  expect(await shell(own, config, folder)).toContain("base_url is missing");
});

it("a config may come through a pipe, and begin with a byte order mark", async () => {
  const { config } = await sandboxWith({ ...FEW, people: 5 });
  const piped = 'printf "\\357\\273\\277" | cat - "$2" | node "$1" check --config';
  for (const place of ["/dev/stdin", "-"])
    expect(await shell(`${piped} ${place}`, config)).toContain("SUCCEEDED");
});

const MANY = { people: 4_000, undated: 5, days: 200, requestsPerMinute: 0, latencyMs: 20 };
const SMALL_WINDOWS = { max_window_rows: 1_000, num_workers: 1 };

/** What the disk says of people: the day up to which the state goes, and the rows of all published files. */
function onDisk(state: string): { readonly until: string | undefined; readonly rows: number } {
  const saved = existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : {};
  const manifest = join(state, "../manifest.json");
  const { files = [] } = existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")) : {};
  const rows = (files as { rows: number }[]).reduce((sum, file) => sum + file.rows, 0);
  return { until: saved.bookmarks?.people?.discoveredAt, rows };
}

/** Sends SIGINT once the service has answered twelve requests. */
async function interrupted(sandbox: Sandbox, program: string, words: readonly string[]): Promise<Ended> {
  const asked = expect.poll(() => sandbox.requests.length, { timeout: 20_000, interval: 5 });
  return await run(program, words, {
    started: (child) => void asked.toBeGreaterThan(12).then(() => child.kill("SIGINT")),
  });
}

describe("the last words of a run", () => {
  it.each([
    ["a folder", CONNECTOR, ["read", "--stream", "people", "--output"]],
    ["Airbyte's language", CONNECTOR, ["read", "--stream", "people", "--state-file"]],
    ["JSON lines", CONNECTOR, ["read", "--stream", "people", "--format", "jsonl", "--state-file"]],
    ["Singer's language", TAP, ["--state-file"]],
  ])("say after SIGINT, in %s, up to which moment all is saved", async (where, program, words) => {
    const { sandbox, config } = await sandboxWith(MANY, SMALL_WINDOWS);
    const folder = join(await tempDir(), "out");
    const state = where === "a folder" ? join(folder, "state.json") : `${folder}.json`;
    const all = ["--config", config, ...words, where === "a folder" ? folder : state];
    const { stdout, stderr, signal } = await interrupted(sandbox, program, [
      ...all.slice(2),
      ...all.slice(0, 2),
    ]);
    const { until, rows } = onDisk(state);
    expect([signal, until?.length]).toEqual(["SIGINT", 24]);
    expect(stdout + stderr).toContain(`saved people up to ${until}`);
    if (where === "a folder") expect(stderr).toContain(`(${rows.toLocaleString("en-US")} rows in`);
  });

  it("say after an error, and at the time limit, what the folder holds", async () => {
    for (const [options, settings] of [
      [{ faults: ["status=403:skip=8:times=always"] }, {}],
      [{ latencyMs: 200 }, { max_run_seconds: 1 }],
    ]) {
      const { config } = await sandboxWith({ ...MANY, ...options }, { ...SMALL_WINDOWS, ...settings });
      const folder = join(await tempDir(), "out");
      const words = ["read", "--config", config, "--output", folder, "--stream", "people"];
      const { stderr } = await run(CONNECTOR, words);
      const { until, rows } = onDisk(join(folder, "state.json"));
      expect(stderr).toContain(`${rows.toLocaleString("en-US")}`);
      expect(stderr).toContain(`up to ${until?.slice(0, 10)}`);
    }
  });
});
