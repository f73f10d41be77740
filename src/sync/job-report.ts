import type { Notice } from "./event.ts";
import type { Family } from "./job-family.ts";
import { isWanted, type Job, type Jobs } from "./job-moves.ts";

/** What a run has done. */
export type Done = { readonly answered: number; readonly submitted: number; readonly credits: number };

type Told = Pick<Family, "stream" | "setting" | "rules" | "now">;

/** What a run without any state may buy. */
export function warnOfPurchases({ stream, setting, rules }: Told, count: number): Notice {
  const most = Math.min(count, rules.mostSubmissions);
  const credits = Number.isFinite(rules.mostCredits) ? ` and ${rules.mostCredits} credits` : "";
  return warning(
    stream,
    `there is no state, so nothing is known of what was submitted before: up to ${most} of ${count} items of "${setting}" ` +
      `will be submitted (at most ${rules.mostSubmissions} submissions${credits} a sync)`,
  );
}

/** What was done, what is parked and until when, and what the operator must know. */
export function* reportJobs(
  told: Told,
  jobs: Jobs,
  wanted: readonly string[],
  done: Done,
): Generator<Notice> {
  const { stream, setting } = told;
  yield { kind: "log", level: "info", text: `${stream}: ${summary(told, jobs, wanted, done)}` };
  const unknown = countOf(jobs, "submitting");
  if (unknown > 0) {
    yield warning(
      stream,
      `the answer to ${unknown} submissions was lost, so they may or may not have been charged. They are not repeated ` +
        `on their own: set ${setting}.retry_unknown to true to submit them again`,
    );
  }
  const lost = countOf(jobs, "lost") + countOf(jobs, "denied");
  if (lost > 0)
    yield warning(stream, `the service does not hand out ${lost} jobs that it took; they are given up`);
}

function summary({ rules, now }: Told, jobs: Jobs, wanted: readonly string[], done: Done): string {
  const moment = now();
  const credits = Number.isFinite(rules.mostCredits)
    ? `, ${done.credits} credits used of ${rules.mostCredits} a sync`
    : "";
  const due = [...jobs.values()]
    .flatMap(({ step, notBefore }) => (step === "submitted" && notBefore !== null ? [notBefore] : []))
    .filter((at) => at > moment);
  const until =
    due.length === 0 ? "" : `, the first answer is due at ${new Date(Math.min(...due)).toISOString()}`;
  const waiting = wanted.filter((key) => isWanted(jobs.get(key), rules, moment)).length;
  return (
    `${done.answered} answered, ${done.submitted} submitted${credits}; ${countOf(jobs, "submitted")} parked until the ` +
    `next sync${until}; ${waiting} still to be submitted by later syncs`
  );
}

function countOf(jobs: Jobs, step: Job["step"]): number {
  let count = 0;
  for (const job of jobs.values()) if (job.step === step) count += 1;
  return count;
}

const warning = (stream: string, text: string): Notice => ({
  kind: "log",
  level: "warn",
  text: `${stream}: ${text}`,
});
