import { addDays, BEGINNING, type Day, dayOf, HOUR_MS } from "../base/time.ts";
import { FRESH_MS, isInFlight, probesLeft } from "./due.ts";
import { compare, isOut, type Submission } from "./join.ts";

/** Counters of one day, sync and run. They only grow. `back`: submissions that the service did not take. */
export type Spending = readonly [day: Day, sync: string, runId: string, ...Amounts];

type Amounts = readonly [submitted: number, back: number, credits: number];

/** When an answer arrived (epoch ms), and its credits. */
export type Price = readonly [at: number, credits: number];

/** The counters of a setting, and its last prices, oldest first. */
export type Charges = { readonly spent: readonly Spending[]; readonly prices: readonly Price[] };

export const NO_CHARGES: Charges = { spent: [], prices: [] };

/** Counters are kept for two months, because caps count months. */
const DAYS_KEPT = 62;
/** Each open job reserves the highest price of the last paid answers, at most this many. */
const PRICES_KEPT = 50;
/** The credits of a lost answer if no price is known. */
const UNKNOWN_PRICE = 10;

/** Joins two sets of charges, and removes old counters and prices. The join is commutative, associative and idempotent. */
export function joinCharges(a: Charges, b: Charges): Charges {
  const spent = new Map<string, Spending>();
  for (const counter of [...a.spent, ...b.spent]) {
    const known = spent.get(keyOf(counter)) ?? counter;
    spent.set(keyOf(counter), counter.map((part, nth) => larger(part, known[nth])) as unknown as Spending);
  }
  const all = [...spent.values()].sort(compare);
  const first = addDays(all.at(-1)?.[0] ?? BEGINNING, 1 - DAYS_KEPT);
  return {
    spent: all.filter(([day]) => day >= first),
    prices: lastPrices([...a.prices, ...b.prices].sort(compare)),
  };
}

const larger = <Part extends number | string>(one: Part, other: Part | undefined): Part =>
  other !== undefined && other > one ? other : one;

/** The sync is the last part, because a platform's name for a sync may contain the separator. */
const keyOf = ([day, sync, runId]: Spending): string => `${day}|${runId}|${sync}`;

/** The last paid prices, and the newest price even if it is 0. The newest price shows when the last answer arrived. */
function lastPrices(sorted: readonly Price[]): readonly Price[] {
  const all = sorted.filter((price, nth) => compare(price, sorted[nth - 1] ?? []) !== 0);
  const paid = new Set(all.filter(([, credits]) => credits > 0).slice(-PRICES_KEPT));
  return all.filter((price, nth) => paid.has(price) || nth === all.length - 1);
}

/** The counters of a run after an addition. The added amounts belong to the day and the sync of the submission. */
export function charge({ spent }: Charges, runId: string, { at, sync }: Submission, more: Amounts): Spending {
  const none: Spending = [dayOf(at), sync, runId, 0, 0, 0];
  const known = spent.find((one) => keyOf(one) === keyOf(none)) ?? none;
  return [dayOf(at), sync, runId, known[3] + more[0], known[4] + more[1], known[5] + more[2]];
}

/** The highest of the last prices in credits; 0: no answer has cost anything. */
const priceOf = ({ prices }: Charges): number => Math.max(0, ...prices.map(([, credits]) => credits));

/** The credits that are charged for a lost answer. */
export const priceOfLost = (charges: Charges): number => priceOf(charges) || UNKNOWN_PRICE;

/** Whether the cost of a submission is not known yet. */
export const isUncharged = (sub: Submission): boolean => isOut(sub) && sub.charged === 0;

export type Account = ReturnType<typeof accountOf>;

/**
 * The credits that were spent and that open jobs may cost, for a comparison with the caps.
 * `unanswered`: all unanswered submissions. `awaited`: unanswered submissions of this connection's items.
 */
export function accountOf(
  charges: Charges,
  { unanswered, awaited }: Readonly<Record<"unanswered" | "awaited", readonly Submission[]>>,
  { syncId, runId }: { readonly syncId: string; readonly runId: string },
  now: number,
) {
  const today = dayOf(now);
  const uncharged = unanswered.filter(isUncharged);
  // Lost: the answer was lost, the run was killed, or a job of an earlier day gave a useless reply. No run waits for these.
  const isLost = ({ id, step, asked, code, at }: Submission): boolean =>
    step === "unknown" ? asked !== null || !id.startsWith(`${runId}.`) : code !== null && dayOf(at) < today;
  const charged = (isInPeriod: Period): Charged => {
    const { submitted, credits } = chargedIn(charges, isInPeriod);
    const out = uncharged.filter(({ at, sync }) => isInPeriod(dayOf(at), sync));
    const lost = out.filter(isLost).length;
    return { submitted, credits: credits + lost * priceOfLost(charges), open: out.length - lost };
  };
  const price = priceOf(charges);
  const paid = charges.prices.filter(([, credits]) => credits > 0);
  const rise = paid.findIndex(([, credits]) => credits === price);
  const risenAt = rise > 0 ? (paid[rise]?.[0] ?? 0) : 0;
  return {
    sync: charged((_day, sync) => sync === syncId),
    day: charged((day) => day === today),
    month: charged((day) => day.slice(0, 7) === today.slice(0, 7)),
    /** Credits; 0: no answer has cost anything. */
    price,
    /** Whether this connection has an open job whose answer may show the first price. Another sync may have submitted the job. */
    isAwaited: awaited.some((sub) => isUncharged(sub) && !isLost(sub) && now - sub.at < FRESH_MS),
    /** Whether jobs of the last hour are open that are older than the last rise of the price. Their answers may cost more. */
    isRising: unanswered.some((sub) => isInFlight(sub) && sub.at < risenAt && now - sub.at < HOUR_MS),
    /** The number of items that may be submitted: limited only after several lost answers in a row. */
    probes: probesLeft(unanswered, charges.prices.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY, today),
  };
}

/** The submissions and the credits of each day. */
export const spentByDay = (charges: Charges): readonly (readonly [Day, number, number])[] =>
  [...new Set(charges.spent.map(([day]) => day))].map((day) => {
    const { submitted, credits } = chargedIn(charges, (one) => one === day);
    return [day, submitted, credits] as const;
  });

type Period = (day: Day, sync: string) => boolean;

/** The charges of one period. `open`: submissions whose cost is not known yet. */
export type Charged = { readonly submitted: number; readonly credits: number; readonly open: number };

function chargedIn({ spent }: Charges, isInPeriod: Period): Omit<Charged, "open"> {
  const sum = { submitted: 0, credits: 0 };
  for (const [day, sync, , submitted, back, credits] of spent) {
    if (!isInPeriod(day, sync)) continue;
    sum.submitted += submitted - back;
    sum.credits += credits;
  }
  return sum;
}
