import { ConfigError } from "../base/errors.ts";
import { OUT_OF_CREDITS } from "../service/error-table.ts";
import type { Event } from "../sync/event.ts";
import { roomFor } from "./caps.ts";
import { collectKnown, deliver, watch } from "./collect.ts";
import { isInFlight, reasonToBuy } from "./due.ts";
import { seal } from "./email-jobs.ts";
import { type Candidate, MAX_WAITING } from "./inputs.ts";
import { checkpoint, fail, isOver, type JobRun, save, stateIfDue } from "./job-run.ts";
import type { Answer, SubmitReply } from "./job-type.ts";
import { submitOnce } from "./requests.ts";

/** Parallel submissions, after the service has taken the first submission. */
const AT_ONCE = 4;
/** A longer wait (ms) for the rate limit ends a batch, because a request must be sent soon after the wait. */
const PROMPT_MS = 100;
/** If the service refuses this many submissions and takes none, the form of the requests must be wrong. */
const FORM_REFUSALS = 3;
/** With more items, the state is too large for a write before each submission. Then the receipts contain the newest changes. */
const LARGE = 5_000;

/** An item whose submission is noted and not yet answered. */
type PendingSubmission = Candidate & { readonly id: string; readonly at: number };

/** Reads rows once, until the sync has enough items. With `scansAll` it reads all rows. @returns whether rows were read */
export async function* findItems(run: JobRun): AsyncGenerator<Event, boolean> {
  const { submitting, inputs, type, buys, scansAll } = run;
  const isWanted = room(run) > 0 ? submitting.queue.length === 0 : scansAll;
  if (run.hasReadRows || isOver(run) || !isWanted) return false;
  run.hasReadRows = true;
  const enough = scansAll ? Number.POSITIVE_INFINITY : Math.min(MAX_WAITING, type.caps.submissions.sync);
  for await (const found of inputs.fromRows()) {
    if (buys) submitting.queue = [...submitting.queue, ...found].slice(0, MAX_WAITING);
    yield* stateIfDue(run);
    if (submitting.queue.length >= enough || isOver(run)) break;
  }
  yield* collectKnown(run, inputs.found.keys());
  return true;
}

/**
 * Submits the next items that caps and open jobs allow. First waits for the rate limit, then checks locks, notes submissions
 * and sends requests. So a run that is killed while it waits notes no submission. @returns whether there were any items
 */
export async function* submitNext(run: JobRun): AsyncGenerator<Event, boolean> {
  const { book, memory, submitting, type } = run;
  const count = Math.min(room(run), submitting.queue.length, run.failures.isProbing ? 1 : AT_ONCE);
  if (isOver(run) || count < 1) return false;
  const slots = await takeSlots(run, count);
  if (slots === 0) return false;
  const batch: PendingSubmission[] = [];
  let replies: ReturnType<typeof submit>[] = [];
  try {
    await run.checkLocks();
    intend(run, slots, batch);
    await memory.save(type.setting);
    if (batch.length === 0) return true;
    if (book.size > LARGE && memory.hasReceipts) yield* stateIfDue(run);
    else yield* checkpoint(run, !memory.hasReceipts);
    await run.checkLocks();
    if (!isOver(run)) replies = batch.splice(0).map((pending) => submit(run, pending));
  } catch (error) {
    run.failures.end(error);
  } finally {
    for (const { key, id } of batch) book.notTaken(key, id, "void", null);
    await save(run);
  }
  for (const one of await Promise.all(replies)) if (one !== undefined) yield* deliver(run, ...one);
  run.hasChanged = true;
  // Without receipts, only the state contains the ids of the jobs. A kill must not lose the ids.
  if (!memory.hasReceipts) yield* checkpoint(run, true);
  return true;
}

/** Waits until the rate limit allows requests. @returns the number of allowed requests */
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

/** Notes submissions before they are sent. An item that cannot be noted is not sent. */
function intend({ submitting, book, type, client }: JobRun, count: number, batch: PendingSubmission[]): void {
  while (batch.length < count) {
    const candidate = submitting.queue.shift();
    if (candidate === undefined) return;
    const { key } = candidate;
    const now = client.now();
    if (reasonToBuy(book.get(key), type.resubmitRules, now) === undefined) continue;
    // An item that the caps do not allow yet remains in the queue.
    if (!book.mayBuy(key, type, now)) {
      submitting.queue.unshift(candidate);
      return;
    }
    const { id, at } = book.intend(key, now);
    batch.push({ ...candidate, id, at });
  }
}

/** Submits an item. @returns the answer and its submission, if the service answers at once */
async function submit(
  run: JobRun,
  pending: PendingSubmission,
): Promise<readonly [PendingSubmission & { readonly job: null }, Answer] | undefined> {
  const { client, type } = run;
  try {
    const reply = await submitOnce(client, type, pending.item);
    record(run, pending, reply);
    await save(run);
    return reply.kind === "answered" ? [{ ...pending, job: null }, reply.answer] : undefined;
  } catch (error) {
    fail(run, error);
    return undefined;
  }
}

/** Records the outcome of a submission. */
function record(run: JobRun, pending: PendingSubmission, reply: SubmitReply): void {
  const { failures, spent, submitting, book, memory, client, type } = run;
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
    watch(run, { key, id, at, job: jobId, due: 0, asked: 0 }, due);
  } else {
    const { answer } = reply;
    const sealed = memory.hasReceipts ? seal(book.salt.key, item, answer) : null;
    book.answered(key, id, client.now(), type.costOf(answer.value), sealed);
  }
  // The service took an item, so the form of the requests is right. Then the items that were refused before are wrong.
  for (const doubted of submitting.doubted.splice(0)) refuseItem(run, doubted, doubted.code);
}

/** Decides about an item that the service did not take: submit it again, refuse it, or end all submissions. */
function recoverFrom(
  run: JobRun,
  pending: PendingSubmission,
  { error, why, code }: Extract<SubmitReply, { kind: "refused" }>,
): void {
  const { submitting, clock, failures } = run;
  const { doubted, queue } = submitting;
  const isDoubt = why === "other-item" && !failures.hasTaken;
  run.book.notTaken(pending.key, pending.id, "void", isDoubt ? code : null);
  if (OUT_OF_CREDITS.has(code)) failures.outOfCredits();
  else if (isDoubt) {
    doubted.push({ ...pending, code });
    if (doubted.length >= FORM_REFUSALS) failures.end(wrongForm(error));
  } else if (why === "is-answer" || why === "other-item") refuseItem(run, pending, code);
  else if (failures.mayRetry(why, clock.monotonic())) queue.unshift(pending);
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

/** The number of items that caps, open jobs and this run allow. */
function room({ failures, book, type, buys, client }: JobRun): number {
  if (failures.ended || !buys) return 0;
  const open = book.unanswered.filter(isInFlight).length;
  return Math.min(roomFor(type.caps, book.account(client.now())), type.maxOpen - open);
}
