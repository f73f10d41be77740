import type { JsonObject } from "../base/json.ts";
import type { JobStreamSpec } from "../catalog/streams.ts";
import type { Client } from "../service/client.ts";
import type { Clock } from "../service/clock.ts";
import type { Event, LineBatch } from "../sync/event.ts";
import type { Book } from "./book.ts";
import type { Polls } from "./due.ts";
import { SubmitFailures } from "./failures.ts";
import type { Candidate, Inputs } from "./inputs.ts";
import type { JobType, Problem } from "./job-type.ts";
import type { Memory } from "./memory.ts";
import { toJobState } from "./state.ts";

/** States after changes are at least this far apart (ms), because a state may be large. */
const STATE_MS = 5_000;
/** Platforms give up on a stream that is silent for long; its state, said again, is a sign of life. */
const SIGN_OF_LIFE_MS = 180_000;

/** Everything that one stream of jobs needs. */
export type JobContext = {
  readonly type: JobType;
  readonly spec: JobStreamSpec;
  /** Whether everything is delivered again and nothing is bought, because the platform replaces its rows. */
  readonly isRefresh: boolean;
  /** Whether another stream of the setting has submitted in this run: this one neither submits nor waits. */
  readonly isSecond: boolean;
  /** Whether anything is known of what was bought before. */
  readonly hasHistory: boolean;
  /** Whether every row is looked at, because only then it is known what is to be delivered. */
  readonly scanAllInputs: boolean;
  /** The most that this run may submit. */
  readonly maxSubmissions: number;
  /** The purchases of the setting's items. */
  readonly book: Book;
  readonly inputs: Inputs;
  readonly memory: Pick<Memory, "hasReceipts" | "blocked" | "save">;
  readonly client: Client;
  /** Resolves when the service's clock is known. */
  ready(): Promise<void>;
  readonly clock: Clock;
  /** By the monotonic clock: when the run is to end. */
  readonly endsAt: number;
  readonly signal: AbortSignal;
  toLines(records: readonly JsonObject[]): LineBatch;
  /** @throws TransientError if another run has taken the receipts or the state file */
  checkLocks(): Promise<void>;
};

/** A job that is asked for in this run: an open one, or one whose answer the stream lacks. */
export type Watched = {
  readonly key: string;
  readonly id: string;
  readonly job: string;
  readonly at: number;
  /** When it is asked for next, or was asked for last. */
  due: number;
  polls?: Polls;
  /** How many replies were useless, and the last one if it was. */
  uselessReplies?: number;
  lastProblem?: Problem | undefined;
};

/** The state of one stream's run, on which the functions of run, submit and collect work. */
export class JobRun {
  readonly context: JobContext;
  readonly failures = new SubmitFailures();
  /** Purchases so far. */
  readonly spent = { submissions: 0, credits: 0 };
  readonly submitting = {
    queue: [] as Candidate[],
    /** Items that the service does not take, for the report. */
    refused: [] as { readonly place: string; readonly code: string }[],
    doubted: [] as (Candidate & { readonly id: string; readonly code: string })[],
    /** The ids of the submissions of this run. */
    own: new Set<string>(),
  };
  readonly collecting = {
    answered: 0,
    /** The jobs to ask for, by the ids of their submissions; those that are planned, the earliest first. */
    jobs: new Map<string, Watched>(),
    agenda: [] as Watched[],
    /** The ids of those that were answered properly. */
    proper: new Set<string>(),
    silentInARow: 0,
    uselessReplies: 0,
    /** Why nothing more is asked for. */
    ended: undefined as Error | undefined,
  };
  /** Rows that name items, while there are more. */
  source: AsyncGenerator<readonly Candidate[]> | undefined;
  /** How long (ms) was waited for answers. */
  waited = 0;
  lastProgress: number;
  /** Whether the last state lacks a change. */
  hasChanged = false;
  #stateAt: number;

  constructor(context: JobContext) {
    this.context = context;
    this.lastProgress = context.clock.monotonic();
    this.#stateAt = this.lastProgress;
  }

  get stream(): string {
    return this.context.spec.name;
  }

  /** Whether nothing more is to be begun. */
  get isOver(): boolean {
    const { signal, clock, endsAt } = this.context;
    return signal.aborted || clock.monotonic() >= endsAt;
  }

  /** When the next job is due; undefined if none is in this run. */
  get nextDue(): number | undefined {
    return this.collecting.ended === undefined ? this.collecting.agenda[0]?.due : undefined;
  }

  /** How long (ms) to wait for the next job; undefined if none is due while this run may wait. */
  get pause(): number | undefined {
    const { client, clock, type, isSecond, endsAt } = this.context;
    if (this.nextDue === undefined || isSecond || this.isOver) return undefined;
    const pause = this.nextDue - client.now();
    return pause > Math.min(type.maxWait - this.waited, endsAt - clock.monotonic()) ? undefined : pause;
  }

  /** Nothing more is submitted or asked for. */
  fail(reason: unknown): void {
    this.failures.end(reason);
    this.collecting.ended ??= this.failures.failure;
  }

  /** Writes to the receipts what changed. A failure ends the submissions: a file with a hole proves nothing. */
  async save(): Promise<void> {
    const { memory, type } = this.context;
    await memory.save(type.setting).catch((error: unknown) => this.failures.end(error));
  }

  /** The state as it is now. @param announces whether only this state remembers what is about to leave */
  *checkpoint(announces = false): Generator<Event> {
    const { book, spec, client, clock } = this.context;
    const state = toJobState(spec, book.toState(spec.name, client.now()));
    this.hasChanged = false;
    const spent = { ...this.spent };
    yield { kind: "checkpoint", stream: this.stream, state, spent, ...(announces && { announces }) };
    this.#stateAt = clock.monotonic();
  }

  /** The state, if the last one is long enough ago. */
  *stateIfDue(): Generator<Event> {
    const pause = this.hasChanged ? STATE_MS : SIGN_OF_LIFE_MS;
    if (this.context.clock.monotonic() - this.#stateAt >= pause) yield* this.checkpoint();
  }
}
