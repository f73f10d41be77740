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

/** An item that is to be submitted. `place`: where a person finds it. */
export type Candidate = { readonly key: string; readonly item: string; readonly place: string };

/** The rows of a stream that names items. */
export type Rows = {
  readonly from: "people" | "companies";
  /** The service, the key and the filters: a state that was made under others says nothing. */
  readonly under: string;
  /** The events of the rows that a state does not cover, raw: what is dropped or hashed on its way out is needed here. */
  read(saved: unknown): AsyncIterable<Event>;
};

export type InputOptions = {
  readonly type: Pick<JobType, "settingName" | "kind" | "list" | "file" | "resubmitRules">;
  readonly sources: readonly Rows[];
  readonly book: Pick<Book, "name" | "get" | "toCollect" | "inputs">;
  readonly suppressed: Suppression;
  /** The stream that answers are delivered to. */
  readonly stream: string;
  /** Whether the states of earlier passes do not count, because every row needs a look. */
  readonly scansAll: boolean;
  notify(text: string): void;
  now(): number;
};

/** Items that wait in memory at once; a later run submits the others. */
export const MAX_WAITING = 100_000;
/** Texts of rows that were seen: many people work for one company. */
const MAX_SEEN = 200_000;
export const MAX_PLACES = 5;

/** The fields of rows that name items. */
const FIELDS = {
  people: { domain: "companyDomain", email: "email" },
  companies: { domain: "domain", email: "email" },
};

/** The items to work on: the config's first, then those that the rows of streams name. */
export class Inputs {
  /** How many items of the config still wait to be submitted, this run's candidates included. */
  waiting = 0;
  /** Entries that are no items, and the places of the first. */
  readonly invalid = { count: 0, places: [] as string[] };
  /** How many entries name a suppressed item. */
  suppressed = 0;
  /** Why rows could not be read. */
  failure: unknown;
  /** By key, the items found whose jobs are open or whose answers are not delivered. */
  readonly found = new Map<string, string>();
  readonly #options: InputOptions;
  readonly #seen = new Set<string>();
  readonly #later: (Candidate & { readonly isRefresh: boolean; readonly at: number })[] = [];
  /** How far the sources were read that came to their end, and the keys of their items. */
  readonly #cursors: InputCursor[] = [];
  readonly #keys: string[] = [];

  constructor(options: InputOptions) {
    this.#options = options;
  }

  /** Whether every entry of the lists was looked at, and every row. */
  get hasSeenAll(): boolean {
    return this.failure === undefined && this.#cursors.length === this.#options.sources.length;
  }

  /**
   * Looks at every item of the config. Returns those to submit, as many as one run can; the others are counted.
   * @param seen gets each item as often as the config names it
   */
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

  /** Reads rows and yields the items that they name, in batches that may be empty. Then what can wait. */
  async *fromRows(): AsyncGenerator<readonly Candidate[]> {
    for (const source of this.#options.sources) {
      try {
        yield* this.#pass(source);
      } catch (error) {
        this.failure ??= error;
      }
    }
    // Refreshes last, and the oldest first, so that no cap leaves an item out for good.
    yield this.#later.sort((a, b) => Number(a.isRefresh) - Number(b.isRefresh) || a.at - b.at);
  }

  /** Moves the cursors, unless rows left an item that is still wanted. */
  moveCursors(): void {
    const { book } = this.#options;
    const isWanted = this.#keys.some((key) => !isDoneWith(book.get(key)));
    for (const cursor of isWanted ? [] : this.#cursors) book.inputs.set(cursor.from, cursor);
  }

  async *#pass({ from, under, read }: Rows): AsyncGenerator<readonly Candidate[]> {
    const { type, now, book, notify } = this.#options;
    // A pass from the beginning, once a month, finds what was refused or failed long ago.
    const filters = `${dayOf(now()).slice(0, 7)} ${under}`;
    const cursor = book.inputs.get(from);
    let state = this.#readsAll || cursor?.filters !== filters ? undefined : cursor.state;
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

  /** Whether a later run may want items that this one does not. */
  get #readsAll(): boolean {
    const { scansAll, type } = this.#options;
    const { refreshAfterDays, retryUnknown } = type.resubmitRules;
    return scansAll || refreshAfterDays !== null || retryUnknown;
  }

  /** The items of a text. The book is not asked about a suppressed one: what was bought before is not delivered. */
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

  /** Why an item is to be submitted now; undefined if it is not, or came before in this run. Others wait in a list. */
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

/** Whether no later run wants an item unless it is to be refreshed, so that a cursor may pass its row. */
function isDoneWith(item: Item): boolean {
  const step = item.subs.at(-1)?.step;
  return item.day !== "" || step === "unknown" || step === "open" || step === "refused";
}

/** The text of a field of a row; empty if there is none. */
function textIn(raw: RawLine, field: string): string {
  const { [field]: value } = JSON.parse(fromLatin1(raw)) as JsonObject;
  return typeof value === "string" ? value : "";
}
