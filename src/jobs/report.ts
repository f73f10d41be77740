import { systemClock } from "../base/clock.ts";
import { printable } from "../base/json.ts";
import { plural, shown } from "../base/text.ts";
import { type JobStreamSpec, jobSpecsOf } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { info, type Notice, warning } from "../sync/event.ts";
import type { Book } from "./book.ts";
import { passedCaps, roomFor } from "./caps.ts";
import type { Account } from "./charges.ts";
import { nextAt } from "./due.ts";
import { receiptsPathOf } from "./identity.ts";
import { type Candidate, Inputs, MAX_PLACES } from "./inputs.ts";
import { readItemFile } from "./item-files.ts";
import type { JobRun } from "./job-run.ts";
import type { JobType } from "./job-type.ts";
import { isFinished, isOut, STEPS, withStep } from "./join.ts";
import { jobTypesOf } from "./kinds.ts";
import { Memory } from "./memory.ts";
import { parseJobState } from "./state.ts";

/** Names the invalid entries, and the form of an item. */
export function invalidText({ count, places }: Inputs["invalid"]): string {
  const more = count > places.length ? " and others" : "";
  const wanted = "Write one domain or address per line, such as acme.example or ann@acme.example";
  return `${plural(count, "invalid item")}, never sent: ${places.join(", ")}${more}. ${wanted}`;
}

/** Warns before the first submission. @param count the number of waiting items of the config */
export function* openingReport(run: JobRun, count: number): Generator<Notice> {
  const { stream, type, book, inputs, memory } = run;
  if (inputs.invalid.count > 0) yield warningOf(stream, invalidText(inputs.invalid));
  if (book.hasState || book.size > 0 || count + type.sources.length === 0) return;
  const named = type.sources.length === 0 ? count : Number.POSITIVE_INFINITY;
  const most = Math.min(named, type.caps.submissions.sync);
  const receipts = memory.hasReceipts ? ", and the receipts are new" : " and there are no receipts";
  yield warningOf(
    stream,
    `there is no state${receipts}, so earlier purchases are unknown. This sync submits up to ${plural(most, "item")}. ` +
      `The caps are ${capsOf(type)}`,
  );
}

/** Reports open jobs and credits during a long wait. */
export function progressReport({ stream, book, client, type }: JobRun): Notice {
  const waiting = `waiting for ${plural(withStep(book.unanswered, "open").length, "job")}`;
  return info(`${stream}: ${waiting}${spentSoFar(type, book.account(client.now()))}`);
}

/** Reports what the sync did, and which items wait. Adds warnings. */
export function* finalReport(run: JobRun): Generator<Notice> {
  const { stream, spent, type, book, client, inputs, isSecond, failures } = run;
  const { refused } = run.submitting;
  const { answered, unpaid, jobs } = run.collecting;
  const now = client.now();
  const account = book.account(now);
  const { unanswered } = book;
  const open = withStep(unanswered, "open");
  const unknown = withStep(unanswered, "unknown").length;
  const named = open.flatMap(({ code, due }) => (code === null && due !== null && due > now ? [due] : []));
  const [first] = named.sort((a, b) => a - b);
  const until = first === undefined ? "" : `, the first answer is due at ${new Date(first).toISOString()}`;
  const left = Math.max(0, inputs.waiting - spent.submissions + unpaid);
  const text =
    `${shown(answered)} answered, ${shown(spent.submissions)} submitted${spentSoFar(type, account)}; ` +
    `${plural(open.length, "job")} left open until the next sync${until}; ${plural(left, "item")} left for later syncs`;
  yield info(`${stream}: ${text}`);
  if (isSecond) return;
  const problems = [...jobs.values()].flatMap(({ lastProblem }) => lastProblem?.code ?? []);
  const places = refused.slice(0, MAX_PLACES).map(({ place, code }) => `${place} (${code})`);
  const warnings = [
    unknown > 0 &&
      `${plural(unknown, "submission")} got no answer and may have been charged. To submit again, set ` +
        `${type.settingName}.retry_unknown to true for one sync`,
    failures.isOutOfCredits &&
      `out of credits or quota, with ${plural(left, "item")} waiting. The next sync tries 1 item`,
    refused.length > 0 &&
      `the service refuses ${places.join(", ")}${refused.length > MAX_PLACES ? " and others" : ""}. They are submitted again ` +
        "after 30 days, or with the next refresh",
    problems.length > 0 &&
      `no result for ${plural(problems.length, "job")} (${[...new Set(problems)].join(", ")}). Later syncs ask again, which is ` +
        "free. Nothing is submitted again",
    ...passedCaps(type.caps, account).map((passed) => `a cap was passed: ${passed}`),
  ];
  for (const one of warnings) if (one !== false) yield warningOf(stream, one);
}

/** Why the destination keeps old rows after a refresh, and the way out. */
export const unfinishedRefresh = ({ stream }: JobRun): Notice =>
  warningOf(
    stream,
    "this refresh is not complete, so the destination keeps its rows: a listed item is open or unknown, its answer " +
      "cannot be asked for again, or no answer of any listed item is known. A refresh submits nothing. The next sync tries " +
      "again. If this repeats, sync without a refresh",
  );

const costs = ({ caps }: JobType): boolean => Number.isFinite(caps.credits.sync);

/** The spent credits, for jobs that cost credits. */
const spentSoFar = (type: JobType, { sync, day, month }: Account): string =>
  costs(type)
    ? `; ${plural(sync.credits, "credit")} used in this sync, ${shown(day.credits)} today, ${shown(month.credits)} this month`
    : "";

const warningOf = (stream: string, text: string): Notice => warning(`${stream}: ${text}`);

/** A forecast of the next run of one setting. */
export type Forecast = Awaited<ReturnType<typeof forecastOf>>;

/** Forecasts the next run, without requests, locks and writes. @throws ConfigError for an unusable state, or unusable receipts */
export async function forecastsOf(
  config: Config,
  environment: Environment,
  states: ReadonlyMap<string, unknown>,
): Promise<readonly Forecast[]> {
  const memory = await look(config, environment, states);
  const place = receiptsPathOf(config, environment);
  return await Promise.all(
    jobTypesOf(config).map((type) =>
      forecastOf(memory.limited(type), config, memory.of(type.setting), place),
    ),
  );
}

/** Reads receipts and states without a lock. @throws ConfigError for unusable receipts */
async function look(config: Config, environment: Environment, states: ReadonlyMap<string, unknown>) {
  const about = { isSelected: true, isRefresh: false, generation: null };
  const streams = jobSpecsOf(config).map((spec) => ({ ...spec, ...about }));
  const memory = await Memory.open({ config, environment, states, streams });
  await memory.close();
  if (memory.blocked !== undefined) throw memory.blocked;
  return memory;
}

async function forecastOf(type: JobType, config: Config, book: Book, place: string | null) {
  const { setting, settingName, caps, sources } = type;
  const streams = jobSpecsOf(config).flatMap((spec) => (spec.setting === setting ? [spec.name] : []));
  const now = systemClock.now();
  const inputs = new Inputs({
    ...{ type, sources: [], book, stream: streams[0] ?? "", scansAll: false, suppressed: config.suppressed },
    ...{ notify: () => {}, now: () => now },
  });
  const items = new Map<string, ReturnType<typeof itemStatus>>();
  await inputs.configured((candidate) => {
    const isDone = streams.some((stream) => !book.hasUndelivered(stream, candidate.key));
    if (!items.has(candidate.key)) items.set(candidate.key, itemStatus(candidate, book, type, isDone));
  });
  if (inputs.failure !== undefined) throw inputs.failure;
  const account = book.account(now);
  const { sync, day, month } = caps.credits;
  const left = Math.min(sync, day - account.day.credits, month - account.month.credits);
  // The run learns the price from its first answer. The lowest price is 1 credit.
  const first = roomFor(caps, account);
  const room = first > 0 && account.price === 0 ? roomFor(caps, { ...account, price: 1 }) : first;
  const wouldSubmit = Math.min(inputs.waiting, room);
  const mayCost = wouldSubmit > 0 || (sources.length > 0 && room > 0) ? Math.max(0, left) : 0;
  return {
    setting: settingName,
    would_submit: wouldSubmit,
    /** The number of waiting items of the config, also items that the caps exclude from the next run. */
    waiting: inputs.waiting,
    /** The streams whose rows name more items. A forecast does not read these rows. */
    unknown_inputs: sources,
    /** The credits that each open job reserves. Null: no price is known yet, and `would_submit` is an upper limit. */
    price: costs(type) && account.price === 0 ? null : account.price,
    /** The most credits that the next run may cost under the caps; null: the setting costs no credits. */
    may_cost: costs(type) ? mayCost : null,
    open: withStep(book.unanswered, "open").length,
    unknown: withStep(book.unanswered, "unknown").length,
    ...{ invalid: inputs.invalid, suppressed: inputs.suppressed },
    ...{ today: account.day, this_month: account.month },
    spent: book.spentByDay(),
    /** The path of the receipts (null: none), and the number of this setting's known purchases. */
    receipts: place,
    purchases: book.purchases,
    items: [...items.values()],
  };
}

/** One configured item. Moments are RFC 3339 or null. */
function itemStatus({ key, item, place }: Candidate, book: Book, type: JobType, isDone: boolean) {
  const known = book.get(key);
  const subs = known.subs.filter(({ step, code }) => step !== "void" || code !== null);
  const last = subs.find(isOut) ?? subs.at(-1);
  const answered = known.day === "" ? "new" : isDone ? "done" : "answered";
  const hasOutcome = last === undefined || last.step === "void" || isFinished(last);
  return {
    ...{ item, place },
    /** `new`, `answered` but not delivered, `done`, or the step of its last submission. */
    step: hasOutcome ? answered : last.step,
    job_id: last?.job ?? null,
    submitted: toTime(last?.at),
    /** The earliest next poll or submission; null: at once, or never. */
    due: toTime(nextAt(known, type.resubmitRules)),
    credits: last?.charged || (last?.step === "answered" ? 0 : null),
    code: last?.code ?? null,
  };
}

const toTime = (ms = Number.NaN): string | null => (Number.isFinite(ms) ? new Date(ms).toISOString() : null);

/** Describes the state of a job stream, for a person. @throws ConfigError for an unusable state */
export function describeJobState(spec: JobStreamSpec, state: unknown): readonly string[] {
  const saved = parseJobState(spec, state);
  if (saved === null) return ["nothing is submitted yet"];
  const { items, delivered, cursor } = saved;
  const submissions = items.flatMap(([, item]) => item.subs ?? []);
  const unfinished = STEPS.flatMap((step) => {
    const count = submissions.filter((one) => one.step === step && !isFinished(one)).length;
    return count === 0 ? [] : [`${count} ${step}`];
  });
  const answered = items.filter(([, { day }]) => day !== "");
  const finished = new Set([...answered, ...delivered].map(([key]) => key)).size;
  return [
    cursor === null ? "nothing is delivered yet" : `delivered up to ${cursor}`,
    `items: ${[...unfinished, `${finished} finished`].join(", ")}`,
  ];
}

/** Describes the caps and the receipts of a config's jobs. @throws ConfigError for unusable receipts or files of items */
export async function describeJobs(config: Config, environment: Environment): Promise<readonly string[]> {
  const types = jobTypesOf(config);
  if (types.length === 0) return [];
  for (const { file, kind } of types) if (file !== null) await readItemFile(file, kind, () => {});
  const caps = `At most ${types.map(capsOf).join("; at most ")}`;
  const place = receiptsPathOf(config, environment);
  if (place === null) return [caps, "There are no receipts. Only the state knows what was bought"];
  const { purchases } = await look(config, environment, new Map());
  const known = purchases === 0 ? "are new" : `know ${plural(purchases, "purchase")}`;
  return [caps, `The receipts "${printable(place)}" ${known}`];
}

function capsOf({ caps: { submissions, credits }, noun }: JobType): string {
  const caps = [
    ...(["sync", "day"] as const).map((period) => [submissions[period], noun, period] as const),
    ...(["sync", "day", "month"] as const).map((period) => [credits[period], "credit", period] as const),
  ];
  const finite = caps.filter(([cap]) => Number.isFinite(cap));
  return finite.map(([cap, what, period]) => `${plural(cap, what)} a ${period}`).join(", ");
}
