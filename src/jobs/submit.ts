import { ConfigError } from "../base/errors.ts";
import type { Event } from "../sync/event.ts";
import { roomFor } from "./caps.ts";
import { deliver, schedule, watch } from "./collect.ts";
import { isInFlight, reasonToBuy } from "./due.ts";
import { seal } from "./email-jobs.ts";
import { type Candidate, MAX_WAITING } from "./inputs.ts";
import { checkpoint, fail, isOver, type JobRun, nextDue, save, stateIfDue } from "./job-run.ts";
import type { SubmitReply } from "./job-type.ts";
import { submitOnce } from "./requests.ts";

/** How many submissions may be under way at once, once the service has taken one. */
const AT_ONCE = 4;
/** A slot that took longer (ms) than this ends a batch: requests must leave when their slots come. */
const PROMPT_MS = 100;
/** After this many refusals of the form of a request, and none taken, the form must be wrong. */
const FORM_REFUSALS = 3;
/** Beyond this number of items a state is too large for each submission: receipts alone know the last seconds. */
const LARGE = 5_000;

/** An item whose intent is written. */
type PendingSubmission = Candidate & { readonly id: string; readonly at: number };

/** Reads rows for more items, if more may be bought or every row counts. Returns whether it did. */
export async function findItems(run: JobRun): Promise<boolean> {
  const { submitting, source, inputs } = run;
  if (source === undefined || isOver(run)) return false;
  const { queue } = submitting;
  if (room(run) > 0 ? queue.length > 0 : !run.scanAllInputs) return false;
  const { done, value } = await source.next();
  if (done === true) run.source = undefined;
  else if (!run.isRefresh) queue.push(...value.slice(0, Math.max(0, MAX_WAITING - queue.length)));
  schedule(run, inputs.found.keys());
  if (nextDue(run) !== undefined || queue.length > 0)
    await run.ready().catch((error: unknown) => fail(run, error));
  return true;
}

/**
 * Submits the next items that caps and open jobs allow: slots, locks, intents, requests, in this order. A run that is
 * killed while it waits for the rate limit leaves no intent. Returns whether there were any.
 */
export async function* submitNext(run: JobRun): AsyncGenerator<Event, boolean> {
  const { book, memory, submitting } = run;
  const count = Math.min(room(run), submitting.queue.length, run.failures.isProbing ? 1 : AT_ONCE);
  if (isOver(run) || count < 1) return false;
  const slots = await takeSlots(run, count);
  const batch = slots === 0 ? [] : await intend(run, slots);
  if (batch.length === 0) return slots > 0;
  let replies: ReturnType<typeof submit>[] = [];
  try {
    if (book.size > LARGE && memory.hasReceipts) yield* stateIfDue(run);
    else yield* checkpoint(run, !memory.hasReceipts);
    await run.checkLocks();
    if (isOver(run)) return true;
    replies = batch.splice(0).map((pending) => submit(run, pending));
  } catch (error) {
    run.failures.end(error);
  } finally {
    for (const pending of batch) withdraw(run, pending);
    await save(run);
  }
  const taken = (await Promise.all(replies)).filter((one) => one !== undefined);
  // A kill must not lose the id of a job that only the state remembers.
  const announces = !memory.hasReceipts && taken.some(({ reply }) => reply.kind === "taken");
  for (const { key, id, reply } of taken) {
    if (reply.kind === "answered") yield* deliver(run, { key, id, job: null }, reply.answer);
  }
  run.hasChanged = true;
  if (announces) yield* checkpoint(run, true);
  return true;
}

/** Waits for slots of the rate limit. Returns how many came. */
async function takeSlots(run: JobRun, count: number): Promise<number> {
  const { client, clock } = run;
  try {
    if (run.failures.retries > 0) await client.backOff(run.failures.retries);
    for (let taken = 1; ; taken++) {
      const began = clock.monotonic();
      await client.requestSlot();
      if (taken === count || clock.monotonic() - began > PROMPT_MS) return isOver(run) ? 0 : taken;
    }
  } catch (error) {
    fail(run, error);
    return 0;
  }
}

/** Writes down what is about to leave. Nothing leaves if that fails. */
async function intend(run: JobRun, count: number): Promise<PendingSubmission[]> {
  const { submitting, book, type, memory, client, checkLocks } = run;
  const batch: PendingSubmission[] = [];
  try {
    await checkLocks();
    while (batch.length < count) {
      const candidate = submitting.queue.shift();
      if (candidate === undefined) break;
      const { key } = candidate;
      if (!book.mayBuy(key, type, client.now())) {
        // An item that the caps do not allow yet stays in the queue.
        if (reasonToBuy(book.get(key), type.resubmitRules, client.now()) === undefined) continue;
        submitting.queue.unshift(candidate);
        break;
      }
      const { id, at } = book.intend(key, client.now());
      batch.push({ ...candidate, id, at });
      submitting.own.add(id);
    }
    await memory.save(type.setting);
  } catch (error) {
    run.failures.end(error);
    for (const pending of batch.splice(0)) withdraw(run, pending);
    await save(run);
  }
  return batch;
}

/** The service did not get a submission, or did not take it. `code`: why it may never take it in this form. */
function withdraw(run: JobRun, { key, id }: PendingSubmission, code: string | null = null): void {
  run.submitting.own.delete(id);
  run.book.notTaken(key, id, "void", code);
}

/** Returns what became of a submission; undefined if the run has to end without knowing. */
async function submit(
  run: JobRun,
  pending: PendingSubmission,
): Promise<(PendingSubmission & { readonly reply: SubmitReply }) | undefined> {
  const { client, type } = run;
  try {
    const reply = await submitOnce(client, type, pending.item);
    record(run, pending, reply);
    await save(run);
    return { ...pending, reply };
  } catch (error) {
    fail(run, error);
    return undefined;
  }
}

/** Records what became of a submission in the book. */
function record(run: JobRun, pending: PendingSubmission, reply: SubmitReply): void {
  const { failures, spent, submitting, book, memory, client } = run;
  const { key, id, at, item } = pending;
  if (reply.kind === "refused") {
    recoverFrom(run, pending, reply);
    return;
  }
  spent.submissions += 1;
  if (reply.kind === "unknown") {
    failures.unknown(reply.error);
    spent.credits += book.chargeUnusable(key, id, client.now(), reply.cost);
    book.change(key, id, { asked: client.now() });
    return;
  }
  failures.taken();
  if (reply.kind === "taken") {
    const { jobId, due } = reply;
    book.change(key, id, { step: "open", job: jobId, due });
    watch(run, { key, id, at, job: jobId, due: 0 }, due);
  } else {
    const { answer } = reply;
    const sealed = memory.hasReceipts ? seal(book.salt.key, item, answer) : null;
    book.answered(key, id, client.now(), answer.cost, sealed);
  }
  // The service takes another item, so the form of our requests is right.
  for (const doubted of submitting.doubted.splice(0)) refuseItem(run, doubted, doubted.code);
}

/** An item that the service did not take is submitted again or refused, or the submissions end. */
function recoverFrom(
  run: JobRun,
  pending: PendingSubmission,
  { error, why, code }: Extract<SubmitReply, { kind: "refused" }>,
): void {
  const { submitting, clock, failures } = run;
  const { doubted, queue } = submitting;
  const isDoubt = why === "other-item" && !failures.hasTaken;
  withdraw(run, pending, isDoubt ? code : null);
  if (isDoubt) {
    doubted.push({ ...pending, code });
    if (doubted.length >= FORM_REFUSALS) failures.end(wrongForm(error));
  } else if (why === "is-answer" || why === "other-item") refuseItem(run, pending, code);
  else if (failures.mayRetry(why, clock.monotonic())) queue.unshift(pending);
  else if (why === "credits") failures.outOfCredits();
  else failures.end(error);
}

const wrongForm = (cause: Error): ConfigError =>
  new ConfigError(
    `${cause.message}. The service refused ${FORM_REFUSALS} submissions and took none, so nothing more was submitted. ` +
      "Check the items, and the address of the service",
    { cause },
  );

function refuseItem(run: JobRun, { key, id, place }: Omit<PendingSubmission, "at">, code: string): void {
  run.submitting.refused.push({ place, code });
  run.book.notTaken(key, id, "refused", code);
}

/** How many items caps, open jobs and this run let go. */
function room({ failures, submitting, ...run }: JobRun): number {
  const { book, type, isRefresh, isSecond, maxSubmissions, client } = run;
  if (failures.ended || isRefresh || isSecond) return 0;
  return Math.min(
    roomFor(type.caps, book.account(client.now())),
    maxSubmissions - submitting.own.size,
    type.maxOpen - book.unanswered.filter(isInFlight).length,
  );
}
