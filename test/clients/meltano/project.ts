import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../../sandbox/server.ts";
import { docBlocks } from "../../support/docs.ts";
import { type Ended, run, succeed } from "../../support/run.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { pathWithPrograms } from "./programs.ts";

/** What docs/meltano.md has users type, under a name that stands above it. */
export function documented(name: string): string {
  const block = docBlocks("docs/meltano.md").find(({ claim }) => claim?.kind === "run" && claim.by === name);
  if (block === undefined) throw new Error(`docs/meltano.md has no block of commands named "${name}"`);
  return block.text;
}

/** Runs commands of the page, of which only the sandbox's address is another one. All must succeed. */
export async function shellIn(
  cwd: string,
  commands: string,
  url: string,
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const text = commands.replaceAll("http://127.0.0.1:8080", url);
  return await succeed("bash", ["-euo", "pipefail", "-c", text], { cwd, env });
}

/** A sandbox, and a project that reads from it, for all tests of a file. */
export function shareProject(options: SandboxOptions): {
  readonly sandbox: Sandbox;
  readonly project: Project;
} {
  const shared = {} as { sandbox: Sandbox; project: Project };
  beforeAll(async () => {
    shared.sandbox = await startSandbox(options);
    shared.project = await Project.make(shared.sandbox);
  });
  afterAll(async () => {
    await shared.project?.[Symbol.asyncDispose]();
    await shared.sandbox?.close();
  });
  return shared;
}

/** A Meltano project as the page makes it, reading from a sandbox. */
export class Project {
  readonly folder: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #url: string;

  private constructor(folder: string, url: string, env: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.#url = url;
    this.#env = { PATH: pathWithPrograms(), NO_COLOR: "1", ...env };
  }

  /** Runs the page's first blocks, without the package of the loader: all loaders are on the PATH. */
  static async make(sandbox: Sandbox): Promise<Project> {
    const parent = new Project(await tempDir(), sandbox.url, {});
    const blocks = ["project", "add", "loaders"].map(documented).join("\n");
    await parent.shell(blocks.replace(/^pip_url: .*\n/m, ""));
    return new Project(join(parent.folder, "contacts"), sandbox.url, {});
  }

  /** Another project with the same plugins and nothing run yet, reading from another sandbox. */
  async copy(sandbox: Sandbox, env: Readonly<Record<string, string>> = {}): Promise<Project> {
    const folder = await tempDir();
    await cp(this.folder, folder, { recursive: true });
    return new Project(folder, sandbox.url, { TAP_CONTACT_INTELLIGENCE_BASE_URL: sandbox.url, ...env });
  }

  /** Commands for a shell, which must all succeed; only the sandbox's port is another one. */
  async shell(commands: string): Promise<Ended> {
    return await shellIn(this.folder, commands, this.#url, this.#env);
  }

  async meltano(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    return await run("meltano", args, this.#within(env));
  }

  /** Runs the tap into a target; must succeed. */
  async sync(target: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    return await succeed("meltano", ["run", "tap-contact-intelligence", target], this.#within(env));
  }

  #within(env: Readonly<Record<string, string>>): Parameters<typeof run>[2] {
    return { cwd: this.folder, env: { ...this.#env, ...env }, killAfterMs: 120_000 };
  }

  /** What Meltano has saved for the tap and a target. */
  async state(
    target: string,
  ): Promise<Record<string, { asked?: string; days?: [string, string, number][] }>> {
    const id = `dev:tap-contact-intelligence-to-${target}`;
    const { stdout } = await this.meltano(["--log-level=error", "state", "get", id]);
    return JSON.parse(stdout).singer_state.bookmarks;
  }

  async lines(file: string): Promise<string[]> {
    const text = await readFile(join(this.folder, "output", file), "utf8");
    return text.split("\n").filter((line) => line !== "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
