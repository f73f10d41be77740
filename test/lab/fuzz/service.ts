import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { canonical, type Judged } from "./judge.ts";
import { type Line, NOW } from "./line.ts";

/** One request as the service sees it. `path`: without what a base URL puts before it. */
export type Request = { readonly method: string; readonly path: string; readonly query: URLSearchParams };

/** A service on a real socket, whose answers are another's to give, and another's each time. */
export type Service = {
  answer: (request: Request, response: ServerResponse) => void;
  readonly url: string;
  close(): Promise<void>;
};

export async function openService(): Promise<Service> {
  const server = createServer((request, response) => service.answer(toRequest(request), response));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const service: Service = {
    answer: (_, response) => void response.end(),
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}

function toRequest({ method = "GET", url = "/" }: IncomingMessage): Request {
  const { pathname, searchParams: query } = new URL(url, "http://127.0.0.1");
  return { method, path: pathname.slice(Math.max(0, pathname.indexOf("/api/"))), query };
}

export const KEY_NAMES = { people: "id", companies: "domain", sources: "slug" } as const;
export type Collection = keyof typeof KEY_NAMES;
export const COLLECTIONS = Object.keys(KEY_NAMES) as Collection[];

/** A line that the service holds, and what it is. */
export type Held = Line & { readonly judged: Judged };

/** The rows of one collection, and all that a faithful service says of them. */
export class Account {
  readonly collection: Collection;
  readonly held: readonly Held[];
  /** Lines that no list shows, and whether they count. */
  readonly counts: boolean;
  #newestFirst: readonly Held[] | undefined;

  constructor(collection: Collection, held: readonly Held[], counts = false) {
    this.collection = collection;
    this.held = held;
    this.counts = counts;
  }

  within({ from, to }: Days): readonly Held[] {
    if (from === null && to === null) return this.held;
    return this.held.filter(
      ({ day }) => day !== null && (from === null || day >= from) && (to === null || day <= to),
    );
  }

  /** How many there are: each key once among those with a date, and once among those without. */
  count(days: Days): number {
    const dated = new Set<string>();
    const undated = new Set<string>();
    for (const held of this.within(days)) {
      if (held.judged.kind === "row") (held.day === null ? undated : dated).add(identityOf(held));
      else if (this.counts) dated.add(held.text);
    }
    return dated.size + undated.size;
  }

  /** Newest first, those without a date before all others. */
  page(days: Days, page: number, limit: number): readonly Held[] {
    this.#newestFirst ??= newestFirst(this.held);
    const within = new Set(this.within(days));
    return this.#newestFirst.filter((held) => within.has(held)).slice((page - 1) * limit, page * limit);
  }
}

export type Days = { readonly from: string | null; readonly to: string | null };

export const daysOf = (query: URLSearchParams): Days => ({
  from: query.get("discovered_from"),
  to: query.get("discovered_to"),
});

/** What tells a row from others. */
export const identityOf = ({ judged, text }: Pick<Held, "judged" | "text">): string =>
  judged.kind === "row" && judged.key !== "" ? judged.key : `=${canonical(text)}`;

function newestFirst(held: readonly Held[]): readonly Held[] {
  const seen = new Set<string>();
  const rows = held.filter((one) => {
    if (one.judged.kind !== "row") return false;
    const id = `${one.day} ${identityOf(one)}`;
    if (seen.has(id)) return false;
    seen.add(id);
    return true;
  });
  return rows.sort((one, other) => ((other.day ?? "9999") < (one.day ?? "9999") ? -1 : 1));
}

/** A list's answer to a request, one byte a character. */
export function listText(account: Account, query: URLSearchParams): string {
  const [page, limit] = [Number(query.get("page") ?? 1), Number(query.get("limit") ?? 100)];
  const days = daysOf(query);
  const total = query.has("skip_count") ? null : account.count(days);
  const pages = total === null ? null : Math.ceil(total / limit);
  const data = account.page(days, page, limit).map(({ text }) => text.trim());
  return `{"success":true,"data":[${data.join(",")}],"pagination":{"page":${page},"limit":${limit},"total":${total},"totalPages":${pages}}}`;
}

export const HEADERS = { date: new Date(NOW).toUTCString() } as const;
