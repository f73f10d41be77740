/**
 * How far an item has come. `submitting`: a POST was about to leave, and nothing is known of it. `submitted`: the
 * service has taken it. `again`: to be submitted once more. `done`: nothing more will come. `lost`: the service does not
 * know the job, twice. `denied`: it may not be read with this key.
 */
export type Step = "submitting" | "submitted" | "again" | "done" | "lost" | "denied";

/** The life of one item. Moments are epoch ms by the service's clock. */
export type Job = {
  readonly step: Step;
  /** When it came to this step. */
  readonly at: number;
  readonly jobId: string | null;
  /** The service has said that there is no answer before. */
  readonly notBefore: number | null;
  /** Answers so far that were errors and are worth another try. */
  readonly tries: number;
  /** How often it was submitted anew because its job was lost. */
  readonly resent: number;
};

/** By the digest of the item: the items themselves are nobody's to keep. */
export type Jobs = ReadonlyMap<string, Job>;

/** What the config and the interface say about a kind of job. Ms, but for counts. */
export type Rules = {
  /** Null: what is done is never asked again. */
  readonly refreshAfter: number | null;
  /** Whether items of which nothing is known are submitted again. */
  readonly retryUnknown: boolean;
  readonly mostInFlight: number;
  readonly mostSubmissions: number;
  readonly mostCredits: number;
  readonly firstPoll: number;
  readonly longestPoll: number;
  /** For how long one job is polled in a run. */
  readonly polling: number;
  readonly maxWait: number;
};

/** The polls of a job in this run. `next` null: no more in this run. */
export type Polls = { readonly next: number | null; readonly pause: number; readonly until: number };

/** What a run has done so far. */
export type RunSoFar = {
  readonly submissions: number;
  /** Of every result that came to light in this run. */
  readonly credits: number;
  /** Nothing more is to be submitted. */
  readonly stopped: boolean;
  /** Ms spent on waiting and asking again. */
  readonly waited: number;
  readonly polls: ReadonlyMap<string, Polls>;
  /** Had their turn in this run, whatever came of it. */
  readonly turned: ReadonlySet<string>;
};

export type Move =
  | { readonly kind: "submit"; readonly key: string }
  | { readonly kind: "collect"; readonly key: string }
  | { readonly kind: "wait"; readonly until: number }
  /** What is left is left to the next run. */
  | { readonly kind: "park" };

/** A job that nobody has seen queued holds its place in flight for so long at most: a lost one must not hold up the rest. */
const LONGEST_IN_FLIGHT = 3_600_000;

/** The service tells its time in whole seconds, so that what is known of it moves by so much. */
const CLOCK_STEP = 2_000;

/**
 * What to do next: collect what is due, then submit what is wanted, then wait, then park.
 * @param wanted the digests of the items to have, in their order
 */
export function nextMove(
  wanted: readonly string[],
  jobs: Jobs,
  run: RunSoFar,
  rules: Rules,
  now: number,
): Move {
  const due = dueJobs(jobs, run, rules);
  const [first] = due;
  if (first !== undefined && first.at <= now) return { kind: "collect", key: first.key };
  const next = nextSubmission(wanted, jobs, run, rules, now);
  if (next !== undefined) return { kind: "submit", key: next };
  if (first !== undefined && first.at - now <= rules.maxWait - run.waited)
    return { kind: "wait", until: first.at };
  return { kind: "park" };
}

/** Whether an item is to be submitted, now or in a later run. */
export function isWanted(job: Job | undefined, { refreshAfter, retryUnknown }: Rules, now: number): boolean {
  switch (job?.step) {
    case undefined:
    case "again":
      return true;
    case "submitting":
      return retryUnknown;
    case "done":
    case "lost":
      return refreshAfter !== null && now - job.at >= refreshAfter;
    case "submitted":
    case "denied":
      return false;
  }
}

/** Polls after a job was submitted, or after its first poll in a run that did not submit it. */
export function firstPolls(notBefore: number | null, { firstPoll, polling }: Rules, now: number): Polls {
  const begin = Math.max(now, notBefore ?? now);
  const next = notBefore !== null && notBefore > now ? notBefore : now + firstPoll;
  return { next, pause: firstPoll, until: begin + polling };
}

/** Polls after one that brought nothing. A moment that the service names costs no poll before it. */
export function laterPolls(
  { pause, until }: Polls,
  notBefore: number | null,
  rules: Rules,
  now: number,
): Polls {
  if (notBefore !== null && notBefore > now) return firstPolls(notBefore, rules, now);
  if (now >= until - CLOCK_STEP) return { next: null, pause, until };
  const longer = Math.min(rules.longestPoll, pause * 2);
  return { next: Math.min(now + longer, until), pause: longer, until };
}

/** Jobs that may be asked for in this run, the earliest first. */
function dueJobs(jobs: Jobs, run: RunSoFar, rules: Rules): readonly { key: string; at: number }[] {
  const isOver = run.waited >= rules.maxWait;
  const due: { key: string; at: number }[] = [];
  for (const [key, job] of jobs) {
    if (job.step !== "submitted") continue;
    const polls = run.polls.get(key);
    const at = polls === undefined ? (job.notBefore ?? Number.NEGATIVE_INFINITY) : polls.next;
    if (at !== null && (polls === undefined || !isOver)) due.push({ key, at });
  }
  return due.sort((a, b) => a.at - b.at);
}

function nextSubmission(
  wanted: readonly string[],
  jobs: Jobs,
  run: RunSoFar,
  rules: Rules,
  now: number,
): string | undefined {
  const { stopped, submissions, credits } = run;
  if (stopped || submissions >= rules.mostSubmissions || credits >= rules.mostCredits) return undefined;
  if (inFlight(jobs, now) >= rules.mostInFlight) return undefined;
  return wanted.find((key) => !run.turned.has(key) && isWanted(jobs.get(key), rules, now));
}

function inFlight(jobs: Jobs, now: number): number {
  let count = 0;
  for (const { step, at, notBefore } of jobs.values()) {
    if (step === "submitted" && (now - at < LONGEST_IN_FLIGHT || (notBefore ?? now) > now)) count += 1;
  }
  return count;
}
