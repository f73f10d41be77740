import type { JsonObject } from "../json.ts";
import type { LineBatch } from "../streams/event.ts";
import type { Inputs } from "./inputs.ts";
import type { Answer, JobType } from "./job-type.ts";
import type { Receipts } from "./receipts.ts";
import type { JobBook } from "./store.ts";

/** How much of state one stream may write in a run, so that all of them together stay within what is promised. */
export type StateBudget = {
  /** Which part of the bytes that every run may write is this stream's. */
  readonly share: number;
  /** How many states it may write besides, as large as the last one. */
  readonly times: number;
  /** Bytes of other streams in each state that is written. */
  besides(): number;
};

/** What one stream of jobs is worked on with. Moments are epoch ms by the service's clock. */
export type JobContext = {
  readonly type: JobType;
  readonly stream: string;
  readonly cursorField: string;
  /** The newest moment of the records delivered so far. */
  readonly cursor: string | null;
  /** What is known of the setting's items; streams of one setting share it. */
  readonly book: JobBook;
  readonly inputs: Inputs;
  /** The selected streams of the setting, to which each answer is owed. */
  readonly streams: readonly string[];
  readonly receipts: Pick<Receipts, "salt" | "write" | "void"> | undefined;
  /** Why nothing may be submitted. */
  readonly blocked: Error | undefined;
  /** A full refresh delivers again what can be had for free, and submits nothing. */
  readonly isFullRefresh: boolean;
  /** Whether another stream of the setting has had its turn in this run: then there is nothing to submit or to wait for. */
  readonly isSecond: boolean;
  /** Whether anything is known of what was bought before. */
  readonly knowsThePast: boolean;
  /** The most that this run may submit. */
  readonly mostSubmissions: number;
  /** Answers of this run, by job id, for the setting's other stream; and the jobs that were asked for. */
  readonly answers: Map<string, Answer>;
  readonly asked: Set<string>;
  /** Responses of verifications that the receipts kept, by item. */
  readonly sealed: ReadonlyMap<string, string>;
  /** How many items were bought whose answers cannot be delivered again. */
  readonly unrecoverable: number;
  /** What this stream may write of state. */
  readonly stateBudget: StateBudget;
  toLines(records: readonly JsonObject[]): LineBatch;
  /** Throws if another run has taken the receipts or the state file. */
  checkLocks(): Promise<void>;
  /** Resolves when the service's clock is known. */
  ready(): Promise<void>;
  /** Resolves when a request may start. */
  turn(): Promise<void>;
  backOff(failures: number): Promise<void>;
  /** Resolves after `ms`; rejects as soon as the signal or the run's aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  now(): number;
  /** How far (ms) the service's clock is ahead of this machine's. */
  skew(): number;
  /** Ms that only grow. */
  monotonic(): number;
  /** By `monotonic`: when the run is to end. */
  readonly endsAt: number;
  readonly signal: AbortSignal;
};
