import { Clock, DAY_MS } from "./clock.ts";
import { companyWriter } from "./companies.ts";
import { CompanyLookups } from "./company-lookups.ts";
import { Dataset, type Row } from "./dataset.ts";
import { EmailChecks } from "./email-checks.ts";
import type { JobOptions, Submitted } from "./job-options.ts";
import { personWriter } from "./people.ts";
import { Membership, type SourceRecord, sourceRecords } from "./sources.ts";

export type Plan = "enterprise" | "agency" | "inactive";

export type AccountOptions = {
  readonly people: number;
  readonly undated: number;
  readonly companies: number;
  readonly companiesDated: boolean;
  readonly companyFilters: boolean;
  readonly companyList: boolean;
  readonly sources: number;
  readonly seed: number;
  readonly days: number;
  readonly now: number | undefined;
  readonly newest: number | undefined;
  readonly plan: Plan;
  readonly allowedSources: readonly string[] | undefined;
  readonly pageCap: number;
  readonly jobs: JobOptions;
};

/** A set of records that is served as a list and as a stream. */
export type Collection = {
  readonly dataset: Dataset;
  /** One record as wire text, without a line feed. */
  readonly write: (row: Row) => string;
  /** Whether the date filters have an effect. */
  readonly honoursDates: boolean;
};

/** Everything that is submitted and then waited for. */
type Jobs = {
  readonly lookups: CompanyLookups;
  readonly checks: EmailChecks;
  readonly submitted: Submitted[];
  /** The HTTP status of the answer to a submission. */
  readonly status: number;
};

/** One customer organization: what it has, what it may see, and what time it is there. */
export type Account = {
  readonly clock: Clock;
  readonly plan: Plan;
  readonly people: Collection;
  readonly companies: Collection;
  readonly sources: readonly SourceRecord[];
  readonly membership: Membership;
  readonly hasCompanyList: boolean;
  /** The largest page that a list serves, whatever was asked. */
  readonly pageCap: number;
  readonly jobs: Jobs;
};

export function openAccount(options: AccountOptions): Account {
  const start = options.now ?? Date.now();
  const clock = new Clock(start);
  const sources = sourceRecords(options.sources).filter(
    ({ slug }) => options.allowedSources === undefined || options.allowedSources.includes(slug),
  );
  const slugs = sources.map(({ slug }) => slug);
  const membership = new Membership(slugs);
  const { plan, pageCap, companyList: hasCompanyList } = options;
  const people = peopleOf(options, options.newest ?? start, membership);
  const companies = companiesOf(options, start);
  const jobs: Jobs = {
    lookups: new CompanyLookups(clock, slugs[0] ?? "none", options.jobs),
    checks: new EmailChecks(clock, slugs, options.jobs),
    submitted: [],
    status: options.jobs.status ?? 202,
  };
  return { clock, plan, people, companies, sources, membership, hasCompanyList, pageCap, jobs };
}

function peopleOf(options: AccountOptions, newest: number, membership: Membership): Collection {
  const { people: dated, undated, seed, days, companies } = options;
  return {
    dataset: new Dataset({ dated, undated, newest, spanMs: days * DAY_MS, seed }),
    write: personWriter(seed, companies, membership),
    honoursDates: true,
  };
}

function companiesOf(options: AccountOptions, newest: number): Collection {
  const { companies: dated, seed, days, companiesDated, companyFilters } = options;
  return {
    dataset: new Dataset({ dated, undated: 0, newest, spanMs: days * DAY_MS, seed: seed + 7 }),
    write: companyWriter(seed, companiesDated),
    honoursDates: companyFilters,
  };
}
