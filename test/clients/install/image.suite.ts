import { chmod, chown, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import {
  type AirbyteMessage,
  expectAirbyteMessages,
  idsOf,
  linesOf,
} from "../../support/airbyte-messages.ts";
import type { Ended } from "../../support/cli.ts";
import { docBlocks } from "../../support/docs.ts";
import { buildArguments, buildImage, IMAGE } from "../../support/image.ts";
import { outputOf, ROOT, run } from "../../support/run.ts";
import { filesBelow, tempDir } from "../../support/temp-dir.ts";

const HOME = "/airbyte/integration_code";

type Words = readonly string[];

let sandbox: Sandbox;
let folder: string;

beforeAll(async () => {
  await buildImage();
  sandbox = await startSandbox({ people: 400 });
  folder = await tempDir();
  await chmod(folder, 0o755);
  await put("config.json", sandbox);
});

afterAll(async () => {
  await run("docker", ["volume", "rm", "-f", "contact-data"]);
  await sandbox.close();
});

/** A config file as platforms hand it over: readable by all, writable by none. */
async function put(name: string, { url, key }: Sandbox, mode = 0o444): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, JSON.stringify({ base_url: url, api_key: key }), { mode });
  return path;
}

/** `docker run` with the folder of files, in the network of this machine. */
async function docker(words: Words, options: Words = []): Promise<Ended> {
  const mount = ["--network", "host", "--volume", `${folder}:/config:ro`];
  return await run("docker", ["run", "--rm", ...mount, ...options, IMAGE, ...words]);
}

/** The messages of a command that must succeed in silence. */
async function messagesOf(words: Words, options: Words = []): Promise<AirbyteMessage[]> {
  const { code, stdout, stderr } = await docker(words, options);
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
  return expectAirbyteMessages(linesOf(stdout));
}

/** What a shell script inside the image prints. */
const inside = async (script: string): Promise<string> =>
  (await docker(["-c", script], ["--entrypoint", "sh"])).stdout;

/** Whose `config.json` it is: a user other than the image's, and other than root, who can read everything. */
const OWNER = process.getuid?.() || 4711;

/** A folder with a config as `init` leaves it, of which the owner alone can read the file. */
async function ownFolder(): Promise<string> {
  await mkdir(join(folder, "own"), { recursive: true });
  await chown(await put("own/config.json", sandbox, 0o600), OWNER, OWNER);
  return join(folder, "own");
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
    await ownFolder();
    const [message] = await messagesOf(["check", "--config", "/config/own/config.json"]);
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
    expect(idsOf(messages)).toHaveLength(sandbox.people().length);
  });

  it("CS20: says its entry point to platforms that start it through a shell, and is not root", async () => {
    const inspect = ["image", "inspect", "--format", "{{json .Config}}", IMAGE];
    const { Entrypoint, Env, User } = JSON.parse(await outputOf("docker", inspect));
    expect(User).toBe("1000:1000");
    expect(Env).toContain(`AIRBYTE_ENTRYPOINT=${Entrypoint.join(" ")}`);
    const script =
      'mkfifo /tmp/out && cd /tmp && (eval "$AIRBYTE_ENTRYPOINT spec" 2> /tmp/err > /tmp/out &) && cat /tmp/out && cat /tmp/err';
    const [spec = "", ...more] = linesOf(await inside(`${script}; id -u`));
    expect(JSON.parse(spec)).toMatchObject({ type: "SPEC" });
    expect(more).toEqual(["1000"]);
  });

  it("ends within ten seconds when it is stopped in the middle of a read", async () => {
    await using slow = await startSandbox({ people: 400, bytesPerSecond: 1000 });
    await put("slow.json", slow);
    const name = `stopped-${process.pid}`;
    const reading = docker(["read", "--config", "/config/slow.json"], ["--name", name]);
    while (slow.requests.length < 2) await delay(50);
    // After ten seconds this kills it, which would be code 137.
    await run("docker", ["stop", "--time", "10", name]);
    const { code, stdout, stderr } = await reading;
    expect([code, stderr]).toEqual([143, ""]);
    for (const line of linesOf(stdout)) JSON.parse(line);
  });

  it("contains only what a sync needs, and only root can write it", async () => {
    const files = linesOf(await inside(`cd ${HOME} && find * -type f`));
    const kept = filesBelow("schemas", "meltano", "dist").filter((name) => !name.startsWith("dist/sandbox/"));
    expect(files.toSorted()).toEqual(["LICENSE", "package.json", "spec.json", ...kept].toSorted());
    const odd = await inside(`find ${HOME} ! -perm -o=r -o -perm /022 ! -type l -o ! -user root`);
    expect(odd).toBe("");
  });
});
