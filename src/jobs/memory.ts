import { randomBytes } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { JOB_SETTINGS, type JobSetting, type JobStreamSpec } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import type { LockRuntime } from "../output/files/lock.ts";
import { codeOf } from "../output/files/reason.ts";
import { Book, type BookStream } from "./book.ts";
import { receiptsPathOf, saltOf } from "./identity.ts";
import type { JobType } from "./job-type.ts";
import { otherSalt, Receipts } from "./receipts.ts";
import { parseJobState } from "./state.ts";

/** The cap of a run without receipts and without a state. The next run may not know the submissions of this run. */
const MAX_WITHOUT_MEMORY = 10;

export type MemoryOptions = {
  readonly config: Config;
  readonly environment: Environment;
  /** The state of each stream. */
  readonly states: ReadonlyMap<string, unknown>;
  /** The streams of the settings that this run uses. */
  readonly streams: readonly (JobStreamSpec & BookStream)[];
  /** The platform's name for this sync. Several runs may attempt one sync. */
  readonly syncId?: string | null;
  /** Undefined: the program locks and writes nothing. */
  readonly lock?: LockRuntime;
};

/** The purchases of all settings: the receipts and all states, joined. */
export class Memory {
  /** Why the run may submit nothing. Known jobs are still polled. */
  blocked: ConfigError | undefined;
  readonly #options: MemoryOptions;
  /** The path of the receipts; null: no receipts. */
  readonly #path: string | null;
  readonly #books: ReadonlyMap<JobSetting, Book>;
  /** The errors of settings that have an unusable state. */
  readonly #unusable = new Map<JobSetting, ConfigError>();
  /** Undefined: the run writes no receipts. */
  #receipts: Receipts | undefined;
  /** Whether the config wants no receipts, or the default folder is not usable. */
  #isForgetful: boolean;

  private constructor(options: MemoryOptions) {
    const { config, environment, streams, syncId } = options;
    const runId = randomBytes(6).toString("base64url");
    this.#options = options;
    this.#path = streams.length === 0 ? null : receiptsPathOf(config, environment);
    this.#isForgetful = config.receiptsFile === "";
    this.#books = new Map(
      JOB_SETTINGS.map((setting) => {
        const own = streams.filter((one) => one.setting === setting);
        const salt = saltOf(setting, config);
        return [setting, new Book({ salt, syncId: syncId ?? runId, runId, streams: own })];
      }),
    );
  }

  /** Takes the receipts' lock, and reads receipts and states. @throws TransientError while another run has the receipts */
  static async open(options: MemoryOptions): Promise<Memory> {
    const memory = new Memory(options);
    try {
      await memory.#useReceipts(() => memory.#readReceipts());
      memory.#readStates();
      if (options.lock !== undefined) await memory.#refuseOtherKey();
      await memory.#useReceipts(() => memory.#beginReceipts());
      return memory;
    } catch (error) {
      await memory.close();
      throw error;
    }
  }

  /** The number of items that were bought, or may have been bought. */
  get purchases(): number {
    return [...this.#books.values()].reduce((sum, book) => sum + book.purchases, 0);
  }

  get hasReceipts(): boolean {
    return this.#receipts !== undefined;
  }

  /** The purchases of a setting. @throws ConfigError for an unusable state */
  of(setting: JobSetting): Book {
    const [book, error] = [this.#books.get(setting), this.#unusable.get(setting)];
    if (error !== undefined) throw error;
    if (book === undefined) throw new Error(`Cannot open the jobs of "${setting}": there is no such setting`);
    return book;
  }

  /** Returns a kind of job. Without receipts and without a state, the cap of submissions per sync is lower. */
  limited(type: JobType): JobType {
    if (!this.#isForgetful || this.of(type.setting).hasState) return type;
    const { submissions } = type.caps;
    const sync = Math.min(submissions.sync, MAX_WITHOUT_MEMORY);
    return { ...type, caps: { ...type.caps, submissions: { ...submissions, sync } } };
  }

  /** Writes changes to the receipts, if there are any. Returns when the changes are on the disk. */
  async save(setting: JobSetting): Promise<void> {
    await this.#receipts?.write(setting, this.of(setting).takeChanges());
  }

  /** @throws TransientError if another run has the receipts */
  async check(): Promise<void> {
    await this.#receipts?.check();
  }

  async close(): Promise<void> {
    await this.#receipts?.close();
    this.#receipts = undefined;
  }

  /** Works on the receipts. Unusable receipts block the run. If the default path has no file, the run only warns. */
  async #useReceipts(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { config, lock } = this.#options;
      if (!(error instanceof ConfigError) || this.#path === null) throw error;
      if (config.receiptsFile !== null || (await mayExist(this.#path))) this.blocked ??= error;
      else {
        lock?.notify?.(`This run has no receipts. ${error.message}`);
        this.#isForgetful = true;
      }
      await this.close();
    }
  }

  /** Reads the receipts. Lines before a damaged line count. */
  async #readReceipts(): Promise<void> {
    if (this.#path === null) return;
    const { lock } = this.#options;
    const salts = new Map([...this.#books].map(([setting, { salt }]) => [setting, salt]));
    const receipts = await Receipts.open(this.#path, salts, lock);
    if (lock !== undefined) this.#receipts = receipts;
    for await (const [setting, changes] of receipts.read()) {
      this.#books.get(setting)?.add(changes);
      this.#books.get(setting)?.takeChanges();
    }
  }

  /** Replaces the receipts by a file of all purchases. If this is impossible, the first write appends purchases of states. */
  async #beginReceipts(): Promise<void> {
    const known = [...this.#books].map(([setting, book]) => [setting, book.toReceipts()] as const);
    if (await this.#receipts?.begin(known)) for (const book of this.#books.values()) book.takeChanges();
  }

  #readStates(): void {
    for (const stream of this.#options.streams) {
      const { name, setting } = stream;
      const book = this.#books.get(setting);
      try {
        const saved = parseJobState(stream, this.#options.states.get(name));
        if (saved === null || book === undefined) continue;
        const hasItems = saved.items.length + saved.delivered.length > 0;
        if (saved.salt !== book.salt.id && hasItems) throw otherSalt(`The state of "${name}"`);
        book.addState(stream, saved);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        this.#unusable.set(setting, error);
      }
    }
  }

  /** Blocks the run if only the receipts of another key contain purchases. This run would buy the items again. */
  async #refuseOtherKey(): Promise<void> {
    const { config, environment, streams } = this.#options;
    const unknown = streams.filter(({ setting }) => this.#books.get(setting)?.size === 0);
    if (this.#path === null || config.receiptsFile !== null || unknown.length === 0) return;
    const folder = dirname(this.#path);
    for (const name of await readdir(folder).catch(() => [])) {
      const receiptsFile = join(folder, name);
      if (!/^receipts-[0-9a-f]{16}\.jsonl$/.test(name) || receiptsFile === this.#path) continue;
      const other = { config: { ...config, receiptsFile }, environment, streams, states: new Map() };
      const memory = await Memory.open(other);
      if (unknown.some(({ setting }) => memory.of(setting).size > 0))
        this.blocked ??= otherKey(receiptsFile, this.#path);
    }
    if (this.blocked !== undefined) await this.close();
  }
}

/** Whether a file exists, or may exist where this user cannot look. */
const mayExist = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error: unknown) => codeOf(error) !== "ENOENT" && codeOf(error) !== "ENOTDIR",
  );

const otherKey = (path: string, own: string): ConfigError =>
  new ConfigError(
    `Cannot know what was bought: the receipts "${path}" are from another key, and the state and "${own}" contain nothing. ` +
      `If the key is new, set receipts_file to "${path}". If this is another organization, set it to "${own}"`,
  );
