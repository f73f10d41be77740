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

/** One stream's run, on which the functions of run, submit and collect work: what it needs, and how far it is. */
export type JobRun = ReturnType<typeof newRun>;

export const newRun = (context: JobContext) => ({
  ...context,
  stream: context.spec.name,
  failures: new SubmitFailures(),
  /** Purchases so far. */
  spent: { submissions: 0, credits: 0 },
  submitting: {
    queue: [] as Candidate[],
    /** Items that the service does not take, for the report. */
    refused: [] as { readonly place: string; readonly code: string }[],
    doubted: [] as (Candidate & { readonly id: string; readonly code: string })[],
    /** The ids of the submissions of this run. */
    own: new Set<string>(),
  },
  collecting: {
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
  },
  /** Rows that name items, while there are more. */
  source: undefined as AsyncGenerator<readonly Candidate[]> | undefined,
  /** How long (ms) was waited for answers. */
  waited: 0,
  lastProgress: context.clock.monotonic(),
  /** When the last state was written, and whether it lacks a change. */
  stateAt: context.clock.monotonic(),
  hasChanged: false,
});

/** Whether nothing more is to be begun. */
export const isOver = ({ signal, clock, endsAt }: JobRun): boolean =>
  signal.aborted || clock.monotonic() >= endsAt;

/** When the next job is due; undefined if none is in this run. */
export const nextDue = ({ collecting }: JobRun): number | undefined =>
  collecting.ended === undefined ? collecting.agenda[0]?.due : undefined;

/** Nothing more is submitted or asked for. */
export function fail({ failures, collecting }: JobRun, reason: unknown): void {
  failures.end(reason);
  collecting.ended ??= failures.failure;
}

/** Writes to the receipts what changed. A failure ends the submissions: a file with a hole proves nothing. */
export async function save({ memory, type, failures }: JobRun): Promise<void> {
  await memory.save(type.setting).catch((error: unknown) => failures.end(error));
}

/** The state as it is now. @param announces whether only this state remembers what is about to leave */
export function* checkpoint(run: JobRun, announces = false): Generator<Event> {
  const { book, spec, stream, clock } = run;
  const state = toJobState(spec, book.toState(stream));
  run.hasChanged = false;
  yield { kind: "checkpoint", stream, state, spent: { ...run.spent }, ...(announces && { announces }) };
  run.stateAt = clock.monotonic();
}

/** The state, if the last one is long enough ago. */
export function* stateIfDue(run: JobRun): Generator<Event> {
  const pause = run.hasChanged ? STATE_MS : SIGN_OF_LIFE_MS;
  if (run.clock.monotonic() - run.stateAt >= pause) yield* checkpoint(run);
}
