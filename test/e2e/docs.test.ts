import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { STREAMS } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import { loadSpec } from "../../src/config/spec.ts";
import { CONNECTOR, file, run, SANDBOX } from "../support/cli.ts";
import { environmentOf } from "../support/configs.ts";
import { type DocBlock, docBlock, docBlocks, docPages } from "../support/docs.ts";
import { IMAGE, imageOf, PINNED_BASE } from "../support/image.ts";
import { ROOT, run as runAny } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";

/** Languages that somebody may copy and run. */
const RUNNABLE = new Set(["sh", "bash", "shell", "console", "zsh", "python", "py", "js", "ts"]);

const pages = docPages();
const blocks = pages.flatMap(docBlocks);
const isOurs = ({ claim }: DocBlock): boolean => claim?.kind === "test" && /^sandbox\b/.test(claim.by);

describe("code in the docs", () => {
  it("is claimed by a test or a script, each block", () => {
    const unclaimed = blocks.filter(({ language, claim }) => RUNNABLE.has(language) && claim === undefined);
    expect(unclaimed.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
  });

  it("stands on the page that it is from, word for word", () => {
    for (const { page, line, text, claim } of blocks) {
      if (claim?.kind !== "from") continue;
      const twins = docBlocks(claim.by).filter((block) => block.text === text && block.claim !== undefined);
      expect(twins.length, `${page}:${line}`).toBe(1);
    }
  });

  it.each(pages.filter((page) => docBlocks(page).some(isOurs)))("runs: %s", async (page) => {
    await using sandbox = await startSandbox({ requestsPerMinute: 0 });
    const folder = await tempDir();
    await prepare(folder, sandbox);
    for (const block of docBlocks(page).filter(isOurs)) await runBlock(block, folder, sandbox);
  });

  it("is a config that works, where it is JSON", () => {
    const configs = blocks.filter(({ language }) => language === "json");
    expect(configs.length).toBeGreaterThan(1);
    const account = {
      base_url: "https://contacts.example.com",
      api_key: "svc_0a1b2c3d_00112233445566778899aabbccddeeff",
    };
    for (const { page, line, text } of configs) {
      const { warnings } = parseConfig({ ...account, ...JSON.parse(text) }, {}, `${page}:${line}`);
      expect(warnings, `${page}:${line}`).toEqual([]);
    }
  });

  it.each([
    ["the error table says: docs/troubleshooting.md", "docs.js"],
    ["spec.json says: meltano/", "meltano.js"],
  ])("is what %s", async (_, script) => {
    const { code, stderr } = await runAny(process.execPath, [`${ROOT}scripts/${script}`, "--check"]);
    expect(code, stderr).toBe(0);
  });

  it("links to pages that exist", () => {
    for (const page of pages) {
      const text = readFileSync(`${ROOT}${page}`, "utf8");
      const folder = page.includes("/") ? "docs/" : "";
      for (const [, target = ""] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
        expect(existsSync(`${ROOT}${folder}${target}`), `${page} links to ${target}`).toBe(true);
      }
    }
  });
});

/** A user's folder: the commands on PATH, and a config for the sandbox. */
async function prepare(folder: string, { url, key }: Sandbox): Promise<void> {
  const { bin } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8")) as { bin: Record<string, string> };
  await mkdir(join(folder, ".bin"));
  for (const [name, file] of Object.entries(bin)) await symlink(join(ROOT, file), join(folder, ".bin", name));
  await writeFile(join(folder, "config.json"), JSON.stringify({ base_url: url, api_key: key }));
}

/** Runs a block as it stands, save that the example's address and key are those of the sandbox. */
async function runBlock(
  { page, line, text, claim }: DocBlock,
  folder: string,
  sandbox: Sandbox,
): Promise<void> {
  const script = text
    .replaceAll("https://contacts.example.com", sandbox.url)
    .replaceAll("svc_…", sandbox.key);
  const env = {
    ...environmentOf(sandbox),
    PATH: `${join(folder, ".bin")}:${process.env["PATH"]}`,
    HOME: folder,
  };
  // `init` asks whether to replace the file, then for the address and the key.
  const stdin = `y\n${sandbox.url}\n${sandbox.key}\n`;
  const ended = await runAny("bash", ["-euo", "pipefail", "-c", script], { cwd: folder, env, stdin });
  const wanted = Number(/exit=(\d+)/.exec(claim?.by ?? "")?.[1] ?? 0);
  expect(ended.code, `${page}:${line}\n${ended.stdout.slice(-2000)}${ended.stderr}`).toBe(wanted);
}

it("docs/cron.md has a line that works as cron runs it, also while the run before is going on", async () => {
  const account = { people: 30, companies: 4, requestsPerMinute: 0, latencyMs: 150 };
  await using sandbox = await startSandbox(account);
  const [, path, line = "exit 9"] =
    /PATH=(.*)\n\S+ \* \* \* \* (.*)\n/.exec(docBlock("docs/cron.md", "cron", "PATH=")) ?? [];
  const folder = await tempDir();
  await prepare(folder, sandbox);
  const env = { PATH: [join(folder, ".bin"), dirname(process.execPath), path].join(delimiter) };
  const start = (command: string): Promise<unknown> =>
    promisify(execFile)("/bin/sh", ["-c", command.replace("/var/lib/contacts", folder)], { env });

  const first = start(line);
  const isLocked = expect.poll(() => existsSync(join(folder, "contacts/state.json.lock")), {
    timeout: 20_000,
  });
  await isLocked.toBe(true);
  await expect(start(line), "the first still holds the lock").rejects.toMatchObject({ code: 1 });
  expect(readFileSync(join(folder, "contacts.log"), "utf8")).toContain("another run is using it");
  await first;
  const [rows = ""] = readdirSync(join(folder, "contacts/people"));
  const text = readFileSync(join(folder, "contacts/people", rows), "utf8");
  expect(text.trimEnd().split("\n")).toHaveLength(sandbox.people().length);
  const left = ["companies", "manifest.json", "people", "sources", "state.json", "state.json.previous"];
  expect(readdirSync(join(folder, "contacts")).sort()).toEqual(left);

  const alarm = /^0 9 \* \* \* (.*)$/m.exec(docBlock("docs/cron.md", "cron", "--max-age"))?.[1] ?? "exit 9";
  expect(await start(alarm), "no mail").toEqual({ stdout: "", stderr: "" });
  const said = { code: 1, stdout: "", stderr: expect.stringMatching(/^Too old: /) };
  await expect(start(alarm.replace("26h", "0m"))).rejects.toMatchObject(said);
});

/** The words of a page's command. Its port may be taken; 0 is any that is free. */
function onAnyPort(page: string): readonly string[] {
  const words = docBlock(page, "sh", "-sandbox ").trim().split(" ").slice(1);
  return words.map((word) => (word === "8080" ? "0" : word));
}

const sandboxCommand = (...words: readonly string[]) => run(SANDBOX, words, { asProcess: true });

it("the demo shows two syncs by commands that work when they are typed", async () => {
  const { code, stdout, stderr } = await sandboxCommand("demo");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("people: 8,403 RECORDs");
  const typed = [...stdout.matchAll(/\$ source-contact-intelligence (.*)$/gm)].map(([, words = ""]) => words);
  expect(typed).toHaveLength(7);
  const config = JSON.parse(/^ {2}(\{"base_url".*\})$/m.exec(stdout)?.[1] ?? "");
  await using sandbox = await startSandbox({ people: 20, key: config.api_key });
  const folder = await tempDir();
  await writeFile(join(folder, "config.json"), JSON.stringify({ ...config, base_url: sandbox.url }));
  for (const words of new Set(typed)) {
    const args = words.split(" ").map((word) => (word.endsWith(".json") ? join(folder, word) : word));
    expect([words, (await run(CONNECTOR, args)).code]).toEqual([words, 0]);
  }
});

it.each([
  [["--port", "65536"], "Cannot use --port: it must be a whole number from 0 to 65535\n"],
  [["--nonsense"], "Unknown option '--nonsense'. See contact-intelligence-sandbox --help\n"],
  [["--fault", "nonsense"], 'Cannot read the fault "nonsense": it names no fault; known are reset, '],
])("the sandbox refuses %j and says why", async (words, message) => {
  const { code, stdout, stderr } = await sandboxCommand(...words);
  expect([code, stdout, stderr.slice(0, message.length)]).toEqual([2, "", message]);
});

it.each([
  ["with faults", ["--port", "0", "--people", "3", "--plan", "enterprise", "--fault", "garbage:after=1"], 6],
  ["by the command of docs/meltano.md", onAnyPort("docs/meltano.md"), 1_003],
])("the sandbox prints a config that works, until a signal ends it: %s", async (_what, words, rows) => {
  const child = spawn(process.execPath, [SANDBOX, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  try {
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toContain("http://127.0.0.1:");
    const config = String((await lines.next()).value).replace("Config: ", "");
    const args = ["--config", await file("config.json", config), "--stream", "people", "--format", "jsonl"];
    expect((await run(CONNECTOR, ["read", ...args])).stdout.trim().split("\n")).toHaveLength(rows);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await ended).toEqual([null, "SIGTERM"]);
});

// Airbyte's registry, the image and the pages say the same about this connector. Rules of Airbyte are under their ids.

const text = (name: string): string => readFileSync(`${ROOT}${name}`, "utf8");
const metadata = text("metadata.yaml");
const dockerfile = text("Dockerfile");
const { version } = JSON.parse(text("package.json"));

/** The items of a list in metadata.yaml. */
const listOf = (key: string): string[] => {
  const list = new RegExp(`^ +${key}:\\n((?: +- .+\\n)+)`, "m").exec(metadata)?.[1] ?? "";
  return list.split("\n").flatMap((line) => /- (.+)/.exec(line)?.[1] ?? []);
};

describe("metadata.yaml", () => {
  it("has the version of the package, as have the image and every page that names it", () => {
    expect([imageOf(metadata).tag, IMAGE.endsWith(`:${version}`)]).toEqual([version, true]);
    expect(dockerfile).toContain(`io.airbyte.version="${version}"`);
    const manifests = ["first-load/plan", "first-load/shards", "first-load/finish", "daily/daily"];
    for (const page of [...docPages(), ...manifests.map((one) => `deploy/kubernetes/${one}.yaml`)]) {
      const tags = text(page).matchAll(/contact-intelligence\/source-contact-intelligence:([\w.]+)/g);
      for (const [, tag] of tags) expect(tag, page).toBe(version);
    }
  });

  it("CA1, CA2: allows the hosts that the config names, and suggests streams that there are", () => {
    const names: string[] = STREAMS.map((stream) => stream.name);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Airbyte's own placeholders
    expect(listOf("hosts")).toEqual(["${base_url}", "${external_api.api_url}"]);
    expect(listOf("streams")).toContain("people");
    expect(listOf("streams").filter((stream) => !names.includes(stream))).toEqual([]);
  });
});

describe("docs/airbyte.md", () => {
  const page = text("docs/airbyte.md");

  it("CA3: lists what is required under Prerequisites, by its title in the form", () => {
    const prerequisites = /^## Prerequisites\n(.*?)^## /ms.exec(page)?.[1];
    const { properties = {}, ...spec } = loadSpec().connectionSpecification;
    for (const property of spec["required"] as string[])
      expect(prerequisites).toContain(properties[property]?.title);
  });

  it("CA4: has Airbyte's headings in Airbyte's order", () => {
    const wanted =
      "Contact Intelligence|Prerequisites|Setup guide|Set up Contact Intelligence|For Airbyte Cloud:|" +
      "For Airbyte Open Source:|Supported sync modes|Supported Streams|Performance considerations|" +
      "Data type map|Troubleshooting|Tutorials|Changelog";
    const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
    expect(headings.filter((heading) => wanted.split("|").includes(heading)).join("|")).toBe(wanted);
  });

  it("names every stream with its key, and the release in its change log", () => {
    for (const { name: stream, primaryKey } of STREAMS)
      expect(page).toContain(`| \`${stream}\` | ${primaryKey.map((key) => `\`${key}\``).join(", ")} |`);
    expect(page).toMatch(
      new RegExp(`^\\| ${version.replaceAll(".", "\\.")} \\| \\d{4}-\\d\\d-\\d\\d \\|`, "m"),
    );
  });
});

describe("Dockerfile", () => {
  it("CS19, CS20: says its name, and its entry point to platforms that start it through a shell", () => {
    expect(dockerfile).toContain(`io.airbyte.name="${imageOf(metadata).repository}"`);
    const entrypoint: string[] = JSON.parse(/^ENTRYPOINT (.+)$/m.exec(dockerfile)?.[1] ?? "[]");
    expect(/^ENV AIRBYTE_ENTRYPOINT="(.+)"$/m.exec(dockerfile)?.[1]).toBe(entrypoint.join(" "));
    const program = entrypoint.at(-1)?.replace("/airbyte/integration_code/", "") ?? "";
    expect([program.startsWith("dist/"), existsSync(`${ROOT}${program}`)]).toEqual([true, true]);
  });

  it("is built on one pinned base, is not run as root, and bounds V8's young space", () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(bases).toEqual([PINNED_BASE, PINNED_BASE]);
    expect(PINNED_BASE).toMatch(/^node:24-slim@sha256:[0-9a-f]{64}$/);
    expect(dockerfile).toMatch(/^USER \d+:\d+$/m);
    expect(dockerfile).toMatch(/^ENV NODE_OPTIONS=".*--max-semi-space-size=16/m);
  });
});
