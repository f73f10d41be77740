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
/** A page with more elements is none, whatever page size the service uses. */
const MOST_ELEMENTS = 100_000;

/** Where a stream is listed. */
type ListEndpoint = {
  readonly spec: RowStreamSpec;
  /** The paths that the config gives to lists. */
  readonly paths: Endpoints;
  /** The filters that every request carries besides its days. */
  readonly filters: Query;
};

/** Where and how one stream is read. */
export type Endpoint = ListEndpoint & {
  readonly parser: RowParser;
  /** False: totals that are null are taken for what they are; otherwise they end the stream. */
  readonly verify: boolean;
};

/** All that the core asks of the world, answered by the service. */
export class StreamApi implements Service {
  readonly pageSize = PAGE_SIZE;
  readonly notify: (notice: Notice) => void;
  readonly #client: Client;
  readonly #endpoint: Endpoint;

  constructor(client: Client, endpoint: Endpoint, notify: (notice: Notice) => void) {
    this.#client = client;
    this.#endpoint = endpoint;
    this.notify = notify;
  }

  now(): number {
    return this.#client.now();
  }

  monotonic(): number {
    return this.#client.monotonic();
  }

  backOff(failures: number): Promise<void> {
    return this.#client.backOff(failures);
  }

  /** Undated = all − dated. Counts the dated first, or arrivals hide undated rows. */
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
        if (await isMisplaced(this.#client, error)) throw this.#client.misplaced(what, path, error);
        if (error instanceof NotFoundError)
          throw new NotFoundError(
            `Cannot ${what}: the service has nothing at ${path} (status 404). Tell the service's owner`,
            { cause: error, code: error.code },
          );
        throw once ? ofItsRows(what, error) : error;
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
      // Some lists refuse to be looked into so deep.
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
    if (!elements.every(isObject)) throw new BodyError(`Cannot ${what}: an element is no object`);
    const rows = texts().map((text): Row => parser.parseElement(text));
    return { rows, size, total };
  }

  /** Reads pages of the list of sources until all are there that it counts. A list without a total ends where nothing new comes. */
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

  /** A total that is lower than the rows with it would hide a day of rows as empty. */
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

/** The filters of a window: whole UTC days, both included. Those of the endpoint take precedence over them. */
function windowFilters(window: Window): Query {
  if (window.kind === "closed") {
    const { from, to, source } = window;
    return { discovered_from: from, discovered_to: to, ...(source !== undefined && { source }) };
  }
  return window.kind === "open" && !window.undated ? { discovered_from: window.from } : {};
}

/** A message about a stream whose rows the service does not count. */
export const withoutTotal = (stream: string): string =>
  `Cannot count ${stream}: the service answers without a total, so nothing can be proven complete. ` +
  'Set "verify_counts" to false to read without proof';

/** Whether a request was answered by no more than that it failed. Whether the service is down, a count says. */
const isUnmade = (error: unknown): error is TransientError =>
  error instanceof TransientError && error.scope === undefined && !wasNeverSent(error);

/** The rows of a request that was not made come another way, or are missing: that is no outage. */
function ofItsRows(what: string, error: unknown): unknown {
  if (!isUnmade(error)) return error;
  const { reason, message, cause } = error;
  return new BodyError(`Cannot ${what}: ${reason ?? message}`, { cause });
}

/** Some services refuse a page past the last instead of showing it empty. */
const isNoSuchPage = (error: unknown): boolean =>
  error instanceof NotFoundError || (error instanceof ConfigError && error.code === "INVALID_PARAMETER");

/** One answer of a list. */
export type List = Omit<Received, "body"> & {
  readonly elements: readonly unknown[];
  /** The JSON of the elements, as latin1, because parsing rounds integers above 2^53. */
  readonly texts: () => readonly string[];
  /** Null if the service did not count. */
  readonly total: number | null;
  /** The page size that the service used, if it says so. */
  readonly size?: number;
};

const NO_PAGE: List = { elements: [], texts: () => [], total: null, asked: 0, answered: 0 };

/**
 * Asks a list, under its endpoint's filters. An error names the path, which the interface may not say.
 * @throws ConfigError of the scope "service" if nothing of the service is at its address
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
    if (await isMisplaced(client, error)) throw client.misplaced(what, path, error);
    if (spec.endpoint === null || !(error instanceof NotFoundError)) throw error;
    throw new NotFoundError(
      `Cannot ${what}: the service has nothing at ${path} (status 404). Put the right path into endpoints.${spec.endpoint}`,
      { cause: error, code: error.code },
    );
  }
}

/** Whether nothing was found, nothing has answered before, and nothing is where the interface says that people are. */
async function isMisplaced(client: Client, error: unknown): Promise<boolean> {
  if (!(error instanceof NotFoundError) || client.hasAnswered) return false;
  const people = client.getJson("read people", PEOPLE.listPath, { limit: "1" }, toList, true);
  return await people.then(
    () => false,
    (failure: unknown) => failure instanceof NotFoundError,
  );
}

/** Undefined for what is no list. Some services write an empty one as null, which is one only together with its pagination. */
function toList(value: unknown, { body, asked, answered }: Received): List | undefined {
  const { data: said, pagination } = objectOf(value);
  const elements = said === null && isObject(pagination) ? [] : said;
  const { total = null, limit } = objectOf(pagination);
  if (!Array.isArray(elements) || elements.length > MOST_ELEMENTS) return undefined;
  if (total !== null && !isCount(total)) return undefined;
  // Through UTF-8, so that a byte that is none is the U+FFFD that was parsed.
  const texts = (): readonly string[] => elementTexts(toLatin1(body.toString("utf8")), "data");
  return { elements, texts, total, asked, answered, ...(isCount(limit) && limit > 0 && { size: limit }) };
}

const isCount = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0;
