import type { Collection } from "./account.ts";
import type { Answer } from "./answer.ts";
import { ServiceError } from "./envelope.ts";
import { type Exchange, filterOf } from "./exchange.ts";
import { type Paging, parsePaging } from "./filters.ts";
import type { Filter } from "./roster.ts";
import { omittedMembers } from "./view.ts";
import { wireJson } from "./wire-text.ts";

export function listPeople(exchange: Exchange): Answer {
  return listRows(exchange, exchange.account.people);
}

export function listCompanies(exchange: Exchange): Answer {
  if (!exchange.account.hasCompanyList) throw new ServiceError(404, "NOT_FOUND", "No such endpoint");
  return listRows(exchange, exchange.account.companies);
}

export function listSources(exchange: Exchange): Answer {
  const { sources } = exchange.account;
  const paging = capped(parsePaging(exchange.query), exchange);
  const first = (exchange.view.page(paging.page) - 1) * paging.limit;
  const rows = sources.slice(first, first + paging.limit).map(wireJson);
  return listAnswer(paging, totalOf(exchange, paging, sources.length), rows);
}

function listRows(exchange: Exchange, collection: Collection): Answer {
  const paging = capped(parsePaging(exchange.query), exchange);
  const filter = filterOf(exchange, collection);
  const count = paging.skipCount && !exchange.view.shortPage ? 0 : collection.roster.count(filter);
  const rows = pageOfRows(exchange, collection, filter, paging);
  const isShort = exchange.view.shortPage && paging.page === middlePage(count, paging.limit);
  return listAnswer(
    paging,
    totalOf(exchange, paging, count),
    isShort ? rows.slice(0, Math.floor(rows.length / 2)) : rows,
  );
}

function pageOfRows(
  { view }: Exchange,
  { roster, write }: Collection,
  filter: Filter,
  paging: Paging,
): string[] {
  const hidden = view.omittedFromLists ? omittedMembers(roster.dated, view) : undefined;
  const rows: string[] = [];
  const offset = (view.page(paging.page) - 1) * paging.limit;
  for (const row of roster.rows(filter, { offset, hidden })) {
    rows.push(write(row));
    if (rows.length === paging.limit) break;
  }
  return rows;
}

const capped = (paging: Paging, { account }: Exchange): Paging => ({
  ...paging,
  limit: Math.min(paging.limit, account.pageCap),
});

const totalOf = ({ view }: Exchange, { skipCount }: Paging, count: number): number | null =>
  skipCount ? null : view.total(count);

/** A page that is neither the first nor the last, where there is one. */
const middlePage = (total: number, limit: number): number => Math.max(1, Math.ceil(total / limit / 2));

function listAnswer({ page, limit }: Paging, total: number | null, rows: readonly string[]): Answer {
  const totalPages = total === null ? null : Math.ceil(total / limit);
  return {
    status: 200,
    headers: { "content-type": "application/json; charset=utf-8" },
    pieces: listPieces(wireJson({ page, limit, total, totalPages }), rows),
    rows: () => rows.length,
    compressible: true,
  };
}

function* listPieces(pagination: string, rows: readonly string[]): Generator<string> {
  yield `{"success":true,"pagination":${pagination},"data":[`;
  for (const [nth, row] of rows.entries()) yield nth === 0 ? row : `,${row}`;
  yield "]}";
}
