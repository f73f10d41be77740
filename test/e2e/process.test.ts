import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { catalogFor, configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { outputOf } from "../support/run.ts";
import { IS_LONG } from "../support/runs.ts";
import { serve } from "../support/serve.ts";
import { KEY } from "../support/session.ts";
import { tempDir } from "../support/temp-dir.ts";

/** In the order of the help text. */
const COMMANDS = "init spec check discover read jobs plan state output reconcile".split(" ");

describe("the process", () => {
  it.each([
    ["an unknown command", ["reed"]],
    ["an unknown option", ["check", "--confg", "x"]],
    ["an option without its value", ["check", "--config"]],
    ["jsonl without a stream", ["read", "--format", "jsonl"]],
  ])("exits 2 for %s and says so on stderr", async (_what, args) => {
    const { code, stdout, stderr } = await run(CONNECTOR, args, { asProcess: true });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr.trim().length).toBeGreaterThan(10);
    expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
  });

  it.each([["show"], ["merge", "--plan", "x"]])("asks for the file of state %s", async (...words) => {
    const { code, stderr } = await run(CONNECTOR, ["state", ...words]);
    expect([code, stderr]).toEqual([2, "Name a state file\n"]);
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

  it("says what is wrong without what would move a terminal's cursor", async () => {
    const state = await file("state.json", '{"a\\u001b[2J\\u202e\\u2028":{}}');
    const { code, stderr } = await run(CONNECTOR, ["state", "show", state]);
    expect(code).toBe(1);
    expect(stderr).toContain("Cannot use the state");
    expect(stderr).not.toMatch(/[^\P{Cc}\n]|[\u202e\u2028]/u);
    const wrong = await run(CONNECTOR, ["read", "--shard", "\u202e\u001b[2J", "--plan", "x"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
  });

  it("helps, also without any words, and says its version", async () => {
    const help = await run(CONNECTOR, ["--help"], { asProcess: true });
    expect(help).toMatchObject({ code: 0, stderr: "" });
    for (const words of [[], ["-h"]]) expect(await run(CONNECTOR, words)).toEqual(help);
    const [commands = ""] = /^Commands:\n(?:.+\n)*/m.exec(help.stdout) ?? [];
    expect(commands.match(/(?<=^ {2}source-contact-intelligence )\w+/gm)).toEqual(COMMANDS);
    for (const [program, word] of [
      [CONNECTOR, "--version"],
      [TAP, "-v"],
    ] as const) {
      expect((await run(program, [word], { asProcess: true })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    }
  });

  it("knows a mistyped stream and one whose setting is missing, before it makes a folder or asks anything", async () => {
    const { sandbox, config } = await sandboxWith({ people: 3 });
    const output = join(await tempDir(), "rows");
    for (const [stream, why] of [
      ["peple", "there is no such stream, only people, companies, sources. Correct --stream"],
      ["company_lookup_contacts", "it is there only when company_lookup is set in the config"],
      ["email_checks", "it is there only when email_check is set in the config"],
    ] as const) {
      const args = ["read", "--config", config, "--stream", stream, "--output", output];
      const { code, stderr } = await run(CONNECTOR, args);
      expect(code).toBe(2);
      expect(stderr).toContain(`Cannot read the stream \\"${stream}\\": ${why}`);
    }
    expect([existsSync(output), sandbox.requests.length]).toEqual([false, 0]);
  });

  it("reads the config, or the state, from stdin for -", async () => {
    const { config } = await sandboxWith({ people: 3 });
    const input = await readFile(config, "utf8");
    const checked = await connector(["check", "--config", "-"], { input });
    expect(checked.messages).toMatchObject([{ connectionStatus: { status: "SUCCEEDED" } }]);
    const args = ["read", "--config", config, "--format", "jsonl", "--stream", "people", "--state", "-"];
    const broken = await run(CONNECTOR, args, { input: '{"x"' });
    expect(broken.code).toBe(2);
    expect(broken.stderr).toContain("state");
  });

  it.each(["", ...COMMANDS, "state merge", "state show", "tap"])(
    "helps with %s in whole words, on 80 columns",
    async (word) => {
      const words = word === "" ? [] : word.split(" ");
      const { stdout } = await (word === "tap" ? run(TAP, ["--help"]) : run(CONNECTOR, [...words, "--help"]));
      const [options = ""] = /^Options:\n(?:.+\n)*/m.exec(stdout) ?? [];
      const continued = options.split("\n").filter((line) => /^\s{10}/.test(line));
      for (const line of continued) expect(line.trim()).toMatch(/^\[.*\]$/);
      expect(stdout).toContain("Show version number");
      const name = word === "tap" ? "tap-contact-intelligence --config FILE" : "source-contact-intelligence ";
      expect(stdout.startsWith(name), stdout.slice(0, 80)).toBe(true);
      expect(stdout).not.toMatch(/\S\[(?:string|array|boolean|number|choices)/);
      expect(stdout).not.toMatch(/[a-z]\n[a-z]/);
      // The parser fills all columns where it breaks a text, and the hints end at the last one.
      for (const line of stdout.split("\n")) expect(line).toMatch(/^(?:.{0,79}|.{79}\])$/);
    },
  );

  it("names the flags of shards after all that everybody needs", async () => {
    const { stdout } = await run(CONNECTOR, ["read", "--help"]);
    const [, options = "", shards = ""] = stdout.split(/^(?:Options|One account on several machines):$/m);
    expect([options.includes("--output"), options.includes("shard")]).toEqual([true, false]);
    for (const flag of ["--plan", "--shard ", "--shards-at-once"]) expect(shards).toContain(flag);
  });

  it.runIf(IS_LONG)(
    "gives its locks back when it is ended by force, because nobody reads what it writes",
    { timeout: 60_000 },
    async () => {
      await using sandbox = await startSandbox({ people: 20_000, requestsPerMinute: 0 });
      const state = join(await tempDir(), "state.json");
      const args = ["read", "--config", await configFor(sandbox), ...["--stream", "people"]];
      const child = spawn(process.execPath, [CONNECTOR, ...args, "--state-file", state], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      const ended = once(child, "exit");
      child.stdout.on("readable", () => {});
      await expect.poll(() => child.stdout.readableLength, { timeout: 30_000 }).toBeGreaterThan(16_000);
      // The pipe fills, and the program waits for a reader.
      await delay(1_000);
      expect(existsSync(`${state}.lock`)).toBe(true);
      child.kill("SIGTERM");
      expect((await ended)[1]).toBe("SIGTERM");
      expect(existsSync(`${state}.lock`)).toBe(false);
      child.stdout.destroy();
    },
  );

  it.each([
    [CONNECTOR, ["read", "--stream", "people"]],
    [CONNECTOR, ["check"]],
    [CONNECTOR, ["discover"]],
    [TAP, ["--test"]],
    [TAP, ["--discover"]],
  ] as const)(
    "ends at SIGTERM while it waits for a service that does not answer, and judges nothing (%s %j)",
    async (program, words) => {
      const { sandbox, config } = await sandboxWith({ people: 5, faults: ["stall-headers:times=always"] });
      const asked = expect.poll(() => sandbox.requests.length, { timeout: 20_000 });
      const ended = await run(program, [...words, "--config", config], {
        started: (child) => void asked.toBeGreaterThan(0).then(() => child.kill("SIGTERM")),
      });
      expect(ended.signal).toBe("SIGTERM");
      const said = `${ended.stdout}${ended.stderr}`;
      expect(said).toMatch(words[0] === "check" ? /^$/ : /Interrupted by SIGTERM/);
      expect(said).not.toMatch(/FAILED|SUCCEEDED|CATALOG|"streams"|Cannot/);
    },
  );

  const canBePid1 = spawnSync("unshare", ["--pid", "--fork", "true"]).status === 0;

  it.skipIf(!canBePid1)("ends at SIGTERM with 143 as the first process of a container", async () => {
    const { sandbox, config } = await sandboxWith({ people: 5, faults: ["stall-headers:times=always"] });
    const words = ["--pid", "--fork", process.execPath, CONNECTOR, "check", "--config", config];
    const outer = spawn("unshare", words, { stdio: "ignore" });
    const ended = once(outer, "exit");
    await expect.poll(() => sandbox.requests.length, { timeout: 20_000 }).toBeGreaterThan(0);
    const inner = readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, "utf8");
    process.kill(Number(inner), "SIGTERM");
    expect(await ended).toEqual([143, null]);
  });

  it("writes all of a large output to a slow reader", async () => {
    const { config } = await sandboxWith({ people: 20_000 });
    const words = ["read", "--config", config, "--stream", "people", "--format", "jsonl"];
    const script = '"$@" | (sleep 1; wc -l)';
    const stdout = await outputOf("sh", ["-c", script, "sh", process.execPath, CONNECTOR, ...words]);
    expect(Number(stdout)).toBe(20_003);
  });

  it("honours proxies and NO_PROXY", async () => {
    await using sandbox = await startSandbox({ people: 5 });
    const asked: string[] = [];
    const { url: proxy } = await serve((request, response) => {
      asked.push(String(request.url));
      response
        .writeHead(502, { "content-type": "text/html" })
        .end(`<html>${request.headers["x-api-key"]}</html>`);
    });
    const env = { HTTP_PROXY: proxy };
    const away = { base_url: "http://service.invalid", allow_insecure_http: true };
    const config = await configFor(sandbox, away);
    const through = await connector(["check", "--config", config], { env });
    expect(asked[0]).toContain("http://service.invalid/api/v1/public/people");
    expect(through.stdout).toContain("FAILED");
    expect(through.stdout).not.toContain("00112233445566778899aabbccddeeff");
    const requests = asked.length;
    const around = { ...env, NO_PROXY: "service.invalid" };
    const past = await connector(["check", "--config", config], { env: around });
    expect(past.stdout).toMatch(/ENOTFOUND|EAI_AGAIN/);
    const near = await connector(["check", "--config", await configFor(sandbox)], { env });
    expect(near.stdout).toContain("SUCCEEDED");
    expect(asked).toHaveLength(requests);
  });
});

describe("secrets and rows", () => {
  const SHAPES = [
    KEY,
    "00112233445566778899aabbccddeeff",
    Buffer.from(KEY).toString("base64"),
    encodeURIComponent(KEY),
  ];

  it.concurrent.each([
    ["an error body", "leak:times=always"],
    ["a redirect", `redirect=https://elsewhere.example/${KEY}?key=${KEY}:times=always`],
    ["a web page", "html:times=always"],
    ["a line that is no JSON", "garbage:times=always"],
    ["bytes that are no UTF-8", "bad-utf8:times=always"],
    ["a row without a key", "no-key:times=always"],
  ])("stay out of every message but RECORD when the service answers with %s", async (_what, fault) => {
    const small = { people: 5, undated: 0, days: 1, requestsPerMinute: 0 };
    await using sandbox = await startSandbox({ ...small, key: KEY, faults: [fault] });
    const start_date = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const config = await configFor(sandbox, { start_date });
    const catalog = await catalogFor({ people: {} });
    const args = ["read", "--config", config, "--catalog", catalog];
    const ended = await connector(args, { clock: hurriedClock() });
    const others = linesOf(ended.stdout).filter((line) => !line.startsWith('{"type":"RECORD"'));
    const said = others.join("\n") + ended.stderr;
    for (const shape of SHAPES) expect(said).not.toContain(shape);
    for (const { email, id } of sandbox.people()) {
      expect(said).not.toContain(id);
      if (email !== null) expect(said).not.toContain(email);
    }
    expect(said.length).toBeGreaterThan(100);
  });

  it("stay out of the message about a config that is wrong", async () => {
    const config = await file("config.json", {
      base_url: `https://user:${KEY}@service.example`,
      api_key: `${KEY}\n x`,
      start_date: KEY,
    });
    const { stdout } = await connector(["check", "--config", config]);
    expect(stdout).toContain("FAILED");
    for (const shape of SHAPES) expect(stdout).not.toContain(shape);
  });
});
