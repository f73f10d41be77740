import { systemClock } from "../api/clock.ts";
import { type JobSetting, STREAMS } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { dayOf } from "../time.ts";
import { newsTo, openBook } from "./adopt.ts";
import { roomFor } from "./caps.ts";
import { newDigests } from "./digest.ts";
import { Inputs } from "./inputs.ts";
import { jobTypeOf, listsOf, MOST_WITHOUT_MEMORY, parseStates, saltOf } from "./job-session.ts";
import { readReceipts, receiptsPathOf } from "./receipts.ts";
import { nextAt, type Wishes, wantOf } from "./schedule.ts";
import { toText } from "./state.ts";
import type { JobBook } from "./store.ts";

/** One configured item. Moments are RFC 3339; null: none. */
export type ItemLife = {
  readonly item: string;
  readonly place: string;
  /** `new`, `done`, or a step of its job. */
  readonly step: string;
  readonly job_id: string | null;
  readonly submitted: string | null;
  /** When the job is asked for, or the item submitted, at the earliest; null: at once, or never. */
  readonly due: string | null;
  readonly credits: number | null;
  readonly code: string | null;
};

/** What the next run of one setting would do, and what is known of it. */
export type Outlook = {
  readonly setting: string;
  /** How many configured items the next run would submit. */
  readonly would_submit: number;
  /** Configured items that wait, those beyond the caps included. */
  readonly waiting: number;
  /** The streams whose rows name more items, which are known only when they are read. */
  readonly unknown_inputs: readonly string[];
  /** The most that the next run may cost under the caps, in credits; null: the setting costs none. */
  readonly may_cost: number | null;
  readonly open: number;
  readonly unknown: number;
  /** Entries of the config that are no items, and the places of the first. */
  readonly invalid: { readonly count: number; readonly places: readonly string[] };
  readonly submitted_today: number;
  readonly submitted_this_month: number;
  readonly spent_today: number;
  readonly spent_this_month: number;
  /** Day, submissions and credits. */
  readonly spent: readonly (readonly [string, number, number])[];
  readonly items: readonly ItemLife[];
};

/**
 * What the next run would submit and where every configured item stands. Asks the service nothing, takes no lock and
 * writes nothing. Throws ConfigError for a state or receipts that cannot be used.
 * @param states what the state says of each stream
 */
export async function outlooksOf(
  config: Config,
  environment: Readonly<Record<string, string | undefined>>,
  states: ReadonlyMap<string, unknown>,
): Promise<readonly Outlook[]> {
  const jobs = STREAMS.filter((spec) => spec.reading === "job" && config[spec.setting] !== null);
  const specs = jobs.filter((spec) => spec.reading === "job");
  const settings = [...new Set(specs.map(({ setting }) => setting))];
  const selected = specs.map(({ name }) => ({ name, syncMode: "incremental" }));
  const saved = new Map(settings.map((setting) => [setting, parseStates(setting, states)]));
  const place = receiptsPathOf(config, environment);
  const receipts =
    place === null ? undefined : await readReceipts(place.path, newsTo(saved, selected, false));
  const outlooks: Outlook[] = [];
  for (const setting of settings) {
    const known = saved.get(setting);
    if (known === undefined || known instanceof Error) throw known ?? new Error("Cannot look: no state");
    const { book } = openBook(
      known,
      selected.filter(({ name }) => known.has(name)),
      newDigests(receipts?.salt ?? saltOf(known)),
      (receipts?.news ?? []).filter((receipt) => receipt.setting === setting),
    );
    const hasState = [...known.values()].some(({ knowledge }) => knowledge !== null);
    const most = config.receiptsFile === "" && !hasState ? MOST_WITHOUT_MEMORY : Number.POSITIVE_INFINITY;
    outlooks.push(await outlookOf(setting, config, book, most));
  }
  return outlooks;
}

/** @param most how many items a run may submit, whatever the caps say */
async function outlookOf(setting: JobSetting, config: Config, book: JobBook, most: number): Promise<Outlook> {
  const type = jobTypeOf(setting, config, undefined);
  const lists = listsOf(setting, config);
  const now = systemClock.now();
  const inputs = new Inputs({
    kind: type.kind,
    ...lists,
    sources: [],
    book,
    want: (job, finished) => wantOf(job, finished, type.wishes, now),
    readsAll: false,
    now: () => now,
  });
  const items = new Map<string, ItemLife>();
  await inputs.look((entry, place) => {
    if (entry.item === null) return;
    const key = book.keyOf(entry);
    if (!items.has(key)) items.set(key, lifeOf(entry.item, place, key, book, type.wishes));
  });
  await inputs.configured();
  const day = book.dayToCharge(dayOf(now));
  const charged = book.charged(day);
  const { credits } = type.caps;
  const costs = Number.isFinite(credits.sync);
  const left = Math.min(
    credits.sync,
    credits.day - charged.day.credits,
    credits.month - charged.month.credits,
  );
  const room = Math.min(most, roomFor(type.caps, charged, costs ? 1 : 0));
  const wouldSubmit = Math.min(inputs.waiting, room);
  const mayCost = wouldSubmit > 0 || (lists.froms.length > 0 && room > 0) ? Math.max(0, left) : 0;
  const { spent } = book.knowledge(day);
  let open = 0;
  let unknown = 0;
  for (const [, { step }] of book.jobs()) {
    if (step === "open") open += 1;
    if (step === "unknown") unknown += 1;
  }
  return {
    setting: type.settingName,
    would_submit: wouldSubmit,
    waiting: inputs.waiting,
    unknown_inputs: lists.froms,
    may_cost: costs ? mayCost : null,
    open,
    unknown,
    invalid: inputs.invalid,
    submitted_today: charged.day.submitted,
    submitted_this_month: charged.month.submitted,
    spent_today: charged.day.credits,
    spent_this_month: charged.month.credits,
    spent: [...spent].map(([on, { submitted, credits: used }]) => [on, submitted, used] as const),
    items: [...items.values()],
  };
}

function lifeOf(item: string, place: string, key: string, book: JobBook, wishes: Wishes): ItemLife {
  const job = book.get(key);
  const finished = book.finished.dayOf(key);
  const due = nextAt(job, finished, wishes);
  return {
    item,
    place,
    step: job?.step ?? (finished === undefined ? "new" : "done"),
    job_id: job?.jobId ?? null,
    submitted: toText(job?.at ?? null),
    due: Number.isFinite(due) ? toText(due) : null,
    credits: job?.cost ?? null,
    code: job?.code ?? null,
  };
}
