import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../../sandbox/server.ts";
import { docBlocks } from "../../support/docs.ts";
import { type Ended, run, succeed } from "../../support/run.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { pathWithPrograms } from "./programs.ts";

/** The name of the tap in a project. */
export const TAP = "tap-contact-intelligence";

type Environment = Readonly<Record<string, string>>;

/** Settings of a plugin as variables of the environment. */
export const settings = (values: Environment, plugin = "TAP_CONTACT_INTELLIGENCE"): Environment =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`${plugin}_${name}`, value]));

/** What docs/meltano.md has users type, under a name that stands above it. */
export function documented(name: string): string {
  const block = docBlocks("docs/meltano.md").find(({ claim }) => claim?.kind === "run" && claim.by === name);
  if (block === undefined) throw new Error(`docs/meltano.md has no block of commands named "${name}"`);
  return block.text;
}

/** The line that the page's blocks begin with, as they are for a terminal of their own. The programs are on the PATH anyway. */
const TERMINAL = /^\. ~\/(contacts|target)-venv\/bin\/activate( && cd \S+)?\n/gm;

/** Runs commands of the page, of which only the sandbox's address is another one. All must succeed. */
export async function shellIn(cwd: string, commands: string, url: string, env: Environment): Promise<Ended> {
  const text = commands.replaceAll("http://127.0.0.1:8080", url).replaceAll(TERMINAL, "");
  return await succeed("bash", ["-euo", "pipefail", "-c", text], { cwd, env });
}

/** Makes a project by the page's first blocks. None of its loaders has a package: they are on the PATH. */
export async function makeTemplate(): Promise<string> {
  await using sandbox = await startSandbox({ people: 100, companies: 5 });
  const folder = await tempDir();
  const blocks = ["project", "add", "loaders"].map(documented).join("\n");
  const env = { PATH: pathWithPrograms() };
  await shellIn(folder, blocks.replace(/^pip_url: .*\n/m, ""), sandbox.url, env);
  return join(folder, "contacts");
}

/** A copy of the project that setup.ts has made, which reads from a sandbox of its own. */
export async function newProject(options: SandboxOptions): Promise<Project> {
  const folder = await tempDir();
  await cp(process.env["TEST_PROJECT"] ?? "", folder, { recursive: true });
  return new Project(folder, await startSandbox(options));
}

/** A Meltano project, and the sandbox that it reads from. */
export class Project {
  readonly folder: string;
  readonly sandbox: Sandbox;
  readonly env: Record<string, string>;

  constructor(folder: string, sandbox: Sandbox) {
    this.folder = folder;
    this.sandbox = sandbox;
    this.env = { PATH: pathWithPrograms(), NO_COLOR: "1", ...settings({ BASE_URL: sandbox.url }) };
  }

  /** Commands of a page for a shell, which must all succeed. */
  async shell(commands: string): Promise<Ended> {
    return await shellIn(this.folder, commands, this.sandbox.url, this.env);
  }

  async meltano(...args: readonly string[]): Promise<Ended> {
    return await run("meltano", args, { cwd: this.folder, env: this.env });
  }

  /** Runs the tap into a target; must succeed. */
  async sync(target: string, ...more: readonly string[]): Promise<Ended> {
    return await succeed("meltano", ["run", ...more, TAP, target], { cwd: this.folder, env: this.env });
  }

  /** What Meltano has saved for the tap and target-jsonl. */
  async state(): Promise<Record<string, { asked?: string; days?: { status: string; rows: number }[] }>> {
    const id = `dev:${TAP}-to-target-jsonl`;
    const { stdout } = await this.meltano("--log-level=error", "state", "get", id);
    return JSON.parse(stdout).singer_state.bookmarks;
  }

  async lines(file: string): Promise<string[]> {
    const text = await readFile(join(this.folder, "output", file), "utf8");
    return text.split("\n").filter((line) => line !== "");
  }

  /** The records of a stream that target-jsonl has written, if any. */
  async records(stream: string): Promise<Record<string, unknown>[]> {
    const lines = await this.lines(`${stream}.jsonl`).catch(() => []);
    return lines.map((line) => JSON.parse(line));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
