import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, file, run, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { run as runAny } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";
import { atTerminal } from "../support/terminal.ts";

const FEW = { people: 5, undated: 0, companies: 3, sources: 2 };

/** What a shell says, with the program as `$1` and the config as `$2`. */
const shell = async (script: string, ...words: readonly string[]): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script, "bash", CONNECTOR, ...words], {
    timeout: 60_000,
  });
  return stdout + stderr;
};

describe("the process", () => {
  it("prints its version, and exits with 2 for a wrong command line, without a stack", async () => {
    for (const [program, word] of [
      [CONNECTOR, "--version"],
      [TAP, "-v"],
    ] as const)
      expect((await run(program, [word], { asProcess: true })).stdout).toMatch(/^\d+\.\d+\.\d+(-dev)?\n$/);
    const { code, stdout, stderr } = await run(CONNECTOR, ["check", "--confg", "x"], { asProcess: true });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("confg");
    expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
  });

  it("takes at most 90 MiB for a sync of a small account", async () => {
    const { config } = await sandboxWith({ people: 100 });
    // On Linux a program's own peak; resourceUsage() may tell the one of the program that started it.
    const tell = `import { existsSync, readFileSync } from "node:fs";
      const status = () => (existsSync("/proc/self/status") ? readFileSync("/proc/self/status", "utf8") : "");
      const peak = () => /^VmHWM:\\s+(\\d+)/m.exec(status())?.[1] ?? process.resourceUsage().maxRSS;
      process.on("exit", () => console.error("peak", String(peak())));`;
    const env = { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(tell)}"` };
    const { code, stderr } = await run(CONNECTOR, ["read", "--config", config], { asProcess: true, env });
    expect(code).toBe(0);
    expect(Number(/^peak (\d+)$/m.exec(stderr)?.[1]) / 1024).toBeLessThan(90);
  });

  it("prints errors without characters that move a terminal's cursor", async () => {
    const state = await file("state.json", '{"a\\u001b[2J\\u202e\\u2028":{}}');
    const { code, stderr } = await run(CONNECTOR, ["state", "show", state]);
    expect(code).toBe(2);
    expect(stderr).not.toMatch(/[^\P{Cc}\n]|[\u202e\u2028]/u);
    const wrong = await run(CONNECTOR, ["read", "--shard", "\u202e\u001b[2J", "--plan", "x"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
  });

  it("reads the config, which may begin with a byte order mark, and the state from stdin", async () => {
    const { config } = await sandboxWith(FEW);
    const piped = 'printf "\\357\\273\\277" | cat - "$2" | node "$1" check --config';
    for (const place of ["/dev/stdin", "-"])
      expect(await shell(`${piped} ${place}`, config)).toContain("SUCCEEDED");
    const args = ["read", "--config", config, "--format", "jsonl", "--stream", "people", "--state", "-"];
    const { code, stderr } = await run(CONNECTOR, args, { input: '{"x"' });
    expect([code, stderr]).toEqual([2, expect.stringContaining("state")]);
  });

  it("ends at SIGTERM while it waits for a service that does not answer, and says so", async () => {
    const { sandbox, config } = await sandboxWith({ ...FEW, faults: ["stall-headers:times=always"] });
    const asked = expect.poll(() => sandbox.requests.length, { timeout: 20_000 });
    const ended = await run(CONNECTOR, ["read", "--stream", "people", "--config", config], {
      started: (child) => void asked.toBeGreaterThan(0).then(() => child.kill("SIGTERM")),
    });
    expect(ended.signal).toBe("SIGTERM");
    expect(ended.stdout).toContain("Interrupted by SIGTERM");
    expect(ended.stdout).not.toContain("Cannot");
  });

  it("that is killed has delivered all that its state file covers, and the next run delivers the rest", async () => {
    const steady = { ...FEW, people: 3_000, bytesPerSecond: 4_000_000 };
    const { sandbox, config } = await sandboxWith(steady, { max_window_rows: 1_000, num_workers: 1 });
    const state = join(await tempDir(), "state.json");
    const words = ["--format", "jsonl", "--stream", "people", "--config", config, "--state-file", state];
    const args = ["read", ...words];
    let bytes = 0;
    const killed = await run(CONNECTOR, args, {
      started: (child) =>
        child.stdout?.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > 900_000) child.kill("SIGKILL");
        }),
    });
    const rest = await run(CONNECTOR, args);
    expect([killed.signal, rest.code]).toEqual(["SIGKILL", 0]);
    const complete = killed.stdout.slice(0, killed.stdout.lastIndexOf("\n") + 1);
    const ids = [...linesOf(complete), ...linesOf(rest.stdout)].map((line) => JSON.parse(line).id);
    expect(new Set(ids)).toEqual(new Set(sandbox.people().map(({ id }) => id)));
  });

  it.each([
    ["airbyte", 1],
    ["jsonl", 0],
  ])("in %s ends with %i and without an error when its output loses its reader", async (format, code) => {
    const { config } = await sandboxWith({ ...FEW, people: 3_000, bytesPerSecond: 200_000 });
    const args = ["read", "--format", format, "--stream", "people", "--config", config];
    const ended = await run(CONNECTOR, args, {
      started: (child) => child.stdout?.once("data", () => child.stdout?.destroy()),
    });
    expect([ended.code, ended.signal]).toEqual([code, null]);
    expect(ended.stderr).not.toMatch(/Cannot|EPIPE|complete/);
  });

  it.runIf(process.platform === "linux")("names the reason when the disk of its stdout is full", async () => {
    const { config } = await sandboxWith({ ...FEW, people: 300 });
    const script = 'node "$1" read -c "$2" --format jsonl --stream people > /dev/full || echo "exit $?"';
    expect(await shell(script, config)).toMatch(/^exit 1\n(?:.|\n)*no space left on device/);
  });
});

describe("at a terminal", () => {
  it("read asks where the rows go before it sends a request, and writes them there if --json says so", async () => {
    const { sandbox, config } = await sandboxWith(FEW);
    const words = [CONNECTOR, "read", "--config", config, "--stream", "people"];
    expect([(await atTerminal(words)).code, sandbox.requests.length]).toEqual([2, 0]);
    const { code, shown } = await atTerminal([...words, "--json"]);
    expect([code, shown]).toEqual([0, expect.stringContaining(sandbox.people()[0]?.id ?? "?")]);
  });

  it("progress never mixes with rows that go to the same terminal", async () => {
    const { config } = await sandboxWith({ ...FEW, people: 500 });
    const command = "node '$1' read -c '$2' --stream people --format jsonl | head -n 3";
    const shown = await shell(`env -u CI TERM=xterm script -qec "${command}" /dev/null`, config);
    const lines = shown.trim().split("\r\n");
    expect(lines.map((line) => Object.keys(JSON.parse(line))[0])).toEqual(["id", "id", "id"]);
  });
});

const MANY = { ...FEW, people: 8_000, undated: 5, days: 200, latencyMs: 20 };
const SMALL_WINDOWS = { max_window_rows: 1_000, num_workers: 1 };

/** What the disk says of people: the day up to which the state goes, and the rows of all published files. */
function onDisk(state: string): { readonly until: string | undefined; readonly rows: number } {
  const saved = existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : {};
  const people = join(state, "../people");
  const files = existsSync(people) ? readdirSync(people).filter((name) => /^\d.*\.jsonl$/.test(name)) : [];
  const rows = files.reduce((sum, name) => sum + linesOf(readFileSync(join(people, name), "utf8")).length, 0);
  return { until: saved.bookmarks?.people?.discoveredAt, rows };
}

describe("the last words of a run", () => {
  it.each([
    ["a folder", CONNECTOR, ["read", "--stream", "people", "--output"]],
    ["Airbyte's language", CONNECTOR, ["read", "--stream", "people", "--state-file"]],
    ["JSON lines", CONNECTOR, ["read", "--stream", "people", "--format", "jsonl", "--state-file"]],
    ["Singer's language", TAP, ["--state-file"]],
    [
      "JSON lines without a state",
      CONNECTOR,
      ["read", "--stream", "people", "--format", "jsonl", "--summary"],
    ],
  ])("say after SIGINT, in %s, up to which moment all is saved", async (where, program, words) => {
    const { sandbox, config } = await sandboxWith(MANY, SMALL_WINDOWS);
    const path = join(await tempDir(), "out");
    // One after the other: of people without a date, and of two windows that are covered when the next begins.
    const exports = () => sandbox.requests.filter((one) => one.path.includes("/stream")).length;
    const asked = expect.poll(exports, { timeout: 20_000, interval: 5 });
    const { stdout, stderr, signal } = await run(program, [...words, path, "--config", config], {
      started: (child) => void asked.toBeGreaterThan(3).then(() => child.kill("SIGINT")),
    });
    expect(signal).toBe("SIGINT");
    if (words.includes("--summary")) {
      expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({
        outcome: "interrupted",
        saved_to: null,
      });
      expect(stderr).toContain("Interrupted by SIGINT. No state is saved");
      return;
    }
    const { until, rows } = onDisk(where === "a folder" ? join(path, "state.json") : path);
    expect(until).toHaveLength(24);
    expect(stdout + stderr).toContain(`Saved people up to ${until}`);
    const sent = new Set(stdout.match(/per_\w+/g));
    const covered = sandbox.people().filter(({ discoveredAt }) => (discoveredAt ?? "9") <= `${until}`);
    if (where !== "a folder") expect(covered.filter(({ id }) => !sent.has(id))).toEqual([]);
    else expect(stderr).toContain(`(${rows.toLocaleString("en-US")} rows in`);
  });

  it.each([
    ["an error", { faults: ["status=403:skip=20:times=always"] }, {}],
    ["the time limit", { latencyMs: 10 }, { max_run_seconds: 10 }],
  ])("say after %s what the folder contains", async (_what, options, settings) => {
    const { config } = await sandboxWith({ ...MANY, ...options }, { ...SMALL_WINDOWS, ...settings });
    const folder = join(await tempDir(), "out");
    const words = ["read", "--config", config, "--output", folder, "--stream", "people"];
    const { stderr } = await run(CONNECTOR, words, { clock: hurriedClock(100) });
    const { until, rows } = onDisk(join(folder, "state.json"));
    expect(stderr).toContain(`${rows.toLocaleString("en-US")}`);
    expect(stderr).toContain(`up to ${until?.slice(0, 10)}`);
  });
});

describe("config.json in the working folder", () => {
  const inFolder = async (
    words: string,
    content: unknown,
    variables: Record<string, string> = {},
    program = CONNECTOR,
  ) => {
    const folder = await tempDir();
    const text = typeof content === "string" ? content : JSON.stringify(content);
    if (content !== undefined) await writeFile(join(folder, "config.json"), text);
    const named = Object.entries(variables).map(([name, value]) => [`CONTACT_INTELLIGENCE_${name}`, value]);
    return await runAny(process.execPath, [program, ...words.split(" ")], {
      ...{ cwd: folder, env: Object.fromEntries(named) },
    });
  };

  it("is used without --config, and a variable overrides its setting", async () => {
    const { sandbox, config } = await sandboxWith(FEW);
    const settings = JSON.parse(await readFile(config, "utf8"));
    for (const [words, end] of [
      ["check --exit-code", "SUCCEEDED"],
      ["discover", "people"],
      ["jobs", "no jobs"],
      ["plan", '"shard":0'],
    ] as const) {
      const { code, stdout, stderr } = await inFolder(words, settings, { NUM_WORKERS: "1" });
      expect([words, code, stdout], stderr).toEqual([words, 0, expect.stringContaining(end)]);
    }
    const { stderr } = await inFolder("read -o contacts", settings, { NUM_WORKERS: "1" });
    expect(stderr).toContain(
      'from "config.json" in this folder and from the environment variable CONTACT_INTELLIGENCE_NUM',
    );
    const wrong = await inFolder("check", settings, { API_KEY: "no_such_key" });
    expect(wrong.stdout).toContain("The key is from the environment variable CONTACT_INTELLIGENCE_API_KEY");
    // A platform names its config, so a stray file does not count. A tap never looks for one.
    const named = await inFolder(`check --exit-code --config ${config}`, "{");
    expect([named.code, named.stdout]).toEqual([0, expect.stringContaining("SUCCEEDED")]);
    const tapped = await inFolder("--test", settings, {}, TAP);
    expect([tapped.code, tapped.stderr]).toEqual([
      1,
      expect.stringContaining("No config found. Name a file"),
    ]);
    // Another program may have left a file of this name.
    const variables = { BASE_URL: sandbox.url, API_KEY: settings.api_key };
    const other = await inFolder("check --exit-code", { name: "x" }, variables);
    expect([other.code, other.stdout]).toEqual([
      0,
      expect.stringContaining('in the config file \\"config.json\\"'),
    ]);
  });

  it.each<[content: unknown, variables: Record<string, string>, why: string]>([
    [undefined, {}, "No config found. Run `source-contact-intelligence init`, or name a file with --config"],
    [undefined, { NUM_WORKERS: "2" }, "Cannot use the environment: base_url is missing"],
    [{ name: "x" }, {}, 'file \\"config.json\\": it has no setting of this program, only \\"name\\"'],
    [
      "{",
      { BASE_URL: "https://a.example", API_KEY: "k" },
      'file \\"config.json\\": it is not JSON, see line 1',
    ],
  ])("is refused if it says %j and the variables are %j: %s", async (content, variables, why) => {
    const { code, stdout } = await inFolder("check --exit-code", content, variables);
    expect([code, stdout]).toEqual([1, expect.stringContaining(why)]);
  });
});
