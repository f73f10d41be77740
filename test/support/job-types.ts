/** An item of a job stream's state, as it is written. */
export type Job = {
  readonly item: string;
  readonly step: string;
  readonly at: string;
  readonly job_id: string | null;
  readonly not_before: string | null;
  readonly tries: number;
  readonly resent: number;
};
