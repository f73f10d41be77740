import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { init } from "../../src/commands/init.ts";
import { hurriedClock } from "../support/in-process.ts";
import { deadPort, serve } from "../support/serve.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

const SMALL = { people: 5, undated: 0, companies: 2, sources: 1, requestsPerMinute: 0 };
const WRONG = "svc_0a1b2c3d_00112233445566778899aabbccddee00";
const ADDRESS = "Address of the Public API, such as https://contacts.example.com: ";
const KEY = "API key (it is not shown): ";

/** A person at a terminal, who types each answer once a question stands at its end. An answer that is an error interrupts. */
async function typed(path: string, answers: readonly (string | Error)[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const [stdout, stderr, left, stop] = [new Terminal(), new Terminal(), [...answers], new AbortController()];
  let seen = 0;
  const look = setInterval(() => {
    if (!/[:)] $/.test(stripVTControlCharacters(stderr.text.slice(seen)))) return;
    seen = stderr.text.length;
    const answer = left.shift();
    if (typeof answer === "string") stdin.write(`${answer}\r`);
    else if (answer !== undefined) stop.abort(answer);
    else stdin.end();
  }, 1);
  const runtime = testProcess({
    stdin: () => stdin,
    stdout,
    stderr,
    signal: stop.signal,
    clock: hurriedClock(),
  });
  try {
    const code = await init({ config: path }, runtime).catch((error: unknown) => String(error));
    return { code, said: stdout.text, asked: lastOfEach(stderr.text), left, isOpen: !stdin.isPaused() };
  } finally {
    clearInterval(look);
  }
}

/** What stays on the screen of each line: the terminal draws a line again for each character. */
const lastOfEach = (text: string): readonly string[] =>
  text
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => stripVTControlCharacters(line.slice(Math.max(0, line.lastIndexOf("\u001b[0J")))));

describe("init at a terminal", () => {
  it("asks for an address until the service answers there, and then for a key until it works", async () => {
    await using sandbox = await startSandbox(SMALL);
    const { host } = new URL(sandbox.url);
    const path = join(await tempDir(), "config.json");
    const dead = await deadPort();
    const page = await serve((_, response) =>
      response.writeHead(404, { "content-type": "text/html" }).end("no"),
    );
    const known = (line: string): string =>
      line.replaceAll(host, "HOST").replaceAll(new URL(page.url).host, "PAGE").replaceAll(`${dead}`, "DEAD");
    const wrong = ["", "a b", `127.0.0.1:${dead}`, `http://0.0.0.0:${dead}`, `0.0.0.0:${dead}`, page.url];
    const { code, said, asked, left, isOpen } = await typed(path, [...wrong, host, "", WRONG, sandbox.key]);
    const refused = "the connection was refused (ECONNREFUSED)";
    const dark = `${refused}. Check base_url and whether the service is up`;
    expect(asked.map(known)).toEqual([
      ADDRESS,
      "Cannot use these settings: base_url is missing: set it in the config or as CONTACT_INTELLIGENCE_BASE_URL",
      `${ADDRESS}a b`,
      "Cannot use these settings: base_url must look like this: https://host or https://host/path",
      `${ADDRESS}127.0.0.1:DEAD`,
      `Try 2 of 2: ${refused}`,
      `Cannot read people at 127.0.0.1:DEAD: ${dark}`,
      `${ADDRESS}http://0.0.0.0:DEAD`,
      "Cannot use these settings: base_url must begin with https://, since http:// sends the key in clear: " +
        "set allow_insecure_http to true if that is meant",
      `${ADDRESS}0.0.0.0:DEAD`,
      `Try 2 of 2: ${refused}`,
      `Cannot read people at 0.0.0.0:DEAD: ${dark}`,
      `${ADDRESS}http://PAGE`,
      "Cannot read people at PAGE: there is nothing at this address (status 404). Check base_url (and endpoints, if you set them)",
      `${ADDRESS}HOST`,
      "The service answers at http://HOST",
      KEY,
      "Cannot use these settings: api_key is missing: set it in the config or as CONTACT_INTELLIGENCE_API_KEY",
      KEY,
      expect.stringContaining("INVALID_API_KEY"),
      KEY,
      "",
    ]);
    expect([code, left, isOpen]).toEqual([0, [], false]);
    const settings = { base_url: `http://${host}`, api_key: sandbox.key };
    expect(await readFile(path, "utf8")).toBe(`${JSON.stringify(settings, null, 2)}\n`);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(said.split("\n")).toEqual([
      "This key can read people (5), companies (2), sources (1)",
      `Wrote "${path}", which only you can read`,
      "Next:",
      `  source-contact-intelligence check --config ${path}`,
      `  source-contact-intelligence discover --config ${path} > catalog.json`,
      `  source-contact-intelligence read --config ${path} --output contacts`,
      "",
    ]);
  });

  it("takes an address with any scheme as it is, and a file's place only after a yes", async () => {
    await using sandbox = await startSandbox(SMALL);
    const path = join(await tempDir(), "config.json");
    await writeFile(path, "mine");
    const question = `"${path}" is there already. Replace it? (y/N) `;
    expect(await typed(path, ["no"])).toEqual({
      ...{ code: 1, left: [], isOpen: false, said: `"${path}" is as it was\n`, asked: [`${question}no`, ""] },
    });
    expect(await readFile(path, "utf8")).toBe("mine");
    const address = sandbox.url.replace("http", "HTTP");
    expect(await typed(path, ["Y", address, sandbox.key])).toMatchObject({ code: 0, left: [] });
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ base_url: address, api_key: sandbox.key });
  });

  it.each([
    ["stdin ends", "NoAnswer: Cannot go on: stdin ended before all was answered. No file was written"],
    ["a signal interrupts", "Error: Interrupted by SIGINT"],
  ])("writes nothing if %s instead of an answer", async (what, why) => {
    await using sandbox = await startSandbox(SMALL);
    const path = join(await tempDir(), "config.json");
    const last = what === "stdin ends" ? [] : [new Error("Interrupted by SIGINT")];
    for (const answers of [last, [sandbox.url, ...last]]) {
      const { code, said, left } = await typed(path, answers);
      expect([code, said, left]).toEqual([why, "", []]);
    }
    await expect(stat(path)).rejects.toThrow("ENOENT");
  });

  it("says why it cannot write the file", async () => {
    await using sandbox = await startSandbox(SMALL);
    const path = join(await tempDir(), "none", "config.json");
    const { code, said } = await typed(path, [sandbox.url, sandbox.key]);
    expect([code, said]).toEqual([
      `ConfigError: Cannot write the config file "${path}": there is no such file or folder`,
      "",
    ]);
  });
});
