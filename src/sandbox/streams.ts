import type { Collection } from "./account.ts";
import type { Answer } from "./answer.ts";
import { type Exchange, filterOf } from "./exchange.ts";
import type { Filter } from "./roster.ts";
import { omittedMembers, repeatedMembers, type View } from "./view.ts";

export function streamPeople(exchange: Exchange): Answer {
  return streamRows(exchange, exchange.account.people);
}

export function streamCompanies(exchange: Exchange): Answer {
  return streamRows(exchange, exchange.account.companies);
}

function streamRows(exchange: Exchange, collection: Collection): Answer {
  const filter = filterOf(exchange, collection);
  return {
    status: 200,
    headers: { "content-type": "application/x-ndjson" },
    pieces: lines(collection, filter, exchange.view),
    rows: () => collection.roster.count(filter),
    compressible: true,
    stream: { collection, filter },
  };
}

function* lines({ roster, write }: Collection, filter: Filter, view: View): Generator<string> {
  const omitted = omittedMembers(roster.dated, view);
  const repeated = repeatedMembers(roster.dated, view);
  const isFaithful = omitted.size === 0 && repeated.size === 0;
  for (const row of roster.rows(filter)) {
    const line = `${write(row)}\n`;
    if (isFaithful) yield line;
    else if (!omitted.has(row.index)) {
      yield line;
      if (repeated.has(row.index)) yield line;
    }
  }
}
