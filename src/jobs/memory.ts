import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { JOB_SETTINGS, type JobSetting, type JobStreamSpec } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import type { LockRuntime } from "../output/files/lock.ts";
import type { StreamState } from "../sync/event.ts";
import { Book, type Ledger } from "./book.ts";
import { newDigests, receiptsPathOf, serviceOf } from "./identity.ts";
import { jobTypeOf } from "./kinds.ts";
import type { Delta } from "./lattice.ts";
import { Receipts } from "./receipts.ts";
import { parseJobState, type SavedJobs, tellBook, toJobState } from "./state.ts";

/** Without receipts and without a state a run submits at most 10 items: the next may know nothing of them. */
const MOST_WITHOUT_MEMORY = 10;

/** A job stream of the settings that this run uses. */
export type RememberedStream = JobStreamSpec & {
  readonly isSelected: boolean;
  /** Whether the platform drops what it has once the stream is complete, and the generation that it fills then. */
  readonly truncates: boolean;
  readonly generation: number | null;
};

export type LookOptions = {
  readonly config: Config;
  readonly environment: Environment;
  /** What the state says of each stream. */
  readonly states: ReadonlyMap<string, unknown>;
  readonly streams: readonly RememberedStream[];
  /** What the platform calls this sync, however often it tries it. */
  readonly sync: string | null;
};

export type MemoryOptions = LookOptions & { readonly lock: LockRuntime; notify(text: string): void };

/** What one setting's streams begin with. */
type Remembered = {
  readonly book: Book;
  readonly hasState: boolean;
  /** The most that a run may submit. */
  readonly mostSubmissions: number;
  /** Of each stream the newest moment of its records. */
  readonly cursors: ReadonlyMap<string, string | null>;
};

/** What the states of one setting's streams say, or why they cannot be used. */
type Saved = { readonly states: ReadonlyMap<string, SavedJobs>; readonly error?: ConfigError };

type AllSaved = ReadonlyMap<JobSetting, Saved>;

type Opened = {
  readonly receipts?: Receipts;
  /** Why nothing may be submitted. */
  readonly blocked?: ConfigError;
  /** Whether receipts are not wanted or cannot be had, so that only a state remembers. */
  readonly isForgetful?: boolean;
};

/** All that is remembered of jobs: the join of the receipts and of all states of a setting. */
export class Memory {
  /** Why nothing may be submitted. Jobs that are known are still asked for. */
  blocked: ConfigError | undefined;
  readonly #isForgetful: boolean;
  readonly #options: LookOptions;
  readonly #receipts: Receipts | undefined;
  readonly #books: ReadonlyMap<JobSetting, Book>;
  readonly #saved: AllSaved;

  private constructor(
    options: LookOptions,
    saved: AllSaved,
    { receipts, blocked, isForgetful = false }: Opened,
  ) {
    this.#options = options;
    this.#saved = saved;
    this.#receipts = receipts;
    this.blocked = blocked;
    this.#isForgetful = isForgetful;
    const by = randomBytes(6).toString("base64url");
    const digests = newDigests(receipts?.digests.salt ?? saltOf(saved));
    this.#books = new Map(
      JOB_SETTINGS.map((setting) => {
        const streams = options.streams.filter((stream) => stream.setting === setting);
        const isFromRows = streams.length > 0 && jobTypeOf(setting, options.config).froms.length > 0;
        const book = new Book({
          ...{ author: { by, sync: options.sync ?? by }, digests, isFromRows },
          streams: streams.filter(({ isSelected }) => isSelected),
          handleAt: (place, key) => receipts?.handleAt(place, key) ?? null,
        });
        return [setting, book];
      }),
    );
  }

  /**
   * Takes the receipts' lock, reads what is remembered, and writes to the receipts what only states know. Asks the service
   * nothing. Throws TransientError while another run has the receipts.
   */
  static async open(options: MemoryOptions): Promise<Memory> {
    const saved = savedOf(options);
    const services = [...saved.keys()].map(
      (setting) => [setting, serviceOf(setting, options.config)] as const,
    );
    const opened = services.length === 0 ? {} : await openReceipts(options, saved, new Map(services));
    const memory = new Memory(options, saved, opened);
    await memory.#learn();
    const { receipts } = opened;
    if (receipts !== undefined && memory.blocked === undefined) {
      const unbound = new Map(services.filter(([setting]) => !receipts.services.has(setting)));
      await checkKey(options, saved, unbound)
        .then(() => receipts.bind(unbound))
        .catch((error: unknown) => {
          if (!(error instanceof OtherKey)) throw error;
          memory.blocked = error;
        });
    }
    for (const [setting, book] of memory.#books) await memory.write(setting, book.newsToReceipts());
    return memory;
  }

  /** Reads what is remembered, without a lock and writing nothing. Throws ConfigError for receipts that cannot be used. */
  static async look(options: LookOptions): Promise<Memory> {
    const place = receiptsPathOf(options.config, options.environment);
    const receipts = place === null ? undefined : await Receipts.look(place.path);
    const isForgetful = options.config.receiptsFile === "";
    const memory = new Memory(options, savedOf(options), { ...(receipts && { receipts }), isForgetful });
    await memory.#learn();
    if (memory.blocked !== undefined) throw memory.blocked;
    return memory;
  }

  get hasReceipts(): boolean {
    return this.#receipts !== undefined;
  }

  /** What responses are sealed with. */
  get salt(): string {
    return this.#receipts?.digests.salt ?? "";
  }

  /** What is known of a setting's items. Throws ConfigError for a state or receipts that cannot be used. */
  of(setting: JobSetting): Remembered {
    const [book, saved] = [this.#books.get(setting), this.#saved.get(setting)];
    const service = serviceOf(setting, this.#options.config);
    const bound = this.#receipts?.services.get(setting) ?? service;
    if (bound !== service) throw otherService("The receipts", "name another file in receipts_file");
    if (book === undefined || saved === undefined)
      throw new Error(`Cannot open the jobs of "${setting}": not selected`);
    if (saved.error !== undefined) throw saved.error;
    const cursors = new Map([...saved.states].map(([name, { cursor }]) => [name, cursor]));
    const hasState = this.#hasState(setting);
    const mostSubmissions = this.#isForgetful && !hasState ? MOST_WITHOUT_MEMORY : Number.POSITIVE_INFINITY;
    return { book, hasState, mostSubmissions, cursors };
  }

  /** The state of a stream as it is now. `now`: epoch ms by the service's clock. */
  state({ name, setting, cursorField }: JobStreamSpec, cursor: string | null, now: number): StreamState {
    const stream = this.#options.streams.find((one) => one.name === name);
    const before = this.#saved.get(setting)?.states.get(name);
    const generation = stream?.generation ?? before?.generation ?? null;
    const service = serviceOf(setting, this.#options.config);
    return toJobState({ name, cursorField }, this.of(setting).book, { cursor, service, generation }, now);
  }

  /** Writes to the receipts, if there are any that can be read. Returns when that is on the disk. */
  async write(setting: JobSetting, deltas: readonly Delta[]): Promise<void> {
    if (this.blocked === undefined) await this.#receipts?.write(setting, deltas);
  }

  /** Throws TransientError if another run has taken the receipts. */
  async check(): Promise<void> {
    await this.#receipts?.check();
  }

  async close(): Promise<void> {
    await this.#receipts?.close();
  }

  #hasState(setting: JobSetting): boolean {
    return (this.#saved.get(setting)?.states.size ?? 0) > 0;
  }

  /** Tells the books what receipts and states say. Deliveries count only for their stream and generation. */
  async #learn(): Promise<void> {
    await this.#receipts?.read(this.#books).catch((error: unknown) => {
      // Of damaged receipts what stands before the damage is known.
      if (!(error instanceof ConfigError)) throw error;
      this.blocked = error;
    });
    for (const { name, setting, generation, truncates } of this.#options.streams) {
      const [book, known] = [this.#books.get(setting), this.#saved.get(setting)?.states.get(name)];
      if (book === undefined || known === undefined) continue;
      // Before version 3 no state named its generation.
      const isOfNow =
        generation === null || known.service === null ? !truncates : known.generation === generation;
      tellBook(book, name, known, isOfNow);
      // Items under two salts meet only where their rows are read again.
      const isSalted = known.ledgers.every(({ digests }) => digests.salt === book.digests.salt);
      for (const input of isSalted ? known.inputs : [])
        if (input.through > (book.inputs.get(input.from)?.through ?? "")) book.inputs.set(input.from, input);
    }
  }
}

function savedOf({ config, states, streams }: LookOptions): AllSaved {
  const saved = new Map<JobSetting, Saved>();
  for (const setting of new Set(streams.map((stream) => stream.setting))) {
    const known = new Map<string, SavedJobs>();
    try {
      for (const stream of streams.filter((one) => one.setting === setting)) {
        const state = parseJobState(stream, states.get(stream.name));
        if (state === null) continue;
        if (state.service !== null && state.service !== serviceOf(setting, config))
          throw otherService(`The state of "${stream.name}"`, "reset the stream");
        known.set(stream.name, state);
      }
      saved.set(setting, { states: known });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      saved.set(setting, { states: new Map(), error });
    }
  }
  return saved;
}

/** The salt of a state, which receipts that begin take over. */
const saltOf = (saved: AllSaved): string | undefined =>
  [...saved.values()]
    .flatMap(ledgersIn)
    .map(({ digests }) => digests.salt)
    .find((salt) => salt !== null) ?? undefined;

const ledgersIn = (saved?: Saved): Ledger[] =>
  [...(saved?.states.values() ?? [])].flatMap(({ ledgers }) => ledgers);

const knowsNothing = ({ jobs, others, done, paid }: Ledger): boolean =>
  [jobs, others, done, paid].every((list) => list.length === 0);

/** A default folder that never worked is done without; receipts that are there or that the config names are not. */
async function openReceipts(
  options: MemoryOptions,
  saved: AllSaved,
  services: ReadonlyMap<JobSetting, string>,
): Promise<Opened> {
  const { config, environment, lock, notify } = options;
  const place = receiptsPathOf(config, environment);
  if (place === null) return { isForgetful: config.receiptsFile === "" };
  try {
    if (!(await Receipts.exist(place.path))) await checkKey(options, saved, services);
    return { receipts: await Receipts.open(place.path, lock, notify, saltOf(saved), services) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (error instanceof OtherKey || place.isNamed || (await Receipts.exist(place.path)))
      return { blocked: error };
    notify(`Receipts are done without. ${error.message}`);
    return { isForgetful: true };
  }
}

/** Receipts of the same service under another key know what no state does, and nothing says whose purchases these are. */
class OtherKey extends ConfigError {}

/** Looks for items of which no state knows any in the receipts beside those that were never about these services. */
async function checkKey(
  { config, environment }: LookOptions,
  saved: AllSaved,
  services: ReadonlyMap<JobSetting, string>,
): Promise<void> {
  const place = receiptsPathOf(config, environment);
  const lost = new Map([...services].filter(([one]) => ledgersIn(saved.get(one)).every(knowsNothing)));
  if (place === null || place.isNamed || lost.size === 0) return;
  const folder = dirname(place.path);
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((one) => /^receipts-[0-9a-f]{16}\.jsonl$/.test(one))) {
    const others = await Receipts.look(join(folder, name)).catch(() => undefined);
    if (others === undefined) continue;
    const author = { sync: "", by: "" };
    const books = new Map(
      [...lost.keys()].map((setting) => [setting, new Book({ author, digests: others.digests })]),
    );
    // Of damaged receipts what stands before the damage is known.
    await others.read(books).catch(() => undefined);
    await others.close();
    for (const [setting, book] of books)
      if (book.size > 0 && others.services.get(setting) === lost.get(setting))
        throw new OtherKey(
          `Cannot tell what was bought: no state says it, and the receipts "${join(folder, name)}" belong to another key of this service. ` +
            `If the key was changed, name that file in receipts_file. If this is another organization, name "${basename(place.path)}" in the same folder`,
        );
  }
}

const otherService = (what: string, way: string): ConfigError =>
  new ConfigError(
    `Cannot use what is remembered of jobs: ${what} was made with another address of the service. If the service has moved, ` +
      `go back to the old address or remove "service" there; if this is another service, ${way}`,
  );
