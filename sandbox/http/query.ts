import type { Account, Collection } from "../data/account.ts";
import { DAY_MS, startOfDay } from "../data/clock.ts";
import type { Filter } from "../data/dataset.ts";
import { invalidParameter, ServiceError } from "../data/service-error.ts";
import type { IsUser, Membership } from "../data/sources.ts";
import type { Distortion } from "../faults/distortion.ts";

/** One request on its way to a handler. */
export type Exchange = {
  readonly account: Account;
  /** The variable parts of the path, by name. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly distortion: Distortion;
  /** The body of a POST; empty for all else. */
  readonly body: string;
};

/** The filter that the request's parameters mean for a collection. Refuses malformed ones first, then foreign sources. */
export function filterOf({ account, query, distortion }: Exchange, collection: Collection): Filter {
  const days = parseDays(query, account.clock.now());
  const { source, isUser } = parseSubjects(query);
  checkSource(source, account.membership);
  const isBeginning = /^(?:0001|1970)-01-01$/.test(query.get("discovered_from") ?? "");
  if (isBeginning && distortion.beginning === "refused")
    throw invalidParameter("discovered_from is too early");
  if (distortion.ignoresFilters || (isBeginning && distortion.beginning === "ignored")) return {};
  const slots = account.membership.matching(source, isUser);
  return collection.honoursDates ? { ...days, slots } : { slots };
}

export type Paging = { readonly page: number; readonly limit: number; readonly skipCount: boolean };

const MAX_LIMIT = 1000;
const MAX_DAYS = 366;

export function parsePaging(query: URLSearchParams): Paging {
  const skip = query.get("skip_count");
  if (skip !== null && skip !== "1" && skip !== "true")
    throw invalidParameter('skip_count must be "1" or "true"');
  return {
    page: integer(query, "page", Number.MAX_SAFE_INTEGER) ?? 1,
    limit: integer(query, "limit", MAX_LIMIT) ?? 100,
    skipCount: skip !== null,
  };
}

type DayRange = Pick<Filter, "from" | "to">;

/** The days that the request asks for, as moments; `now` decides what today is. */
function parseDays(query: URLSearchParams, now: number): DayRange {
  const days = integer(query, "discovered_days", MAX_DAYS);
  const from = date(query, "discovered_from");
  const to = date(query, "discovered_to");
  if (days === undefined) return { from, to: to === undefined ? undefined : to + DAY_MS };
  if (from !== undefined || to !== undefined) {
    throw invalidParameter("discovered_days cannot be combined with discovered_from or discovered_to");
  }
  return { from: startOfDay(now) - (days - 1) * DAY_MS, to: startOfDay(now) + DAY_MS };
}

type Subjects = { readonly source: string | undefined; readonly isUser: IsUser };

function parseSubjects(query: URLSearchParams): Subjects {
  const isUser = query.get("is_user") ?? "all";
  if (isUser !== "all" && isUser !== "true" && isUser !== "false") {
    throw invalidParameter("is_user must be all, true or false");
  }
  const source = query.get("source") ?? undefined;
  if (source === "") throw invalidParameter("source must name a source");
  return { source, isUser };
}

/** Refuses a source that the organization does not have, whether or not it exists. */
function checkSource(source: string | undefined, membership: Membership): void {
  if (source !== undefined && !membership.has(source)) {
    throw new ServiceError(
      403,
      "SOURCE_NOT_ALLOWED",
      "The organization has no access to the requested source",
    );
  }
}

function integer(query: URLSearchParams, name: string, max: number): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > max) throw invalidParameter(`${name} must be an integer from 1 to ${max}`);
  return value;
}

/** The first moment of a day that the calendar has. */
function date(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text) {
    throw invalidParameter(`${name} must be a date, YYYY-MM-DD`);
  }
  return ms;
}
