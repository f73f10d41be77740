import { ConfigError, DataError } from "../base/errors.ts";
import { quoted } from "../base/json.ts";
import { DAY_MS } from "../base/time.ts";
import { normalizeItem } from "../config/items.ts";
import { OUT_OF_CREDITS } from "../service/error-table.ts";
import { type Event, warning } from "../sync/event.ts";
import { dueAt, FRESH_MS, isLastFailure, laterAt, nextPoll } from "./due.ts";
import { unseal } from "./email-jobs.ts";
import { fail, isOver, type JobRun, save, type Watched } from "./job-run.ts";
import type { Answer, JobReply, Problem } from "./job-type.ts";
import type { Item } from "./join.ts";
import { askOnce, toCursor } from "./requests.ts";

const ASKS_AT_ONCE = 3;
/** This many polls in a row without any answer are an outage. */
const SILENT_IN_A_ROW = 3;
/** After this many useless replies without any proper reply, polls end. The next run polls the other jobs. */
const MAX_USELESS = 50;
/** The stream fails if no reply was proper, and the key may not read at least this many jobs. */
const DENIED = 3;
/** Up to this age (ms) a job may reply "processing", because checks wait over weekends and holidays. */
const SLOW = 4 * DAY_MS;

/** Plans the polls of known jobs, and delivers responses that the receipts contain. */
export async function* collectKnown(run: JobRun, keys: Iterable<string>): AsyncGenerator<Event> {
  const { book, inputs, stream } = run;
  const { jobs } = run.collecting;
  for (const key of keys) {
    for (const sub of book.toCollect(stream, key)) {
      const { id, at, job, asked, sealed } = sub;
      const item = inputs.found.get(key) ?? "";
      const answer = sealed === null ? undefined : unseal(book.salt.key, item, sealed);
      if (answer !== undefined) yield* deliver(run, { key, id, job }, answer);
      else if (job !== null && !jobs.has(id))
        jobs.set(id, { key, id, job, at, due: dueAt(sub), asked: asked ?? 0 });
    }
  }
}

/** Plans the next poll of a job that was submitted in this run, or had no result. */
export function watch({ type, client, collecting }: JobRun, job: Watched, due: number | null): void {
  if (type.polling === null) return;
  const now = client.now();
  collecting.jobs.set(job.id, Object.assign(job, nextPoll(job.since ?? now, due, type.polling, now)));
}

/** Polls jobs that are due, in parallel, and delivers their answers. @returns whether any job was due */
export async function* collectDue(run: JobRun): AsyncGenerator<Event, boolean> {
  const { client, type, collecting } = run;
  if (isOver(run) || collecting.ended !== undefined) return false;
  const now = client.now();
  // Jobs with the oldest poll are first.
  const all = [...collecting.jobs.values()].filter(({ due }) => due <= now).sort((a, b) => a.asked - b.asked);
  const due = all.slice(0, ASKS_AT_ONCE);
  for (const job of due) [job.due, job.asked] = [Number.POSITIVE_INFINITY, now];
  const results = await Promise.allSettled(due.map(({ job }) => askOnce(client, type, job)));
  for (const [nth, job] of due.entries()) {
    const result = results[nth];
    if (result?.status === "fulfilled") yield* take(run, job, result.value);
    else fail(run, result?.reason);
  }
  return due.length > 0;
}

async function* take(run: JobRun, job: Watched, given: JobReply): AsyncGenerator<Event> {
  const { collecting, book } = run;
  const reply = yield* judged(run, job, given);
  if (given.kind !== "silent") collecting.silentInARow = 0;
  if (given.kind === "pending" || reply.kind === "answered") collecting.isProper = true;
  if (reply.kind !== "answered" && reply.kind !== "pending") return await takeProblem(run, job, reply);
  job.lastProblem = undefined;
  if (reply.kind === "answered") yield* deliver(run, job, reply.answer);
  else {
    book.change(job.key, job.id, { asked: job.asked, due: reply.due, code: null });
    watch(run, job, reply.due);
  }
}

/**
 * Judges a reply. An answer that names another item is delivered with a warning, because a company may have several
 * domains. If the other item was submitted too, the answer is unusable, because it may belong to the other item.
 */
function* judged(run: JobRun, { key, job, at }: Watched, reply: JobReply): Generator<Event, JobReply> {
  const { type, book, client, stream } = run;
  const isSlow = reply.kind === "pending" && reply.due === null && client.now() - at >= SLOW;
  if (isSlow) return { kind: "known", code: "processing", error: new Error("still processing") };
  if (reply.kind !== "answered") return reply;
  const { [type.kind]: text } = reply.answer.value;
  if (typeof text !== "string" || text === "") return reply;
  const item = normalizeItem(type.kind, text) ?? normalizeItem(type.kind, withoutUrl(text));
  if (item !== null && book.keyOf(item) === key) return reply;
  const where = `the answer about the job ${quoted(job)} names another item`;
  if (item !== null && book.has(book.keyOf(item))) {
    const error = new DataError(`Cannot ${type.collect.what}: ${where}. Tell the service's owner`);
    const cost = type.costOf(reply.answer.value);
    return { kind: "unusable", error, code: "the answer names another item", cost };
  }
  yield warning(`${stream}: ${where} than was submitted. It is delivered`);
  return reply;
}

/** The host or address of a URL. */
const withoutUrl = (text: string): string =>
  text.replace(/^\s*(?:[a-z][a-z\d+.-]*:\/\/|mailto:)/i, "").replace(/[/:?#].*$/s, "");

/** Notes a useless reply and charges its cost. Forgets the moment that the service named for the next poll. */
async function takeProblem(run: JobRun, job: Watched, problem: Problem): Promise<void> {
  const { collecting, spent, book, client } = run;
  const { kind, error, code, isRetryable = false, cost = 0 } = problem;
  const isFirst = job.lastProblem === undefined;
  job.lastProblem = problem;
  book.change(job.key, job.id, { asked: job.asked, due: null, code });
  if (kind === "silent") {
    collecting.silentInARow += 1;
    if (collecting.silentInARow >= SILENT_IN_A_ROW) collecting.ended ??= error;
    return;
  }
  const credits = book.chargeUnusable(job.key, job.id, client.now(), cost);
  spent.credits += credits;
  if (credits > 0) await save(run);
  collecting.uselessReplies += 1;
  if (collecting.uselessReplies >= MAX_USELESS && !collecting.isProper) collecting.ended ??= error;
  if (isRetryable && isFirst) watch(run, job, null);
}

/** Delivers an answer. The program writes the purchase to the receipts on the disk before it sends the records. */
export async function* deliver(
  run: JobRun,
  { key, id, job }: Pick<Watched, "key" | "id"> & { readonly job: string | null },
  answer: Answer,
): AsyncGenerator<Event> {
  const { spec, stream, book, type, client, toLines, collecting, spent, failures } = run;
  const item = book.get(key);
  const sub = item.subs.find((one) => one.id === id);
  const isFirst = sub?.step === "open";
  // Skips a failed answer of a covered submission, because another submission of the same day was answered.
  if (sub?.step === "covered" && answer.failed) return;
  const failure = isFirst ? failureOf(item, answer) : undefined;
  const hasEarlier = isFirst
    ? item.day !== "" || item.subs.some(({ step }) => step === "failed")
    : (item.delivered[stream] ?? "") !== "";
  if (isFirst) {
    const cost = type.costOf(answer.value);
    spent.credits += Math.max(0, cost - sub.charged);
    if (failure === undefined) book.answered(key, id, client.now(), cost, null);
    await save(run);
  }
  if (failure === "void") {
    collecting.unpaid += 1;
    failures.outOfCredits();
  }
  const records = type.records(stream, answer, job, hasEarlier);
  yield { kind: "records", stream, at: client.now(), ...toLines(records) };
  collecting.answered += 1;
  book.moveCursor(stream, toCursor(records.map(({ [spec.cursorField]: moment }) => moment)));
  run.hasChanged = true;
  // A failure costs nothing, so it may be written after its records. If the write is lost, the next run polls the job again.
  const code = failure === "failed" ? answer.code : null;
  if (failure === undefined) book.deliver(stream, key);
  else book.change(key, id, { step: failure, asked: client.now(), code });
}

/** The step after a result without an answer; undefined for an answer. The last allowed failure counts as an answer. */
function failureOf(item: Item, { failed, code }: Answer): "failed" | "void" | undefined {
  if (!failed) return undefined;
  if (OUT_OF_CREDITS.has(code ?? "")) return "void";
  return isLastFailure(item) ? undefined : "failed";
}

/** Postpones jobs without a result, but only after a proper reply. A wrong address answers 404 to everything. */
export async function postpone(run: JobRun): Promise<void> {
  const { book, client, collecting } = run;
  for (const { key, id, at, lastProblem } of collecting.isProper ? collecting.jobs.values() : [])
    if (lastProblem !== undefined) book.change(key, id, { due: laterAt(at, client.now()) });
  await save(run);
}

/** Why the stream fails; undefined if only single jobs are without a result. */
export function collectFailure({ client, collecting }: JobRun): unknown {
  if (collecting.ended !== undefined) return collecting.ended;
  if (collecting.isProper) return undefined;
  const jobs = [...collecting.jobs.values()];
  const denied = jobs.filter(({ lastProblem }) => lastProblem?.kind === "denied");
  if (denied.length >= DENIED)
    return new ConfigError(
      `Cannot collect results: this key may not read any of its ${denied.length} open jobs. Use the key that submitted the ` +
        "jobs. Nothing is lost: later runs ask again",
      { cause: denied[0]?.lastProblem?.error },
    );
  const isFresh = ({ at, lastProblem }: Watched): boolean =>
    (lastProblem?.kind === "unusable" || lastProblem?.kind === "silent") && client.now() - at < FRESH_MS;
  return jobs.find(isFresh)?.lastProblem?.error;
}
