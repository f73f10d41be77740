import type { Clock } from "../base/clock.ts";
import type { JobStreamSpec } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import type { Processes } from "../output/files/processes.ts";
import type { RowCheck } from "../service/rows.ts";
import type { Event } from "../sync/event.ts";
import type { Polls } from "./due.ts";
import { linesOf } from "./echoes.ts";
import { SubmitFailures } from "./failures.ts";
import { type Candidate, Inputs, type Rows } from "./inputs.ts";
import type { Problem } from "./job-type.ts";
import { withStep } from "./join.ts";
import { type JobClients, jobTypesOf, limited, probeJobs } from "./kinds.ts";
import type { Memory } from "./memory.ts";
import { toJobState } from "./state.ts";

/** States after changes are at least this far apart (ms), because a state may be large. */
const STATE_MS = 5_000;
/** Platforms give up on a stream that is silent for long; its state, said again, is a sign of life. */
const SIGN_OF_LIFE_MS = 180_000;

/** The run provides these to jobs. */
export type JobServices = JobClients & {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly pid: number;
  /** Says whether the run that left a lock still runs. */
  readonly processes?: Processes | undefined;
  /** By the monotonic clock: when the run is to end. */
  readonly endsAt: number;
  /** Throws if another run has taken the state that this one saves; called before each submission. */
  checkState(): Promise<void>;
  /** The rows of a stream that names items. */
  rowsOf(from: Rows["from"]): Rows;
  /** Replaces a value of a field where a record repeats it elsewhere; null if the field leaves as it is. */
  replacementFor(stream: string, field: string): ((value: string) => string) | null;
  notify(text: string): void;
};

/** All that the run of one stream begins with. */
type RunOptions = {
  readonly spec: JobStreamSpec;
  readonly check: RowCheck;
  /** Whether everything is delivered again and nothing is bought, because the platform replaces its rows. */
  readonly isRefresh: boolean;
  /** Whether another stream of the setting has submitted in this run: this one does not submit and does not wait. */
  readonly isSecond: boolean;
  readonly config: Config;
  readonly memory: Memory;
  readonly services: JobServices;
};

/** A job that is asked for in this run: an open one, or one whose answer the stream lacks. */
export type Watched = {
  readonly key: string;
  readonly id: string;
  readonly job: string;
  readonly at: number;
  /** When it is asked for next; Infinity: not in this run. */
  due: number;
  /** When it was asked for last; 0: never. */
  asked: number;
  polls?: Polls;
  /** The last reply, if it was useless. */
  lastProblem?: Problem | undefined;
};

/** One stream's run, on which the functions of run, submit and collect work: what it needs, and how far it is. */
export type JobRun = ReturnType<typeof newRun>;

/** @throws ConfigError for a state that cannot be used */
export function newRun({ spec, check, isRefresh, isSecond, config, memory, services }: RunOptions) {
  const { setting, name: stream } = spec;
  const { clock, signal, endsAt } = services;
  const configured = jobTypesOf(config).find((one) => one.setting === setting);
  if (configured === undefined) throw new Error(`Cannot work on "${stream}": its jobs are not configured`);
  const type = limited(configured, memory.maxSubmissions(setting));
  const book = memory.of(setting);
  const client = setting === "emailCheck" ? services.publicApi : services.externalApi;
  const buys = !isRefresh && !isSecond;
  // Without a state only rows tell which items of the receipts this connection wants.
  const scansAll = isRefresh || (buys && book.size > 0 && !book.hasState);
  return {
    ...{ spec, stream, type, isRefresh, isSecond, buys, scansAll },
    ...{ book, memory, client, clock, signal, endsAt },
    maxWait: isSecond ? 0 : type.maxWait,
    inputs: new Inputs({
      ...{ type, book, stream, scansAll, suppressed: config.suppressed, notify: services.notify },
      sources: type.froms.map((from) => services.rowsOf(from)),
      now: () => client.now(),
    }),
    /** Resolves when the service's clock is known. */
    ready: async (): Promise<void> => {
      if (!client.knowsTime) await probeJobs(spec, services);
    },
    toLines: linesOf(check, type.kind, config.suppressed, services.replacementFor(stream, type.kind)),
    /** @throws TransientError if another run has taken the receipts or the state file */
    checkLocks: async (): Promise<void> => {
      await memory.check();
      await services.checkState();
    },
    failures: new SubmitFailures(),
    /** Purchases so far. */
    spent: { submissions: 0, credits: 0 },
    submitting: {
      queue: [] as Candidate[],
      /** Items that the service does not take, for the report. */
      refused: [] as { readonly place: string; readonly code: string }[],
      doubted: [] as (Candidate & { readonly id: string; readonly code: string })[],
    },
    collecting: {
      answered: 0,
      /** Results that say that the account had run dry: their items wait again. */
      unpaid: 0,
      /** The jobs to ask for, by the ids of their submissions. */
      jobs: new Map<string, Watched>(),
      /** Whether the service has said anything of use about a job, so that the address is right. */
      isProper: false,
      silentInARow: 0,
      uselessReplies: 0,
      /** Why nothing more is asked for. */
      ended: undefined as unknown,
    },
    /** Whether rows that name items were read. */
    hasReadRows: false,
    /** How long (ms) was waited for answers. */
    waited: 0,
    /** When the last state was written, and whether it lacks a change. */
    stateAt: clock.monotonic(),
    hasChanged: false,
  };
}

/** Whether nothing more is to be begun. */
export const isOver = ({ signal, clock, endsAt }: JobRun): boolean =>
  signal.aborted || clock.monotonic() >= endsAt;

/** When the next job is due; Infinity: none is in this run. */
export function nextDue({ collecting }: JobRun): number {
  let next = Number.POSITIVE_INFINITY;
  if (collecting.ended === undefined)
    for (const { due } of collecting.jobs.values()) next = Math.min(next, due);
  return next;
}

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
  const spent = { ...run.spent, open: withStep(book.unanswered, "open").length };
  yield { kind: "checkpoint", stream, state, spent, ...(announces && { announces }) };
  run.stateAt = clock.monotonic();
}

/** The state, if the last one is long enough ago. */
export function* stateIfDue(run: JobRun): Generator<Event> {
  const pause = run.hasChanged ? STATE_MS : SIGN_OF_LIFE_MS;
  if (run.clock.monotonic() - run.stateAt >= pause) yield* checkpoint(run);
}
