import type { Account, Collection } from "./account.ts";
import { checkSource, parseDays, parseSubjects } from "./filters.ts";
import type { Filter } from "./roster.ts";
import type { View } from "./view.ts";

/** One request on its way to a handler. */
export type Exchange = {
  readonly account: Account;
  /** The variable parts of the path, by name. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The key as the client sent it. */
  readonly key: string;
  readonly view: View;
  /** The body of a POST; empty for all else. */
  readonly body: string;
};

/** The filter that the request's parameters mean for a collection. Refuses malformed ones first, then foreign sources. */
export function filterOf({ account, query, view }: Exchange, collection: Collection): Filter {
  const days = parseDays(query, account.clock.now());
  const { source, isUser } = parseSubjects(query);
  checkSource(source, account.membership);
  if (view.ignoresFilters) return {};
  const residues = account.membership.matching(source, isUser);
  return collection.honoursDates ? { ...days, residues } : { residues };
}
