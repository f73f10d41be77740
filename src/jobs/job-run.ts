import type { JsonObject } from "../base/json.ts";
import type { JobStreamSpec } from "../catalog/streams.ts";
import type { Client } from "../service/client.ts";
import type { Clock } from "../service/clock.ts";
import type { LineBatch, StreamState } from "../sync/event.ts";
import { StateShare } from "../sync/state-share.ts";
import type { Book } from "./book.ts";
import { SubmitFailures } from "./failures.ts";
import type { Candidate, Inputs } from "./inputs.ts";
import type { Answer, JobReply, JobType, Submission, Trouble } from "./job-type.ts";
import type { Memory, RememberedStream } from "./memory.ts";
import type { Polls } from "./schedule.ts";

/** What a run asks of the service. Moments are epoch ms by the service's clock. */
type JobClient = Pick<Client, "requestSlot" | "backOff" | "now"> & {
  /** Resolves when the service's clock is known. */
  ready(): Promise<void>;
  /** Submits an item, once, in a slot that was waited for. */
  submit(item: string): Promise<Submission>;
  ask(jobId: string): Promise<JobReply>;
};

/** What one stream is to do in this run. */
export type JobTask = Pick<RememberedStream, "truncates" | "generation"> & {
  readonly spec: JobStreamSpec;
  /** The newest moment of the records delivered so far. */
  readonly cursor: string | null;
  /** Whether another stream of the setting has had its turn in this run: then there is nothing to submit or to wait for. */
  readonly isSecond: boolean;
  /** Whether items are submitted. */
  readonly buys: boolean;
  /** Whether anything is known of what was bought before. */
  readonly knowsThePast: boolean;
  /** Whether every row has to be looked at, because only then it is known what is to be delivered. */
  readonly readsAllRows: boolean;
  /** Whether that comes before the first submission: until then nobody knows whether a refresh begins blind. */
  readonly looksFirst: boolean;
  /** The most that this run may submit. */
  readonly mostSubmissions: number;
};

/** What the streams of one setting share in a run. */
export type SharedJobs = {
  /** Answers by job id, kept for the setting's other stream; undefined if there is none. */
  readonly answers: Map<string, Answer> | undefined;
  /** The jobs that were asked for. */
  readonly asked: Set<string>;
  /** Whether every entry of the lists and every row was looked at, and how many of them name somebody who is suppressed. */
  hasSeenAll: boolean;
  suppressed: number;
};

/** What one stream of jobs is worked on with. */
export type JobContext = {
  readonly type: JobType;
  readonly task: JobTask;
  /** What is known of the setting's items. */
  readonly book: Book;
  readonly shared: SharedJobs;
  readonly inputs: Inputs;
  readonly memory: Pick<Memory, "salt" | "hasReceipts" | "blocked" | "write" | "state">;
  readonly client: JobClient;
  readonly clock: Clock;
  /** By the monotonic clock: when the run is to end. */
  readonly endsAt: number;
  readonly signal: AbortSignal;
  toLines(records: readonly JsonObject[]): LineBatch;
  /** Throws if another run has taken the receipts or the state file. */
  checkLocks(): Promise<void>;
};

/** A job that is asked for in this run: an open one, or one whose answer a stream lacks. */
export type Watched = {
  readonly key: string;
  readonly id: string;
  readonly job: string;
  readonly at: number;
  /** When it is asked for next, or was asked for last. */
  due: number;
  polls?: Polls;
  /** How long (ms) after its submission it was found unanswered. */
  waited?: number;
  /** How often it brought nothing of use, and what it brought last if that was nothing. */
  vain?: number;
  trouble?: Trouble | undefined;
};

/** The state of one stream's run. The functions of run, submit, collect and checkpoints work on it. */
export class JobRun {
  readonly context: JobContext;
  readonly failures = new SubmitFailures();
  /** What was bought so far. */
  readonly spent = { submissions: 0, credits: 0 };
  readonly states = {
    cursor: null as string | null,
    /** The last state; undefined while it does not cover every record. */
    covering: undefined as StreamState | undefined,
    share: new StateShare(),
    /** Whether a state waits until writing it is due. */
    isWaiting: false,
  };
  readonly submitting = {
    queue: [] as Candidate[],
    /** Items that the service does not take, for the report. */
    refused: [] as { readonly place: string; readonly code: string }[],
    doubted: [] as (Candidate & { readonly id: string; readonly code: string })[],
    /** The ids of the submissions of this run. */
    own: new Set<string>(),
    /** How long (ms) one submission took in the last batch. */
    msEach: Number.POSITIVE_INFINITY,
  };
  readonly collecting = {
    answered: 0,
    /** How long (ms) every job of this run that was answered took at least; undefined: none was. */
    quickest: undefined as number | undefined,
    /** The jobs to ask for, by the ids of their submissions; those that are planned, the earliest first. */
    jobs: new Map<string, Watched>(),
    agenda: [] as Watched[],
    /** The ids of those that were answered properly. */
    proper: new Set<string>(),
    silentInARow: 0,
    vain: 0,
    /** Credits that answers cost that are too long to take in. */
    charged: 0,
    /** Why nothing more is asked for. */
    ended: undefined as Error | undefined,
  };
  /** Rows that name items, while there are more. */
  source: AsyncGenerator<readonly Candidate[]> | undefined;
  /** How long (ms) was waited for answers. */
  waited = 0;
  lastProgress: number;

  constructor(context: JobContext) {
    this.context = context;
    this.states.cursor = context.task.cursor;
    this.lastProgress = context.clock.monotonic();
    this.states.share.begin(this.lastProgress);
  }

  get stream(): string {
    return this.context.task.spec.name;
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
    const { client, clock, type, task, endsAt } = this.context;
    if (this.nextDue === undefined || task.isSecond || this.isOver) return undefined;
    const pause = this.nextDue - client.now();
    return pause > Math.min(type.maxWait - this.waited, endsAt - clock.monotonic()) ? undefined : pause;
  }

  /** Nothing more is submitted or asked for. */
  fail(reason: unknown): void {
    this.failures.end(reason);
    this.collecting.ended ??= this.failures.failure;
  }
}

/** Writes to the receipts what became of submissions. A failure ends the submissions: a file with a hole proves nothing. */
export async function remember(
  { context: { memory, type }, failures }: JobRun,
  ...news: Parameters<Memory["write"]>[1]
): Promise<void> {
  await memory.write(type.setting, news).catch((error: unknown) => failures.end(error));
}
