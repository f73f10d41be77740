import { readdirSync, statSync } from "node:fs";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { init } from "../../src/commands/init.ts";
import { CONNECTOR, file, run, TAP } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { run as runAny } from "../support/run.ts";
import { deadPort } from "../support/serve.ts";
import { tempDir } from "../support/temp-dir.ts";
import { atTerminal, Terminal, testProcess } from "../support/terminal.ts";

const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddee00";

const QUICK = { people: 20, undated: 2, companies: 3, sources: 2 };

/** Command lines that are refused, each with a word of the sentence that says why. `tap …`: the tap. */
const REFUSED: readonly (readonly [line: string, word: string])[] = [
  ["chek", 'Did you mean "check"?'],
  ["xyzzy", 'Unknown word "xyzzy". See: source-contact-intelligence --help'],
  ["check --confg c", 'Unknown flag "--confg". Did you mean "--config"?'],
  ["read extra", "See: source-contact-intelligence read --help"],
  ["read --stream", "--stream needs a value"],
  ["read --format csv", '--format must be airbyte or jsonl, not "csv"'],
  ["read --format jsonl", "--stream"],
  ["read --format jsonl --stream people --stream sources", "--output contacts"],
  ["read --format jsonl --stream email_checks", "--state-file FILE"],
  ["read --compress gzip", "--compress needs --output"],
  ["read -o a --state-file s.json", "Use --output or --state-file, not both"],
  ["read --state a --state-file b", "Use --state or --state-file, not both"],
  ["read --limit 0", '"0"'],
  ["read --limit 5 --stream email_checks", "it costs money"],
  ["read --plan p.jsonl", "--plan needs --shard"],
  ["read --plan p.jsonl --shard x", '"open"'],
  ["read --config - --state -", "Only one file"],
  ["plan --shards none", '"none"'],
  ["plan --shards-at-once 0", '"0"'],
  ["state", "Usage: source-contact-intelligence state show FILE"],
  ["state show", "Example: source-contact-intelligence state show contacts"],
  ["state shw s.json", 'Did you mean "show"?'],
  ["state show --max-age 26 s.json", "such as 26h"],
  ["state merge", "state merge FILES..."],
  ["reconcile --stream company_lookups --table t", "--stream must be people, companies or sources, not"],
  ["reconcile", "--table is missing"],
  ["reconcile --table /nowhere.csv", 'table "/nowhere.csv": it does not exist'],
  ["read --output=~/rows", 'The shell did not replace "~" in --output=~/rows'],
  ["state show ~/state.json", "Write the whole path"],
  ["tap --catlog x", 'Unknown flag "--catlog". Did you mean "--catalog"?'],
  ["tap -c- --state -", "Only one file"],
  ["tap --log-level loud", "error or critical, not"],
];

async function runLine(line: string) {
  const [first = "", ...rest] = line.split(" ");
  return first === "tap" ? await run(TAP, rest) : await run(CONNECTOR, [first, ...rest]);
}

describe("a command line", () => {
  it.each(REFUSED)(
    "%s is refused with exit code 2 before anything is read, and says why",
    async (line, word) => {
      const { code, stdout, stderr } = await runLine(line);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain(word);
      expect(stderr).not.toContain("    at ");
    },
  );

  it("has this help", async () => {
    const commands = "|init|spec|check|discover|read|jobs|plan|state|state show|state merge|reconcile|tap";
    const parts: string[] = [];
    for (const command of commands.split("|")) {
      const line = `${command} --help`.trim();
      const help = (await runLine(line)).stdout.trimEnd();
      for (const text of help.split("\n")) expect(text.length, text).toBeLessThanOrEqual(80);
      // The options that all have are shown once.
      parts.push(
        `$ ${line}`,
        command === "" ? help : help.replaceAll(/^ +-[vh], --(?:version|help) .*\n?/gm, ""),
      );
    }
    await expect(`${parts.join("\n")}\n`).toMatchFileSnapshot("../golden/help.txt");
  });
});

describe("exit codes", () => {
  it.each([
    ["a wrong key", "status=401:times=always", {}, 2],
    ["a setting that is wrong", undefined, { num_workers: 99 }, 2],
    ["a service that is down", "status=500:times=always", {}, 1],
  ])(
    "of %s: 2 if only a person can correct it, 1 if time can; platforms get 1",
    async (_what, fault, settings, code) => {
      const faults = fault === undefined ? [] : [fault];
      const { config } = await sandboxWith({ ...QUICK, faults }, settings);
      const out = join(await tempDir(), "out");
      for (const [program, words, expected] of [
        [CONNECTOR, ["read", "--stream", "people", "--output", out], code],
        [CONNECTOR, ["read", "--stream", "people", "--format", "jsonl"], code],
        [CONNECTOR, ["plan"], code],
        [CONNECTOR, ["read", "--stream", "people"], 1],
        [CONNECTOR, ["check"], 0],
        [CONNECTOR, ["check", "--exit-code"], 1],
        [TAP, [], 1],
      ] as const) {
        const ended = await run(program, [...words, "--config", config], { clock: hurriedClock() });
        expect([words, ended.code]).toEqual([words, expected]);
      }
    },
  );

  it("are 2 for a --stream that does not exist, and the service gets no request", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const words = ["read", "--stream", "peple", "--format", "jsonl", "--config", config];
    const { code, stdout, stderr } = await run(CONNECTOR, words);
    expect([code, stdout, sandbox.requests.length]).toEqual([2, "", 0]);
    expect(stderr).toContain("people, companies, sources");
  });

  it.each<[words: readonly string[], code: number, isOnStdout: boolean]>([
    [[], 1, true],
    [["--state-file", "/nowhere/state.json"], 1, true],
    [["--format", "jsonl", "--stream", "people"], 2, false],
    [["--output", "/nowhere/out"], 2, false],
    [["--dry-run"], 2, false],
  ])(
    "of a read %j whose config is not there: %i, and a message on stdout: %j",
    async (words, code, isOnStdout) => {
      const ended = await run(CONNECTOR, ["read", "--config", "/nowhere/config.json", ...words]);
      expect(ended.code).toBe(code);
      const place = isOnStdout ? ended.stdout : ended.stderr;
      expect(place).toContain("/nowhere/config.json");
      expect(isOnStdout ? ended.stderr : ended.stdout).toBe("");
    },
  );
});

describe("read", () => {
  it("--log-level error is silent where all went well", async () => {
    const { config } = await sandboxWith(QUICK);
    const words = ["read", "-c", config, "-o", join(await tempDir(), "out"), "--log-level", "error"];
    expect(await run(CONNECTOR, words)).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  it("--dry-run counts rows, asks for none, and leaves no file", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, { email_check: { emails: ["a@x.example"] } });
    const folder = await tempDir();
    const words = ["read", "--config", config, "--output", join(folder, "out"), "--dry-run"];
    const chosen = ["--stream", "people", "--stream", "email_checks"];
    const { code, stdout } = await run(CONNECTOR, [...words, ...chosen]);
    const { streams, jobs } = JSON.parse(stdout);
    expect([code, streams[0].rows, jobs[0].would_submit]).toEqual([0, sandbox.people().length, 1]);
    const forRows = ({ path, method }: { path: string; method: string }): boolean =>
      path.endsWith("/stream") || method !== "GET";
    expect(sandbox.requests.filter(forRows)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("as a platform runs it refuses relative receipts, as check does, and takes them for files", async () => {
    const settings = { email_check: { emails: ["a@x.example"] }, receipts_file: "receipts.jsonl" };
    const { sandbox, config } = await sandboxWith({ ...QUICK, plan: "agency" }, settings);
    const plain = await run(CONNECTOR, ["read", "--config", config]);
    expect([plain.code, sandbox.requests.length]).toEqual([1, 0]);
    const place = JSON.stringify(JSON.stringify(join(dirname(config), "receipts.jsonl"))).slice(1, -1);
    expect(plain.stdout).toContain(`must be an absolute path here, such as ${place}`);
    const checked = await run(CONNECTOR, ["check", "--config", config]);
    expect(checked.stdout).toMatch(/"FAILED".*must be an absolute path here/);
    const words = ["--stream", "sources", "--output", join(await tempDir(), "out")];
    expect((await run(CONNECTOR, ["read", "--config", config, ...words])).code).toBe(0);
    expect((await run(CONNECTOR, ["check", "--config", config, "--exit-code"])).code).toBe(0);
  });

  it("--limit is a sample, which saves no state", async () => {
    const { config } = await sandboxWith(QUICK);
    const { code, stdout } = await run(CONNECTOR, ["read", "--config", config, "--limit", "5"]);
    const of = (type: string) => stdout.split(`{"type":"${type}"`).length - 1;
    expect([code, of("RECORD"), of("STATE")]).toEqual([0, 5 + 3 + 2, 0]);
  });
});

describe("where the working folder, the home and the temporary folder are gone", () => {
  const inNoFolder = async (line: string, config: string, folder: string) => {
    const [program, ...words] = line.replaceAll("CONFIG", config).replaceAll("DIR", folder).split(" ");
    const script = 'cd "$(mktemp -d)" && rmdir "$PWD" && exec env -u HOME TMPDIR=/nowhere "$@"';
    const args = ["-c", script, "sh", process.execPath, program === "tap" ? TAP : CONNECTOR, ...words];
    return await runAny("sh", args);
  };

  it("every command works by absolute paths", async () => {
    const { sandbox } = await sandboxWith(QUICK);
    const config = await configFor(sandbox, {
      external_api: { api_url: sandbox.url, api_key: sandbox.key },
      ...{ email_verification: { emails: ["a@x.example"] } },
      receipts_file: join(await tempDir(), "receipts.jsonl"),
    });
    const folder = await tempDir();
    const lines = [
      ...["source --help", "source spec", "source check -c CONFIG --exit-code", "source discover -c CONFIG"],
      ...["source read -c CONFIG --stream people --state-file DIR/s.json --summary DIR/summary.json"],
      ...["source read -c CONFIG --stream sources --output DIR/rows", "source jobs -c CONFIG"],
      ...["source plan -c CONFIG", "source state show DIR/s.json", "tap -c CONFIG --discover"],
    ];
    for (const line of lines) {
      const { code, stderr } = await inNoFolder(line, config, folder);
      expect([line, code], stderr).toEqual([line, 0]);
    }
  });

  it.each([
    "check -c config.json --exit-code",
    "read -c CONFIG --output rows",
    "read -c CONFIG --state-file s.json",
  ])("%s says that the folder is gone", async (line) => {
    const { config } = await sandboxWith(QUICK);
    const { code, stderr } = await inNoFolder(`source ${line}`, config, "");
    expect([code === 0, stderr]).toEqual([
      false,
      expect.stringContaining("Use absolute paths, or start it in another folder"),
    ]);
  });
});

it("files of a run are only for their owner, whatever the umask", async () => {
  const { config } = await sandboxWith(QUICK);
  const folder = await tempDir();
  const words = ["--output", join(folder, "out"), "--summary", join(folder, "summary.json")];
  const before = process.umask(0);
  try {
    expect((await run(CONNECTOR, ["read", "-c", config, ...words], { asProcess: true })).code).toBe(0);
  } finally {
    process.umask(before);
  }
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  expect(names.length).toBeGreaterThan(8);
  for (const name of names) {
    const stats = statSync(join(folder, name));
    expect([name, stats.mode & 0o777]).toEqual([name, stats.isDirectory() ? 0o700 : 0o600]);
  }
});

describe("init", () => {
  it("checks each answer at a terminal, asks again, shows no key, and writes a file that works", async () => {
    await using sandbox = await startSandbox({ people: 5, undated: 0, companies: 2, sources: 1 });
    const path = join(await tempDir(), "config.json");
    const { host } = new URL(sandbox.url);
    const answers = ["", `127.0.0.1:${await deadPort()}`, host, KEY, "a key", sandbox.key];
    const { code, shown } = await atTerminal([CONNECTOR, "init", "--config", path], answers);
    expect(shown).toMatch(/The address is missing(?:.|\n)*the connection was refused/);
    expect(shown).toContain(`The service answers at http://${host}`);
    expect(shown.match(/Address of the Public API/g)?.length).toBeGreaterThanOrEqual(3);
    expect(shown).toMatch(
      /INVALID_API_KEY(?:.|\n)*api_key must be the key alone(?:.|\n)*This key can read people/,
    );
    for (const key of [KEY, sandbox.key]) expect(shown).not.toContain(key);
    const written = { base_url: sandbox.url, api_key: sandbox.key };
    expect([code, JSON.parse(await readFile(path, "utf8"))]).toEqual([0, written]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await run(CONNECTOR, ["check", "--config", path, "--exit-code"])).code).toBe(0);
  });

  it.each([
    ["a key that does not work", (url: string) => `${url}\n${KEY}\n`, "INVALID_API_KEY"],
    ["an address that is none", () => `two words\n${KEY}\n`, "base_url must be https://"],
    ["no answers", () => "", "stdin ended before the last question"],
  ])("writes nothing for %s, and says why", async (_what, input, why) => {
    await using sandbox = await startSandbox({ people: 5 });
    const folder = await tempDir();
    const args = ["init", "--config", join(folder, "config.json")];
    const ended = await run(CONNECTOR, args, { input: input(sandbox.url) });
    expect(ended).toMatchObject({ code: 2, stdout: "" });
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
    expect(await answer("\n")).toEqual({ code: 1, said: `"${path}" was not changed\n` });
    expect(await readFile(path, "utf8")).toBe("mine");
    const words = `--config "${path}"`;
    const { code, said } = await answer(`y\n${sandbox.url}\n${sandbox.key}\n`);
    expect(code).toBe(0);
    expect(said.split("\n")).toEqual([
      expect.stringMatching(/^This key can read people \(\d+\), companies \(\d+\)/),
      `Wrote "${path}", which only you can read`,
      "Next, read all people and companies into a folder:",
      `  source-contact-intelligence read ${words} --output contacts`,
      "",
    ]);
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ api_key: sandbox.key });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });
});

describe("a file in another encoding", () => {
  /** Latin-1, and UTF-16 with and without a byte order mark, in both orders of bytes. */
  const ENCODINGS = {
    "Latin-1": (text: string) => Buffer.from(`{"\u00fc":1,${text.slice(1)}`, "latin1"),
    "UTF-16": (text: string) => Buffer.from(`\ufeff${text}`, "utf16le"),
    "UTF-16LE": (text: string) => Buffer.from(text, "utf16le"),
    "UTF-16BE": (text: string) => Buffer.from(text, "utf16le").swap16(),
  };

  it.each([
    ...["read --config", "read --catalog", "read --state"],
    ...["tap --config", "tap --properties", "tap --state"],
  ])("is refused in the same words by %s", async (line) => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const [program, flag = ""] = line.split(" ");
    const what = flag.replace("--", "").replace("properties", "catalog");
    const text = what === "config" ? await readFile(config, "utf8") : '{"streams":[],"bookmarks":{}}';
    const path = await file("file.json", "");
    const words = [program, flag, path, ...(what === "config" ? [] : ["--config", config])].join(" ");
    const said = `Cannot read the ${what} file \\"${path}\\": line 1 is not UTF-8, but another encoding`;
    for (const [name, encode] of Object.entries(ENCODINGS)) {
      await writeFile(path, encode(text));
      const { code, stdout, stderr } = await runLine(words);
      expect([name, code, `${stdout}${stderr}`]).toEqual([name, 1, expect.stringContaining(said)]);
    }
    expect(sandbox.requests).toEqual([]);
    await writeFile(path, `\ufeff${text}`);
    expect((await runLine(words)).code).toBe(0);
  });

  it("is refused as a variable, because two salts would be the same", async () => {
    const { config } = await sandboxWith(QUICK, { hash_fields: ["email"] });
    const env = { CONTACT_INTELLIGENCE_HASH_SALT: Buffer.from("gr\u00fcn", "latin1").toString("utf8") };
    const { stdout } = await run(CONNECTOR, ["check", "--config", config], { env });
    expect(stdout).toContain("HASH_SALT has characters that were lost (U+FFFD)");
  });
});
