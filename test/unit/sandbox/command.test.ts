import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { CONNECTOR, connector, type Ended, file, run, SANDBOX } from "../../support/cli.ts";
import { docBlock } from "../../support/docs.ts";
import { tempDir } from "../../support/temp-dir.ts";

const sandboxCommand = (words: readonly string[], env = {}): Promise<Ended> =>
  run(SANDBOX, words, { asProcess: true, env });

/** The commands that the demo shows, in order. */
const shown = (stdout: string, prompt: RegExp): string[] =>
  [...stdout.matchAll(prompt)].map(([, words = ""]) => words);

describe("contact-intelligence-sandbox demo", () => {
  it("shows two syncs by commands that work when they are typed, and says what to do next", async () => {
    const { code, stdout, stderr } = await sandboxCommand(["demo"]);
    expect([code, stderr]).toEqual([0, ""]);
    const steps = ["spec", "check", "discover", "read", "read"];
    expect(shown(stdout, /^\$ source-contact-intelligence (\w+)/gm)).toEqual(steps);
    expect(stdout).toContain("CONNECTION_STATUS SUCCEEDED");
    expect(stdout).toContain("people: 8,403 RECORDs");
    expect(stdout).toMatch(/people: \d\d RECORDs/);
    expect(stdout).toContain("What to do next:");
    expect(shown(stdout, /\$ contact-intelligence-sandbox (--\w+)/g)).toEqual(["--people", "--help"]);
    const typed = shown(stdout, /\$ source-contact-intelligence (.*)$/gm);
    expect(typed).toHaveLength(7);
    const config = /^ {2}(\{"base_url".*\})$/m.exec(stdout)?.[1] ?? "";
    await using sandbox = await startSandbox({ people: 20, key: JSON.parse(config).api_key });
    const folder = await tempDir();
    await writeFile(
      join(folder, "config.json"),
      JSON.stringify({ ...JSON.parse(config), base_url: sandbox.url }),
    );
    for (const words of new Set(typed)) {
      const args = words.split(" ").map((word) => (word.endsWith(".json") ? join(folder, word) : word));
      const ended = await run(CONNECTOR, args);
      expect([words, ended.code]).toEqual([words, 0]);
      expect(ended.stdout).not.toBe("");
    }
  });

  it("shows the commands of a clone when npm runs it, without the settings of this machine", async () => {
    const env = {
      npm_lifecycle_event: "demo",
      CONTACT_INTELLIGENCE_BASE_URL: "https://contacts.example.com",
    };
    const { code, stdout } = await sandboxCommand(["demo"], env);
    expect(code).toBe(0);
    expect(stdout).toContain("$ node dist/source-contact-intelligence.js check --config config.json");
    expect(stdout).toContain("$ node dist/sandbox/contact-intelligence-sandbox.js --people 8400");
    expect(stdout).not.toMatch(/\$ (source-)?contact-intelligence/);
  });
});

describe("contact-intelligence-sandbox", () => {
  const help = "See contact-intelligence-sandbox --help\n";
  it.each([
    [["--port", "abc"], "Cannot use --port: it must be a whole number from 0 to 65535\n"],
    [["--port"], "Option '--port"],
    [["--people", "--seed", "3"], "Option '--people"],
    [["--port", "65536"], "Cannot use --port: it must be a whole number from 0 to 65535\n"],
    [["--people", "abc"], "Cannot use --people: it must be a whole number from 0 to 1000000000\n"],
    [["--people="], "Cannot use --people: it must be a whole number from 0 to 1000000000\n"],
    [["--seed", "0.5"], "Cannot use --seed: it must be a whole number from 0 to 2147483648\n"],
    [["--plan", "gold"], "Cannot use --plan: it must be enterprise or agency\n"],
    [["--nonsense"], `Unknown option '--nonsense'. ${help}`],
    [["serve"], `Unknown argument: serve. ${help}`],
    [["demo", "--seed", "3"], "The demo takes no options\n"],
    [["--fault", "nonsense"], 'Cannot read the fault "nonsense": it names no fault; known are reset, '],
    [["--fault", "omit"], `Cannot read the fault "omit": write it as omit=K[:lists=…]. ${help}`],
  ])("refuses %j and says what is wrong", async (words, message) => {
    const { code, stdout, stderr } = await sandboxCommand(words);
    expect([code, stdout, stderr.slice(0, message.length)]).toEqual([2, "", message]);
  });

  it.each([
    ["demo", "contact-intelligence-sandbox demo"],
    ["sandbox", "contact-intelligence-sandbox"],
  ])("is named by the word of earlier versions: %s", async (word, now) => {
    const { code, stdout, stderr } = await run(CONNECTOR, [word, "--port", "0"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toBe(`"source-contact-intelligence ${word}" is a command of its own now: ${now}\n`);
  });

  it("says who has its port", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await sandboxCommand(["--port", String(port)]);
    other.close();
    expect(code).toBe(1);
    expect(stderr).toBe(`Cannot listen on 127.0.0.1:${port}: another program does. Choose another --port\n`);
  });

  it("lists its options and faults in its help, on 80 columns, and says its version", async () => {
    for (const [words, most, ...terms] of [
      [["--help"], 15, "--port=N", "--plan=PLAN", "--fault=FAULT"],
      [["--help", "faults"], 1000, "reset", "drain[=K]", "result=WHAT", "gzip-bomb[=MB]"],
    ] as const) {
      const { code, stdout } = await sandboxCommand(words);
      expect(code).toBe(0);
      for (const term of terms) expect(stdout).toContain(`\n  ${term}`);
      const lines = stdout.split("\n");
      expect(lines.length).toBeLessThan(most);
      for (const line of lines) expect(line.length).toBeLessThan(80);
    }
    for (const word of ["-v", "--version"])
      expect((await sandboxCommand([word])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  /** Starts the sandbox, lends the file of the config that it prints, and ends it by a signal. */
  async function served(
    words: readonly string[],
    signal: NodeJS.Signals,
    use: (config: string) => Promise<void>,
  ): Promise<void> {
    const child = spawn(process.execPath, [SANDBOX, ...words], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "close");
    try {
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      expect((await lines.next()).value).toContain("http://127.0.0.1:");
      const config = String((await lines.next()).value).replace("Config: ", "");
      await use(await file("config.json", JSON.parse(config)));
      expect(child.exitCode).toBeNull();
    } finally {
      child.kill(signal);
    }
    expect(await ended).toEqual([null, signal]);
  }

  it("runs with faults until a signal ends it, and serves what its config says", async () => {
    const words = ["--port", "0", "--people", "3", "--plan", "enterprise", "--fault", "garbage:after=1"];
    await served(words, "SIGTERM", async (config) => {
      const args = ["read", "--config", config, "--stream", "people", "--format", "jsonl"];
      expect((await run(CONNECTOR, args)).stdout.trim().split("\n")).toHaveLength(6);
    });
  });

  it("prints a config that works, by the command of docs/meltano.md", async () => {
    const words = docBlock("docs/meltano.md", "sh", "-sandbox ").trim().split(" ").slice(1);
    // The page's port may be taken; 0 is any that is free.
    const args = words.map((word) => (word === "8080" ? "0" : word));
    await served(args, "SIGINT", async (config) => {
      expect((await connector(["check", "--config", config])).stdout).toContain("SUCCEEDED");
    });
  });
});
