import type { Event } from "../sync/event.ts";
import { collectDue, collectFailure, deliver, postpone, schedule } from "./collect.ts";
import { unseal } from "./email-jobs.ts";
import {
  checkpoint,
  fail,
  isOver,
  type JobContext,
  type JobRun,
  newRun,
  nextDue,
  stateIfDue,
} from "./job-run.ts";
import { finalReport, openingReport, progressReport, unfinishedRefresh } from "./report.ts";
import { findItems, submitNext } from "./submit.ts";

const PROGRESS_MS = 30_000;
/** How far (ms) the service's clock may be off this machine's: a day of caps must be a day. */
const MAX_SKEW_MS = 26 * 3_600_000;

/**
 * Works on the items of one stream: asks for what earlier runs submitted, submits what is new, waits for answers, and
 * leaves the rest to the next run. A run that dies leaves no trace, a job to collect, or an unknown submission, which
 * is not repeated unasked: receipts and a checkpoint know it before it leaves.
 */
export async function* readJobs(context: JobContext): AsyncGenerator<Event> {
  const run = newRun(context);
  yield* begin(run);
  try {
    for (;;) {
      yield* checkClock(run);
      const asked = yield* collectDue(run);
      const submitted = yield* submitNext(run);
      const found = !submitted && (await findItems(run));
      if (found) yield* deliverSealed(run);
      if (!(asked || submitted || found) && !(await waitUntilDue(run))) break;
      yield* stateIfDue(run);
      yield* progress(run);
    }
  } finally {
    await run.source?.return(undefined).catch(() => undefined);
  }
  yield* conclude(run);
}

/** Looks at the items of the config, and at open jobs. Rows are read later, while jobs are worked on. */
async function* begin(run: JobRun): AsyncGenerator<Event> {
  const { isRefresh, isSecond, inputs, ready, book, memory, type } = run;
  const candidates = isSecond ? [] : await inputs.configured();
  if (!isSecond) run.source = inputs.fromRows();
  if (!isRefresh) run.submitting.queue.push(...candidates);
  // Items that rows named before are wanted although no list names them.
  schedule(run, book.collectable(run.stream, isRefresh || type.froms.length === 0));
  if (nextDue(run) !== undefined || candidates.length > 0) await ready();
  if (memory.blocked !== undefined) run.failures.end(memory.blocked);
  if (!isRefresh) yield* openingReport(run, candidates.length);
  yield* deliverSealed(run);
}

/** A clock that is days off makes caps by day useless. It may also be set while the run goes on. */
function* checkClock({ client, clock, failures, stream }: JobRun): Generator<Event> {
  const skew = client.now() - clock.now();
  if (Math.abs(skew) <= MAX_SKEW_MS || failures.ended) return;
  failures.ended = true;
  const hours = Math.round(Math.abs(skew) / 3_600_000);
  const text =
    `${stream}: the service's clock is ${hours} hours ${skew > 0 ? "ahead of" : "behind"} this machine's, so ` +
    "nothing is submitted, because caps by day would not hold. Correct this machine's clock, or tell the service's owner";
  yield { kind: "log", level: "warn", text };
}

/** Delivers responses that the receipts kept, now that their e-mails are known. */
async function* deliverSealed(run: JobRun): AsyncGenerator<Event> {
  const { inputs, book } = run;
  const found = [...inputs.found];
  inputs.found.clear();
  for (const [key, email] of found) {
    const { id, sealed = null } = book.retrievable(run.stream, key) ?? {};
    const answer = sealed === null ? undefined : unseal(book.salt.key, email, sealed);
    if (id !== undefined && answer !== undefined) yield* deliver(run, { key, id, job: null }, answer);
  }
}

/** Sleeps until a job is due, or progress is to be reported. Returns false if nothing is waited for in this run. */
async function waitUntilDue(run: JobRun): Promise<boolean> {
  const { client, clock, signal, type, isSecond, endsAt } = run;
  const due = nextDue(run);
  if (due === undefined || isSecond || isOver(run)) return false;
  const pause = due - client.now();
  if (pause > Math.min(type.maxWait - run.waited, endsAt - clock.monotonic())) return false;
  const began = clock.monotonic();
  try {
    await clock.sleep(Math.max(1, Math.min(pause, PROGRESS_MS)), signal);
  } catch (error) {
    fail(run, error);
  }
  run.waited += Math.max(1, clock.monotonic() - began);
  return true;
}

function* progress(run: JobRun): Generator<Event> {
  const now = run.clock.monotonic();
  if (now - run.lastProgress < PROGRESS_MS) return;
  run.lastProgress = now;
  yield progressReport(run);
}

/** Reports what was done and what is left, in a last state too. Throws what the stream fails for. */
async function* conclude(run: JobRun): AsyncGenerator<Event> {
  const { inputs, isRefresh, isSecond, book, client } = run;
  await postpone(run);
  if (!isSecond) {
    inputs.moveCursors();
    yield { kind: "records", stream: run.stream, lines: [], suppressed: inputs.suppressed, at: client.now() };
  }
  yield* finalReport(run);
  yield* checkpoint(run);
  const failure = run.failures.failure ?? collectFailure(run) ?? inputs.failure;
  if (failure !== undefined) throw failure;
  const isComplete = !isRefresh || (inputs.hasSeenAll && book.isRefreshed(run.stream, inputs.suppressed > 0));
  if (!isComplete) yield unfinishedRefresh(run);
  yield { kind: "close", stream: run.stream, complete: isComplete };
}
