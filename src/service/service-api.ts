import { BodyError, ConfigError, DataError, NotFoundError, TransientError } from "../base/errors.ts";
import { isObject } from "../base/json.ts";
import { elementTexts } from "../base/json-text.ts";
import { plural, toLatin1 } from "../base/text.ts";
import { BEGINNING } from "../base/time.ts";
import type { Notice } from "../sync/event.ts";
import type { Batch, Count, Page, PlacedRow, Row, Service } from "../sync/service.ts";
import { describe, type Window } from "../sync/window.ts";
import type { Client, Export, JsonAnswer, Query } from "./client.ts";
import { wasNeverSent } from "./error-table.ts";
import { readExport } from "./read-export.ts";
import { RowNotes } from "./row-notes.ts";
import type { RowParser } from "./rows.ts";

const PAGE_SIZE = 1000;
const MAX_SOURCE_PAGES = 100;
/** A page with more elements is none, whatever page size the service uses. */
const MOST_ELEMENTS = 100_000;

/** Where and how one stream is read. */
export type Endpoint = {
  readonly stream: string;
  readonly list: string;
  /** The setting that says where the list is; null: the interface does. */
  readonly listSetting: string | null;
  /** The list of sources. */
  readonly sources: string;
  /** Undefined for a stream that is only listed. */
  readonly export: string | undefined;
  /** The filters that every request carries besides its days. */
  readonly filters: Query;
  readonly parser: RowParser;
  /** False: totals that are null are taken for what they are; otherwise they end the stream. */
  readonly verify: boolean;
};

/** All that the core asks of the world, answered by the service. */
export function streamApi(client: Client, endpoint: Endpoint, notify: (notice: Notice) => void): Service {
  return {
    count: (window, once) => countWindow(client, endpoint, window, once),
    stream: (window, once) => exportWindow(client, endpoint, window, once),
    rowAt: (window, place) => rowAt(client, endpoint, window, place),
    page: (window, number) => readPage(client, endpoint, window, number),
    sources: () => sourcesOf(client, endpoint),
    backOff: (failures) => client.backOff(failures),
    now: () => client.now(),
    monotonic: () => client.monotonic(),
    notify,
  };
}

/** The filters of a window: whole UTC days, both included. Those of the endpoint take precedence over them. */
function windowFilters(window: Window): Query {
  if (window.kind === "closed") {
    const { from, to, source } = window;
    return { discovered_from: from, discovered_to: to, ...(source !== undefined && { source }) };
  }
  return window.kind === "open" && !window.undated ? { discovered_from: window.from } : {};
}

const hasUndated = (window: Window): boolean =>
  window.kind === "undated" || (window.kind === "open" && window.undated);

/** Undated = all − dated. Counts the dated first, or arrivals hide undated rows. */
async function countWindow(client: Client, endpoint: Endpoint, window: Window, once = false): Promise<Count> {
  const count = (days: Query): Promise<Count> => countRows(client, endpoint, days, once);
  if (!hasUndated(window)) return await count(windowFilters(window));
  const dated = await count({ discovered_from: BEGINNING });
  const all = await count({});
  const known = dated.known && all.known;
  return { ...dated, undated: Math.max(0, all.rows - dated.rows), known };
}

/** A total that is lower than the rows with it would hide a day of rows as empty. */
async function countRows(client: Client, endpoint: Endpoint, days: Query, once: boolean): Promise<Count> {
  const query = { limit: "1", ...days };
  const { asked, answered, value } = await list(client, endpoint, `count ${endpoint.stream}`, query, once);
  const { total, elements } = value;
  if (total === null && endpoint.verify) throw new DataError(withoutTotal(endpoint.stream));
  const rows = total === null ? 0 : Math.max(total, elements.length);
  return { rows, undated: 0, known: total !== null, asked, answered };
}

/** A message about a stream whose rows the service does not count. */
export const withoutTotal = (stream: string): string =>
  `Cannot count ${stream}: the service answers without a total, so nothing can be proven complete. ` +
  'Set "verify_counts" to false to read without proof';

/** Reads pages of the list of sources until all are there that it counts. A list without a total ends where nothing new comes. */
async function sourcesOf(client: Client, { sources }: Endpoint): Promise<readonly string[]> {
  const slugs = new Set<string>();
  for (let page = 1, shown = 0; page <= MAX_SOURCE_PAGES; page++) {
    const query = { page: String(page), limit: String(PAGE_SIZE) };
    const parse = (value: unknown): List => parseList(value, "sources");
    const { value } = await client.getJson("list sources", sources, query, parse, true);
    const { size } = slugs;
    for (const one of value.elements)
      if (isObject(one) && typeof one["slug"] === "string") slugs.add(one["slug"]);
    shown += value.elements.length;
    const isLast = value.total === null ? slugs.size === size : shown >= value.total;
    if (value.elements.length === 0 || isLast) return [...slugs];
  }
  throw new DataError(`Cannot list sources: the list has more than ${plural(MAX_SOURCE_PAGES, "page")}`);
}

/** Rows are compared, not emitted: what they teach is left to the pass that emits them. */
async function rowAt(
  client: Client,
  endpoint: Endpoint,
  window: Window,
  place: number,
): Promise<PlacedRow | undefined> {
  const query = { page: String(place), limit: "1", ...windowFilters(window) };
  try {
    const { value } = await list(client, endpoint, `look into ${endpoint.stream}`, query);
    const [text] = value.texts();
    const isRow = text !== undefined && isObject(value.elements[0]);
    const row = isRow ? endpoint.parser.parseElement(text, new RowNotes()) : undefined;
    return { row, total: value.total };
  } catch (error) {
    // Some lists refuse to be looked into so deep.
    if (error instanceof ConfigError || isUnmade(error)) return undefined;
    throw error;
  }
}

/** Whether a request was answered by no more than that it failed. Whether the service is down, a count says. */
const isUnmade = (error: unknown): error is TransientError =>
  error instanceof TransientError && error.scope !== "run" && !wasNeverSent(error);

function exportWindow(
  client: Client,
  endpoint: Endpoint,
  window: Window,
  once = false,
): AsyncGenerator<Batch> {
  const { export: path } = endpoint;
  if (path === undefined) throw new Error(`Cannot export ${endpoint.stream}: it is only listed`);
  const what = `read ${endpoint.stream}${ofWindow(window)}`;
  const query = { ...windowFilters(window), ...endpoint.filters };
  const open = (): Promise<Export> =>
    client.open(what, path, query, once).catch((error: unknown) => {
      throw once && isUnmade(error) ? unmade(what, error) : error;
    });
  return readExport(open, endpoint.parser, what);
}

const unmade = (what: string, { reason, message, cause }: TransientError): BodyError =>
  new BodyError(`Cannot ${what}: ${reason ?? message}`, { cause });

/** Which rows of a stream a window holds; "" for all of them. */
function ofWindow(window: Window): string {
  if (window.kind === "undated") return " without a date";
  return window.kind === "all" || (window.kind === "open" && window.undated) ? "" : ` of ${describe(window)}`;
}

async function readPage(client: Client, endpoint: Endpoint, window: Window, number: number): Promise<Page> {
  const { stream, parser } = endpoint;
  const what = `read page ${number} of ${stream}`;
  const query = { page: String(number), limit: String(PAGE_SIZE), ...windowFilters(window) };
  const { value } = await list(client, endpoint, what, query).catch((error: unknown) => {
    if (number > 1 && isNoSuchPage(error)) return NO_PAGE;
    // The rows of a page that cannot be fetched or parsed come another way, or are missing: that is no outage.
    throw endpoint.export !== undefined && isUnmade(error) ? unmade(what, error) : error;
  });
  const notes = new RowNotes();
  if (!value.elements.every(isObject)) throw new BodyError(`Cannot ${what}: an element is no object`);
  const rows = value.texts().map((text): Row => parser.parseElement(text, notes));
  return { rows, facts: notes.take(), size: value.size ?? PAGE_SIZE, total: value.total };
}

const NO_PAGE = { value: { elements: [], texts: () => [], total: null, size: undefined } };

/** Some services refuse a page past the last instead of showing it empty. */
const isNoSuchPage = (error: unknown): boolean =>
  error instanceof NotFoundError || (error instanceof ConfigError && error.code === "INVALID_PARAMETER");

/**
 * Asks the list, under the endpoint's filters.
 * `texts`: the JSON of its elements, as latin1, because parsing rounds integers above 2^53.
 */
function list(
  client: Client,
  { stream, list: path, listSetting, filters }: Endpoint,
  what: string,
  query: Query,
  once = false,
): Promise<JsonAnswer<List & { readonly texts: () => readonly string[] }>> {
  const parse = (value: unknown, body: Buffer) => ({
    ...parseList(value, stream),
    // Through UTF-8, so that a byte that is none is the U+FFFD that was parsed.
    texts: () => elementTexts(toLatin1(body.toString("utf8")), "data"),
  });
  const answer = client.getJson(what, path, { ...query, ...filters }, parse, once);
  return answer.catch(notThere(what, path, listSetting));
}

/** Names the path, which the interface may not say, and the setting that corrects it. */
export const notThere =
  (what: string, path: string, setting: string | null) =>
  (error: unknown): never => {
    if (setting === null || !(error instanceof NotFoundError)) throw error;
    throw new NotFoundError(
      `Cannot ${what}: the service has nothing at ${path} (status 404). Put the right path into ${setting}`,
      { cause: error, code: error.code },
    );
  };

/** `total`: null if the service did not count. */
export type List = {
  readonly elements: readonly unknown[];
  readonly total: number | null;
  readonly size: number | undefined;
};

/**
 * Some services write an empty list as null; that is one only together with its pagination.
 * @throws TransientError for an answer that is no list
 */
export function parseList(value: unknown, stream: string): List {
  const { data: said, pagination } = (value ?? {}) as { data?: unknown; pagination?: unknown };
  const data = said === null && isObject(pagination) ? [] : said;
  const { total = null, limit } = (pagination ?? {}) as { total?: unknown; limit?: unknown };
  const isList = Array.isArray(data) && data.length <= MOST_ELEMENTS;
  if (!isList || !(total === null || isCount(total))) {
    const reason = "the answer is not of the interface's form";
    throw new TransientError(`Cannot list ${stream}: ${reason}. If it stays so, check base_url`, { reason });
  }
  return { elements: data, total, size: isCount(limit) && limit > 0 ? limit : undefined };
}

const isCount = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0;
