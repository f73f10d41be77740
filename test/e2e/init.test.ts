import { execFile } from "node:child_process";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { init } from "../../src/commands/init.ts";
import { CONNECTOR, run } from "../support/cli.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddee00";

/** Types each answer when its question is on the terminal; shows all that the terminal showed. */
const PTY = `
import os, pty, sys
answers = sys.argv[2].split("|")
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[1], [sys.argv[1]] + sys.argv[3:])
shown = b""
seen = 0
while True:
    try: chunk = os.read(terminal, 4096)
    except OSError: break
    if not chunk: break
    shown += chunk
    if answers and b": " in shown[seen:]:
        seen = len(shown)
        os.write(terminal, answers.pop(0).encode() + b"\\r")
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

/** The command under "Set it up" of README.md. */
describe("init", () => {
  it("asks at a terminal, without showing the key, and writes a file that works", async () => {
    await using sandbox = await startSandbox({ people: 5, undated: 0, companies: 2, sources: 1 });
    const path = join(await tempDir(), "config.json");
    const args = [process.execPath, `${sandbox.url}|${sandbox.key}`, CONNECTOR, "init", "--config", path];
    const { stdout } = await promisify(execFile)("python3", ["-c", PTY, ...args]);
    expect(stdout).toContain("This key can read people (5), companies (2), sources (1)");
    expect(stdout).toContain(sandbox.url);
    expect(stdout).not.toContain(sandbox.key);
    expect(stdout).toContain(`source-contact-intelligence check --config ${path}`);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ base_url: sandbox.url, api_key: sandbox.key });
    expect((await run(CONNECTOR, ["check", "--config", path, "--exit-code"])).code).toBe(0);
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
    const path = join(await tempDir(), "config.json");
    await writeFile(path, "mine", { mode: 0o644 });
    const answer = async (text: string): Promise<number> => {
      const stdin = (): Readable => Readable.from([text]);
      return await init({ config: path }, testProcess({ stdin, stdout: new Terminal() }));
    };
    expect(await answer("\n")).toBe(1);
    expect(await readFile(path, "utf8")).toBe("mine");
    expect(await answer(`y\n${sandbox.url}\n${sandbox.key}\n`)).toBe(0);
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ api_key: sandbox.key });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });
});
