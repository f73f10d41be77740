import type { Clock } from "../base/clock.ts";
import type { JobStreamSpec } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import type { LockRuntime } from "../output/files/lock.ts";
import type { RowCheck } from "../service/rows.ts";
import type { Event } from "../sync/event.ts";
import { linesOf } from "./echoes.ts";
import { SubmitFailures } from "./failures.ts";
import { type Candidate, Inputs, type Rows } from "./inputs.ts";
import type { Problem } from "./job-type.ts";
import { withStep } from "./join.ts";
import { type JobClients, jobTypesOf, probeJobs } from "./kinds.ts";
import type { Memory } from "./memory.ts";
import { toJobState } from "./state.ts";

/** The shortest time (ms) between two states, because a state may be large. */
const STATE_MS = 5_000;
/** Platforms stop a silent stream, so the program repeats its state after this time (ms). */
const SIGN_OF_LIFE_MS = 180_000;

/** Services that the run provides to jobs. */
export type JobServices = JobClients &
  Pick<LockRuntime, "signal" | "pid" | "processes"> & {
    readonly environment: Environment;
    readonly clock: Clock;
    /** The end of the run, by the monotonic clock (ms). */
    readonly endsAt: number;
    /** Called before each submission. @throws TransientError if another run took the state file */
    checkState(): Promise<void>;
    /** The rows of a stream that names items. */
    rowsOf(from: Rows["from"]): Rows;
    /** Returns a function that replaces repeats of a field's value in a record; null if the field is sent unchanged. */
    replacementFor(stream: string, field: string): ((value: string) => string) | null;
    notify(text: string): void;
  };

/** The inputs of one stream's run. */
type RunOptions = {
  readonly spec: JobStreamSpec;
  readonly check: RowCheck;
  /** Whether the run delivers everything again and buys nothing, because the platform replaces its rows. */
  readonly isRefresh: boolean;
  /** Whether another stream of the setting submits in this run. Then this stream submits nothing and does not wait. */
  readonly isSecond: boolean;
  readonly config: Config;
  readonly memory: Memory;
  readonly services: JobServices;
};

/** A job that this run polls: an open job, or a job whose answer the stream lacks. */
export type Watched = {
  readonly key: string;
  readonly id: string;
  readonly job: string;
  readonly at: number;
  /** The next poll (epoch ms); Infinity: not in this run. */
  due: number;
  /** The last poll (epoch ms); 0: never. */
  asked: number;
  /** When this run's polls began (epoch ms). */
  since?: number;
  /** The last reply, if it was useless. */
  lastProblem?: Problem | undefined;
};

/** The inputs and the progress of one stream's run. */
export type JobRun = ReturnType<typeof newRun>;

/** @throws ConfigError for a state that cannot be used */
export function newRun({ spec, check, isRefresh, isSecond, config, memory, services }: RunOptions) {
  const { setting, name: stream } = spec;
  const { clock, signal, endsAt } = services;
  const configured = jobTypesOf(config).find((one) => one.setting === setting);
  if (configured === undefined) throw new Error(`Cannot work on "${stream}": its jobs are not configured`);
  const type = memory.limited(configured);
  const book = memory.of(setting);
  const client = setting === "emailCheck" ? services.publicApi : services.externalApi;
  const buys = !isRefresh && !isSecond;
  // Receipts contain items of all connections. Without a state, only the rows show which items belong to this connection.
  const scansAll = isRefresh || (buys && book.size > 0 && !book.hasState);
  return {
    ...{ spec, stream, type, isRefresh, isSecond, buys, scansAll },
    ...{ book, memory, client, clock, signal, endsAt },
    maxWait: isSecond ? 0 : type.maxWait,
    inputs: new Inputs({
      ...{ type, book, stream, scansAll, suppressed: config.suppressed, notify: services.notify },
      sources: type.sources.map((from) => services.rowsOf(from)),
      now: () => client.now(),
    }),
    /** Resolves when the service's clock is known. */
    ready: async (): Promise<void> => {
      if (!client.knowsTime) await probeJobs(setting, services);
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
      /** Items that the service refuses, for the report. */
      refused: [] as { readonly place: string; readonly code: string }[],
      doubted: [] as (Candidate & { readonly id: string; readonly code: string })[],
    },
    collecting: {
      answered: 0,
      /** The number of results without an answer, because the account had no credits. The items are submitted again later. */
      unpaid: 0,
      /** The jobs to poll, by the ids of their submissions. */
      jobs: new Map<string, Watched>(),
      /** Whether any reply about a job was usable, so that the address is right. */
      isProper: false,
      silentInARow: 0,
      uselessReplies: 0,
      /** Why polls ended. */
      ended: undefined as unknown,
    },
    /** Whether rows that name items were read. */
    hasReadRows: false,
    /** The time (ms) that the run waited for answers. */
    waited: 0,
    /** When the last state was written (monotonic ms), and whether anything changed since then. */
    stateAt: clock.monotonic(),
    hasChanged: false,
  };
}

/** Whether the run must end and begins no more requests. */
export const isOver = ({ signal, clock, endsAt }: JobRun): boolean =>
  signal.aborted || clock.monotonic() >= endsAt;

/** When the next job is due (epoch ms); Infinity: no job is due in this run. */
export function nextDue({ collecting: { ended, jobs } }: JobRun): number {
  const polled = ended === undefined ? [...jobs.values()] : [];
  return polled.reduce((next, { due }) => Math.min(next, due), Number.POSITIVE_INFINITY);
}

/** Ends submissions and polls. */
export function fail({ failures, collecting }: JobRun, reason: unknown): void {
  failures.end(reason);
  collecting.ended ??= failures.failure;
}

/** Writes changes to the receipts. A failure ends submissions, because a file with a gap proves nothing. */
export async function save({ memory, type, failures }: JobRun): Promise<void> {
  await memory.save(type.setting).catch((error: unknown) => failures.end(error));
}

/** Yields the current state. @param announces whether a purchase is in this state and in no receipts */
export function* checkpoint(run: JobRun, announces = false): Generator<Event> {
  const { book, spec, stream, clock } = run;
  const state = toJobState(spec, book.toState(stream));
  run.hasChanged = false;
  const spent = { ...run.spent, open: withStep(book.unanswered, "open").length };
  yield { kind: "checkpoint", stream, state, spent, ...(announces && { announces }) };
  run.stateAt = clock.monotonic();
}

/** Yields the state if the last state is old enough. */
export function* stateIfDue(run: JobRun): Generator<Event> {
  const pause = run.hasChanged ? STATE_MS : SIGN_OF_LIFE_MS;
  if (run.clock.monotonic() - run.stateAt >= pause) yield* checkpoint(run);
}
