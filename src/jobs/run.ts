import { type Event, warning } from "../sync/event.ts";
import { collectDue, collectFailure, collectKnown, postpone } from "./collect.ts";
import { checkpoint, fail, isOver, type JobRun, nextDue, stateIfDue } from "./job-run.ts";
import { finalReport, openingReport, progressReport, unfinishedRefresh } from "./report.ts";
import { findItems, submitNext } from "./submit.ts";

const PROGRESS_MS = 30_000;
/** The largest allowed difference (ms) between the clocks of the service and this machine. Daily caps need the right day. */
const MAX_SKEW_MS = 26 * 3_600_000;

/**
 * Runs one stream: polls known jobs, submits items and waits for answers. The next run continues. Receipts or state contain a
 * submission before its request. So a kill makes a submission unsent, open or unknown. Only `retry_unknown` repeats unknown ones.
 */
export async function* readJobs(run: JobRun): AsyncGenerator<Event> {
  yield* begin(run);
  for (;;) {
    if (hasWork(run)) await run.ready().catch((error: unknown) => fail(run, error));
    yield* checkClock(run);
    const asked = yield* collectDue(run);
    const submitted = yield* submitNext(run);
    const found = !submitted && (yield* findItems(run));
    if (!(asked || submitted || found) && !(yield* waitUntilDue(run))) break;
    yield* stateIfDue(run);
  }
  yield* conclude(run);
}

/** Prepares the items of the config and the open jobs. Rows are read later, because items of the config are first. */
async function* begin(run: JobRun): AsyncGenerator<Event> {
  const { isRefresh, buys, inputs, book, memory, type } = run;
  const candidates = await inputs.configured();
  if (buys) run.submitting.queue = [...candidates];
  if (memory.blocked !== undefined) run.failures.end(memory.blocked);
  if (buys) yield* openingReport(run, candidates.length);
  // With rows as sources, also polls items that no list names, because earlier rows named them.
  yield* collectKnown(run, book.collectable(run.stream, isRefresh || type.sources.length === 0));
}

/** Whether the next step is a request, so that the service's clock must be known. */
const hasWork = (run: JobRun): boolean =>
  !isOver(run) && (nextDue(run) < Number.POSITIVE_INFINITY || run.submitting.queue.length > 0);

/** Ends the submissions if a clock is wrong by days, because daily caps would not work. A clock may also change during a run. */
function* checkClock({ client, clock, failures, stream }: JobRun): Generator<Event> {
  const skew = client.now() - clock.now();
  if (Math.abs(skew) <= MAX_SKEW_MS || failures.ended) return;
  failures.ended = true;
  const hours = Math.round(Math.abs(skew) / 3_600_000);
  const text =
    `${stream}: the service's clock is ${hours} hours ${skew > 0 ? "ahead of" : "behind"} this machine's. Nothing is ` +
    "submitted, because daily caps need the right day. Correct this machine's clock, or tell the service's owner";
  yield warning(text);
}

/** Sleeps until a job is due or progress is due. @returns false if this run waits for nothing */
async function* waitUntilDue(run: JobRun): AsyncGenerator<Event, boolean> {
  const { client, clock, signal, maxWait, endsAt } = run;
  const pause = nextDue(run) - client.now();
  if (isOver(run) || pause > Math.min(maxWait - run.waited, endsAt - clock.monotonic())) return false;
  const began = clock.monotonic();
  try {
    await clock.sleep(Math.max(1, Math.min(pause, PROGRESS_MS)), signal);
  } catch (error) {
    fail(run, error);
  }
  run.waited += Math.max(1, clock.monotonic() - began);
  if (pause > PROGRESS_MS) yield progressReport(run);
  return true;
}

/** Ends the stream with a report and a state. @throws the reason if the stream fails */
async function* conclude(run: JobRun): AsyncGenerator<Event> {
  const { inputs, isRefresh, book, client } = run;
  await postpone(run);
  inputs.moveCursors();
  yield { kind: "records", stream: run.stream, lines: [], suppressed: inputs.suppressed, at: client.now() };
  yield* finalReport(run);
  yield* checkpoint(run);
  const failure = run.failures.failure ?? collectFailure(run) ?? inputs.failure;
  if (failure !== undefined) throw failure;
  const isComplete = !isRefresh || (inputs.hasSeenAll && book.isRefreshed(run.stream, inputs.suppressed > 0));
  if (!isComplete) yield unfinishedRefresh(run);
  yield { kind: "close", stream: run.stream, complete: isComplete };
}
