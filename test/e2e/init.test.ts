import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { init } from "../../src/commands/init.ts";
import { CONNECTOR, run } from "../support/cli.ts";
import { deadPort } from "../support/serve.ts";
import { tempDir } from "../support/temp-dir.ts";
import { atTerminal, Terminal, testProcess } from "../support/terminal.ts";

const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddee00";

/** The command under "Set it up" of README.md. */
describe("init", () => {
  it("asks at a terminal, without showing the key, and writes a file that works", async () => {
    await using sandbox = await startSandbox({ people: 5, undated: 0, companies: 2, sources: 1 });
    const path = join(await tempDir(), "config.json");
    const { shown } = await atTerminal([CONNECTOR, "init", "--config", path], [sandbox.url, sandbox.key]);
    expect(shown).toContain("This key can read people (5), companies (2), sources (1)");
    expect(shown).toContain(sandbox.url);
    expect(shown).not.toContain(sandbox.key);
    expect(shown).toContain(`source-contact-intelligence check --config ${path}`);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ base_url: sandbox.url, api_key: sandbox.key });
    expect((await run(CONNECTOR, ["check", "--config", path, "--exit-code"])).code).toBe(0);
  });

  it("checks each answer when it is given, asks again, and keeps what was right", async () => {
    await using sandbox = await startSandbox({ people: 5, undated: 0, companies: 2, sources: 1 });
    const path = join(await tempDir(), "config.json");
    const { host } = new URL(sandbox.url);
    const answers = ["", `127.0.0.1:${await deadPort()}`, host, KEY, "a key", sandbox.key];
    const { code, shown } = await atTerminal([CONNECTOR, "init", "--config", path], answers);
    expect(shown).toMatch(/base_url is missing(?:.|\n)*the connection was refused/);
    expect(shown).toContain(`The service answers at http://${host}`);
    expect(shown.match(/Address of the Public API/g)?.length).toBeGreaterThanOrEqual(3);
    expect(shown).toMatch(
      /INVALID_API_KEY(?:.|\n)*api_key must look like this(?:.|\n)*This key can read people/,
    );
    expect([code, JSON.parse(await readFile(path, "utf8"))]).toEqual([
      0,
      { base_url: sandbox.url, api_key: sandbox.key },
    ]);
  });

  it("reads the answers as lines where there is no terminal", async () => {
    await using sandbox = await startSandbox({ people: 5 });
    const folder = await tempDir();
    const path = join(folder, "config.json");
    const ended = await run(CONNECTOR, ["init", "--config", path], {
      input: `${sandbox.url}\n${sandbox.key}\n`,
    });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(await readdir(folder)).toEqual(["config.json"]);
  });

  it.each([
    ["a key that does not work", (url: string) => `${url}\n${KEY}\n`, "INVALID_API_KEY"],
    ["an address that is none", () => `contacts\n${KEY}\n`, "base_url must look like this"],
    ["answers that end", (url: string) => `${url}\n`, "stdin ended before all was answered"],
    ["no answers", () => "", "stdin ended before all was answered"],
  ])("writes nothing for %s, and says why", async (_what, input, why) => {
    await using sandbox = await startSandbox({ people: 5 });
    const folder = await tempDir();
    const args = ["init", "--config", join(folder, "config.json")];
    const ended = await run(CONNECTOR, args, { input: input(sandbox.url) });
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toContain(why);
    expect(ended.stderr).toMatch(/No file was written\n$/);
    expect(ended.stderr).not.toContain("0a1b2c3d");
    expect(await readdir(folder)).toEqual([]);
  });

  it("replaces a file only after a yes, and then only its owner can read it", async () => {
    await using sandbox = await startSandbox({ people: 5 });
    const path = join(await tempDir(), "my config.json");
    await writeFile(path, "mine", { mode: 0o644 });
    const answer = async (text: string): Promise<{ readonly code: number; readonly said: string }> => {
      const stdin = (): Readable => Readable.from([text]);
      const stdout = new Terminal();
      return { code: await init({ config: path }, testProcess({ stdin, stdout })), said: stdout.text };
    };
    expect(await answer("\n")).toEqual({ code: 1, said: `"${path}" is as it was\n` });
    expect(await readFile(path, "utf8")).toBe("mine");
    const words = `--config "${path}"`;
    const { code, said } = await answer(`y\n${sandbox.url}\n${sandbox.key}\n`);
    expect(code).toBe(0);
    expect(said.split("\n")).toEqual([
      expect.stringMatching(/^This key can read people \(\d+\), companies \(\d+\)/),
      `Wrote "${path}", which only you can read`,
      "Next:",
      `  source-contact-intelligence check ${words}`,
      `  source-contact-intelligence discover ${words} > catalog.json`,
      `  source-contact-intelligence read ${words} --output contacts`,
      "",
    ]);
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ api_key: sandbox.key });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });
});
