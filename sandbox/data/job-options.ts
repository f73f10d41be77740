/** A submission that the service has taken. */
export type Submitted = {
  readonly kind: "company-lookup" | "email-check" | "email-verification";
  /** The domain or the e-mail. */
  readonly item: string;
  readonly jobId: string | null;
  /** Epoch ms by the sandbox's clock. */
  readonly at: number;
};

export type JobOptions = {
  /** The account's time zone: checks run in its office hours. Default UTC. */
  readonly timezone?: string;
  /** How long the check of one source takes; default 5. */
  readonly checkSeconds?: number;
  /** How long a lookup takes; default 8. */
  readonly lookupSeconds?: number;
  /** Lookups a UTC day; those beyond are queued until the next. Default 100. */
  readonly dailyLookups?: number;
  /** Default 1000. */
  readonly credits?: number;
  /** The HTTP status of the answer to a submission; default 202. */
  readonly status?: 200 | 201 | 202;
};

/** A job of another organization, at both APIs. */
export const FOREIGN_JOB = "job_7_foreign";
