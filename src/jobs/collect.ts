import { ConfigError } from "../errors.ts";
import { type Event, recordsOf } from "../streams/event.ts";
import { advance, checkpointAfterAnswer } from "./checkpoints.ts";
import { type Ask, type JobRun, remember, type Trouble } from "./job-run.ts";
import type { Answer, JobReply } from "./job-type.ts";
import { type Item, openOf, type Sub, sourcesOf } from "./lattice.ts";
import { dueAt, firstPolls, isSlow, nextPolls, type Polls } from "./schedule.ts";
import { FAILED_TIMES, failedTimes, OUT_OF_CREDITS } from "./wanted.ts";

const ASKS_AT_ONCE = 3;
/** How often a job that brings nothing of use is asked for in one run. */
const MOST_UNUSABLE = 3;
/** Requests in a row without any answer that are an outage. */
const SILENT_IN_A_ROW = 3;
/** Jobs in a row that bring nothing, and none that was answered: the rest is left to the next run. */
const UNUSABLE_IN_A_ROW = 50;
const DENIED = 3;
/** A job that brings nothing for longer (ms) no longer fails the stream. */
const NEWS_FOR = 7 * 86_400_000;
/** Answers that are kept for the setting's other stream. */
const MOST_ANSWERS_KEPT = 2_000;

/** Takes in the jobs of items that this stream waits for. Those that were not asked for the longest come first. */
export function schedule({ context, collecting, stream }: JobRun, keys: Iterable<string>): void {
  const { book, type, task, shared, client } = context;
  if (type.polling === null) return;
  const now = client.now();
  const plan = (ask: Ask, order: number): void => {
    if (!collecting.planned.has(ask.id)) collecting.agenda.add(ask, order);
    collecting.planned.add(ask.id);
  };
  for (const key of keys) {
    for (const sub of openOf(book.get(key))) {
      const { id, at, job } = sub;
      // The stream before this one has asked just now, and there was no answer.
      if (job === null || (task.isSecond && shared.asked.has(job))) continue;
      const due = dueAt(sub);
      if (due <= now) plan({ key, id, job, at }, sub.asked ?? 0);
      else if (!task.isSecond) plan({ key, id, job, at }, due);
    }
    const handle = book.owes(stream, key) ? book.handle(key) : null;
    if (handle !== null && handle.job !== null)
      plan({ key, id: handle.id, job: handle.job, at: handle.at }, 0);
  }
}

/** Takes in all that this stream waits for and that is known before rows are read. */
export function scheduleKnown(run: JobRun): void {
  const { book } = run.context;
  const open = [...book.inFull()].flatMap(([key]) => (book.isWanted(key) ? [key] : []));
  schedule(run, new Set([...open, ...book.undelivered(run.stream)]));
}

/** Plans the polls of a job that was submitted in this run. */
export function watch(
  { context: { type, client }, collecting }: JobRun,
  ask: Ask,
  notBefore: number | null,
): void {
  if (type.polling === null) return;
  collecting.planned.add(ask.id);
  planPolls(collecting, ask, firstPolls(notBefore, type.polling, client.now()));
}

/** Asks for the jobs that are due first, side by side, and delivers their answers. Returns whether any was due. */
export async function* collectDue(run: JobRun): AsyncGenerator<Event, boolean> {
  const { context, collecting } = run;
  if (run.isOver || collecting.ended !== undefined) return false;
  const due = collecting.agenda.take(context.client.now(), ASKS_AT_ONCE);
  const results = await Promise.allSettled(due.map((ask) => askFor(run, ask)));
  for (const [nth, ask] of due.entries()) {
    const result = results[nth];
    if (result?.status === "fulfilled") yield* takeAsked(run, ask, result.value);
    else run.fail(result?.reason);
  }
  return due.length > 0;
}

async function askFor({ context: { type, shared } }: JobRun, { job }: Ask): Promise<JobReply> {
  const answer = shared.answers?.get(job);
  if (answer !== undefined) return { kind: "answered", answer };
  shared.asked.add(job);
  return await type.ask(job);
}

async function* takeAsked(run: JobRun, ask: Ask, asked: JobReply): AsyncGenerator<Event> {
  const { collecting } = run;
  if (asked.kind !== "silent") collecting.silentInARow = 0;
  switch (asked.kind) {
    case "pending":
      takePending(run, ask, asked.notBefore);
      break;
    case "answered":
      isProper(run, ask);
      yield* deliver(run, ask, asked.answer);
      break;
    case "unusable":
    case "denied":
      takeUnusable(run, ask, asked);
      break;
    case "silent":
      collecting.silentInARow += 1;
      noteAsked(run, ask, {});
      addTrouble(run, ask, { error: asked.error, code: "no answer" });
      if (collecting.silentInARow >= SILENT_IN_A_ROW) collecting.ended ??= asked.error;
      break;
  }
}

/** Delivers an answer. What was paid is on the disk before the records leave. */
export async function* deliver(
  run: JobRun,
  { key, id, job }: Pick<Ask, "key" | "id"> & { job: string | null },
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
    if (submitting.own.has(id)) {
      collecting.hasAnswered = true;
      if (OUT_OF_CREDITS.has(answer.code ?? "")) failures.outOfCredits();
    }
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
  else book.ended(key, id, client.now(), failure, answer.code, answer.sources);
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
  const { context, collecting } = run;
  const { book } = context;
  const moved = [...collecting.troubles].flatMap(([id, { ask, code }]) => {
    const sub = book.get(ask.key).subs[id];
    if (sub === undefined) return [];
    const others = collecting.proper.size - (collecting.proper.has(id) ? 1 : 0);
    return [book.asked(ask.key, id, { ...sub, code, misses: sub.misses + (others > 0 ? 1 : 0) })];
  });
  if (moved.length > 0) await remember(run, ...moved);
}

/** Why the stream fails; undefined if jobs that bring nothing are the jobs' own fault. */
export function collectFailure({ context: { client }, collecting }: JobRun): Error | undefined {
  if (collecting.ended !== undefined) return collecting.ended;
  if (collecting.proper.size > 0) return undefined;
  const troubles = [...collecting.troubles.values()];
  const denied = troubles.filter(({ isDenied }) => isDenied);
  if (denied.length >= DENIED) return accessDenied(denied.length, denied[0]?.error);
  return troubles.find(
    ({ ask, isKnownJob, isDenied }) => !isKnownJob && !isDenied && client.now() - ask.at < NEWS_FOR,
  )?.error;
}

function takePending(run: JobRun, ask: Ask, notBefore: number | null): void {
  const { context, collecting } = run;
  const { book, client, type } = context;
  isProper(run, ask);
  if (isSlow(ask, client.now()) && notBefore === null) {
    noteAsked(run, ask, {});
    addTrouble(run, ask, { error: new Error("still processing"), code: "processing", isKnownJob: true });
    return;
  }
  book.asked(ask.key, ask.id, { asked: client.now(), notBefore, misses: 0, code: null });
  if (type.polling !== null)
    planPolls(
      collecting,
      ask,
      nextPolls(collecting.polls.get(ask.id), notBefore, type.polling, client.now()),
    );
}

function takeUnusable(
  run: JobRun,
  ask: Ask,
  asked: Extract<JobReply, { kind: "unusable" | "denied" }>,
): void {
  const { context, collecting } = run;
  const { type, client } = context;
  const { error, code } = asked;
  const isDenied = asked.kind === "denied";
  addTrouble(run, ask, { error, code, isDenied, isKnownJob: !isDenied && asked.isKnownJob });
  noteAsked(run, ask, { code });
  const asks = (collecting.unusableAsks.get(ask.id) ?? 0) + 1;
  collecting.unusableAsks.set(ask.id, asks);
  collecting.unusableInARow += 1;
  if (collecting.unusableInARow >= UNUSABLE_IN_A_ROW && collecting.proper.size === 0)
    collecting.ended ??= error;
  if (!isDenied && asked.isRetryable && asks < MOST_UNUSABLE && type.polling !== null)
    planPolls(collecting, ask, nextPolls(collecting.polls.get(ask.id), null, type.polling, client.now()));
}

/** A job was asked for in vain: what the service said of its time no longer counts. */
function noteAsked(
  { context: { book, client } }: JobRun,
  { key, id }: Ask,
  fields: Partial<Pick<Sub, "code">>,
): void {
  const sub = book.get(key).subs[id];
  if (sub !== undefined) book.asked(key, id, { ...sub, ...fields, asked: client.now(), notBefore: null });
}

const addTrouble = (
  { collecting }: JobRun,
  ask: Ask,
  trouble: Pick<Trouble, "error" | "code"> & Partial<Trouble>,
): void => {
  collecting.troubles.set(ask.id, { isDenied: false, isKnownJob: false, ...trouble, ask });
};

function isProper({ collecting }: JobRun, { id }: Ask): void {
  collecting.proper.add(id);
  collecting.troubles.delete(id);
  collecting.unusableInARow = 0;
}

function planPolls({ polls, agenda }: JobRun["collecting"], ask: Ask, next: Polls): void {
  polls.set(ask.id, next);
  if (next.next !== null) agenda.add(ask, next.next);
}

const accessDenied = (count: number, cause: Error | undefined): ConfigError =>
  new ConfigError(
    `Cannot collect results: this key may not read ${count === 1 ? "the one job that was" : `any of the ${count} jobs that were`} asked for. Use the key that ` +
      "submitted them. Nothing is lost: they are asked for again",
    { cause },
  );
