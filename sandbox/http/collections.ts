import type { Collection } from "../data/account.ts";
import type { Dataset, Filter, Row } from "../data/dataset.ts";
import { mix } from "../data/random.ts";
import { ServiceError } from "../data/service-error.ts";
import { wireJson } from "../data/wire-text.ts";
import type { Answer } from "../faults/answer.ts";
import { type Distortion, omittedMembers, repeatedMembers } from "../faults/distortion.ts";
import { type Exchange, filterOf, type Paging, parsePaging } from "./query.ts";

export const listPeople = (exchange: Exchange): Answer => listRows(exchange, exchange.account.people);

export function listCompanies(exchange: Exchange): Answer {
  if (!exchange.account.hasCompanyList) throw new ServiceError(404, "NOT_FOUND", "No such endpoint");
  return listRows(exchange, exchange.account.companies);
}

export function listSources(exchange: Exchange): Answer {
  const sources = exchange.account.sources.slice(0, exchange.distortion.hides ? -1 : undefined);
  const paging = pagingOf(exchange);
  const first = firstPlace(exchange, paging);
  return listAnswer(
    exchange,
    paging,
    sources.length,
    sources.slice(first, first + paging.limit).map(wireJson),
  );
}

export const streamPeople = (exchange: Exchange): Answer => streamRows(exchange, exchange.account.people);

export const streamCompanies = (exchange: Exchange): Answer =>
  streamRows(exchange, exchange.account.companies);

function listRows(exchange: Exchange, collection: Collection): Answer {
  const { distortion } = exchange;
  const paging = pagingOf(exchange);
  const filter = filterOf(exchange, collection);
  const total = paging.skipCount && !distortion.shortPage ? 0 : countOf(exchange, collection, filter);
  const rows = pageOfRows(exchange, collection, filter, paging);
  const isShort = distortion.shortPage && paging.page === middlePage(total, paging.limit);
  const shown = isShort ? rows.slice(0, Math.floor(rows.length / 2)) : rows;
  return { ...listAnswer(exchange, paging, total, shown), page: { collection, filter } };
}

function countOf({ distortion }: Exchange, { dataset }: Collection, filter: Filter): number {
  if (!distortion.hides) return dataset.count(filter);
  return [...dataset.rows(filter, { hidden: omittedMembers(dataset.dated, distortion) })].length;
}

function pageOfRows(exchange: Exchange, collection: Collection, filter: Filter, paging: Paging): string[] {
  const { distortion } = exchange;
  const { write } = collection;
  const dataset = replica(exchange, collection);
  const offset = firstPlace(exchange, paging);
  if (offset + paging.limit > distortion.listDepth)
    throw new ServiceError(500, "INTERNAL_ERROR", "The result window is too large");
  const end = Math.min(paging.limit, distortion.listEnd - offset);
  const rows: string[] = [];
  for (const row of listed(distortion, dataset, filter, offset)) {
    if (rows.length >= end) break;
    rows.push(distortion.row(write(row), row.index, dataset.dated));
  }
  return rows;
}

/** The rows of a list from a place on. A shuffled list is put together at once, as small accounts can be. */
function listed(distortion: Distortion, dataset: Dataset, filter: Filter, offset: number): Iterable<Row> {
  const hidden = distortion.omittedFromLists ? omittedMembers(dataset.dated, distortion) : undefined;
  const { shuffleMs, shuffle } = distortion;
  if (shuffleMs === 0) return dataset.rows(filter, { offset, hidden });
  const place = ({ time }: Row): number => Math.floor((time ?? Number.NEGATIVE_INFINITY) / shuffleMs);
  const luck = ({ index }: Row): number => mix(index ^ mix(shuffle + 1));
  const rows = [...dataset.rows(filter, { hidden })];
  return rows.sort((a, b) => (place(a) === place(b) ? luck(a) - luck(b) : place(b) - place(a))).slice(offset);
}

function pagingOf({ query, account }: Exchange): Paging {
  const paging = parsePaging(query);
  return { ...paging, limit: Math.min(paging.limit, account.pageCap) };
}

const firstPlace = ({ distortion }: Exchange, { page, limit }: Paging): number =>
  (distortion.page(page) - 1) * limit;

/** A page that is not the first or the last, where there is one. */
const middlePage = (total: number, limit: number): number => Math.max(1, Math.ceil(total / limit / 2));

function listAnswer(
  { distortion }: Exchange,
  { page, limit, skipCount }: Paging,
  count: number,
  rows: readonly string[],
): Answer {
  const total = skipCount ? null : distortion.total(count);
  const totalPages = total === null ? null : Math.ceil(total / limit);
  return {
    status: 200,
    headers: { "content-type": "application/json; charset=utf-8" },
    pieces: listPieces(wireJson({ page, limit, total, totalPages }), rows),
    rows: () => rows.length,
    gzip: "accepted",
  };
}

function* listPieces(pagination: string, rows: readonly string[]): Generator<string> {
  yield `{"success":true,"pagination":${pagination},"data":[`;
  for (const [nth, row] of rows.entries()) yield nth === 0 ? row : `,${row}`;
  yield "]}";
}

function streamRows(exchange: Exchange, collection: Collection): Answer {
  const filter = filterOf(exchange, collection);
  const dataset = replica(exchange, collection);
  return {
    status: 200,
    headers: { "content-type": "application/x-ndjson" },
    pieces: lines(exchange, { ...collection, dataset }, filter),
    rows: () => collection.dataset.count(filter),
    gzip: "accepted",
    stream: { collection, filter },
  };
}

/** The source of lists and exports. */
const replica = ({ distortion: { lag }, account }: Exchange, { dataset }: Collection): Dataset =>
  lag === 0 ? dataset : dataset.until(account.clock.now() - lag * 1000);

function* lines({ distortion }: Exchange, { dataset, write }: Collection, filter: Filter): Generator<string> {
  const omitted = omittedMembers(dataset.dated, distortion);
  const repeated = repeatedMembers(dataset.dated, distortion);
  for (const row of dataset.rows(filter)) {
    if (omitted.size > 0 && omitted.has(row.index)) continue;
    const line = `${distortion.row(write(row), row.index, dataset.dated)}\n`;
    yield line;
    if (repeated.size > 0 && repeated.has(row.index)) yield line;
  }
}
