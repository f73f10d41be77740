import type { JsonObject } from "../base/json.ts";
import { fromLatin1 } from "../base/text.ts";
import { dayOf } from "../base/time.ts";
import { itemsOf } from "../config/items.ts";
import type { Suppression } from "../privacy/suppress.ts";
import type { Event, RawLine } from "../sync/event.ts";
import type { Book, InputCursor } from "./book.ts";
import { type BuyReason, reasonToBuy } from "./due.ts";
import { readItemFile } from "./item-files.ts";
import type { JobType } from "./job-type.ts";
import type { Item } from "./join.ts";

/** An item that may be submitted. `place`: the line or row that names it, for a person. */
export type Candidate = { readonly key: string; readonly item: string; readonly place: string };

/** The rows of a stream that names items. */
export type Rows = {
  readonly from: "people" | "companies";
  /** Identifies the service, the key and the filters. With another basis the program cannot use a saved state. */
  readonly basis: string;
  /** Yields the rows that a state does not cover. The rows have all fields, also fields that the config drops or hashes. */
  read(saved: unknown): AsyncIterable<Event>;
};

export type InputOptions = {
  readonly type: Pick<JobType, "settingName" | "kind" | "list" | "file" | "resubmitRules">;
  readonly sources: readonly Rows[];
  readonly book: Pick<Book, "name" | "get" | "toCollect" | "inputs">;
  readonly suppressed: Suppression;
  /** The stream to which answers are delivered. */
  readonly stream: string;
  /** Whether the program reads all rows, and not only rows that the states do not cover. */
  readonly scansAll: boolean;
  notify(text: string): void;
  now(): number;
};

/** The highest number of items in memory; a later run submits the rest. */
export const MAX_WAITING = 100_000;
/** The program remembers this many texts and skips repeats, because many people work for one company. */
const MAX_SEEN = 200_000;
export const MAX_PLACES = 5;

/** The fields of rows that name items. */
const FIELDS = {
  people: { domain: "companyDomain", email: "email" },
  companies: { domain: "domain", email: "email" },
};

/** The items of the config, and then the items that rows of streams name. */
export class Inputs {
  /** The number of items of the config that are due, with the candidates of this run. */
  waiting = 0;
  /** Entries that are not items, and the places of the first entries. */
  readonly invalid = { count: 0, places: [] as string[] };
  /** The number of entries that name a suppressed item. */
  suppressed = 0;
  /** The reason if a file or rows could not be read. */
  failure: unknown;
  /** Items with open jobs or undelivered answers, by their keys. */
  readonly found = new Map<string, string>();
  readonly #options: InputOptions;
  readonly #seen = new Set<string>();
  readonly #later: (Candidate & { readonly isRefresh: boolean; readonly at: number })[] = [];
  /** `#cursors`: of sources that were read completely. `#keys`: of items in rows that must still be submitted. */
  readonly #cursors: InputCursor[] = [];
  readonly #keys: string[] = [];

  constructor(options: InputOptions) {
    this.#options = options;
  }

  /** Whether every entry and every row was read. */
  get hasSeenAll(): boolean {
    return this.failure === undefined && this.#cursors.length === this.#options.sources.length;
  }

  /** Reads all items of the config, and counts them. @param seen gets every mention of an item @returns items for this run */
  async configured(seen?: (candidate: Candidate) => void): Promise<readonly Candidate[]> {
    const { list, file, kind, settingName } = this.#options.type;
    const found: Candidate[] = [];
    const look = (text: string, place: string): void => {
      for (const candidate of this.#candidatesIn(text, place)) {
        seen?.(candidate);
        const reason = this.#reasonNow(candidate);
        if (reason !== undefined) this.waiting += 1;
        if (reason === "new" && found.length < MAX_WAITING) found.push(candidate);
      }
    };
    for (const [index, text] of list.entries()) look(text, `${settingName}.${kind}s[${index}]`);
    try {
      if (file !== null)
        await readItemFile(file, kind, (text, line) => look(text, `line ${line} of "${file}"`));
    } catch (error) {
      this.failure ??= error;
    }
    return found;
  }

  /** Yields the items that rows name, in batches that may be empty. The last batch contains items that can wait. */
  async *fromRows(): AsyncGenerator<readonly Candidate[]> {
    for (const source of this.#options.sources) {
      try {
        yield* this.#readRows(source);
      } catch (error) {
        this.failure ??= error;
      }
    }
    // Sorts refreshes to the end, and then the oldest submission first. So no cap excludes an item for ever.
    yield this.#later.sort((a, b) => Number(a.isRefresh) - Number(b.isRefresh) || a.at - b.at);
  }

  /** Moves the cursors, unless an item of the rows must still be submitted. */
  moveCursors(): void {
    const { book } = this.#options;
    const isWanted = this.#keys.some((key) => !isDoneWith(book.get(key)));
    for (const cursor of isWanted ? [] : this.#cursors) book.inputs.set(cursor.from, cursor);
  }

  async *#readRows({ from, basis, read }: Rows): AsyncGenerator<readonly Candidate[]> {
    const { type, now, book, notify, scansAll } = this.#options;
    const { refreshAfterDays, retryUnknown } = type.resubmitRules;
    // With `refreshAfterDays` or `retryUnknown`, an item of an old row may be due again.
    const readsAll = scansAll || refreshAfterDays !== null || retryUnknown;
    // Once a month all rows are read, because items that were refused or failed long ago may be due again.
    const filters = `${dayOf(now()).slice(0, 7)} ${basis}`;
    const cursor = book.inputs.get(from);
    let state = readsAll || cursor?.filters !== filters ? undefined : cursor.state;
    const texts = new Set<string>();
    for await (const event of read(state)) {
      if (event.kind === "checkpoint") state = event.state;
      if (event.kind === "log" && event.level === "warn") notify(event.text);
      if (event.kind === "close" && event.error !== undefined) throw event.error;
      if (event.kind === "close" && event.isTimeUp === true) return;
      if (event.kind !== "records") continue;
      const found: Candidate[] = [];
      for (const line of event.lines) {
        const text = textIn(line, FIELDS[from][type.kind]);
        if (text === "" || texts.has(text)) continue;
        if (texts.size < MAX_SEEN) texts.add(text);
        for (const candidate of this.#candidatesIn(text, `a row of ${from}`)) {
          if (this.#reasonNow(candidate) === "new") found.push(candidate);
          if (!isDoneWith(book.get(candidate.key))) this.#keys.push(candidate.key);
        }
      }
      yield found;
    }
    this.#cursors.push({ from, filters, state });
  }

  /** The items of a text, without suppressed items. So the answers of suppressed items are not delivered either. */
  *#candidatesIn(text: string, place: string): Generator<Candidate> {
    const { type, book, suppressed } = this.#options;
    for (const item of itemsOf(type.kind, text)) {
      if (item === null) {
        this.invalid.count += 1;
        if (this.invalid.places.length < MAX_PLACES) this.invalid.places.push(place);
      } else if (suppressed.has(type.kind, item)) this.suppressed += 1;
      else yield { key: book.name(item), item, place };
    }
  }

  /** Why an item is due; undefined: the item is not due, or already seen. Adds doubted items and refreshes to a later batch. */
  #reasonNow(candidate: Candidate): BuyReason | undefined {
    const { book, stream, type, now } = this.#options;
    const item = book.get(candidate.key);
    if (book.toCollect(stream, candidate.key).length > 0) this.found.set(candidate.key, candidate.item);
    const reason = reasonToBuy(item, type.resubmitRules, now());
    if (reason === undefined || this.#seen.has(candidate.key)) return undefined;
    this.#seen.add(candidate.key);
    if (reason === "new") return reason;
    const at = item.subs.at(-1)?.at ?? Date.parse(item.day);
    this.#later.push({ ...candidate, isRefresh: reason === "refresh", at });
    return reason;
  }
}

/** Whether later runs may skip the rows that name an item, except for a refresh. */
function isDoneWith(item: Item): boolean {
  const step = item.subs.at(-1)?.step;
  return item.day !== "" || step === "unknown" || step === "open" || step === "refused";
}

/** The text of a field of a row; empty if the field is not a text. */
function textIn(raw: RawLine, field: string): string {
  const { [field]: value } = JSON.parse(fromLatin1(raw)) as JsonObject;
  return typeof value === "string" ? value : "";
}
