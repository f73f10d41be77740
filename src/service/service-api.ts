import { BodyError, ConfigError, DataError, NotFoundError, TransientError } from "../base/errors.ts";
import { isObject, objectOf } from "../base/json.ts";
import { elementTexts } from "../base/json-text.ts";
import { plural, toLatin1 } from "../base/text.ts";
import { BEGINNING } from "../base/time.ts";
import { listPathOf, PEOPLE, type RowStreamSpec, SOURCES } from "../catalog/streams.ts";
import type { Endpoints } from "../config/config.ts";
import type { Notice } from "../sync/event.ts";
import type { Batch, Count, Page, PlacedRow, Row, Service } from "../sync/service.ts";
import { describe, hasUndated, type Window } from "../sync/window.ts";
import type { Client, Export, Query, Received } from "./client.ts";
import { wasNeverSent } from "./error-table.ts";
import { readExport } from "./read-export.ts";
import type { RowParser } from "./rows.ts";

const PAGE_SIZE = 1000;
const MAX_SOURCE_PAGES = 100;
/** An answer with more elements is not a page. No page size of the service is larger. */
const MAX_ELEMENTS = 100_000;

/** The list of a stream. */
type ListEndpoint = {
  readonly spec: RowStreamSpec;
  /** The paths of lists in the config. */
  readonly paths: Endpoints;
  /** The filters of every request, without its days. */
  readonly filters: Query;
};

/** The list and the export of a stream. */
export type Endpoint = ListEndpoint & {
  readonly parser: RowParser;
  /** Whether a total that is null fails the stream. */
  readonly verify: boolean;
};

/** Answers the core's questions by requests of one stream. */
export class StreamApi implements Service {
  readonly pageSize = PAGE_SIZE;
  readonly notify: (notice: Notice) => void;
  readonly #client: Client;
  readonly #endpoint: Endpoint;
  readonly now = (): number => this.#client.now();
  readonly monotonic = (): number => this.#client.monotonic();
  readonly backOff = (failures: number): Promise<void> => this.#client.backOff(failures);

  constructor(client: Client, endpoint: Endpoint, notify: (notice: Notice) => void) {
    this.#client = client;
    this.#endpoint = endpoint;
    this.notify = notify;
  }

  /** Undated = all − dated. The dated rows are counted first, so that new rows cannot make the difference too small. */
  async count(window: Window, once = false): Promise<Count> {
    if (!hasUndated(window)) return await this.#countRows(windowFilters(window), once);
    const dated = await this.#countRows({ discovered_from: BEGINNING }, once);
    const all = await this.#countRows({}, once);
    const known = dated.known && all.known;
    return { ...dated, undated: Math.max(0, all.rows - dated.rows), known };
  }

  stream(window: Window, once = false): AsyncGenerator<Batch> {
    const { spec, filters, parser } = this.#endpoint;
    const { name, exportPath: path } = spec;
    if (path === null) throw new Error(`Cannot export ${name}: it is only listed`);
    const what = `read ${name} (${describe(window)})`;
    const query = { ...windowFilters(window), ...filters };
    const open = (): Promise<Export> =>
      this.#client.open(what, path, query, once).catch(async (error: unknown) => {
        const failure = await withPath(this.#client, error, what, path, "Tell the service's owner");
        throw once ? ofItsRows(what, failure) : failure;
      });
    return readExport(open, parser, what);
  }

  async rowAt(window: Window, place: number): Promise<PlacedRow | undefined> {
    const { spec, parser } = this.#endpoint;
    const query = { page: String(place), limit: "1", ...windowFilters(window) };
    try {
      const { elements, texts, total } = await this.#list(`look into ${spec.name}`, query);
      const [text] = texts();
      const isRow = text !== undefined && isObject(elements[0]);
      return { row: isRow ? parser.parseElement(text) : undefined, total };
    } catch (error) {
      // Some lists refuse high page numbers.
      if (error instanceof ConfigError || isUnmade(error)) return undefined;
      throw error;
    }
  }

  async page(window: Window, number: number): Promise<Page> {
    const { spec, parser } = this.#endpoint;
    const what = `read page ${number} of ${spec.name}`;
    const query = { page: String(number), limit: String(PAGE_SIZE), ...windowFilters(window) };
    const list = this.#list(what, query).catch((error: unknown) => {
      if (number > 1 && isNoSuchPage(error)) return NO_PAGE;
      throw spec.exportPath === null ? error : ofItsRows(what, error);
    });
    const { elements, texts, size = PAGE_SIZE, total } = await list;
    if (!elements.every(isObject)) throw new BodyError(`Cannot ${what}: an element is not an object`);
    return { rows: texts().map((text): Row => parser.parseElement(text)), size, total };
  }

  /** Reads the list of sources up to its total. A list without a total ends with a page without new sources. */
  async sources(): Promise<readonly string[]> {
    const endpoint = { spec: SOURCES, paths: this.#endpoint.paths, filters: {} };
    const slugs = new Set<string>();
    for (let page = 1, shown = 0; page <= MAX_SOURCE_PAGES; page++) {
      const query = { page: String(page), limit: String(PAGE_SIZE) };
      const { elements, total } = await readList(this.#client, endpoint, "list sources", query, true);
      const { size } = slugs;
      for (const one of elements)
        if (isObject(one) && typeof one["slug"] === "string") slugs.add(one["slug"]);
      shown += elements.length;
      const isLast = total === null ? slugs.size === size : shown >= total;
      if (elements.length === 0 || isLast) return [...slugs];
    }
    throw new DataError(`Cannot list sources: the list has more than ${plural(MAX_SOURCE_PAGES, "page")}`);
  }

  /** Counts rows, at least the rows in the answer, because a total that is too low would hide rows. */
  async #countRows(days: Query, once: boolean): Promise<Count> {
    const { spec, verify } = this.#endpoint;
    const list = await this.#list(`count ${spec.name}`, { limit: "1", ...days }, once);
    const { total, elements, asked, answered } = list;
    if (total === null && verify) throw new DataError(withoutTotal(spec.name));
    const rows = total === null ? 0 : Math.max(total, elements.length);
    return { rows, undated: 0, known: total !== null, asked, answered };
  }

  #list(what: string, query: Query, once = false): Promise<List> {
    return readList(this.#client, this.#endpoint, what, query, once);
  }
}

/** The filters of a window: whole UTC days, both included. The filters of the endpoint take precedence. */
function windowFilters(window: Window): Query {
  if (window.kind === "closed") {
    const { from, to, source } = window;
    return { discovered_from: from, discovered_to: to, ...(source !== undefined && { source }) };
  }
  return window.kind === "open" && !window.undated ? { discovered_from: window.from } : {};
}

/** The message about a stream whose rows the service does not count. */
export const withoutTotal = (stream: string): string =>
  `Cannot count ${stream}: the service answers without a total, so nothing can be proven complete. ` +
  'Set "verify_counts" to false to read without proof';

/** Whether only one request failed. A count shows whether the service is down. */
const isUnmade = (error: unknown): error is TransientError =>
  error instanceof TransientError && error.scope === undefined && !wasNeverSent(error);

/** A BodyError if only one request failed, because another attempt may read its rows; any other error unchanged. */
function ofItsRows(what: string, error: unknown): unknown {
  if (!isUnmade(error)) return error;
  const { reason, message, cause } = error;
  return new BodyError(`Cannot ${what}: ${reason ?? message}`, { cause });
}

/** Whether the service refuses a page after the last page. Other services answer with an empty page. */
const isNoSuchPage = (error: unknown): boolean =>
  error instanceof NotFoundError || (error instanceof ConfigError && error.code === "INVALID_PARAMETER");

/** One answer of a list. */
export type List = Omit<Received, "body"> & {
  readonly elements: readonly unknown[];
  /** The JSON of the elements as latin1, because parsing rounds integers above 2^53. */
  readonly texts: () => readonly string[];
  /** Null if the service did not count. */
  readonly total: number | null;
  /** The page size that the service used; absent: unknown. */
  readonly size?: number;
};

const NO_PAGE: List = { elements: [], texts: () => [], total: null, asked: 0, answered: 0 };

/**
 * Requests a list with the filters of its endpoint.
 * @throws ConfigError of the scope "service" if the address has no path of the interface
 */
export async function readList(
  client: Client,
  { spec, paths, filters }: ListEndpoint,
  what: string,
  query: Query,
  once = false,
): Promise<List> {
  const path = listPathOf(spec, paths);
  try {
    return await client.getJson(what, path, { ...query, ...filters }, toList, once);
  } catch (error) {
    const remedy = spec.endpoint === null ? undefined : `Put the right path into endpoints.${spec.endpoint}`;
    throw await withPath(client, error, what, path, remedy);
  }
}

/** The error to throw: a status 404 gets a text about the base URL, or about the path with the remedy. Others do not change. */
async function withPath(client: Client, error: unknown, what: string, path: string, remedy?: string) {
  if (!(error instanceof NotFoundError)) return error;
  if (!client.hasAnswered) {
    // Every service has the list of people at the path of the interface.
    const people = client.getJson("read people", PEOPLE.listPath, { limit: "1" }, toList, true);
    const failure = await people.catch((failure: unknown) => failure);
    if (failure instanceof NotFoundError) return client.misplaced(what, path, error);
  }
  if (remedy === undefined) return error;
  const text = `Cannot ${what}: the service has nothing at ${path} (status 404). ${remedy}`;
  return new NotFoundError(text, { cause: error, code: error.code });
}

/** The list of an answer; undefined for another answer. `null` is an empty list if the answer also has a pagination. */
function toList(value: unknown, { body, asked, answered }: Received): List | undefined {
  const { data: said, pagination } = objectOf(value);
  const elements = said === null && isObject(pagination) ? [] : said;
  const { total = null, limit } = objectOf(pagination);
  if (!Array.isArray(elements) || elements.length > MAX_ELEMENTS) return undefined;
  if (total !== null && !isCount(total)) return undefined;
  // The bytes are decoded as UTF-8 first, so that wrong bytes become U+FFFD here and in `elements`.
  const texts = (): readonly string[] => elementTexts(toLatin1(body.toString("utf8")), "data");
  return { elements, texts, total, asked, answered, ...(isCount(limit) && limit > 0 && { size: limit }) };
}

const isCount = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0;
