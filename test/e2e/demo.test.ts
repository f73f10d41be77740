import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { tempDir } from "../support/temp-dir.ts";

describe("demo", () => {
  it("shows two syncs by commands that work when they are typed, and says what to do next", async () => {
    const { code, stdout, stderr } = await run(CONNECTOR, ["demo"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("people: 8,403 RECORDs");
    expect(stdout).toMatch(/people: \d\d RECORDs/);
    expect(stdout).toContain("What to do next:");
    const typed = [...stdout.matchAll(/\$ source-contact-intelligence (.*)$/gm)].map(
      ([, words]) => words ?? "",
    );
    expect(typed.length).toBeGreaterThan(6);
    const config = /^ {2}(\{"base_url".*\})$/m.exec(stdout)?.[1] ?? "";
    await using sandbox = await startSandbox({ people: 20, key: JSON.parse(config).api_key });
    const folder = await tempDir();
    await writeFile(
      join(folder, "config.json"),
      JSON.stringify({ ...JSON.parse(config), base_url: sandbox.url }),
    );
    for (const words of new Set(typed)) {
      if (words.startsWith("sandbox") && !words.includes("--help")) continue;
      const args = words.split(" ").map((word) => (word.endsWith(".json") ? join(folder, word) : word));
      const ended = await run(CONNECTOR, args);
      expect([words, ended.code]).toEqual([words, 0]);
      expect(ended.stdout).not.toBe("");
    }
  });

  it("shows the commands of a clone when npm runs it", async () => {
    const { stdout } = await run(CONNECTOR, ["demo"], { env: { npm_lifecycle_event: "demo" } });
    expect(stdout).toContain("$ node dist/source-contact-intelligence.js check --config config.json");
    expect(stdout).not.toContain("$ source-contact-intelligence");
  });
});

describe("sandbox", () => {
  it.each([
    [["--port", "abc"], "Cannot use --port: it must be a whole number from 0 to 65535\n"],
    [["--port"], "Not enough arguments following: port"],
    [["--people"], "Not enough arguments following: people"],
    [["--port", "65536"], "Cannot use --port: it must be a whole number from 0 to 65535\n"],
    [["--people", "abc"], "Cannot use --people: it must be a whole number from 0 to 1000000000\n"],
    [["--seed", "0.5"], "Cannot use --seed: it must be a whole number from 0 to 2147483648\n"],
    [["--fault", "nonsense"], 'Cannot read the fault "nonsense": it names no fault; known are reset, '],
    [["--fault", "omit"], 'Cannot read the fault "omit": write it as omit=K[:lists=…]. See sandbox --help\n'],
  ])("refuses %j and says what is wrong", async (words, message) => {
    const { code, stdout, stderr } = await run(CONNECTOR, ["sandbox", ...words]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr.startsWith(message)).toBe(true);
  });

  it("says who has its port", async () => {
    const other: Server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const address = other.address();
    const port = typeof address === "object" ? address?.port : 0;
    const { code, stderr } = await run(CONNECTOR, ["sandbox", "--port", String(port)]);
    other.close();
    expect(code).toBe(1);
    expect(stderr).toBe(`Cannot listen on 127.0.0.1:${port}: another program does. Choose another --port\n`);
  });

  it("lists its faults in its help", async () => {
    const { code, stdout } = await run(CONNECTOR, ["sandbox", "--help"]);
    expect(code).toBe(0);
    for (const fault of ["reset", "drain[=K]", "result=WHAT", "gzip-bomb[=MB]"])
      expect(stdout).toContain(`\n  ${fault}`);
  });

  it("runs with faults until a signal ends it, and serves what its config says", async () => {
    const words = ["sandbox", "--port", "0", "--people", "3", "--fault", "garbage:after=1"];
    const child = spawn(process.execPath, [CONNECTOR, ...words], { stdio: ["ignore", "pipe", "inherit"] });
    const [text] = await once(child.stdout, "data");
    const config = /Config: (.*)/.exec(String(text))?.[1] ?? "";
    const path = await file("config.json", config);
    const read = await run(CONNECTOR, ["read", "--config", path, "--stream", "people", "--format", "jsonl"]);
    expect(read.stdout.trim().split("\n")).toHaveLength(6);
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([null, "SIGTERM"]);
  });
});
