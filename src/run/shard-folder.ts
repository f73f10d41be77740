import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { OutputError, TransientError } from "../errors.ts";
import { Lock, type LockRuntime } from "../files/lock.ts";
import { codeOf, reasonOf } from "../files/reason.ts";
import { syncFolder } from "../files/replace.ts";

/**
 * Where one try of a shard writes. The folder `shard-<n>` appears by one rename, when the shard is complete; until then
 * its rows lie in a hidden folder with a random token. So a shard that runs twice at the same time leaves one result.
 */
export class ShardFolder {
  /** The hidden folder. */
  readonly path: string;
  readonly #parent: string;
  readonly #published: string;

  private constructor(parent: string, shard: number, path: string) {
    this.#parent = parent;
    this.#published = join(parent, `shard-${shard}`);
    this.path = path;
  }

  /**
   * Takes over what a killed try of this shard left, or begins a folder. Undefined: the shard is complete already.
   * Throws OutputError for a folder that cannot be used.
   */
  static async open(parent: string, shard: number, runtime: LockRuntime): Promise<ShardFolder | undefined> {
    try {
      await mkdir(parent, { recursive: true });
      if (await exists(join(parent, `shard-${shard}`))) return undefined;
      const path = join(parent, `.shard-${shard}-${randomBytes(8).toString("hex")}`);
      for (const left of await unfinishedOf(parent, shard)) {
        if (await takeOver(join(parent, left), path, runtime)) break;
      }
      return new ShardFolder(parent, shard, path);
    } catch (error) {
      throw asOutputError(parent, error);
    }
  }

  /**
   * Makes the shard visible. If another try was quicker, this one's rows are removed: they are the same.
   * Throws TransientError if another try has taken this one's folder over.
   */
  async publish(): Promise<void> {
    try {
      await rename(this.path, this.#published);
    } catch (error) {
      if (!(await exists(this.#published)))
        throw (await exists(this.path)) ? asOutputError(this.#published, error) : takenOver(this.path);
      await rm(this.path, { recursive: true, force: true });
    }
    await syncFolder(this.#parent);
  }
}

/** What is left of tries that ended early, or is being written by tries that go on. */
async function unfinishedOf(parent: string, shard: number): Promise<readonly string[]> {
  const name = new RegExp(`^\\.shard-${shard}-[0-9a-f]{16}$`);
  return (await readdir(parent)).filter((entry) => name.test(entry)).sort();
}

/**
 * Renames the folder of a try that was killed, so that it cannot commit any more should it wake. False: that try goes on,
 * so this one begins a folder of its own.
 */
async function takeOver(left: string, path: string, runtime: LockRuntime): Promise<boolean> {
  try {
    // A try that has just begun has no lock yet.
    if ((await readdir(left)).length === 0) return false;
    const lock = await Lock.acquire(join(left, "state.json"), runtime);
    await lock.release();
    await rename(left, path);
    return true;
  } catch (error) {
    if (error instanceof TransientError || !(await exists(left))) return false;
    throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

const takenOver = (path: string): TransientError =>
  new TransientError(
    `Cannot publish "${path}": another run of this shard has taken it over. Start again: the shard is complete once that run has ended`,
  );

function asOutputError(path: string, error: unknown): unknown {
  return codeOf(error) === undefined
    ? error
    : new OutputError(`Cannot write to the folder "${path}": ${reasonOf(error)}`, { cause: error });
}
