import type { CompanyLookup, Config } from "../config/config.ts";
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
    const noun = type.kind === "domain" ? "domains" : "e-mail addresses";
    yield warning(
      stream,
      `${invalid.count} entries are no ${noun} and are never sent: ${invalid.places.join(", ")}${more}`,
    );
  }
  if (knowsThePast || count === 0) return;
  const most = Math.min(count, type.caps.submissions.sync, mostSubmissions);
  const known =
    receipts === undefined
      ? "there is no state and there are no receipts"
      : "there is no state, and the receipts are new";
  yield warning(
    stream,
    `${known}, so nothing is known of what was submitted before: up to ${most} of ${count} items of "${type.settingName}" ` +
      `will be submitted (${capsOf(context)})`,
  );
  if (mostSubmissions < count)
    yield warning(
      stream,
      `at most ${mostSubmissions} items are submitted, because there is neither a state nor a receipts file`,
    );
}

/** What is out, what is due next and what was spent, during a long wait. */
export function progressReport({ stream, book, now }: JobContext, next: number | undefined): Notice {
  const due =
    next === undefined ? "" : `, the next is asked for at ${new Date(Math.max(next, now())).toISOString()}`;
  return {
    kind: "log",
    level: "info",
    text: `${stream}: waiting for ${count(book, "open")} jobs${due}; ${spentSoFar(book.charged(book.dayToCharge(dayOf(now()))))}`,
  };
}

/** What was done, what waits, and what the operator must know. */
export function* finalReport(context: JobContext, done: Done): Generator<Notice> {
  const { stream, type, book, now, inputs, isSecond } = context;
  const charged = book.charged(book.dayToCharge(dayOf(now())));
  yield { kind: "log", level: "info", text: `${stream}: ${summary(context, done)}` };
  if (isSecond) return;
  const unknown = count(book, "unknown");
  if (unknown > 0) {
    yield warning(
      stream,
      `the answer to ${unknown} submissions was lost, so they may or may not have been charged. They are not repeated ` +
        `on their own: set ${type.settingName}.retry_unknown to true to submit them again`,
    );
  }
  if (done.isOutOfCredits)
    yield warning(
      stream,
      `out of credits or quota, ${inputs.waiting} items wait. The next sync tries one of them`,
    );
  for (const { place, code } of done.refused.slice(0, PLACES_TOLD))
    yield warning(stream, `the service refuses ${place} (${code}). It is submitted again after 30 days`);
  if (done.refused.length > PLACES_TOLD)
    yield warning(stream, `the service refuses ${done.refused.length - PLACES_TOLD} other items as well`);
  for (const [code, jobs] of done.troubles)
    yield warning(
      stream,
      `${jobs} jobs bring no result (${code}). They are asked for again later, and never submitted again`,
    );
  for (const text of passedCaps(type.caps, charged)) yield warning(stream, `a cap was passed: ${text}`);
}

function summary({ book, now, inputs }: JobContext, { answered, submitted }: Done): string {
  const moment = now();
  const due = [...book.jobs()]
    .flatMap(([, { step, notBefore }]) => (step === "open" && notBefore !== null ? [notBefore] : []))
    .filter((at) => at > moment)
    .reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY);
  const until = Number.isFinite(due) ? `, the first answer is due at ${new Date(due).toISOString()}` : "";
  const left = Math.max(0, inputs.waiting - submitted);
  return (
    `${answered} answered, ${submitted} submitted, ${spentSoFar(book.charged(book.dayToCharge(dayOf(moment))))}; ` +
    `${count(book, "open")} parked until the next sync${until}; ${left} still to be submitted by later syncs`
  );
}

const spentSoFar = ({ sync, day, month }: ReturnType<JobContext["book"]["charged"]>): string =>
  `${sync.credits} credits used in this sync, ${day.credits} today, ${month.credits} this month`;

function capsOf({ type: { caps } }: JobContext): string {
  const { submissions, credits } = caps;
  const most = `at most ${submissions.sync} submissions`;
  return credits.sync === Number.POSITIVE_INFINITY
    ? `${most} a sync`
    : `${most} and ${credits.sync} credits a sync`;
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
    ...(companyLookup === null ? [] : [`company look-ups: ${lookupCaps(companyLookup)}`]),
    ...[["e-mail verifications", emailVerification] as const, ["e-mail checks", emailCheck] as const].flatMap(
      ([name, settings]) => {
        if (settings === null) return [];
        const day = settings.maxPerDay === null ? "no cap by day" : `${settings.maxPerDay} a day`;
        return [`${name}: ${settings.maxPerSync} a sync, ${day}`];
      },
    ),
  ];
  return parts.length === 0 ? undefined : `At most ${parts.join("; ")}`;
}

function lookupCaps(settings: CompanyLookup): string {
  const { maxLookupsPerSync, maxCreditsPerSync, maxCreditsPerDay, maxCreditsPerMonth } = settings;
  const long = [
    maxCreditsPerDay === null ? "no cap by day" : `${maxCreditsPerDay} credits a day`,
    maxCreditsPerMonth === null ? "no cap by month" : `${maxCreditsPerMonth} credits a month`,
  ];
  return [`${maxLookupsPerSync} look-ups and ${maxCreditsPerSync} credits a sync`, ...long].join(", ");
}
