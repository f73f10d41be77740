import type { CompanyLookup, Config } from "../config/config.ts";
import { plural, shown } from "../plural.ts";
import type { Notice } from "../streams/event.ts";
import { dayOf } from "../time.ts";
import { passedCaps } from "./caps.ts";
import type { JobContext } from "./job-context.ts";

/** What a run did. */
export type Done = {
  readonly answered: number;
  readonly submitted: number;
  readonly refused: readonly { readonly place: string; readonly code: string }[];
  /** Jobs that bring nothing, by the service's code. */
  readonly troubles: ReadonlyMap<string, number>;
  readonly isOutOfCredits: boolean;
};

const PLACES_TOLD = 5;

/** What a person should know before anything is submitted. `count`: items of the config that wait. */
export function* openingReport(context: JobContext, count: number): Generator<Notice> {
  const { stream, type, inputs, knowsThePast, mostSubmissions, receipts } = context;
  const { invalid } = inputs;
  if (invalid.count > 0) {
    const more = invalid.count > invalid.places.length ? " and others" : "";
    const invalids =
      type.kind === "domain"
        ? plural(invalid.count, "invalid domain")
        : plural(invalid.count, "invalid e-mail address", "invalid e-mail addresses");
    yield warning(stream, `${invalids}, never sent: ${invalid.places.join(", ")}${more}`);
  }
  const rows = inputs.rowsOf.length === 0 ? [] : [`what the rows of ${inputs.rowsOf.join(" and ")} name`];
  if (knowsThePast || count + rows.length === 0) return;
  const most = Math.min(count, type.caps.submissions.sync, mostSubmissions);
  const known =
    receipts === undefined
      ? "there is no state and there are no receipts"
      : "there is no state, and the receipts are new";
  const items =
    count === 0 ? [] : [`up to ${shown(most)} of ${plural(count, "item")} of "${type.settingName}"`];
  yield warning(
    stream,
    `${known}, so nothing is known of what was submitted before. This sync submits ${[...items, ...rows].join(", and ")} ` +
      `(${capsOf(context)})`,
  );
  if (mostSubmissions < count || (rows.length > 0 && Number.isFinite(mostSubmissions)))
    yield warning(
      stream,
      `at most ${plural(mostSubmissions, "item")} will be submitted, because there is neither a state nor a receipts file`,
    );
}

/** What is out, what is due next and what was spent, during a long wait. */
export function progressReport(context: JobContext, next: number | undefined): Notice {
  const { stream, book, now } = context;
  const due =
    next === undefined ? "" : `, the next is asked for at ${new Date(Math.max(next, now())).toISOString()}`;
  return {
    kind: "log",
    level: "info",
    text: `${stream}: waiting for ${plural(count(book, "open"), "job")}${due}${spentSoFar(context)}`,
  };
}

/** What was done, what waits, and what the operator must know. */
export function* finalReport(context: JobContext, done: Done): Generator<Notice> {
  const { stream, type, book, now, inputs, isSecond } = context;
  const charged = book.charged(book.dayToCharge(dayOf(now())));
  yield { kind: "log", level: "info", endOf: stream, text: summary(context, done) };
  if (isSecond) return;
  const unknown = count(book, "unknown");
  if (unknown > 0) {
    yield warning(
      stream,
      `${plural(unknown, "submission")} got no answer and may have been charged. To submit again, set ` +
        `${type.settingName}.retry_unknown to true for one sync`,
    );
  }
  if (done.isOutOfCredits)
    yield warning(
      stream,
      `out of credits or quota, with ${plural(inputs.waiting, "item")} waiting. The next sync tries one`,
    );
  for (const { place, code } of done.refused.slice(0, PLACES_TOLD))
    yield warning(
      stream,
      `the service refuses ${place} (${code}). It is submitted again after 30 days, or when its next refresh is due`,
    );
  if (done.refused.length > PLACES_TOLD)
    yield warning(
      stream,
      `the service refuses ${plural(done.refused.length - PLACES_TOLD, "other item")} as well`,
    );
  for (const [code, jobs] of done.troubles)
    yield warning(
      stream,
      `no result for ${plural(jobs, "job")} (${code}). Later syncs ask again, which is free; nothing is submitted again`,
    );
  for (const text of passedCaps(type.caps, charged)) yield warning(stream, `a cap was passed: ${text}`);
}

function summary(context: JobContext, { answered, submitted }: Done): string {
  const { book, now, inputs, isSecond } = context;
  if (isSecond) return `${shown(answered)} answered`;
  const moment = now();
  const due = [...book.jobs()]
    .flatMap(([, { step, notBefore }]) => (step === "open" && notBefore !== null ? [notBefore] : []))
    .filter((at) => at > moment)
    .reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY);
  const until = Number.isFinite(due) ? `, the first answer is due at ${new Date(due).toISOString()}` : "";
  const left = Math.max(0, inputs.waiting - submitted);
  return (
    `${shown(answered)} answered, ${shown(submitted)} submitted${spentSoFar(context)}; ` +
    `${plural(count(book, "open"), "job")} left open until the next sync${until}; ${plural(left, "item")} left for later syncs`
  );
}

/** Credits, for jobs that cost any. */
function spentSoFar({ book, now, type }: JobContext): string {
  if (type.caps.credits.sync === Number.POSITIVE_INFINITY) return "";
  const { sync, day, month } = book.charged(book.dayToCharge(dayOf(now())));
  return `; ${plural(sync.credits, "credit")} used in this sync, ${shown(day.credits)} today, ${shown(month.credits)} this month`;
}

function capsOf({ type: { caps } }: JobContext): string {
  const { submissions, credits } = caps;
  const most = `at most ${plural(submissions.sync, "submission")}`;
  return credits.sync === Number.POSITIVE_INFINITY
    ? `${most} a sync`
    : `${most} and ${plural(credits.sync, "credit")} a sync`;
}

function count(book: JobContext["book"], step: "open" | "unknown"): number {
  let found = 0;
  for (const [, job] of book.jobs()) if (job.step === step) found += 1;
  return found;
}

const warning = (stream: string, text: string): Notice => ({
  kind: "log",
  level: "warn",
  text: `${stream}: ${text}`,
});

/** What the jobs of a config may cost, in a sentence; undefined if it has none. */
export function describeCaps({ companyLookup, emailVerification, emailCheck }: Config): string | undefined {
  const parts = [
    ...(companyLookup === null ? [] : [lookupCaps(companyLookup)]),
    ...[["e-mail verification", emailVerification] as const, ["e-mail check", emailCheck] as const].flatMap(
      ([name, settings]) => {
        if (settings === null) return [];
        const day = settings.maxPerDay === null ? "no cap by day" : `${shown(settings.maxPerDay)} a day`;
        return [`${plural(settings.maxPerSync, name)} a sync, ${day}`];
      },
    ),
  ];
  return parts.length === 0 ? undefined : `At most ${parts.join("; at most ")}`;
}

function lookupCaps(settings: CompanyLookup): string {
  const { maxLookupsPerSync, maxCreditsPerSync, maxCreditsPerDay, maxCreditsPerMonth } = settings;
  const day = maxCreditsPerDay === null ? "no cap by day" : `${plural(maxCreditsPerDay, "credit")} a day`;
  const month =
    maxCreditsPerMonth === null ? "no cap by month" : `${plural(maxCreditsPerMonth, "credit")} a month`;
  const lookups = plural(maxLookupsPerSync, "company look-up");
  return `${lookups} and ${plural(maxCreditsPerSync, "credit")} a sync, ${day}, ${month}`;
}
