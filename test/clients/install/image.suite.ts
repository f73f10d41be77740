import { chmod, chown, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import {
  type AirbyteMessage,
  expectAirbyteMessages,
  linesOf,
  recordsOf,
} from "../../support/airbyte-messages.ts";
import type { Ended } from "../../support/cli.ts";
import { docBlocks } from "../../support/docs.ts";
import { buildArguments, buildImage, IMAGE } from "../../support/image.ts";
import { outputOf, ROOT, run } from "../../support/run.ts";
import { filesBelow, tempDir } from "../../support/temp-dir.ts";

const PEOPLE = 400;
const HOME = "/airbyte/integration_code";

let sandbox: Sandbox;
let folder: string;

beforeAll(async () => {
  await buildImage();
  sandbox = await startSandbox({ people: PEOPLE, requestsPerMinute: 0 });
  folder = await tempDir();
  await chmod(folder, 0o755);
  await put("config.json", { base_url: sandbox.url, api_key: sandbox.key });
});

afterAll(async () => {
  await run("docker", ["volume", "rm", "-f", "contacts"]);
  await sandbox.close();
});

/** A file as platforms hand it over: readable by all, writable by none. */
async function put(name: string, value: unknown): Promise<void> {
  await writeFile(join(folder, name), JSON.stringify(value), { mode: 0o444 });
}

/** `docker run` with the folder of files, in the network of this machine. */
async function docker(words: readonly string[], options: readonly string[] = []): Promise<Ended> {
  const mount = ["--network", "host", "--volume", `${folder}:/config:ro`];
  return await run("docker", ["run", "--rm", ...mount, ...options, IMAGE, ...words]);
}

/** The messages of a command that must succeed in silence. */
async function messagesOf(
  words: readonly string[],
  options: readonly string[] = [],
): Promise<AirbyteMessage[]> {
  const { code, stdout, stderr } = await docker(words, options);
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
  return expectAirbyteMessages(linesOf(stdout));
}

/** Runs a shell script inside the image. */
const inside = async (script: string, options: readonly string[] = []): Promise<Ended> =>
  await run("docker", ["run", "--rm", "--entrypoint", "sh", ...options, IMAGE, "-c", script]);

async function inspect(image: string, path: string): Promise<unknown> {
  return JSON.parse(await outputOf("docker", ["image", "inspect", "--format", `{{json ${path}}}`, image]));
}

/** Whose `config.json` it is: a user other than the image's, and other than root, who can read everything. */
const OWNER = process.getuid?.() || 4711;

/** A folder with a config as `init` leaves it, of which the owner alone can read the file. */
async function ownFolder(): Promise<string> {
  const own = join(folder, "own");
  const config = join(own, "config.json");
  await mkdir(own, { recursive: true });
  await writeFile(config, JSON.stringify({ base_url: sandbox.url, api_key: sandbox.key }), { mode: 0o600 });
  await chown(config, OWNER, OWNER);
  return own;
}

describe("docs/docker.md", () => {
  it.each(docBlocks("docs/docker.md").map(({ text }) => [text]))("runs: %s", async (text) => {
    const own = await ownFolder();
    const script = text
      .replaceAll("docker run ", "docker run --network host ")
      .replaceAll("$(id -u)", String(OWNER))
      .replaceAll("node scripts/", `node ${ROOT}scripts/`)
      .replaceAll("https://contacts.example.com", sandbox.url)
      .replaceAll("svc_…", sandbox.key)
      .replaceAll("docker build ", `cd "${ROOT}" && docker build -q ${await buildArguments()} `);
    await outputOf("bash", ["-euo", "pipefail", "-c", script], { cwd: own });
    for (const written of (await readdir(own)).filter((name) => name.endsWith(".jsonl")))
      expect(await readFile(join(own, written), "utf8")).toContain('"discoveredAt"');
  });

  it("says what to do about a config that the container's user cannot read", async () => {
    const config = ["--config", "/config/own/config.json"];
    await ownFolder();
    const [message] = await messagesOf(["check", ...config]);
    expect(message?.connectionStatus?.message).toContain(
      'permission denied. Run as its owner ("docker run --user")',
    );
  });
});

describe("the image", () => {
  it.each([
    ["as the user of the image", []],
    ["as any user", ["--user", "4711"]],
    ["as any user and group", ["--user", "4711:4711"]],
    ["from a read-only root", ["--read-only"]],
    ["without a single capability", ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]],
    ["from a folder of the platform's choice", ["--workdir", "/config"]],
  ])("reads %s", async (_, options) => {
    const messages = await messagesOf(["read", "--config", "/config/config.json"], options);
    expect(recordsOf(messages, "people")).toHaveLength(sandbox.people().length);
  });

  it("is not root", async () => {
    expect(await inspect(IMAGE, ".Config.User")).toBe("1000:1000");
    expect(await inside("id -u")).toMatchObject({ stdout: "1000\n" });
  });

  it("CS20: says its entry point to platforms that start it through a shell", async () => {
    const entrypoint = (await inspect(IMAGE, ".Config.Entrypoint")) as string[];
    expect(await inspect(IMAGE, ".Config.Env")).toContain(`AIRBYTE_ENTRYPOINT=${entrypoint.join(" ")}`);
    const script =
      'mkfifo /tmp/out && cd /tmp && (eval "$AIRBYTE_ENTRYPOINT spec" 2> /tmp/err > /tmp/out &) && cat /tmp/out && cat /tmp/err';
    const { stdout } = await inside(script);
    expect(JSON.parse(stdout)).toMatchObject({ type: "SPEC" });
  });

  it("ends within ten seconds when it is stopped in the middle of a read", async () => {
    await using slow = await startSandbox({ people: PEOPLE, requestsPerMinute: 0, bytesPerSecond: 1000 });
    await put("slow.json", { base_url: slow.url, api_key: slow.key });
    const name = `stopped-${process.pid}`;
    const reading = docker(["read", "--config", "/config/slow.json"], ["--name", name]);
    while (slow.requests.length < 2) await delay(50);
    // After ten seconds this kills it, which would be code 137.
    await run("docker", ["stop", "--time", "10", name]);
    const { code, stdout, stderr } = await reading;
    expect(code).toBe(143);
    expect(stderr).toBe("");
    for (const line of linesOf(stdout)) JSON.parse(line);
  });

  it("holds what a sync needs and nothing else", async () => {
    const { stdout } = await inside(`cd ${HOME} && find . -type f`);
    const files = stdout.trim().split("\n");
    const names = filesBelow("schemas", "meltano", "dist")
      .filter((name) => !name.startsWith("dist/sandbox/"))
      .map((name) => `./${name}`);
    const plain = ["./LICENSE", "./package.json", "./spec.json"];
    expect(files.toSorted()).toEqual([...plain, ...names].toSorted());
  });

  it("lets everyone read its files and nobody but root write them", async () => {
    const { stdout } = await inside(`find ${HOME} ! -perm -o=r -o -perm /022 ! -type l -o ! -user root`);
    expect(stdout).toBe("");
  });
});
