import { BodyError, ConfigError, DataError, TransientError } from "../errors.ts";
import { isObject } from "../json.ts";
import type { Notice } from "../sync/event.ts";
import type { Count, Page, Peek, Ports, Row } from "../sync/ports.ts";
import { BEGINNING, describe, type Window } from "../sync/window.ts";
import type { Answer, Client, Query } from "./client.ts";
import { readRows } from "./lines.ts";
import { type RowReader, toRow } from "./row.ts";
import { toRawLine } from "./text.ts";

const PAGE_SIZE = 1000;

/** Where and how one stream is read. */
export type Endpoint = {
  readonly stream: string;
  readonly list: string;
  /** Undefined for a stream that is only listed. */
  readonly export: string | undefined;
  /** The filters that every request carries besides its days. */
  readonly filters: Query;
  readonly reader: RowReader;
  /** False: totals that are null are taken for what they are; otherwise they end the stream. */
  readonly verify: boolean;
};

/** All that the core asks of the world, answered by the service. */
export function servicePorts(client: Client, endpoint: Endpoint, note: (notice: Notice) => void): Ports {
  return {
    count: (window) => countWindow(client, endpoint, window),
    stream: (window) => exportWindow(client, endpoint, window),
    holdsAny: (window) => holdsAny(client, endpoint, window),
    peek: (window, place) => peek(client, endpoint, window, place),
    page: (window, number) => readPage(client, endpoint, window, number),
    rest: (failures) => client.backOff(failures),
    now: () => client.now(),
    note,
  };
}

/** Filters by whole UTC days, both included. */
function daysOf(window: Window): Query {
  if (window.kind === "closed") return { discovered_from: window.from, discovered_to: window.to };
  return window.kind === "open" && !window.undated ? { discovered_from: window.from } : {};
}

/** The undated are what the count of everything has beyond the dated, asked right after: in the other order one undated row hides for each dated one that arrives between. */
async function countWindow(client: Client, endpoint: Endpoint, window: Window): Promise<Count> {
  if (window.kind === "closed" || window.kind === "all" || (window.kind === "open" && !window.undated)) {
    return countOf(await countRows(client, endpoint, daysOf(window)), endpoint);
  }
  const dated = countOf(await countRows(client, endpoint, { discovered_from: BEGINNING }), endpoint);
  const all = countOf(await countRows(client, endpoint, {}), endpoint);
  return { ...dated, known: dated.known && all.known, undated: Math.max(0, all.rows - dated.rows) };
}

async function countRows(client: Client, endpoint: Endpoint, days: Query): Promise<Answer<number | null>> {
  const answer = await list(client, endpoint, `count ${endpoint.stream}`, { limit: "1", ...days });
  return { ...answer, value: answer.value.total };
}

function countOf(
  { value: total, asked, answered }: Answer<number | null>,
  { stream, verify }: Endpoint,
): Count {
  if (total === null && verify) {
    throw new DataError(
      `Cannot count ${stream}: the service answers without a total, so nothing can be proven complete. ` +
        'Set "verify_counts" to false to read without proof',
    );
  }
  return { rows: total ?? 0, undated: 0, known: total !== null, asked, answered };
}

async function holdsAny(client: Client, endpoint: Endpoint, window: Window): Promise<boolean> {
  const query = { limit: "1", skip_count: "1", ...daysOf(window) };
  const { value } = await list(client, endpoint, `look into ${endpoint.stream}`, query);
  return value.elements.length > 0;
}

async function peek(
  client: Client,
  endpoint: Endpoint,
  window: Window,
  place: number,
): Promise<Peek | undefined> {
  const query = { page: String(place), limit: "1", ...daysOf(window) };
  try {
    const { value } = await list(client, endpoint, `look into ${endpoint.stream}`, query);
    const [element] = value.elements;
    return { row: element === undefined ? undefined : JSON.stringify(element), total: value.total };
  } catch (error) {
    // Some lists refuse to be looked into so deep.
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

async function* exportWindow(
  client: Client,
  endpoint: Endpoint,
  window: Window,
): AsyncGenerator<readonly Row[]> {
  if (endpoint.export === undefined)
    throw new DataError(`Cannot export ${endpoint.stream}: it is only listed`);
  const what = `read ${endpoint.stream} of ${describe(window)}`;
  const opened = await client.open(what, endpoint.export, { ...endpoint.filters, ...daysOf(window) });
  yield* readRows(opened, endpoint.reader, what);
}

async function readPage(client: Client, endpoint: Endpoint, window: Window, number: number): Promise<Page> {
  const { stream, reader } = endpoint;
  const what = `read page ${number} of ${stream}`;
  const query = { page: String(number), limit: String(PAGE_SIZE), ...daysOf(window) };
  const { value } = await list(client, endpoint, what, query);
  const rows = value.elements.flatMap((element) => {
    const row = toPageRow(element, reader);
    if (row === "unclean")
      throw new BodyError(`Cannot ${what}: an element is no object with its "${reader.key}"`);
    return row ?? [];
  });
  return { rows, size: value.size ?? PAGE_SIZE, total: value.total };
}

/** Asks the list, under the endpoint's filters. */
function list(
  client: Client,
  { stream, list: path, filters }: Endpoint,
  what: string,
  query: Query,
): Promise<Answer<List>> {
  return client.getJson(what, path, { ...query, ...filters }, (body) => parseList(body, stream));
}

/** Parsed from its line again, so that keys and cursors are spelt as an export's are and the two compare. */
function toPageRow(element: unknown, reader: RowReader): Row | "unclean" | undefined {
  if (!isObject(element)) return "unclean";
  const raw = toRawLine(element, reader.replaced);
  return toRow(raw, JSON.parse(raw), reader);
}

/** `total`: null if the service did not count. */
export type List = {
  readonly elements: readonly unknown[];
  readonly total: number | null;
  readonly size: number | undefined;
};

/** @throws TransientError for an answer that is no list */
export function parseList(value: unknown, stream: string): List {
  const { data, pagination } = (value ?? {}) as { data?: unknown; pagination?: unknown };
  const { total = null, limit } = (pagination ?? {}) as { total?: unknown; limit?: unknown };
  if (!Array.isArray(data) || !(total === null || isWhole(total))) {
    throw new TransientError(
      `Cannot list ${stream}: the answer is not of the interface's form. If it stays so, check base_url`,
    );
  }
  return { elements: data, total, size: isWhole(limit) && limit > 0 ? limit : undefined };
}

function isWhole(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}
