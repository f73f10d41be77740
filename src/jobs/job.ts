import type { Day } from "../time.ts";

/**
 * How far an item has come. `unknown`: a submission left, and its answer was lost. `open`: the service named a job.
 * `answered`: the answer came, but a stream has not delivered it. `failed`: a result says that the job failed and cost
 * nothing. `refused`: the service does not take the item. `doubted`: it did not take the item, but may not have liked
 * the form of our request. An item that is done and delivered is no job any more: see FinishedItems.
 */
export type Step = "unknown" | "open" | "answered" | "failed" | "refused" | "doubted";

/** The newest submission of one item. Moments are epoch ms by the service's clock. */
export type Job = {
  readonly step: Step;
  /** When it was submitted. */
  readonly at: number;
  /** The UTC day to which it is charged. */
  readonly day: Day;
  readonly jobId: string | null;
  /** The service said that there is no answer before. */
  readonly notBefore: number | null;
  /** When the service was last asked for the result. */
  readonly asked: number | null;
  /** How often asking brought nothing of use, in runs in which another job was answered properly. */
  readonly misses: number;
  /** Results so far that said that the job failed. */
  readonly tries: number;
  /** How often the item was submitted although it was unknown. */
  readonly unknowns: number;
  /** Credits; null: not known yet. */
  readonly cost: number | null;
  /** When the result came; null: not yet. */
  readonly ended: number | null;
  /** What the service said last, if it was not an answer. */
  readonly code: string | null;
  /** E-mail checks: the sources whose answer was delivered. */
  readonly sources: readonly string[];
  /** Whether the item was answered before, so that a failed part of the answer must not replace a real one. */
  readonly isRefresh: boolean;
  /** The streams that have not delivered the answer. */
  readonly owed: readonly string[];
};

/** A submission that is about to leave. */
export const newJob = (at: number, day: Day, owed: readonly string[]): Job => ({
  step: "unknown",
  at,
  day,
  jobId: null,
  notBefore: null,
  asked: null,
  misses: 0,
  tries: 0,
  unknowns: 0,
  cost: null,
  ended: null,
  code: null,
  sources: [],
  isRefresh: false,
  owed,
});

/** Whether what the job costs is not known yet. */
export const isOpen = ({ step, cost }: Job): boolean =>
  cost === null && (step === "open" || step === "unknown");
