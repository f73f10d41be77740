import type { JobSetting } from "../catalog/streams.ts";
import { dayOf, endOf } from "../time.ts";
import type { Digesting } from "./digest.ts";
import { FinishedItems } from "./finished-items.ts";
import type { Job } from "./job.ts";
import type { IsNews, Receipt } from "./receipts.ts";
import type { Saved } from "./state.ts";
import { JobBook, type Knowledge, type Ledger } from "./store.ts";

type Stream = { readonly name: string; readonly syncMode: string };

/** What a run of one setting's streams begins with. */
export type OpenedBook = {
  readonly book: JobBook;
  /** Responses of verifications, by item. */
  readonly sealed: ReadonlyMap<string, string>;
  /** How many items were bought whose answers a full refresh cannot deliver again. */
  readonly unrecoverable: number;
};

/**
 * Up to which moment (epoch ms) a state knows all of an item: its newest submission, or the end of the day of its
 * answer, because an item is never submitted again on the day of its answer. -Infinity: it does not know the item. Of a
 * submission without an answer the receipts may know more: a run that was killed wrote them last.
 */
function horizonOf({ ledgers }: Knowledge, key: string): number {
  let horizon = Number.NEGATIVE_INFINITY;
  for (const { jobs, finished } of ledgers) {
    const day = finished.dayOf(key);
    const answered = day === undefined ? horizon : Date.parse(endOf(day));
    const job = jobs.get(key);
    const isWaiting = job?.step === "unknown" || job?.step === "open";
    horizon = Math.max(horizon, answered, job === undefined ? horizon : job.at - (isWaiting ? 1 : 0));
  }
  return horizon;
}

/** The states of a setting: a stream without one goes by what the setting's other stream knows. */
function knowledgeOf(saved: ReadonlyMap<string, Saved>, stream: string): Knowledge | undefined {
  const own = saved.get(stream)?.knowledge;
  return own ?? [...saved.values()].find(({ knowledge }) => knowledge !== null)?.knowledge ?? undefined;
}

/** Says which submissions no state knows, for any of the selected streams. A full refresh wants them all. */
export function newsTo(
  saved: ReadonlyMap<JobSetting, ReadonlyMap<string, Saved> | Error>,
  selected: readonly Stream[],
  isFullRefresh: boolean,
): IsNews {
  return (setting, key, at) => {
    const states = saved.get(setting);
    if (states === undefined || states instanceof Error) return false;
    if (isFullRefresh) return true;
    return selected
      .filter(({ name }) => states.has(name))
      .some(({ name }) => isNewsTo(knowledgeOf(states, name), key, at));
  };
}

const isNewsTo = (knowledge: Knowledge | undefined, key: string, at: number): boolean =>
  knowledge === undefined || at > horizonOf(knowledge, key);

/**
 * Puts together what the states of a setting's streams and the receipts know. What one knows and another does not is
 * taken over, so a lost state costs neither money nor answers.
 */
export function openBook(
  saved: ReadonlyMap<string, Saved>,
  selected: readonly Stream[],
  digests: Digesting,
  receipts: readonly Receipt[],
): OpenedBook {
  const book = new JobBook(merge(saved, selected), digests);
  const sealed = new Map<string, string>();
  for (const receipt of receipts) {
    adopt(book, receipt, saved, selected);
    if (receipt.sealed !== null) sealed.set(receipt.key, receipt.sealed);
  }
  const costs = receipts.flatMap(({ job }) => (job.cost === null ? [] : [job.cost]));
  book.learnPrices(costs);
  return { book, sealed, unrecoverable: book.size - book.jobCount };
}

/** Takes over a submission that the receipts know, the older ones of an item first. */
function adopt(
  book: JobBook,
  { key, job, sealed }: Receipt,
  saved: ReadonlyMap<string, Saved>,
  selected: readonly Stream[],
): void {
  const known = book.get(key);
  const finished = book.finished.dayOf(key);
  const horizon = Math.max(
    known?.at ?? Number.NEGATIVE_INFINITY,
    finished === undefined ? Number.NEGATIVE_INFINITY : Date.parse(endOf(finished)),
  );
  const owed = selected
    .filter(
      ({ name, syncMode }) => syncMode === "full_refresh" || isNewsTo(knowledgeOf(saved, name), key, job.at),
    )
    .map(({ name }) => name);
  const canBeHad = job.jobId !== null || sealed !== null;
  if (known?.at === job.at) {
    if (known.cost === null && job.cost !== null) book.addCost(job.day, job.cost);
    book.put(key, { ...fuller(known, job), owed: [...new Set([...known.owed, ...owed])] });
    return;
  }
  if (isRefusal(job)) {
    if (job.at > horizon) book.adopt(key, job);
    return;
  }
  if (job.at > horizon) {
    book.addCharge(job.day, job.cost ?? 0);
    if (job.step === "answered" && !canBeHad) book.finish(key, dayOf(job.ended ?? job.at));
    else book.adopt(key, { ...job, owed: job.step === "failed" ? [] : owed });
    return;
  }
  // It was answered and delivered, but not to every stream.
  if (owed.length === 0 || !canBeHad || (known !== undefined && known.at > job.at)) return;
  book.adopt(key, { ...job, step: "answered", cost: job.cost ?? 0, ended: job.ended ?? job.at, owed });
}

/** Whether the service has not taken an item, so that nothing was charged. */
const isRefusal = ({ step }: Job): boolean => step === "refused" || step === "doubted";

/** Of two descriptions of one submission what each knows. A failure that was not delivered is asked for again. */
function fuller(known: Job, receipt: Job): Job {
  if (known.step !== "unknown" && known.step !== "open") return known;
  const step = receipt.step === "unknown" || receipt.step === "failed" ? known.step : receipt.step;
  return {
    ...known,
    step: receipt.jobId !== null && step === "unknown" ? "open" : step,
    jobId: known.jobId ?? receipt.jobId,
    notBefore: known.notBefore ?? receipt.notBefore,
    asked: Math.max(known.asked ?? 0, receipt.asked ?? 0) || null,
    misses: Math.max(known.misses, receipt.misses),
    cost: receipt.step === "answered" ? receipt.cost : known.cost,
    ended: receipt.step === "answered" ? receipt.ended : known.ended,
  };
}

/** One knowledge of the states of a setting's streams. */
function merge(saved: ReadonlyMap<string, Saved>, selected: readonly Stream[]): Knowledge {
  const states = [...saved].flatMap(([stream, { knowledge }]) =>
    knowledge === null ? [] : [{ stream, knowledge }],
  );
  const [first, second] = states;
  const names = selected.map(({ name }) => name);
  if (first === undefined) return { ledgers: [], spent: new Map(), prices: [], inputs: [] };
  if (second === undefined) return withNewStreams(first.knowledge, names);
  const spent = new Map(first.knowledge.spent);
  for (const [day, theirs] of second.knowledge.spent) {
    const ours = spent.get(day) ?? { submitted: 0, credits: 0 };
    spent.set(day, {
      submitted: Math.max(ours.submitted, theirs.submitted),
      credits: Math.max(ours.credits, theirs.credits),
    });
  }
  const others = second.knowledge.ledgers.filter((ledger) => twin(first.knowledge, ledger) === undefined);
  const ledgers = first.knowledge.ledgers.map((ledger) => {
    const other = twin(second.knowledge, ledger);
    return other === undefined ? ledger : mergeLedgers(ledger, other, first.stream, second.stream);
  });
  const { prices, inputs } = first.knowledge;
  return {
    ledgers: [...ledgers, ...others],
    spent,
    prices: prices.length > 0 ? prices : second.knowledge.prices,
    inputs: inputs.length > 0 ? inputs : second.knowledge.inputs,
  };
}

const twin = ({ ledgers }: Knowledge, { digests }: Ledger): Ledger | undefined =>
  ledgers.find(
    (other) => other.digests.salt === digests.salt && other.digests.normalization === digests.normalization,
  );

/** A stream without a state of its own starts with the jobs that are open. */
function withNewStreams(knowledge: Knowledge, names: readonly string[]): Knowledge {
  const ledgers = knowledge.ledgers.map((ledger) => {
    const jobs = [...ledger.jobs].map(([key, job]): [string, Job] => [
      key,
      job.step === "open" ? { ...job, owed: [...new Set([...job.owed, ...names])] } : job,
    ]);
    return { ...ledger, jobs: new Map(jobs) };
  });
  return { ...knowledge, ledgers };
}

/** The newest submission of each item counts; each stream says itself what it has delivered. */
function mergeLedgers(ours: Ledger, theirs: Ledger, our: string, their: string): Ledger {
  const jobs = new Map<string, Job>();
  const finished = new FinishedItems();
  for (const { finished: done } of [ours, theirs])
    for (const [day, packed] of done.toPacked()) finished.addPacked(day, packed);
  for (const key of new Set([...ours.jobs.keys(), ...theirs.jobs.keys()])) {
    const one = ours.jobs.get(key);
    const other = theirs.jobs.get(key);
    const newest = one === undefined || (other !== undefined && other.at > one.at) ? other : one;
    if (newest === undefined) continue;
    const views = [
      { stream: our, ledger: ours, job: one },
      { stream: their, ledger: theirs, job: other },
    ];
    const isDelivered = ({ stream, ledger, job }: (typeof views)[number]): boolean => {
      const day = ledger.finished.dayOf(key);
      if (day !== undefined && Date.parse(endOf(day)) >= newest.at) return true;
      return job?.at === newest.at && !job.owed.includes(stream);
    };
    const owed = views.filter((view) => !isDelivered(view)).map(({ stream }) => stream);
    const day = finished.dayOf(key);
    const isDone = day !== undefined && Date.parse(endOf(day)) >= newest.at;
    if (!isDone) {
      const fullest =
        one?.at === other?.at && one !== undefined && other !== undefined ? fullestOf(one, other) : newest;
      jobs.set(key, { ...fullest, owed });
      finished.delete(key);
    } else if (owed.length > 0 && newest.jobId !== null) {
      // The other stream has delivered it, so what it cost is charged.
      jobs.set(key, {
        ...newest,
        step: "answered",
        cost: newest.cost ?? 0,
        ended: newest.ended ?? Date.parse(endOf(day)),
        owed,
      });
      finished.delete(key);
    }
  }
  return { digests: ours.digests, jobs, finished };
}

/** The description that came further. */
const fullestOf = (one: Job, other: Job): Job =>
  (other.ended ?? other.asked ?? 0) > (one.ended ?? one.asked ?? 0) ? other : one;
