import { spellingsOf } from "../config/items.ts";
import { type Event, NO_FACTS, recordsOf } from "../sync/event.ts";
import { lastCheckpoint, signOfLife } from "./checkpoints.ts";
import { collectDue, collectFailure, deliver, moveSchedules, schedule } from "./collect.ts";
import { unsealedAnswer } from "./email-jobs.ts";
import { type JobContext, JobRun, remember } from "./job-run.ts";
import { finalReport, openingReport, progressReport, unfinishedRefresh } from "./report.ts";
import { unseal } from "./seal.ts";
import { findItems, submitNext } from "./submit.ts";

const PROGRESS_MS = 30_000;
/** How far (ms) the service's clock may be off this machine's: a day of caps must be a day. */
const MOST_SKEW_MS = 26 * 3_600_000;

/**
 * Works on the items of one stream: asks for what earlier runs submitted, submits what is new, waits for answers, and
 * leaves the rest to the next run. Before each submission the receipts and a checkpoint say that it may leave, so a run
 * that dies at any moment leaves no trace, a job to collect, or an unknown, which nobody submits again unasked.
 */
export async function* readJobs(context: JobContext): AsyncGenerator<Event> {
  const run = new JobRun(context);
  yield* begin(run);
  try {
    for (;;) {
      yield* checkClock(run);
      const asked = yield* collectDue(run);
      const submitted = yield* submitNext(run);
      const found = !submitted && (await findItems(run));
      if (found) yield* deliverSealed(run);
      if (!(asked || submitted || found) && !(await waitUntilDue(run))) break;
      yield* signOfLife(run);
      yield* progress(run);
    }
  } finally {
    await run.source?.return(undefined).catch(() => undefined);
  }
  yield* conclude(run);
}

/** Looks at the items of the config, and at what is out. Rows are read later, while jobs are worked on. */
async function* begin(run: JobRun): AsyncGenerator<Event> {
  const { task, inputs, client, book, memory } = run.context;
  const candidates = task.isSecond ? [] : await inputs.configured();
  if (!task.isSecond && (task.buys || task.readsAllRows)) run.source = inputs.others();
  if (task.buys) run.submitting.queue.push(...candidates);
  const inFull = [...book.inFull()].map(([key]) => key).filter((key) => book.isWanted(key));
  schedule(run, new Set([...inFull, ...book.undelivered(run.stream)]));
  if (run.nextDue !== undefined || candidates.length > 0) await client.ready();
  if (memory.blocked !== undefined) run.failures.end(memory.blocked);
  if (task.buys) yield* openingReport(run, candidates.length);
  yield* deliverSealed(run);
}

/** A clock that is days off would make nothing of caps by day. It may also be set while the run goes on. */
function* checkClock({ context, failures, stream }: JobRun): Generator<Event> {
  const skew = context.client.now() - context.clock.now();
  if (Math.abs(skew) <= MOST_SKEW_MS || failures.ended) return;
  failures.ended = true;
  const hours = Math.round(Math.abs(skew) / 3_600_000);
  const text =
    `${stream}: the service's clock is ${hours} hours ${skew > 0 ? "ahead of" : "behind"} this machine's, so ` +
    "nothing is submitted, because caps by day would not hold. Correct this machine's clock, or tell the service's owner";
  yield { kind: "log", level: "warn", text };
}

/** Delivers responses that the receipts kept, now that their e-mails are known. */
async function* deliverSealed(run: JobRun): AsyncGenerator<Event> {
  const { inputs, book, memory } = run.context;
  const found = [...inputs.found];
  inputs.found.clear();
  for (const [key, email] of found) {
    const handle = book.handle(key);
    if (handle === null || !book.owes(run.stream, key)) continue;
    let text: string | undefined;
    for (const spelling of spellingsOf({ item: email, kind: "email", text: email }, 1))
      text ??= unseal(memory.salt, spelling, handle.sealed ?? "");
    if (text === undefined) continue;
    yield* deliver(run, { key, id: handle.id, job: null }, unsealedAnswer(email, handle.at, text));
  }
}

/** Sleeps until a job is due, or progress is to be told. Returns false if there is nothing to wait for in this run. */
async function waitUntilDue(run: JobRun): Promise<boolean> {
  const { clock, signal } = run.context;
  const { pause } = run;
  if (pause === undefined) return false;
  const began = clock.monotonic();
  try {
    await clock.sleep(Math.max(1, Math.min(pause, PROGRESS_MS)), signal);
  } catch (error) {
    run.fail(error);
  }
  run.waited += Math.max(1, clock.monotonic() - began);
  return true;
}

function* progress(run: JobRun): Generator<Event> {
  const now = run.context.clock.monotonic();
  if (now - run.lastProgress < PROGRESS_MS) return;
  run.lastProgress = now;
  yield progressReport(run);
}

/** Says what was done and what is left, in a last state too. Throws what the stream fails for. */
async function* conclude(run: JobRun): AsyncGenerator<Event> {
  const { inputs, task, book, shared, client } = run.context;
  await moveSchedules(run);
  if (!task.isSecond) {
    inputs.moveCursors();
    shared.hasSeenAll ||= inputs.hasSeenAll;
    shared.suppressed += inputs.suppressed;
    const facts = inputs.suppressed > 0 ? { ...NO_FACTS, suppressed: inputs.suppressed } : undefined;
    yield* recordsOf(run.stream, { lines: [], facts }, client.now());
  }
  // A refresh that knows no answer cannot tell what the platform would lose. Its second attempt must not forget that.
  const { truncates, generation } = task;
  const isBlind = truncates && book.isBlind(run.stream, generation);
  if (isBlind && generation !== null) await remember(run, book.markBlind());
  yield* finalReport(run);
  yield* lastCheckpoint(run);
  const failure = run.failures.failure ?? collectFailure(run) ?? inputs.failure;
  if (failure !== undefined) throw failure;
  const isComplete =
    !truncates || (shared.hasSeenAll && book.isComplete(run.stream, isBlind, shared.suppressed > 0));
  if (!isComplete) yield unfinishedRefresh(run);
  yield { kind: "close", stream: run.stream, complete: isComplete };
}
