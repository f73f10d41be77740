import { type Clock, DAY_MS, iso, startOfDay } from "./clock.ts";
import { FOREIGN_JOB, type JobOptions } from "./job-options.ts";
import { hashOf, hex, mix } from "./random.ts";
import { ServiceError } from "./service-error.ts";

type Lookup = {
  readonly id: string;
  readonly domain: string;
  readonly webhookUrl: string | undefined;
  readonly createdAt: number;
  readonly startsAt: number;
  readonly endsAt: number;
  result?: LookupResult;
};

type LookupResult = { readonly status: "success" | "error" } & Readonly<Record<string, unknown>>;

/** The answer of the result endpoint. */
export type LookupAnswer = { readonly status: number; readonly body: object };

/** Domains that never have contacts. A number at the beginning of another domain is the number of its contacts. */
const ERRORS: ReadonlyMap<string, string> = new Map([
  ["nobody.example", "COMPANY_NOT_FOUND"],
  ["broken.example", "INTERNAL_ERROR"],
  ["unpaid.example", "INSUFFICIENT_CREDITS"],
]);
const NOTHING_FOUND = { contacts: [], credits_used: 0 };
/** It is processing for ever. */
const LOST = "lost.example";
const LONGEST_TIMER_MS = 2_000_000_000;

/** Company lookups: a daily limit, credits, results that are polled and sent to webhooks. */
export class CompanyLookups {
  readonly #lookups = new Map<string, Lookup>();
  readonly #perDay = new Map<number, number>();
  readonly #clock: Clock;
  readonly #source: string;
  readonly #took: number;
  readonly #dailyLimit: number;
  #credits: number;
  #count = 0;

  constructor(clock: Clock, source: string, options: JobOptions) {
    this.#clock = clock;
    this.#source = source;
    this.#took = (options.lookupSeconds ?? 8) * 1000;
    this.#dailyLimit = options.dailyLookups ?? 100;
    this.#credits = options.credits ?? 1000;
  }

  get credits(): number {
    this.settle();
    return this.#credits;
  }

  /** Returns the job's id. */
  submit(domain: string, webhookUrl: string | undefined): string {
    this.settle();
    if (this.#credits <= 0) throw new ServiceError(500, "INSUFFICIENT_CREDITS", "Not enough credits");
    const now = this.#clock.now();
    const startsAt = this.#slot(now);
    const id = `job_${++this.#count}_${hex(mix(hashOf(domain) + this.#count))}`;
    const endsAt = domain === LOST ? Number.POSITIVE_INFINITY : startsAt + this.#took;
    this.#lookups.set(id, { id, domain, webhookUrl, createdAt: now, startsAt, endsAt });
    if (endsAt - now < LONGEST_TIMER_MS) setTimeout(() => this.settle(), endsAt - now + 1).unref();
    return id;
  }

  answer(id: string): LookupAnswer {
    this.settle();
    if (id === FOREIGN_JOB) throw new ServiceError(403, "ACCESS_DENIED", "The job is not accessible");
    const lookup = this.#lookups.get(id);
    const now = this.#clock.now();
    if (lookup?.result !== undefined) {
      return { status: lookup.result.status === "error" ? 500 : 200, body: lookup.result };
    }
    if (lookup !== undefined && now < lookup.startsAt) return { status: 202, body: this.#queued(lookup) };
    return { status: 202, body: { job_id: id, status: "processing", message: "The job is being processed" } };
  }

  /** Every job is gone, as if it had never been stored. */
  forget(): void {
    this.#lookups.clear();
  }

  /** Moves every job to the present. */
  settle(): void {
    const now = this.#clock.now();
    const due = [...this.#lookups.values()].filter(
      ({ endsAt, result }) => result === undefined && endsAt <= now,
    );
    for (const lookup of due.sort((a, b) => a.endsAt - b.endsAt)) {
      lookup.result = this.#work(lookup);
      if (lookup.webhookUrl !== undefined) void notify(lookup.webhookUrl, lookup.result);
    }
  }

  /** The first moment at which the daily limit lets another one through. */
  #slot(now: number): number {
    let day = startOfDay(now);
    while ((this.#perDay.get(day) ?? 0) >= this.#dailyLimit && this.#dailyLimit > 0) day += DAY_MS;
    this.#perDay.set(day, (this.#perDay.get(day) ?? 0) + 1);
    return Math.max(now, day);
  }

  #queued(lookup: Lookup): object {
    return {
      ...this.#head(lookup),
      status: "queued",
      ...NOTHING_FOUND,
      message: "The daily limit is reached: the job waits for its reset",
      scheduled_processing_time: iso(lookup.startsAt),
    };
  }

  #work(lookup: Lookup): LookupResult {
    const contacts = contactsOf(lookup.domain, this.#source, lookup.endsAt);
    const code =
      ERRORS.get(lookup.domain) ?? (contacts.length > this.#credits ? "INSUFFICIENT_CREDITS" : undefined);
    if (code !== undefined) {
      const message = `The lookup failed: ${code}`;
      return { ...this.#head(lookup), status: "error", ...NOTHING_FOUND, error_code: code, message };
    }
    this.#credits -= contacts.length;
    return { ...this.#head(lookup), status: "success", contacts, credits_used: contacts.length };
  }

  #head({ id, domain, createdAt }: Lookup): Omit<LookupResult, "status"> {
    return { job_id: id, domain, source: this.#source, created_at: iso(createdAt) };
  }
}

function contactsOf(domain: string, source: string, at: number): object[] {
  const given = /^(\d{1,3})\D/.exec(domain)?.[1];
  const count = given === undefined ? 1 + (hashOf(domain) % 4) : Number(given);
  return Array.from({ length: count }, (_, nth) => ({
    first_name: `First${nth + 1}`,
    last_name: `Last${hashOf(`${domain}${nth}`) % 1000}`,
    email: `person${nth + 1}@${domain}`,
    job_title: nth === 0 ? "Chief Executive" : "Engineer",
    linkedin_url: `https://profiles.example/${hex(hashOf(`${domain}/${nth}`))}`,
    company: domain.split(".")[0],
    company_domain: domain,
    verifications: [
      { source, isVerified: true, verifiedAt: iso(at), status: "verified" },
      ...(nth % 2 === 1 ? [{ source: "another", isVerified: null }] : []),
    ],
  }));
}

async function notify(url: string, result: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const signal = AbortSignal.timeout(5_000);
  const body = JSON.stringify(result);
  await fetch(url, { method: "POST", headers, body, signal }).catch(() => undefined);
}
