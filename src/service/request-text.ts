import { objectOf } from "../base/json.ts";
import { plural } from "../base/text.ts";

/** The part of a request that a log may contain. The log must not contain the body of a POST, because the body names an item. */
export type Logged = {
  /** The end of "Cannot …", such as "collect a company look-up". */
  readonly what: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly isExport?: boolean;
};

/** Describes a request ("Export of people, 2026-01-02 to 2026-01-09", "Count of people, all days", "Collect a company look-up"). */
export function requestText({ what, path, query, isExport = false }: Logged): string {
  if (query === undefined) return `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  const { page, limit, discovered_from: from, discovered_to: to, source } = query;
  const one = page === undefined ? "Count" : `Row ${page}`;
  const kind = isExport ? "Export" : limit === "1" ? one : `Page ${page}`;
  const [, stream] = /([^/]*?)(?:\/stream)?$/.exec(path) ?? [];
  const days =
    from === undefined && to === undefined ? "all days" : `${from ?? "the beginning"} to ${to ?? "now"}`;
  return [`${kind} of ${stream}`, days, ...(source === undefined ? [] : [`source ${source}`])].join(", ");
}

/** Describes the total of a list, and the rows of a page; undefined for another kind of answer. */
export function listText({ query }: Logged, value: unknown): string | undefined {
  const { data, pagination } = objectOf(value);
  const { total } = objectOf(pagination);
  if (!Array.isArray(data)) return undefined;
  const counted = typeof total === "number" ? `${plural(total, "row")} counted` : "not counted";
  return query?.["limit"] === "1" ? counted : `${plural(data.length, "row")}, ${counted}`;
}
