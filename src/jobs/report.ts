import { resolve } from "node:path";
import { plural, shown } from "../base/text.ts";
import { JOB_SETTINGS, type JobSetting, type JobStreamSpec, jobSpecsOf } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { systemClock } from "../service/clock.ts";
import type { Notice } from "../sync/event.ts";
import type { Book } from "./book.ts";
import { passedCaps, roomFor } from "./caps.ts";
import type { Account } from "./charges.ts";
import { isDoubted, nextAt } from "./due.ts";
import { receiptsPathOf } from "./identity.ts";
import { type Candidate, Inputs, MAX_PLACES } from "./inputs.ts";
import { readItemFile } from "./item-files.ts";
import type { JobRun } from "./job-run.ts";
import type { JobType } from "./job-type.ts";
import { isFinished, isOut } from "./join.ts";
import { jobTypeOf } from "./kinds.ts";
import { Memory } from "./memory.ts";
import { parseJobState } from "./state.ts";

/** Warnings to log before the first submission. @param count items of the config that wait */
export function* openingReport(run: JobRun, count: number): Generator<Notice> {
  const { stream, type, inputs, memory, hasHistory, maxSubmissions } = run;
  const { count: invalid, places } = inputs.invalid;
  if (invalid > 0) {
    const more = invalid > places.length ? " and others" : "";
    yield warning(stream, `${plural(invalid, "invalid item")}, never sent: ${places.join(", ")}${more}`);
  }
  const rows = type.froms.length === 0 ? [] : [`what the rows of ${type.froms.join(" and ")} name`];
  if (hasHistory || count + rows.length === 0) return;
  // Without receipts and a state the next run may know nothing of what this one submits.
  const first = Math.min(count, type.caps.submissions.sync, maxSubmissions);
  const receipts = memory.hasReceipts ? ", and the receipts are new" : " and there are no receipts";
  const items = count === 0 ? [] : [`${shown(first)} of ${plural(count, "item")} of "${type.settingName}"`];
  yield warning(
    stream,
    `there is no state${receipts}, so nothing is known of what was submitted before. This sync submits up to ` +
      `${[...items, ...rows].join(", and ")}. The caps are ${capsOf(type)}`,
  );
}

/** Open jobs, and what was spent, during a long wait. */
export function progressReport({ stream, book, client, type }: JobRun): Notice {
  const { open, account } = figuresOf(book, client.now());
  const text = `${stream}: waiting for ${plural(open, "job")}${spentSoFar(type, account)}`;
  return { kind: "log", level: "info", text };
}

/** The sync's work, what waits, and the warnings for the operator. */
export function* finalReport(run: JobRun): Generator<Notice> {
  const { stream, spent, type, book, client, inputs, isSecond } = run;
  const { refused } = run.submitting;
  const { answered, jobs } = run.collecting;
  const { open, unknown, unpaid, account, due } = figuresOf(book, client.now(), run.submitting.own);
  const done = `${shown(answered)} answered`;
  const until = Number.isFinite(due) ? `, the first answer is due at ${new Date(due).toISOString()}` : "";
  // Items that were submitted when the account had run dry wait again.
  const left = Math.max(0, inputs.waiting - spent.submissions + unpaid);
  const text = isSecond
    ? done
    : `${done}, ${shown(spent.submissions)} submitted${spentSoFar(type, account)}; ${plural(open, "job")} left open ` +
      `until the next sync${until}; ${plural(left, "item")} left for later syncs`;
  yield { kind: "log", level: "info", endOf: stream, text };
  if (isSecond) return;
  const problems = countsOf([...jobs.values()].flatMap(({ lastProblem }) => lastProblem?.code ?? []));
  const places = refused.slice(0, MAX_PLACES).map(({ place, code }) => `${place} (${code})`);
  const warnings = [
    unknown > 0 &&
      `${plural(unknown, "submission")} got no answer and may have been charged. To submit again, set ` +
        `${type.settingName}.retry_unknown to true for one sync`,
    run.failures.isOutOfCredits &&
      `out of credits or quota, with ${plural(left, "item")} waiting. The next sync tries one`,
    refused.length > 0 &&
      `the service refuses ${places.join(", ")}${refused.length > MAX_PLACES ? " and others" : ""}: submitted again after ` +
        "30 days, or when the next refresh is due",
    ...[...problems].map(
      ([code, count]) =>
        `no result for ${plural(count, "job")} (${code}). Later syncs ask again, which is free; nothing is submitted again`,
    ),
    ...passedCaps(type.caps, account).map((passed) => `a cap was passed: ${passed}`),
  ];
  for (const one of warnings) if (one !== false) yield warning(stream, one);
}

/** Why the destination keeps the rows that a refresh would drop, and the way out. */
export const unfinishedRefresh = ({ stream }: JobRun): Notice =>
  warning(
    stream,
    "this refresh is not complete, so that the destination keeps its rows: a listed item is open or unknown, its answer " +
      "cannot be asked for again, or no answer of any listed item is known. A refresh submits nothing. The next sync tries " +
      "again. If it stays so, sync without a refresh",
  );

const costs = ({ caps }: JobType): boolean => Number.isFinite(caps.credits.sync);

/** Credits, for jobs that cost any. */
const spentSoFar = (type: JobType, { sync, day, month }: Account): string =>
  costs(type)
    ? `; ${plural(sync.credits, "credit")} used in this sync, ${shown(day.credits)} today, ${shown(month.credits)} this month`
    : "";

/**
 * Open and unknown submissions, the first moment that the service names for an answer, and what is charged.
 * @param own the ids of this run's submissions: those that no credits were left for are counted
 */
function figuresOf(book: Book, now: number, own: ReadonlySet<string> = new Set()) {
  const out = { open: 0, unknown: 0, unpaid: 0, due: Number.POSITIVE_INFINITY };
  for (const { id, step, code, due } of book.unanswered) {
    if (step === "open" || step === "unknown") out[step] += 1;
    if (step === "void" && own.has(id)) out.unpaid += 1;
    if (step === "open" && code === null && due !== null && due > now) out.due = Math.min(out.due, due);
  }
  return { ...out, account: book.account(now) };
}

const countsOf = (words: readonly string[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
};

const warning = (stream: string, text: string): Notice => ({
  kind: "log",
  level: "warn",
  text: `${stream}: ${text}`,
});

/** The next run of one setting, without running it. */
export type Forecast = Awaited<ReturnType<typeof forecastOf>>;

/**
 * Forecasts what the next run would submit, with the step of every configured item. Asks the service nothing, takes no
 * lock and writes nothing. @throws ConfigError for a state or receipts that cannot be used
 * @param states what the state says of each stream
 */
export async function forecastsOf(
  config: Config,
  environment: Environment,
  states: ReadonlyMap<string, unknown>,
): Promise<readonly Forecast[]> {
  const memory = await look(config, environment, states);
  const forecasts: Forecast[] = [];
  for (const setting of new Set(jobSpecsOf(config).map((spec) => spec.setting)))
    forecasts.push(await forecastOf(setting, config, memory));
  return forecasts;
}

/** All that is remembered, without a lock. @throws ConfigError for receipts that cannot be used */
async function look(config: Config, environment: Environment, states: ReadonlyMap<string, unknown>) {
  const about = { isSelected: true, isRefresh: false, generation: null };
  const streams = jobSpecsOf(config).map((spec) => ({ ...spec, ...about }));
  const memory = await Memory.open({ config, environment, states, streams });
  await memory.close();
  if (memory.blocked !== undefined) throw memory.blocked;
  return memory;
}

async function forecastOf(setting: JobSetting, config: Config, memory: Memory) {
  const book = memory.of(setting);
  const streams = jobSpecsOf(config).flatMap((spec) => (spec.setting === setting ? [spec.name] : []));
  const type = jobTypeOf(setting, config);
  const now = systemClock.now();
  const inputs = new Inputs({
    ...{ type, sources: [], book, stream: streams[0] ?? "", readsAll: false, suppressed: config.suppressed },
    now: () => now,
  });
  const items = new Map<string, ReturnType<typeof itemStatus>>();
  await inputs.configured((candidate) => {
    const isDone = streams.some((stream) => !book.hasUndelivered(stream, candidate.key));
    if (!items.has(candidate.key)) items.set(candidate.key, itemStatus(candidate, book, type, isDone));
  });
  if (inputs.failure !== undefined) throw inputs.failure;
  const { account, open, unknown } = figuresOf(book, now);
  const { sync, day, month } = type.caps.credits;
  const left = Math.min(sync, day - account.day.credits, month - account.month.credits);
  // The run learns a price from its first answer; until then one credit is the least.
  const room = Math.min(
    memory.maxSubmissions(setting),
    roomFor(type.caps, { ...account, price: account.price || 1 }),
  );
  const wouldSubmit = Math.min(inputs.waiting, room);
  const mayCost = wouldSubmit > 0 || (type.froms.length > 0 && room > 0) ? Math.max(0, left) : 0;
  return {
    setting: type.settingName,
    would_submit: wouldSubmit,
    /** Configured items that wait, those beyond the caps included. */
    waiting: inputs.waiting,
    /** The streams whose rows name more items, which are known only when they are read. */
    unknown_inputs: type.froms,
    /** The most that the next run may cost under the caps, in credits; null: the setting costs none. */
    may_cost: costs(type) ? mayCost : null,
    ...{ open, unknown, invalid: inputs.invalid, suppressed: inputs.suppressed },
    ...{ today: account.day, this_month: account.month },
    spent: book.spentByDay(),
    items: [...items.values()],
  };
}

/** One configured item. Moments are RFC 3339; null: none. */
function itemStatus(
  { key, item, place }: Candidate,
  book: Book,
  { resubmitRules }: JobType,
  isDone: boolean,
) {
  const known = book.get(key);
  const subs = known.subs.filter(({ step, code }) => step !== "void" || code !== null);
  const last = subs.find(isOut) ?? subs.at(-1);
  const answered = known.day === "" ? "new" : isDone ? "done" : "answered";
  const isTold = last === undefined || last.step === "void" || isFinished(last);
  const step = isDoubted(known) ? "doubted" : isTold ? answered : last.step;
  return {
    ...{ item, place },
    /** `new`, `answered` but not delivered, `done`, `doubted`, or the step of its last submission. */
    step,
    job_id: last?.job ?? null,
    submitted: toTime(last?.at),
    /** When the job is asked for, or the item submitted, at the earliest; null: at once, or never. */
    due: toTime(nextAt(known, resubmitRules)),
    credits: last?.charged || (last?.step === "answered" ? 0 : null),
    code: last?.code ?? null,
  };
}

const toTime = (ms = Number.NaN): string | null => (Number.isFinite(ms) ? new Date(ms).toISOString() : null);

/** Where the receipts of a config are, and how many purchases they know; undefined if it has no jobs. */
export async function describeReceipts(
  config: Config,
  environment: Environment,
): Promise<string | undefined> {
  if (jobSpecsOf(config).length === 0) return undefined;
  const path = receiptsPathOf(config, environment);
  if (path === null) return "There are no receipts: only the state knows what was bought";
  const { purchases } = await look(config, environment, new Map());
  const known = purchases === 0 ? "are new" : `know ${plural(purchases, "purchase")}`;
  return `The receipts "${resolve(path)}" ${known}`;
}

/** How far the state of a job stream has come, for a person. Throws ConfigError for what is no state. */
export function describeJobState(spec: JobStreamSpec, state: unknown): readonly string[] {
  const saved = parseJobState(spec, state);
  if (saved === null) return ["nothing is submitted yet"];
  const { items, delivered, cursor } = saved;
  const unfinished = items.flatMap(([, item]) => item.subs?.filter((one) => !isFinished(one)) ?? []);
  const steps = countsOf(unfinished.map(({ step }) => step));
  const answered = items.filter(([, { day }]) => day !== "");
  const finished = new Set([...answered, ...delivered].map(([key]) => key)).size;
  const byStep = [...steps].map(([step, count]) => `${count} ${step}`);
  return [
    cursor === null ? "nothing is delivered yet" : `delivered up to ${cursor}`,
    `items: ${[...byStep, `${finished} finished`].join(", ")}`,
  ];
}

/** Reads every file of items. Throws ConfigError for one that no run could use. */
export async function checkItemFiles(config: Config): Promise<void> {
  for (const { file, kind } of jobTypesOf(config))
    if (file !== null) await readItemFile(file, kind, () => {});
}

const jobTypesOf = (config: Config): readonly JobType[] =>
  JOB_SETTINGS.filter((setting) => config[setting] !== null).map((setting) => jobTypeOf(setting, config));

/** The caps of a config's jobs, in a sentence; undefined if it has none. */
export function describeCaps(config: Config): string | undefined {
  const parts = jobTypesOf(config).map((type) => capsOf(type));
  return parts.length === 0 ? undefined : `At most ${parts.join("; at most ")}`;
}

function capsOf({ caps: { submissions, credits }, noun }: JobType): string {
  const items = plural(submissions.sync, noun);
  if (!Number.isFinite(credits.sync)) return `${items} a sync, ${capBy("day", submissions.day, shown)}`;
  const days = `${capBy("day", credits.day, inCredits)}, ${capBy("month", credits.month, inCredits)}`;
  return `${items} and ${inCredits(credits.sync)} a sync, ${days}`;
}

const capBy = (period: string, cap: number, words: (cap: number) => string): string =>
  Number.isFinite(cap) ? `${words(cap)} a ${period}` : `no cap by ${period}`;

const inCredits = (credits: number): string => plural(credits, "credit");
