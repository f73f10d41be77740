import { ConfigError, DataError } from "../base/errors.ts";
import { quoted } from "../base/json.ts";
import { normalizeItem } from "../config/items.ts";
import { type Event, recordsOf } from "../sync/event.ts";
import { advance, checkpointAfterAnswer } from "./checkpoints.ts";
import { type JobRun, remember, type Watched } from "./job-run.ts";
import type { Answer, JobReply, Trouble } from "./job-type.ts";
import { type Item, openOf, sourcesOf } from "./lattice.ts";
import { dueAt, nextPolls } from "./schedule.ts";
import { FAILED_TIMES, failedTimes, OUT_OF_CREDITS } from "./wanted.ts";

const ASKS_AT_ONCE = 3;
/** How often a job that brings nothing of use is asked for in one run. */
const MOST_IN_VAIN = 3;
/** Requests in a row without any answer that are an outage. */
const SILENT_IN_A_ROW = 3;
/** Answers of no use, and none that was proper: the rest of the jobs is left to the next run. */
const MOST_VAIN = 50;
const DENIED = 3;
/** A job that brings nothing for longer (ms) no longer fails the stream. */
const NEWS_FOR = 7 * 86_400_000;
/** "Processing" is a usual answer for so long (ms). */
const SLOW = 2 * 86_400_000;
/** Before every moment, so that what is due now is due whatever the clock turns out to be. */
const LONG_AGO = -8.64e15;
/** Answers that are kept for the setting's other stream. */
const MOST_ANSWERS_KEPT = 2_000;

/** Takes in the jobs of items that this stream waits for. Those that were not asked for the longest come first. */
export function schedule({ context, collecting, stream }: JobRun, keys: Iterable<string>): void {
  const { book, type, task, shared, client } = context;
  if (type.polling === null) return;
  const now = client.now();
  for (const key of keys) {
    for (const sub of openOf(book.get(key))) {
      const { id, at, job, asked } = sub;
      const due = dueAt(sub);
      // Of a setting's two streams the first has asked just now, and waits for what is due later.
      if (job === null || (task.isSecond && (due > now || shared.asked.has(job)))) continue;
      putOnAgenda(collecting, { key, id, job, at, due: due > now ? due : LONG_AGO + (asked ?? 0) });
    }
    const handle = book.owes(stream, key) ? book.handle(key) : null;
    if (handle !== null && handle.job !== null)
      putOnAgenda(collecting, { key, id: handle.id, job: handle.job, at: handle.at, due: LONG_AGO });
  }
}

/** Puts a job that is not planned otherwise behind those that are due before it or at the same time. */
function putOnAgenda({ jobs, agenda }: JobRun["collecting"], job: Watched): void {
  if ((jobs.get(job.id) ?? job) !== job) return;
  jobs.set(job.id, job);
  agenda.splice(agenda.findLastIndex(({ due }) => due <= job.due) + 1, 0, job);
}

/** Plans the next poll of a job that was submitted in this run, or brought nothing. */
export function watch({ context, collecting }: JobRun, job: Watched, notBefore: number | null): void {
  const { type, client } = context;
  if (type.polling === null) return;
  job.polls = nextPolls(job.polls, notBefore, type.polling, client.now(), collecting.quickest);
  if (job.polls.next === null) return;
  job.due = job.polls.next;
  putOnAgenda(collecting, job);
}

/** Asks for the jobs that are due first, side by side, and delivers their answers. Returns whether any was due. */
export async function* collectDue(run: JobRun): AsyncGenerator<Event, boolean> {
  const { context, collecting } = run;
  const { agenda } = collecting;
  if (run.isOver || collecting.ended !== undefined) return false;
  const now = context.client.now();
  const due = agenda.splice(0, agenda.slice(0, ASKS_AT_ONCE).filter((job) => job.due <= now).length);
  const results = await Promise.allSettled(due.map((job) => askFor(run, job)));
  for (const [nth, job] of due.entries()) {
    const result = results[nth];
    if (result?.status === "fulfilled") yield* take(run, job, result.value);
    else run.fail(result?.reason);
  }
  return due.length > 0;
}

async function askFor({ context: { client, shared } }: JobRun, { job }: Watched): Promise<JobReply> {
  const answer = shared.answers?.get(job);
  if (answer !== undefined) return { kind: "answered", answer };
  shared.asked.add(job);
  return await client.ask(job);
}

async function* take(run: JobRun, job: Watched, reply: JobReply): AsyncGenerator<Event> {
  const { collecting, context } = run;
  const { book, client } = context;
  if (reply.kind !== "silent") collecting.silentInARow = 0;
  if (reply.kind !== "answered" && reply.kind !== "pending") {
    takeTrouble(run, job, reply);
    if (reply.cost !== undefined) await charge(run, job, reply.cost);
    return;
  }
  if (reply.kind === "answered" && namesAnother(run, job, reply.answer)) {
    const code = "the answer names another item";
    const where = `the answer about the job ${quoted(job.job)}`;
    const error = new DataError(
      `Cannot ${context.type.collect.what}: ${where} names another item. Tell the service's owner`,
    );
    takeTrouble(run, job, { kind: "unusable", error, code });
    return;
  }
  collecting.proper.add(job.id);
  job.trouble = undefined;
  if (reply.kind === "answered") {
    // Of one that was not found unanswered it is only known that it did not take longer.
    const took = job.waited ?? (client.now() - job.at) / 2;
    if (run.submitting.own.has(job.id)) collecting.quickest = Math.min(collecting.quickest ?? took, took);
    yield* deliver(run, job, reply.answer);
  } else if (reply.notBefore === null && client.now() - job.at >= SLOW)
    takeTrouble(run, job, STILL_PROCESSING);
  else {
    book.change(job.key, job.id, { asked: client.now(), notBefore: reply.notBefore, misses: 0, code: null });
    job.waited = client.now() - job.at;
    watch(run, job, reply.notBefore);
  }
}

/** Whether an answer says that it is about another item than its job's. One that says nothing of use is taken at the job's word. */
function namesAnother({ context: { type, book } }: JobRun, { key }: Watched, { value }: Answer): boolean {
  const { [type.kind]: text } = value;
  const item = typeof text === "string" ? normalizeItem(type.kind, text) : null;
  return typeof text === "string" && item !== null && !book.isKeyOf(key, { item, kind: type.kind, text });
}

const STILL_PROCESSING: Trouble = {
  kind: "known",
  code: "processing",
  error: new Error("still processing"),
};

/** A job was asked for in vain: what the service said of its time no longer counts. */
function takeTrouble(run: JobRun, job: Watched, trouble: Trouble): void {
  const { collecting, context } = run;
  const { book, client } = context;
  const { kind, error, code, isRetryable = false } = trouble;
  job.trouble = trouble;
  book.change(job.key, job.id, { asked: client.now(), notBefore: null, code });
  if (kind === "silent") {
    collecting.silentInARow += 1;
    if (collecting.silentInARow >= SILENT_IN_A_ROW) collecting.ended ??= error;
    return;
  }
  job.vain = (job.vain ?? 0) + 1;
  collecting.vain += 1;
  if (collecting.vain >= MOST_VAIN && collecting.proper.size === 0) collecting.ended ??= error;
  if (isRetryable && kind !== "denied" && job.vain < MOST_IN_VAIN) watch(run, job, null);
}

/** Charges an answer that is too long to take in. Nothing more is submitted in this run: others may cost as much. */
async function charge(run: JobRun, { key, id }: Watched, cost: number | null): Promise<void> {
  const { book, client } = run.context;
  const { delta, credits } = book.chargeOpen(key, id, client.now(), cost);
  if (credits === 0) return;
  await remember(run, delta);
  run.spent.credits += credits;
  run.collecting.charged += credits;
  run.failures.ended = true;
}

/** Delivers an answer. What was paid is on the disk before the records leave. */
export async function* deliver(
  run: JobRun,
  { key, id, job }: Pick<Watched, "key" | "id"> & { readonly job: string | null },
  answer: Answer,
): AsyncGenerator<Event> {
  const { context, collecting, spent, submitting, failures, stream } = run;
  const { book, type, shared, client, toLines } = context;
  const item = book.get(key);
  const isFirst = item.subs[id]?.step === "open";
  // One that may have been another's of the same day.
  if (!isFirst && answer.failed && book.handle(key)?.sure === false) return;
  const failure = isFirst ? failureOf(item, answer) : undefined;
  const isRefresh = isFirst ? item.day !== "" : book.hasDelivered(stream, key);
  if (isFirst) {
    spent.credits += answer.cost;
    if (submitting.own.has(id) && OUT_OF_CREDITS.has(answer.code ?? "")) failures.outOfCredits();
    if (failure === undefined) await remember(run, book.answered(key, id, client.now(), answer.cost, null));
  }
  if (job !== null && shared.answers !== undefined && shared.answers.size < MOST_ANSWERS_KEPT)
    shared.answers.set(job, answer);
  const records = type.records(stream, { jobId: job, isRefresh, sources: sourcesOf(item) }, answer);
  yield* recordsOf(stream, toLines(records), client.now());
  collecting.answered += 1;
  advance(run, answer.cursor);
  // A failure costs nothing. The next run learns it from the state, or asks again.
  if (failure === undefined) book.deliver(stream, key);
  else
    book.change(key, id, { step: failure, ended: client.now(), code: answer.code, sources: answer.sources });
  yield* checkpointAfterAnswer(run);
}

/** What a result that brings no answer is; undefined for an answer, which the last failure of many is as well. */
function failureOf(item: Item, { failed, code }: Answer): "failed" | "unpaid" | undefined {
  if (!failed) return undefined;
  if (OUT_OF_CREDITS.has(code ?? "")) return "unpaid";
  return failedTimes(item) < FAILED_TIMES ? "failed" : undefined;
}

/**
 * Moves the schedule of jobs that brought nothing, if another job was answered properly: an address that is wrong
 * answers 404 to everything.
 */
export async function moveSchedules(run: JobRun): Promise<void> {
  const { book } = run.context;
  const { jobs, proper } = run.collecting;
  const moved = [...jobs.values()].flatMap(({ key, id, trouble }) => {
    const sub = trouble === undefined ? undefined : book.get(key).subs[id];
    if (sub === undefined) return [];
    const others = proper.size - Number(proper.has(id));
    return [book.change(key, id, { misses: sub.misses + Math.min(1, others) })];
  });
  if (moved.length > 0) await remember(run, ...moved);
}

/** Why the stream fails; undefined if jobs that bring nothing are the jobs' own fault. */
export function collectFailure({ context: { client }, collecting }: JobRun): Error | undefined {
  if (collecting.ended !== undefined) return collecting.ended;
  if (collecting.proper.size > 0) return undefined;
  const jobs = [...collecting.jobs.values()];
  const denied = jobs.filter(({ trouble }) => trouble?.kind === "denied");
  if (denied.length >= DENIED)
    return new ConfigError(
      `Cannot collect results: this key may not read any of the ${denied.length} jobs that were asked for. Use the key ` +
        "that submitted them. Nothing is lost: they are asked for again",
      { cause: denied[0]?.trouble?.error },
    );
  const isNews = ({ at, trouble }: Watched): boolean =>
    (trouble?.kind === "unusable" || trouble?.kind === "silent") && client.now() - at < NEWS_FOR;
  return jobs.find(isNews)?.trouble?.error;
}
