import { setImmediate } from "node:timers/promises";
import { addDays, type Day, dayOf } from "../base/time.ts";
import { type Entry, entriesOf } from "../config/items.ts";
import type { Suppression } from "../privacy/suppress.ts";
import type { Book, InputCursor } from "./book.ts";
import { type BuyReason, reasonToBuy } from "./due.ts";
import { readItemFile } from "./item-files.ts";
import type { JobType } from "./job-type.ts";
import type { Item } from "./join.ts";

/** An item that is to be submitted. `place`: where a person finds it. */
export type Candidate = { readonly key: string; readonly item: string; readonly place: string };

/** A stream whose rows name items. */
export type RowSource = {
  readonly from: string;
  /** Whether its rows can be read by days. */
  readonly isDated: boolean;
  /** The filters under which it is read: a cursor made under others says nothing. */
  readonly filters: string;
  /**
   * Reads the rows from a day on, null: from the beginning, each once: of each the text that names an item, empty if it names
   * none. @throws TransientError if fewer came than there are
   */
  read(from: Day | null): AsyncIterable<readonly string[]>;
};

export type InputOptions = {
  readonly type: Pick<JobType, "settingName" | "kind" | "list" | "file" | "resubmitRules">;
  readonly sources: readonly RowSource[];
  readonly book: Pick<Book, "name" | "get" | "toCollect" | "inputs">;
  readonly suppressed: Suppression;
  /** The stream that answers are delivered to. */
  readonly stream: string;
  /** Whether the cursors of earlier passes do not count, because every row needs a look. */
  readonly readsAll: boolean;
  now(): number;
};

/** Items that wait in memory at once; a later run submits the others. */
export const MAX_WAITING = 5_000;
/** Entries that are looked at before others get their turn. */
const BATCH = 2_000;
/** Texts of rows that were seen: many people work for one company. */
const MAX_SEEN = 200_000;
export const MAX_PLACES = 5;

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
  /** Items found since this was emptied last whose jobs are open or whose answers are not delivered, by key. */
  readonly found = new Map<string, string>();
  readonly #options: InputOptions;
  readonly #seen = new Set<string>();
  readonly #later: (Candidate & { readonly isRefresh: boolean; readonly at: number })[] = [];
  /** The keys that passes over rows found, by source that was read to its end. */
  readonly #passes: { readonly cursor: InputCursor; readonly keys: readonly string[] }[] = [];

  constructor(options: InputOptions) {
    this.#options = options;
  }

  /** Whether every entry of the lists was looked at, and every row. */
  get hasSeenAll(): boolean {
    return this.failure === undefined && this.#passes.length === this.#options.sources.length;
  }

  /**
   * Looks at every item of the config. Returns those to submit, as many as one run can; the others are counted.
   * @param seen gets each item as often as the config names it
   */
  async configured(seen?: (candidate: Candidate) => void): Promise<readonly Candidate[]> {
    const { book, type } = this.#options;
    const { list, file, kind, settingName } = type;
    const found: Candidate[] = [];
    const look = (text: string, place: string): void => {
      for (const entry of entriesOf(kind, text)) {
        if (entry.item === null) {
          this.invalid.count += 1;
          if (this.invalid.places.length < MAX_PLACES) this.invalid.places.push(place);
          continue;
        }
        if (this.#isSuppressed(entry)) continue;
        const candidate = { key: book.name(entry.item), item: entry.item, place };
        seen?.(candidate);
        const reason = this.#reasonNow(candidate);
        if (reason !== undefined) this.waiting += 1;
        if (reason === "new" && found.length < MAX_WAITING) found.push(candidate);
      }
    };
    try {
      for (const [index, text] of list.entries()) {
        look(text, `${settingName}.${kind}s[${index}]`);
        if (index % BATCH === 0) await setImmediate();
      }
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

  /** Moves the cursors of passes that saw all rows and left no item that is still wanted. */
  moveCursors(): void {
    const { book } = this.#options;
    for (const { cursor, keys } of this.#passes)
      if (keys.every((key) => isDoneWith(book.get(key)))) book.inputs.set(cursor.from, cursor);
  }

  async *#pass(source: RowSource): AsyncGenerator<readonly Candidate[]> {
    const { type, now, book, readsAll } = this.#options;
    const { from, isDated } = source;
    const today = dayOf(now());
    // A pass from the beginning, once a month, finds what was refused or failed long ago.
    const filters = `${today.slice(0, 7)} ${source.filters}`;
    const cursor = book.inputs.get(from);
    const goesOn = isDated && !readsAll && cursor?.filters === filters && cursor.through < today;
    const keys: string[] = [];
    const texts = new Set<string>();
    for await (const batch of source.read(goesOn ? addDays(cursor.through, 1) : null)) {
      const found: Candidate[] = [];
      for (const text of batch) {
        if (text === "" || texts.has(text)) continue;
        if (texts.size < MAX_SEEN) texts.add(text);
        for (const entry of entriesOf(type.kind, text)) {
          if (entry.item === null || this.#isSuppressed(entry)) continue;
          const candidate = { key: book.name(entry.item), item: entry.item, place: `a row of ${from}` };
          if (this.#reasonNow(candidate) === "new") found.push(candidate);
          if (!isDoneWith(book.get(candidate.key))) keys.push(candidate.key);
        }
      }
      yield found;
    }
    this.#passes.push({ cursor: { from, filters, through: addDays(today, -2) }, keys });
  }

  /** The book is not asked about a suppressed item: what was bought before is not delivered. */
  #isSuppressed({ kind, item }: Entry): boolean {
    const isSuppressed = this.#options.suppressed.has(kind, item);
    if (isSuppressed) this.suppressed += 1;
    return isSuppressed;
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
