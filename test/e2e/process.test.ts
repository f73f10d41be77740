import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { catalogFor, configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { run as runAny } from "../support/run.ts";
import { serve } from "../support/serve.ts";
import { KEY } from "../support/session.ts";
import { tempDir } from "../support/temp-dir.ts";

const QUICK = { requestsPerMinute: 0, undated: 0 } as const;

describe("the process", () => {
  it("exits 2 for a command line that is wrong, and says so on stderr without a stack", async () => {
    const { code, stdout, stderr } = await run(CONNECTOR, ["check", "--confg", "x"], { asProcess: true });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("confg");
    expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
    for (const words of [["reed"], ["check", "--config"], ["read", "--format", "jsonl"], ["state", "show"]])
      expect(await run(CONNECTOR, words)).toMatchObject({ code: 2, stdout: "" });
  });

  it("says its version", async () => {
    for (const [program, word] of [
      [CONNECTOR, "--version"],
      [TAP, "-v"],
    ] as const)
      expect((await run(program, [word], { asProcess: true })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
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
    expect(stderr).not.toMatch(/[^\P{Cc}\n]|[\u202e\u2028]/u);
    const wrong = await run(CONNECTOR, ["read", "--shard", "\u202e\u001b[2J", "--plan", "x"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
  });

  it("reads the config, or the state, from stdin for -", async () => {
    const { config } = await sandboxWith({ people: 3 });
    const input = await readFile(config, "utf8");
    const checked = await connector(["check", "--config", "-"], { input });
    expect(checked.messages).toMatchObject([{ connectionStatus: { status: "SUCCEEDED" } }]);
    const args = ["read", "--config", config, "--format", "jsonl", "--stream", "people", "--state", "-"];
    expect(await run(CONNECTOR, args, { input: '{"x"' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("state"),
    });
  });

  it("ends at SIGTERM while it waits for a service that does not answer, and says so", async () => {
    const { sandbox, config } = await sandboxWith({ people: 5, faults: ["stall-headers:times=always"] });
    const asked = expect.poll(() => sandbox.requests.length, { timeout: 20_000 });
    const ended = await run(CONNECTOR, ["read", "--stream", "people", "--config", config], {
      started: (child) => void asked.toBeGreaterThan(0).then(() => child.kill("SIGTERM")),
    });
    expect(ended.signal).toBe("SIGTERM");
    expect(ended.stdout).toContain("Interrupted by SIGTERM");
    expect(ended.stdout).not.toContain("Cannot");
  });

  it("that is killed has delivered all that its state file covers, and the next run brings the rest", async () => {
    const steady = { ...QUICK, people: 3_000, bytesPerSecond: 4_000_000 };
    const { sandbox, config } = await sandboxWith(steady, { max_window_rows: 1_000, num_workers: 1 });
    const state = join(await tempDir(), "state.json");
    const args = [
      "read",
      "--format",
      "jsonl",
      "--stream",
      "people",
      "--config",
      config,
      "--state-file",
      state,
    ];
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
  ])(
    "in %s ends with %i and without an error when nobody reads its output any more",
    async (format, code) => {
      const { config } = await sandboxWith({ ...QUICK, people: 3_000, bytesPerSecond: 200_000 });
      const args = ["read", "--format", format, "--stream", "people", "--config", config];
      const ended = await run(CONNECTOR, args, {
        started: (child) => child.stdout?.once("data", () => child.stdout?.destroy()),
      });
      expect([ended.code, ended.signal]).toEqual([code, null]);
      expect(ended.stderr).not.toMatch(/Cannot|EPIPE|complete/);
    },
  );

  it.runIf(process.platform === "linux")("names the reason when the disk of its stdout is full", async () => {
    const { config } = await sandboxWith({ people: 300, requestsPerMinute: 0 });
    const script = `"$0" "$1" read --config "$2" --format jsonl --stream people > /dev/full`;
    const { code, stderr } = await runAny("sh", ["-c", script, process.execPath, CONNECTOR, config]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("no space left on device")]);
  });

  it("honours proxies and NO_PROXY", async () => {
    await using sandbox = await startSandbox({ people: 5 });
    const asked: string[] = [];
    const { url: proxy } = await serve((request, response) => {
      asked.push(String(request.url));
      response.writeHead(502, { "content-type": "text/html" });
      response.end(`<html>${request.headers["x-api-key"]}</html>`);
    });
    const env = { HTTP_PROXY: proxy };
    const config = await configFor(sandbox, {
      base_url: "http://service.invalid",
      allow_insecure_http: true,
    });
    const check = async (path: string, environment: Record<string, string>): Promise<string> =>
      (await connector(["check", "--config", path], { env: environment, clock: hurriedClock() })).stdout;
    const through = await check(config, env);
    expect(asked[0]).toContain("http://service.invalid/api/v1/public/people");
    expect(through).toContain("FAILED");
    expect(through).not.toContain("00112233445566778899aabbccddeeff");
    const requests = asked.length;
    expect(await check(config, { ...env, NO_PROXY: "service.invalid" })).toMatch(/ENOTFOUND|EAI_AGAIN/);
    expect(await check(await configFor(sandbox), env)).toContain("SUCCEEDED");
    expect(asked).toHaveLength(requests);
  });
});

describe("the key and the rows", () => {
  const LONG_PART = "00112233445566778899aabbccddeeff";
  const SHAPES = [KEY, LONG_PART, Buffer.from(KEY).toString("base64"), encodeURIComponent(KEY)];

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
    const args = ["--config", await configFor(sandbox, { start_date })];
    const catalog = await catalogFor({ people: {} });
    const ended = await connector(["read", ...args, "--catalog", catalog], { clock: hurriedClock() });
    const others = linesOf(ended.stdout).filter((line) => !line.startsWith('{"type":"RECORD"'));
    const said = others.join("\n") + ended.stderr;
    const rows = sandbox.people().flatMap(({ email, id }) => [id, ...(email === null ? [] : [email])]);
    for (const secret of [...SHAPES, ...rows]) expect(said).not.toContain(secret);
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
