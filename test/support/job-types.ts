/** An item of a job stream's state, as it is written. */
export type Job = {
  readonly item: string;
  readonly step: string;
  readonly at: string;
  readonly day: string;
  readonly job_id: string | null;
  readonly not_before: string | null;
  readonly asked: string | null;
  readonly misses: number;
  readonly tries: number;
  readonly cost: number | null;
};

/** The state of a job stream, as it is written. */
export type JobState = {
  readonly jobs: readonly Job[];
  readonly done: readonly (readonly [string, string])[];
  readonly spent: readonly (readonly [string, number, number])[];
} & Readonly<Record<string, unknown>>;

/** How many items a state says are done. */
export const doneIn = ({ done }: JobState): number =>
  done.reduce((sum, [, packed]) => sum + packed.length / 16, 0);
