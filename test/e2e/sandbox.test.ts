import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { CONNECTOR, connector, file } from "../support/cli.ts";
import { docBlock } from "../support/docs.ts";

describe("the sandbox command of docs/meltano.md", () => {
  it("prints a config that works, and serves until it is stopped", async () => {
    const words = docBlock("docs/meltano.md", "sh", " sandbox ").trim().split(" ").slice(1);
    // The page's port may be taken; 0 is any that is free.
    const args = words.map((word) => (word === "8080" ? "0" : word));
    const child = spawn(process.execPath, [CONNECTOR, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "close");
    try {
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      expect((await lines.next()).value).toContain("http://127.0.0.1:");
      const config = String((await lines.next()).value).replace("Config: ", "");
      const path = await file("config.json", JSON.parse(config));
      expect((await connector(["check", "--config", path])).stdout).toContain("SUCCEEDED");
      expect(child.exitCode).toBeNull();
    } finally {
      child.kill("SIGINT");
    }
    expect((await ended)[1]).toBe("SIGINT");
  });
});
