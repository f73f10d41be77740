/** A submission in a job stream's state, as it is written; fields that have their default are left out. */
export type Job = {
  readonly step: string;
  readonly at: string;
  readonly day: string;
  readonly job?: string;
  readonly not_before?: string;
  readonly asked?: string;
  readonly misses?: number;
};

/** An item of a job stream's state that is written in full. */
type JobItem = { readonly item: string; readonly subs?: readonly Job[] };

/** The state of a job stream, as it is written. */
export type JobState = {
  readonly jobs: readonly JobItem[];
  readonly done: readonly (readonly [string, string])[];
} & Readonly<Record<string, unknown>>;

/** The submissions of a state that the service took, or that may have left. */
export const subsIn = ({ jobs }: Pick<JobState, "jobs">): readonly Job[] =>
  jobs.flatMap(({ subs = [] }) => subs).filter(({ step }) => step !== "void");

/** How many items a state says are done. */
export const doneIn = ({ done }: JobState): number =>
  done.reduce((sum, [, packed]) => sum + packed.length / 16, 0);
