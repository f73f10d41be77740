/** A submission that the service has taken. */
export type Submitted = {
  readonly kind: "company-lookup" | "email-check" | "email-verification";
  /** The domain or the e-mail. */
  readonly item: string;
  readonly jobId: string | null;
  readonly at: number;
};

export type JobOptions = {
  /** Of the account: checks run in its office hours. Default UTC. */
  readonly timezone?: string;
  /** How long the check of one source takes; default 5. */
  readonly checkSeconds?: number;
  /** How long a look-up takes; default 8. */
  readonly lookupSeconds?: number;
  /** Look-ups a UTC day; those beyond are queued until the next. Default 100. */
  readonly dailyLookups?: number;
  /** Default 1000. */
  readonly credits?: number;
  /** By which a submission is answered; default 202. */
  readonly status?: 200 | 201 | 202;
};

/** A job of another organization, at both APIs. */
export const FOREIGN_JOB = "job_7_foreign";

export const iso = (ms: number): string => new Date(ms).toISOString();

/** A 32-bit number that follows from a text alone. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text, "utf8")) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
