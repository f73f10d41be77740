import { ConfigError, DataError } from "../base/errors.ts";
import { quoted } from "../base/json.ts";
import { DAY_MS } from "../base/time.ts";
import { normalizeItem } from "../config/items.ts";
import { OUT_OF_CREDITS } from "../service/error-table.ts";
import type { Event } from "../sync/event.ts";
import { dueAt, isLastFailure, laterAt, nextPolls } from "./due.ts";
import { fail, isOver, type JobRun, save, type Watched } from "./job-run.ts";
import type { Answer, JobReply, Problem } from "./job-type.ts";
import type { Item } from "./join.ts";
import { askOnce } from "./requests.ts";

const ASKS_AT_ONCE = 3;
/** How often a job whose replies are useless is asked for in one run. */
const MAX_USELESS_EACH = 3;
/** Requests in a row without any answer that are an outage. */
const SILENT_IN_A_ROW = 3;
/** Useless replies, and none that was proper: the rest of the jobs is left to the next run. */
const MAX_USELESS = 50;
const DENIED = 3;
/** After this age (ms) a job without a result is only a warning. */
const FRESH = 7 * DAY_MS;
/** "Processing" is a usual answer for this long (ms): checks wait over weekends and holidays. */
const SLOW = 4 * DAY_MS;
/** Before every moment, so that what is due now is due whatever the clock turns out to be. */
const LONG_AGO = -8.64e15;

/** Plans the jobs of items that this stream waits for. Those that were not asked for the longest come first. */
export function schedule(run: JobRun, keys: Iterable<string>): void {
  const { book, type, client, collecting, stream } = run;
  if (type.polling === null) return;
  const now = client.now();
  for (const key of keys) {
    for (const sub of book.toCollect(stream, key)) {
      const { id, at, job, asked } = sub;
      const due = dueAt(sub);
      if (job === null) continue;
      putOnAgenda(collecting, { key, id, job, at, due: due > now ? due : LONG_AGO + (asked ?? 0) });
    }
  }
}

/** Puts a job that is not planned otherwise behind those that are due before it or at the same time. */
function putOnAgenda({ jobs, agenda }: JobRun["collecting"], job: Watched): void {
  if ((jobs.get(job.id) ?? job) !== job) return;
  jobs.set(job.id, job);
  agenda.splice(agenda.findLastIndex(({ due }) => due <= job.due) + 1, 0, job);
}

/** Plans the next poll of a job that was submitted in this run, or had no result. */
export function watch({ type, client, collecting }: JobRun, job: Watched, due: number | null): void {
  if (type.polling === null) return;
  job.polls = nextPolls(job.polls, due, type.polling, client.now());
  if (job.polls.next === null) return;
  job.due = job.polls.next;
  putOnAgenda(collecting, job);
}

/** Asks for the jobs that are due first, in parallel, and delivers their answers. Returns whether any was due. */
export async function* collectDue(run: JobRun): AsyncGenerator<Event, boolean> {
  const { client, type, collecting } = run;
  const { agenda } = collecting;
  if (isOver(run) || collecting.ended !== undefined) return false;
  const now = client.now();
  const due = agenda.splice(0, agenda.slice(0, ASKS_AT_ONCE).filter((job) => job.due <= now).length);
  const results = await Promise.allSettled(due.map(({ job }) => askOnce(client, type, job)));
  for (const [nth, job] of due.entries()) {
    const result = results[nth];
    if (result?.status === "fulfilled") yield* take(run, job, result.value);
    else fail(run, result?.reason);
  }
  return due.length > 0;
}

async function* take(run: JobRun, job: Watched, reply: JobReply): AsyncGenerator<Event> {
  const { collecting, book, client } = run;
  if (reply.kind !== "silent") collecting.silentInARow = 0;
  if (reply.kind === "answered") {
    const error = yield* anotherItem(run, job, reply.answer);
    if (error !== undefined) {
      const code = "the answer names another item";
      await takeProblem(run, job, { kind: "unusable", error, code, cost: reply.answer.cost });
      return;
    }
    collecting.proper.add(job.id);
    job.lastProblem = undefined;
    yield* deliver(run, job, reply.answer);
    return;
  }
  if (reply.kind !== "pending") {
    await takeProblem(run, job, reply);
    return;
  }
  collecting.proper.add(job.id);
  if (reply.due === null && client.now() - job.at >= SLOW) await takeProblem(run, job, STILL_PROCESSING);
  else {
    job.lastProblem = undefined;
    book.change(job.key, job.id, { asked: client.now(), due: reply.due, code: null });
    watch(run, job, reply.due);
  }
}

/**
 * An answer that names another item than its job's is delivered with a warning: a company may have another main domain.
 * Returns an error if the book knows the other item, whose answer it may be.
 */
function* anotherItem(
  { type, book, stream }: JobRun,
  { key, job }: Watched,
  { value }: Answer,
): Generator<Event, DataError | undefined> {
  const { [type.kind]: text } = value;
  const item = typeof text === "string" ? normalizeItem(type.kind, text) : null;
  if (item === null || book.keyOf(item) === key) return undefined;
  const where = `the answer about the job ${quoted(job)} names another item`;
  if (book.has(book.keyOf(item)))
    return new DataError(`Cannot ${type.collect.what}: ${where}. Tell the service's owner`);
  yield { kind: "log", level: "warn", text: `${stream}: ${where} than was submitted. It is delivered` };
  return undefined;
}

const STILL_PROCESSING: Problem = {
  kind: "known",
  code: "processing",
  error: new Error("still processing"),
};

/** A reply was useless. Its cost is charged; what the service said of its time no longer counts. */
async function takeProblem(run: JobRun, job: Watched, problem: Problem): Promise<void> {
  const { collecting, spent, book, client } = run;
  const { kind, error, code, isRetryable = false, cost = 0 } = problem;
  job.lastProblem = problem;
  book.change(job.key, job.id, { asked: client.now(), due: null, code });
  if (kind === "silent") {
    collecting.silentInARow += 1;
    if (collecting.silentInARow >= SILENT_IN_A_ROW) collecting.ended ??= error;
    return;
  }
  const credits = book.chargeUnusable(job.key, job.id, client.now(), cost);
  spent.credits += credits;
  if (credits > 0) await save(run);
  job.uselessReplies = (job.uselessReplies ?? 0) + 1;
  collecting.uselessReplies += 1;
  if (collecting.uselessReplies >= MAX_USELESS && collecting.proper.size === 0) collecting.ended ??= error;
  if (isRetryable && kind !== "denied" && job.uselessReplies < MAX_USELESS_EACH) watch(run, job, null);
}

/** Delivers an answer. The receipts know it on the disk before its records leave. */
export async function* deliver(
  run: JobRun,
  { key, id, job }: Pick<Watched, "key" | "id"> & { readonly job: string | null },
  answer: Answer,
): AsyncGenerator<Event> {
  const { stream, book, type, client, toLines, collecting, spent, submitting, failures } = run;
  const item = book.get(key);
  const sub = item.subs.find((one) => one.id === id);
  const isFirst = sub?.step === "open";
  // One that may have been another's of the same day.
  if (sub?.step === "covered" && answer.failed) return;
  const failure = isFirst ? failureOf(item, answer) : undefined;
  const hasEarlier = isFirst
    ? item.day !== "" || item.subs.some(({ step }) => step === "failed")
    : book.hasDelivered(stream, key);
  if (isFirst) {
    spent.credits += Math.max(0, answer.cost - sub.charged);
    if (submitting.own.has(id) && OUT_OF_CREDITS.has(answer.code ?? "")) failures.outOfCredits();
    if (failure === undefined) book.answered(key, id, client.now(), answer.cost, null);
    await save(run);
  }
  const batch = toLines(type.records(stream, answer, job, hasEarlier));
  yield { kind: "records", stream, at: client.now(), ...batch };
  collecting.answered += 1;
  book.moveCursor(stream, answer.cursor);
  run.hasChanged = true;
  // The next run learns a failure from the state, or asks again: it costs nothing.
  if (failure === undefined) book.deliver(stream, key);
  else
    book.change(key, id, {
      step: failure,
      asked: client.now(),
      code: failure === "failed" ? answer.code : null,
    });
}

/** The step after a result without an answer; undefined for an answer, which the last of many failures is too. */
function failureOf(item: Item, { failed, code }: Answer): "failed" | "void" | undefined {
  if (!failed) return undefined;
  if (OUT_OF_CREDITS.has(code ?? "")) return "void";
  return isLastFailure(item) ? undefined : "failed";
}

/** Asks later for jobs without a result, if another job was answered: a wrong address answers 404 to everything. */
export async function postpone(run: JobRun): Promise<void> {
  const { book, client } = run;
  const { jobs, proper } = run.collecting;
  for (const { key, id, at, lastProblem } of jobs.values()) {
    if (lastProblem === undefined || proper.size === Number(proper.has(id))) continue;
    book.change(key, id, { due: laterAt(at, client.now()) });
  }
  await save(run);
}

/** Why the stream fails; undefined if jobs without a result are the jobs' own fault. */
export function collectFailure({ client, collecting }: JobRun): Error | undefined {
  if (collecting.ended !== undefined) return collecting.ended;
  if (collecting.proper.size > 0) return undefined;
  const jobs = [...collecting.jobs.values()];
  const denied = jobs.filter(({ lastProblem }) => lastProblem?.kind === "denied");
  if (denied.length >= DENIED)
    return new ConfigError(
      `Cannot collect results: this key may not read any of the ${denied.length} jobs that were asked for. Use the key ` +
        "that submitted them. Nothing is lost: they are asked for again",
      { cause: denied[0]?.lastProblem?.error },
    );
  const isFresh = ({ at, lastProblem }: Watched): boolean =>
    (lastProblem?.kind === "unusable" || lastProblem?.kind === "silent") && client.now() - at < FRESH;
  return jobs.find(isFresh)?.lastProblem?.error;
}
