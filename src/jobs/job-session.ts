import type { Client } from "../api/client.ts";
import { type Clock, systemClock } from "../api/clock.ts";
import { RowParser } from "../api/rows.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import { type JobSetting, type JobStreamSpec, STREAMS } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { ConfigError, TransientError } from "../errors.ts";
import type { Processes } from "../files/processes.ts";
import type { LineBatch } from "../streams/event.ts";
import { PART_OF_ROWS, TIMES } from "../streams/state-volume.ts";
import { newsTo, openBook } from "./adopt.ts";
import { companyLookups } from "./company-lookups.ts";
import { newDigests } from "./digest.ts";
import { emailChecks } from "./email-checks.ts";
import { emailVerifications } from "./email-verifications.ts";
import { Inputs, type RowSource } from "./inputs.ts";
import { sizeOf } from "./job-checkpoints.ts";
import type { JobContext, StateBudget } from "./job-context.ts";
import type { Answer, JobType } from "./job-type.ts";
import { probeExternal, probePublic } from "./probe.ts";
import { Receipts, receiptsPathOf } from "./receipts.ts";
import { wantOf } from "./schedule.ts";
import { parseJobState, type Saved } from "./state.ts";
import type { JobBook } from "./store.ts";

/** Without receipts and without a state a run submits at most so many items: the next may know nothing of them. */
export const MOST_WITHOUT_MEMORY = 10;

/** What a run of jobs is opened with. */
export type JobRuntime = {
  readonly config: Config;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly pid: number;
  /** Tells whether the run that left a lock still runs. */
  readonly processes?: Processes;
  readonly publicApi: Client;
  readonly externalApi: Client;
  /** The streams whose rows name items. */
  readonly people: (field: "email" | "companyDomain") => RowSource;
  readonly companies: () => RowSource;
  notify(text: string): void;
};

/** A stream that is asked for. */
export type SelectedStream = { readonly name: string; readonly syncMode: string };

/** How the states of a run are kept. */
export type StateKeeping = {
  /** Throws if another run has taken the state that this one saves; called before each submission. */
  check(): Promise<void>;
  /** Whether each state that is written holds all streams. */
  readonly isOne: boolean;
};

/** The memory of one setting's items. `failure`: why its state cannot be used. */
type Memory = {
  /** Of each stream the newest moment of its records. What else the states say is in the book. */
  readonly cursors: ReadonlyMap<string, string | null>;
  readonly hasState: boolean;
  readonly book: JobBook;
  readonly sealed: ReadonlyMap<string, string>;
  readonly unrecoverable: number;
  readonly answers: Map<string, Answer>;
  readonly asked: Set<string>;
  readonly started: Set<string>;
};

/** The jobs of one run: what is remembered of them, and the locks that keep other runs away. */
export class JobSession {
  readonly #runtime: JobRuntime;
  readonly #selected: readonly SelectedStream[];
  readonly #receipts: Receipts | undefined;
  readonly #blocked: Error | undefined;
  /** Whether receipts are wanted and cannot be had. */
  readonly #hasNoMemory: boolean;
  readonly #memories = new Map<JobSetting, Memory | Error>();
  readonly #keeping: StateKeeping;
  /** Bytes of the states of streams that are no jobs. */
  readonly #bytesOfRows: number;

  private constructor(
    runtime: JobRuntime,
    selected: readonly SelectedStream[],
    opened: OpenedReceipts,
    keeping: StateKeeping,
    bytesOfRows: number,
  ) {
    this.#runtime = runtime;
    this.#selected = selected;
    this.#receipts = opened.receipts;
    this.#blocked = opened.blocked;
    this.#hasNoMemory = opened.hasNoMemory;
    this.#keeping = keeping;
    this.#bytesOfRows = bytesOfRows;
  }

  /**
   * Takes the locks and reads what is remembered; asks the service nothing. Throws TransientError while another run has
   * the receipts.
   * @param states what the state says of each stream
   */
  static async open(
    runtime: JobRuntime,
    selected: readonly SelectedStream[],
    states: ReadonlyMap<string, unknown>,
    keeping: StateKeeping,
  ): Promise<JobSession> {
    const settings = [
      ...new Set(
        jobSpecs()
          .filter(({ name }) => selected.some((one) => one.name === name))
          .map(({ setting }) => setting),
      ),
    ];
    const saved = new Map(settings.map((setting) => [setting, parseStates(setting, states)]));
    const opened = settings.length === 0 ? NO_RECEIPTS : await openReceipts(runtime, selected, saved);
    const names = jobSpecs().map(({ name }) => name);
    const rows = [...states].flatMap(([name, state]) => (names.includes(name) ? [] : [state]));
    const session = new JobSession(runtime, selected, opened, keeping, bytesOf(rows));
    for (const [setting, parsed] of saved) session.#memories.set(setting, session.#remember(setting, parsed));
    return session;
  }

  /** What a stream is worked on with. Throws ConfigError for a state that cannot be used. */
  contextOf(spec: JobStreamSpec, schema: JsonSchema | null, endsAt: number): JobContext {
    const { config, clock, signal, publicApi, externalApi } = this.#runtime;
    const memory = this.#memories.get(spec.setting);
    if (memory === undefined) throw new Error(`Cannot open the stream "${spec.name}": it was not selected`);
    if (memory instanceof Error) throw memory;
    const client = spec.setting === "emailCheck" ? publicApi : externalApi;
    const type = jobTypeOf(spec.setting, config, client);
    const streams = this.#streamsOf(spec.setting);
    const parser = new RowParser({ key: "", cursor: null, schema });
    const isSecond = memory.started.size > 0;
    const isFullRefresh = streams.some(
      ({ name, syncMode }) => name === spec.name && syncMode === "full_refresh",
    );
    // A full refresh buys nothing, so the setting's other stream still has to.
    if (!isFullRefresh) memory.started.add(spec.name);
    const { book, sealed, unrecoverable, answers, asked, hasState } = memory;
    return {
      type,
      stream: spec.name,
      cursorField: spec.cursorField,
      cursor: memory.cursors.get(spec.name) ?? null,
      book,
      inputs: this.#inputs(spec.setting, type, book, client),
      streams: streams.map(({ name }) => name),
      receipts: this.#receipts,
      blocked: this.#blocked,
      isFullRefresh,
      isSecond,
      knowsThePast: hasState || book.size > 0,
      mostSubmissions: this.#hasNoMemory && !hasState ? MOST_WITHOUT_MEMORY : Number.POSITIVE_INFINITY,
      answers,
      asked,
      sealed,
      unrecoverable,
      stateBudget: this.#stateBudget(spec.setting),
      toLines: (records): LineBatch => parser.toLines(records),
      checkLocks: async () => {
        await this.#receipts?.check();
        await this.#keeping.check();
      },
      ready: async () => {
        if (!client.knowsTime) await (client === publicApi ? probePublic(client) : probeExternal(client));
      },
      turn: () => client.turn(),
      backOff: (failures) => client.backOff(failures),
      sleep: (ms, waking) => clock.sleep(ms, AbortSignal.any([signal, waking])),
      now: () => client.now(),
      skew: () => client.now() - clock.now(),
      monotonic: () => clock.monotonic(),
      endsAt,
      signal,
    };
  }

  async close(): Promise<void> {
    await this.#receipts?.close();
  }

  /** Where one state holds all streams, each has its part of what all of them may write together. */
  #stateBudget(setting: JobSetting): StateBudget {
    const names = jobSpecs().map(({ name }) => name);
    const jobs = this.#selected.filter(({ name }) => names.includes(name)).length;
    if (!this.#keeping.isOne) return { share: 1 / jobs, times: TIMES, besides: () => 0 };
    const share = (jobs < this.#selected.length ? 1 - PART_OF_ROWS : 1) / jobs;
    return { share, times: TIMES * share, besides: () => this.#bytesBeside(setting) };
  }

  #bytesBeside(setting: JobSetting): number {
    let bytes = this.#bytesOfRows;
    for (const [other, memory] of this.#memories) {
      if (memory instanceof Error) continue;
      const states = Math.max(this.#streamsOf(other).length, memory.cursors.size);
      bytes += sizeOf(memory.book) * (other === setting ? states - 1 : states);
    }
    return bytes;
  }

  #streamsOf(setting: JobSetting): readonly SelectedStream[] {
    const names = jobSpecs()
      .filter((spec) => spec.setting === setting)
      .map(({ name }) => name);
    return this.#selected.filter(({ name }) => names.includes(name));
  }

  #remember(setting: JobSetting, saved: ReadonlyMap<string, Saved> | Error): Memory | Error {
    if (saved instanceof Error) return saved;
    const salted = saltOf(saved);
    const salt = this.#receipts?.salt ?? salted;
    const opened = openBook(
      saved,
      this.#streamsOf(setting),
      newDigests(salt),
      (this.#receipts?.news ?? []).filter((receipt) => receipt.setting === setting),
    );
    const hasState = [...saved.values()].some(({ knowledge }) => knowledge !== null);
    const cursors = new Map([...saved].map(([name, { cursor }]) => [name, cursor]));
    return { cursors, hasState, ...opened, answers: new Map(), asked: new Set(), started: new Set() };
  }

  #inputs(setting: JobSetting, type: JobType, book: JobBook, client: Client): Inputs {
    const { config, people, companies } = this.#runtime;
    const { refreshAfterDays, retryUnknown } = type.wishes;
    const now = (): number => client.now();
    const { froms, ...lists } = listsOf(setting, config);
    const field = type.kind === "domain" ? "companyDomain" : "email";
    return new Inputs({
      kind: type.kind,
      ...lists,
      sources: froms.map((from) => (from === "companies" ? companies() : people(field))),
      book,
      want: (job, finished) => wantOf(job, finished, type.wishes, now()),
      readsAll: refreshAfterDays !== null || retryUnknown,
      now,
    });
  }
}

const bytesOf = (states: readonly unknown[]): number =>
  states.reduce((sum: number, state) => sum + (JSON.stringify(state)?.length ?? 0), 0);

type OpenedReceipts = {
  readonly receipts: Receipts | undefined;
  readonly blocked: Error | undefined;
  readonly hasNoMemory: boolean;
};

const NO_RECEIPTS: OpenedReceipts = { receipts: undefined, blocked: undefined, hasNoMemory: false };

const jobSpecs = (): readonly JobStreamSpec[] => STREAMS.filter((spec) => spec.reading === "job");

/** What the state says of each stream of a setting, or why it cannot be used. */
export function parseStates(
  setting: JobSetting,
  states: ReadonlyMap<string, unknown>,
): ReadonlyMap<string, Saved> | ConfigError {
  try {
    const specs = jobSpecs().filter((spec) => spec.setting === setting);
    return new Map(
      specs.map(({ name, cursorField }) => [name, parseJobState(name, states.get(name), cursorField)]),
    );
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

/** The salt of a state, which receipts that begin take over. */
export function saltOf(saved: ReadonlyMap<string, Saved> | Error): string | undefined {
  if (saved instanceof Error) return undefined;
  const ledgers = [...saved.values()].flatMap(({ knowledge }) => knowledge?.ledgers ?? []);
  return ledgers.find(({ digests }) => digests.salt !== null)?.digests.salt ?? undefined;
}

/** A default folder that never worked is done without; receipts that are there or that the config names are not. */
async function openReceipts(
  { config, environment, signal, pid, processes, notify }: JobRuntime,
  selected: readonly SelectedStream[],
  saved: ReadonlyMap<JobSetting, ReadonlyMap<string, Saved> | Error>,
): Promise<OpenedReceipts> {
  const place = receiptsPathOf(config, environment);
  if (place === null) return { ...NO_RECEIPTS, hasNoMemory: config.receiptsFile === "" };
  const isFullRefresh = selected.some(({ syncMode }) => syncMode === "full_refresh");
  const isNews = newsTo(saved, selected, isFullRefresh);
  const salt = [...saved.values()].map(saltOf).find((found) => found !== undefined);
  // A lock is judged by real time.
  const runtime = { clock: systemClock, signal, pid, ...(processes && { processes }) };
  try {
    return { ...NO_RECEIPTS, receipts: await Receipts.open(place.path, runtime, notify, salt, isNews) };
  } catch (error) {
    if (error instanceof TransientError || !(error instanceof ConfigError)) throw error;
    if (place.isNamed || (await Receipts.exist(place.path))) return { ...NO_RECEIPTS, blocked: error };
    notify(`Receipts are done without. ${error.message}`);
    return { ...NO_RECEIPTS, hasNoMemory: true };
  }
}

/** The kind of job of a setting. `client` undefined: to know its rules, not to work. */
export function jobTypeOf(setting: JobSetting, config: Config, client: Client | undefined): JobType {
  const { companyLookup, emailCheck, emailVerification, endpoints } = config;
  switch (setting) {
    case "companyLookup":
      return companyLookups(configured(companyLookup), client);
    case "emailCheck":
      return emailChecks(configured(emailCheck), endpoints.emailCheck, client);
    case "emailVerification":
      return emailVerifications(configured(emailVerification), client);
  }
}

type Lists = {
  readonly listName: string;
  readonly list: readonly string[];
  readonly file: string | null;
  /** The streams whose rows name more items. */
  readonly froms: readonly ("people" | "companies")[];
};

/** Where the items of a setting come from. */
export function listsOf(
  setting: JobSetting,
  { companyLookup, emailCheck, emailVerification }: Config,
): Lists {
  if (setting === "companyLookup") {
    const { domains, domainsFile, fromCompanies, fromPeople } = configured(companyLookup);
    const froms = [
      ...(fromCompanies ? (["companies"] as const) : []),
      ...(fromPeople ? (["people"] as const) : []),
    ];
    return { listName: "company_lookup.domains", list: domains, file: domainsFile, froms };
  }
  const isCheck = setting === "emailCheck";
  const { emails, emailsFile, fromPeople } = configured(isCheck ? emailCheck : emailVerification);
  const listName = isCheck ? "email_check.emails" : "email_verification.emails";
  return { listName, list: emails, file: emailsFile, froms: fromPeople ? ["people"] : [] };
}

function configured<Settings>(settings: Settings | null): Settings {
  if (settings === null) throw new Error("Cannot open a job stream: it is not configured");
  return settings;
}
