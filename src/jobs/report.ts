import { systemClock } from "../api/clock.ts";
import { type JobSetting, type JobStreamSpec, jobSpecsOf } from "../catalog/streams.ts";
import type { CompanyLookup, Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { plural, shown } from "../plural.ts";
import type { Notice } from "../streams/event.ts";
import { dayOf } from "../time.ts";
import { Book } from "./book.ts";
import { passedCaps, roomFor } from "./caps.ts";
import { OLD_DIGESTS } from "./identity.ts";
import { Inputs } from "./inputs.ts";
import type { JobRun } from "./job-run.ts";
import type { JobType } from "./job-type.ts";
import { jobTypeOf, listsOf } from "./kinds.ts";
import { type Handle, type Item, isOut, newsOf, openOf, subsOf } from "./lattice.ts";
import { Memory, MOST_WITHOUT_MEMORY } from "./memory.ts";
import { nextAt } from "./schedule.ts";
import { parseJobState } from "./state.ts";
import { isDoubted } from "./wanted.ts";

const PLACES_TOLD = 5;

/** What a person should know before anything is submitted. `count`: items of the config that wait. */
export function* openingReport({ context, stream }: JobRun, count: number): Generator<Notice> {
  const { type, inputs, task, memory } = context;
  const { knowsThePast, mostSubmissions } = task;
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
  const known = memory.hasReceipts
    ? "there is no state, and the receipts are new"
    : "there is no state and there are no receipts";
  const items =
    count === 0 ? [] : [`up to ${shown(most)} of ${plural(count, "item")} of "${type.settingName}"`];
  yield warning(
    stream,
    `${known}, so nothing is known of what was submitted before. This sync submits ${[...items, ...rows].join(", and ")} ` +
      `(${capsOf(type)})`,
  );
  if (mostSubmissions < count || (rows.length > 0 && Number.isFinite(mostSubmissions)))
    yield warning(
      stream,
      `at most ${plural(mostSubmissions, "item")} will be submitted, because there is neither a state nor a receipts file`,
    );
}

/** What is out, what is due next and what was spent, during a long wait. */
export function progressReport(run: JobRun): Notice {
  const { book, client } = run.context;
  const due =
    run.nextDue === undefined
      ? ""
      : `, the next is asked for at ${new Date(Math.max(run.nextDue, client.now())).toISOString()}`;
  const open = plural(countOut(book).open, "job");
  return {
    kind: "log",
    level: "info",
    text: `${run.stream}: waiting for ${open}${due}${spentSoFar(run)}`,
  };
}

/** What was done, what waits, and what the operator must know. */
export function* finalReport(run: JobRun): Generator<Notice> {
  const { context, stream, submitting, collecting, failures } = run;
  const { type, book, client, inputs, task } = context;
  yield { kind: "log", level: "info", endOf: stream, text: summary(run) };
  if (task.isSecond) return;
  const { unknown } = countOut(book);
  if (unknown > 0)
    yield warning(
      stream,
      `${plural(unknown, "submission")} got no answer and may have been charged. To submit again, set ` +
        `${type.settingName}.retry_unknown to true for one sync`,
    );
  if (failures.isOutOfCredits)
    yield warning(
      stream,
      `out of credits or quota, with ${plural(inputs.waiting, "item")} waiting. The next sync tries one`,
    );
  const { refused } = submitting;
  for (const { place, code } of refused.slice(0, PLACES_TOLD))
    yield warning(
      stream,
      `the service refuses ${place} (${code}). It is submitted again after 30 days, or when its next refresh is due`,
    );
  if (refused.length > PLACES_TOLD)
    yield warning(
      stream,
      `the service refuses ${plural(refused.length - PLACES_TOLD, "other item")} as well`,
    );
  const troubles = new Map<string, number>();
  for (const { code } of collecting.troubles.values()) troubles.set(code, (troubles.get(code) ?? 0) + 1);
  for (const [code, jobs] of troubles)
    yield warning(
      stream,
      `no result for ${plural(jobs, "job")} (${code}). Later syncs ask again, which is free; nothing is submitted again`,
    );
  const charged = book.charged(book.dayToCharge(dayOf(client.now())));
  for (const text of passedCaps(type.caps, charged)) yield warning(stream, `a cap was passed: ${text}`);
}

function summary(run: JobRun): string {
  const { context, collecting, spent } = run;
  const { book, client, inputs, task } = context;
  if (task.isSecond) return `${shown(collecting.answered)} answered`;
  const now = client.now();
  let due = Number.POSITIVE_INFINITY;
  for (const [, item] of book.inFull())
    for (const { notBefore } of openOf(item))
      if (notBefore !== null && notBefore > now) due = Math.min(due, notBefore);
  const until = Number.isFinite(due) ? `, the first answer is due at ${new Date(due).toISOString()}` : "";
  const left = Math.max(0, inputs.waiting - spent.submissions);
  return (
    `${shown(collecting.answered)} answered, ${shown(spent.submissions)} submitted${spentSoFar(run)}; ` +
    `${plural(countOut(book).open, "job")} left open until the next sync${until}; ${plural(left, "item")} left for later syncs`
  );
}

/** Credits, for jobs that cost any. */
function spentSoFar({ context: { book, client, type } }: JobRun): string {
  if (type.caps.credits.sync === Number.POSITIVE_INFINITY) return "";
  const { sync, day, month } = book.charged(book.dayToCharge(dayOf(client.now())));
  return `; ${plural(sync.credits, "credit")} used in this sync, ${shown(day.credits)} today, ${shown(month.credits)} this month`;
}

function capsOf({ caps: { submissions, credits } }: JobType): string {
  const most = `at most ${plural(submissions.sync, "submission")}`;
  return credits.sync === Number.POSITIVE_INFINITY
    ? `${most} a sync`
    : `${most} and ${plural(credits.sync, "credit")} a sync`;
}

function countOut(book: Book): { readonly open: number; readonly unknown: number } {
  const out = [...book.inFull()].flatMap(([, item]) => subsOf(item).filter(isOut));
  const open = out.filter(({ step }) => step === "open").length;
  return { open, unknown: out.length - open };
}

const warning = (stream: string, text: string): Notice => ({
  kind: "log",
  level: "warn",
  text: `${stream}: ${text}`,
});

/** One configured item. Moments are RFC 3339; null: none. */
export type ItemStatus = {
  readonly item: string;
  readonly place: string;
  /** `new`, `answered` but not delivered, `done`, `doubted`, or the step of its last submission. */
  readonly step: string;
  readonly job_id: string | null;
  readonly submitted: string | null;
  /** When the job is asked for, or the item submitted, at the earliest; null: at once, or never. */
  readonly due: string | null;
  readonly credits: number | null;
  readonly code: string | null;
};

/** What the next run of one setting would do, and what is known of it. */
export type Forecast = {
  readonly setting: string;
  /** How many configured items the next run would submit. */
  readonly would_submit: number;
  /** Configured items that wait, those beyond the caps included. */
  readonly waiting: number;
  /** The streams whose rows name more items, which are known only when they are read. */
  readonly unknown_inputs: readonly string[];
  /** The most that the next run may cost under the caps, in credits; null: the setting costs none. */
  readonly may_cost: number | null;
  readonly open: number;
  readonly unknown: number;
  /** Entries of the config that are no items, and the places of the first. */
  readonly invalid: { readonly count: number; readonly places: readonly string[] };
  readonly submitted_today: number;
  readonly submitted_this_month: number;
  readonly spent_today: number;
  readonly spent_this_month: number;
  /** Day, submissions and credits. */
  readonly spent: readonly (readonly [string, number, number])[];
  readonly items: readonly ItemStatus[];
};

/**
 * What the next run would submit and where every configured item stands. Asks the service nothing, takes no lock and
 * writes nothing. Throws ConfigError for a state or receipts that cannot be used.
 * @param states what the state says of each stream
 */
export async function forecastsOf(
  config: Config,
  environment: Environment,
  states: ReadonlyMap<string, unknown>,
): Promise<readonly Forecast[]> {
  const specs = jobSpecsOf(config);
  const streams = specs.map((spec) => ({ ...spec, isSelected: true, truncates: false, generation: null }));
  const memory = await Memory.look({ config, environment, states, streams, sync: null });
  try {
    const forecasts: Forecast[] = [];
    for (const setting of new Set(specs.map((spec) => spec.setting)))
      forecasts.push(await forecastOf(setting, config, memory));
    return forecasts;
  } finally {
    await memory.close();
  }
}

async function forecastOf(setting: JobSetting, config: Config, memory: Memory): Promise<Forecast> {
  const { book, hasState } = memory.of(setting);
  const streams = jobSpecsOf(config).flatMap((spec) => (spec.setting === setting ? [spec.name] : []));
  const type = jobTypeOf(setting, config, undefined);
  const { froms, ...lists } = listsOf(setting, config);
  const now = systemClock.now();
  const inputs = new Inputs({
    ...{ kind: type.kind, ...lists, sources: [], book, stream: streams[0] ?? "" },
    ...{ resubmitRules: type.resubmitRules, readsAll: false, now: () => now },
  });
  const items = new Map<string, ItemStatus>();
  await inputs.look((entry, place) => {
    if (entry.item === null) return;
    const key = book.keyOf(entry);
    const isDone = streams.some((stream) => !book.owes(stream, key));
    if (!items.has(key))
      items.set(
        key,
        itemStatus(
          entry.item,
          place,
          book.get(key),
          book.handle(key),
          isDone,
          nextAt(book.get(key), type.resubmitRules),
        ),
      );
  });
  await inputs.configured();
  const day = book.dayToCharge(dayOf(now));
  const charged = book.charged(day);
  const { credits } = type.caps;
  const costs = Number.isFinite(credits.sync);
  const left = Math.min(
    credits.sync,
    credits.day - charged.day.credits,
    credits.month - charged.month.credits,
  );
  const most = config.receiptsFile === "" && !hasState ? MOST_WITHOUT_MEMORY : Number.POSITIVE_INFINITY;
  const room = Math.min(most, book.probesLeft(now), roomFor(type.caps, charged, costs ? 1 : 0));
  const wouldSubmit = Math.min(inputs.waiting, room);
  const mayCost = wouldSubmit > 0 || (froms.length > 0 && room > 0) ? Math.max(0, left) : 0;
  return {
    setting: type.settingName,
    would_submit: wouldSubmit,
    waiting: inputs.waiting,
    unknown_inputs: froms,
    may_cost: costs ? mayCost : null,
    ...countOut(book),
    invalid: inputs.invalid,
    submitted_today: charged.day.submitted,
    submitted_this_month: charged.month.submitted,
    spent_today: charged.day.credits,
    spent_this_month: charged.month.credits,
    spent: book.spentByDay(),
    items: [...items.values()],
  };
}

/** @param due when the item is next worked on, epoch ms */
function itemStatus(
  item: string,
  place: string,
  known: Item,
  handle: Handle | null,
  isDone: boolean,
  due: number,
): ItemStatus {
  const subs = subsOf(known).filter(({ step, code }) => step !== "void" || code !== null);
  const last = subs.find(isOut) ?? subs.at(-1);
  const answered = known.day === "" ? "new" : isDone ? "done" : "answered";
  const step = last?.step === "void" ? (isDoubted(known) ? "doubted" : answered) : (last?.step ?? answered);
  const at = last?.at ?? handle?.at ?? null;
  return {
    item,
    place,
    step,
    job_id: last?.job ?? handle?.job ?? null,
    submitted: at === null ? null : new Date(at).toISOString(),
    due: Number.isFinite(due) ? new Date(due).toISOString() : null,
    credits: last === undefined ? (handle?.cost ?? null) : null,
    code: last?.code ?? null,
  };
}

/** How far the state of a job stream has come, for a person. Throws ConfigError for what is no state. */
export function describeJobState(spec: JobStreamSpec, state: unknown): readonly string[] {
  const saved = parseJobState(spec, state);
  if (saved === null) return ["nothing is submitted yet"];
  const { ledgers, cursor, money } = saved;
  const steps = new Map<string, number>();
  for (const [, item] of ledgers.flatMap(({ jobs }) => jobs))
    for (const { step } of subsOf(item)) steps.set(step, (steps.get(step) ?? 0) + 1);
  const characters = (packed: readonly (readonly [string, string])[]): number =>
    packed.reduce((sum, [, digests]) => sum + digests.length, 0);
  const finished = ledgers.reduce((sum, { done, paid }) => sum + characters([...done, ...paid]), 0) / 16;
  const byStep = [...steps].map(([step, count]) => `${count} ${step}`);
  const book = new Book({ author: { sync: "", by: "" }, digests: OLD_DIGESTS });
  book.addState(newsOf(OLD_DIGESTS, money));
  return [
    cursor === null ? "nothing is delivered yet" : `delivered up to ${cursor}`,
    `items: ${[...byStep, `${finished} finished`].join(", ")}`,
    ...book
      .spentByDay()
      .map(([day, count, credits]) => `${day}: ${count} submitted, ${plural(credits, "credit")}`),
  ];
}

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
