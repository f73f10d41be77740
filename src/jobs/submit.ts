import { dayOf } from "../base/time.ts";
import type { Event } from "../sync/event.ts";
import { roomFor } from "./caps.ts";
import { checkpoint, checkpointAfterAnswer } from "./checkpoints.ts";
import { deliver, schedule, watch } from "./collect.ts";
import { sealedText } from "./email-jobs.ts";
import { type Candidate, MOST_HELD } from "./inputs.ts";
import { type JobRun, remember } from "./job-run.ts";
import type { Submission } from "./job-type.ts";
import { openOf } from "./lattice.ts";
import { seal } from "./seal.ts";
import { reasonToSubmit } from "./wanted.ts";

const OPEN_AT_ONCE = 20;
/** Before the first answer of a run one look-up is in flight; each that is silent for so long (ms) lets another go. */
const SILENT_MS = 300_000;
const MOST_BEFORE_ANSWER = 5;
/** A job that waits for longer (ms) holds no place among those in flight. */
const LONG_WAIT_MS = 3_600_000;

/** Where states take so long that none follows for this long (ms), submissions wait for others to leave with. */
const LONG_PAUSE_MS = 5_000;

/** An item whose intent is written. */
type PendingSubmission = Candidate & { readonly id: string; readonly at: number };

/** Reads rows for more items, if there are places for them. Returns whether it did. */
export async function findItems(run: JobRun): Promise<boolean> {
  const { context, submitting, source } = run;
  const { looksFirst, readsAllRows } = context.task;
  if (source === undefined || run.isOver) return false;
  const mayBuyMore = mayBuy(run) > 0;
  if (!looksFirst && (mayBuyMore ? submitting.queue.length > 0 : !readsAllRows)) return false;
  const { done, value } = await source.next();
  const room = looksFirst ? Math.max(0, MOST_HELD - submitting.queue.length) : undefined;
  if (done === true) run.source = undefined;
  else if (mayBuyMore) submitting.queue.push(...value.slice(0, room));
  schedule(run, context.inputs.found.keys());
  if (run.nextDue !== undefined || submitting.queue.length > 0)
    await context.client.ready().catch((error: unknown) => run.fail(error));
  return true;
}

/** Submits the next items that caps and places let go. Returns whether there were any. */
export async function* submitNext(run: JobRun): AsyncGenerator<Event, boolean> {
  const { context, submitting } = run;
  if (run.isOver || (context.task.looksFirst && run.source !== undefined)) return false;
  const wanted = Math.min(mayBuy(run), submitting.queue.length, batchSize(run));
  const free = places(run);
  const count = Math.min(wanted, free);
  // Where states are large, places have to become free first.
  const mayWait = run.states.share.pauseMs > LONG_PAUSE_MS && run.pause !== undefined && free < OPEN_AT_ONCE;
  if (count < 1 || (count < wanted && mayWait)) return false;
  const batch = await intend(run, submitting.queue.splice(0, count));
  const sent = batch.length;
  let began = context.clock.monotonic();
  try {
    if (sent > 0) yield* checkpoint(run, !context.memory.hasReceipts);
    began = context.clock.monotonic();
    while (batch.length > 0 && !run.failures.ended && !run.isOver) {
      const posts = batch.splice(0, atOnce(run)).map((pending) => submit(run, pending));
      const news = (await Promise.all(posts)).filter((one) => one !== undefined);
      // A kill must not lose the id of a job that only the state remembers.
      const announces =
        !context.memory.hasReceipts && news.some(({ submission }) => submission.kind === "taken");
      for (const { key, id, submission } of news) {
        if (submission.kind === "answered") yield* deliver(run, { key, id, job: null }, submission.answer);
        else if (!announces) yield* checkpointAfterAnswer(run);
      }
      if (announces) yield* checkpoint(run, true);
    }
  } finally {
    for (const pending of batch.reverse()) await withdraw(run, pending);
  }
  if (sent > 0) submitting.msEach = Math.max(1, (context.clock.monotonic() - began) / sent);
  return true;
}

/** How many submissions may be under way at once. */
const atOnce = ({ failures, context }: JobRun): number => (failures.isProbing ? 1 : context.type.postsAtOnce);

/** How many submissions one state announces: in several groups where states are so large that writing them takes its time. */
function batchSize(run: JobRun): number {
  const group = atOnce(run);
  const groups = run.states.share.pauseMs / run.submitting.msEach / group;
  return run.failures.isProbing ? 1 : group * Math.max(1, Math.ceil(groups));
}

/** Writes down what is about to leave. Nothing leaves if that fails. */
async function intend(run: JobRun, candidates: readonly Candidate[]): Promise<PendingSubmission[]> {
  const { book, type, memory, client, checkLocks } = run.context;
  const batch: PendingSubmission[] = [];
  try {
    await checkLocks();
    const news = [];
    for (const candidate of candidates) {
      // What is known of another spelling may have come to light since.
      if (reasonToSubmit(book.get(candidate.key), type.resubmitRules, client.now()) === undefined) continue;
      const { id, at, delta } = book.intend(candidate.key, client.now());
      batch.push({ ...candidate, id, at });
      run.submitting.own.add(id);
      news.push(delta);
    }
    await memory.write(type.setting, news);
  } catch (error) {
    run.failures.end(error);
    for (const pending of batch.splice(0).reverse()) await withdraw(run, pending);
  }
  return batch;
}

/** The service did not get a submission, or did not take it. `code`: why it may never take it in this form. */
async function withdraw(
  run: JobRun,
  { key, id }: PendingSubmission,
  code: string | null = null,
): Promise<void> {
  run.submitting.own.delete(id);
  await remember(run, run.context.book.notTaken(key, id, "void", code));
}

/** Returns what became of a submission; undefined if the run has to end without knowing. */
async function submit(
  run: JobRun,
  pending: PendingSubmission,
): Promise<(PendingSubmission & { readonly submission: Submission }) | undefined> {
  const { client, checkLocks } = run.context;
  let hasLeft = false;
  try {
    await client.requestSlot();
    await checkLocks();
    hasLeft = true;
    const submission = await client.submit(pending.item);
    await keep(run, pending, submission);
    return { ...pending, submission };
  } catch (error) {
    run.fail(error);
    if (!hasLeft) await withdraw(run, pending);
    return undefined;
  }
}

/** Keeps what became of a submission, in the book and on the disk, whether or not somebody still reads the output. */
async function keep(run: JobRun, pending: PendingSubmission, submission: Submission): Promise<void> {
  const { failures, context, spent, submitting } = run;
  const { book, memory, client } = context;
  const { key, id, at, item } = pending;
  if (submission.kind === "refused") {
    await recoverFrom(run, pending, submission);
    return;
  }
  spent.submissions += 1;
  if (submission.kind === "unknown") {
    failures.unknown(submission.error);
    return;
  }
  failures.taken();
  if (submission.kind === "taken") {
    const { jobId, notBefore } = submission;
    await remember(run, book.change(key, id, { step: "open", job: jobId, notBefore }));
    watch(run, { key, id, at, job: jobId, due: 0 }, notBefore);
  } else {
    const { answer } = submission;
    const sealed = memory.hasReceipts ? seal(memory.salt, item, sealedText(answer)) : null;
    await remember(run, book.answered(key, id, client.now(), answer.cost, sealed));
  }
  // The service takes another item, so the form of our requests is right.
  for (const doubted of submitting.doubted.splice(0)) await refuseItem(run, doubted, doubted.code);
}

async function recoverFrom(
  run: JobRun,
  pending: PendingSubmission,
  { error, why, code }: Extract<Submission, { kind: "refused" }>,
): Promise<void> {
  const { submitting, context, failures } = run;
  const recovery = failures.refused(error, why, context.clock.monotonic());
  const { retries } = failures;
  await withdraw(run, pending, recovery === "doubt" ? code : null);
  if (recovery === "refuse") await refuseItem(run, pending, code);
  if (recovery === "doubt") submitting.doubted.push({ ...pending, code });
  if (recovery !== "again") return;
  submitting.queue.unshift(pending);
  if (why === "time") await context.client.backOff(retries);
}

async function refuseItem(
  run: JobRun,
  { key, id, place }: Omit<PendingSubmission, "at">,
  code: string,
): Promise<void> {
  run.submitting.refused.push({ place, code });
  await remember(run, run.context.book.notTaken(key, id, "refused", code));
}

/** How many items the caps let go. */
function mayBuy({ context, failures, submitting }: JobRun): number {
  const { book, type, task, client } = context;
  if (failures.ended || !task.buys) return 0;
  return Math.min(
    roomFor(type.caps, book.charged(dayOf(client.now())), book.estimate),
    task.mostSubmissions - submitting.own.size,
    book.probesLeft(client.now()),
  );
}

/** How many more jobs may be in flight. */
function places({ context, collecting, submitting }: JobRun): number {
  const { book, type, client } = context;
  if (type.setting !== "companyLookup") return Number.POSITIVE_INFINITY;
  const now = client.now();
  const all = [...book.inFull()].flatMap(([, item]) => openOf(item));
  const open = all.filter(({ notBefore }) => (notBefore ?? 0) - now <= LONG_WAIT_MS);
  if (collecting.quickest !== undefined)
    return OPEN_AT_ONCE - open.filter(({ at }) => now - at <= LONG_WAIT_MS).length;
  const own = open.filter(({ id }) => submitting.own.has(id));
  const silent = own.filter(({ at }) => now - at >= SILENT_MS).length;
  return Math.min(MOST_BEFORE_ANSWER, 1 + silent) - own.length;
}
