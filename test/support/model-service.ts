import { BodyError, TransientError } from "../../src/base/errors.ts";
import { addDays, BEGINNING, type Day, startOf } from "../../src/base/time.ts";
import type { Notice, RawLine } from "../../src/sync/event.ts";
import type { Batch, Count, Page, Row, Service } from "../../src/sync/service.ts";
import type { Window } from "../../src/sync/window.ts";

/** A person of the model; `at` is epoch ms, null for one without a date. */
export type Person = {
  readonly id: string;
  at: number | null;
  user: boolean;
  readonly sources?: readonly string[];
};

/** How one reading of an export goes wrong: after `rows` rows it throws, or ends as if it were whole. */
export type Cut = { readonly rows: number; readonly loud: boolean };

/** What a service does unless a test says otherwise. */
const USUAL = {
  filter: (_person: Person): boolean => true,
  batch: 7,
  /** The rows of a page. */
  serverPageSize: 10,
  /** What a reading of a window suffers; `nth` counts the exports so far, from 0. */
  cut: (_window: Window, _nth: number): Cut | undefined => undefined,
  /** What the service says where `rows` is true. */
  total: (rows: number, _window: Window): number | null => rows,
  /** Happens between any two things the service does. */
  moment: (_model: ModelService): void => {},
  /** Ms that pass with every thing the service does. */
  latency: 0,
  /** Rows that exports leave out. */
  omits: (_person: Person): boolean => false,
  /** What the list makes of its rows before they are cut into pages. */
  list: (rows: Person[]): Person[] => rows,
  /** How a row is written. */
  row: rowOf,
  /** Whether a count fails that is asked only once. */
  checkFails: (_window: Window): boolean => false,
  /** Whether a page is broken; `nth` counts the pages so far, from 0. */
  breaks: (_window: Window, _number: number, _nth: number): boolean => false,
};

/** `now`: epoch ms at which the service's clock starts. */
export type ModelOptions = { readonly now: number; readonly people: Person[] } & Partial<typeof USUAL>;

/** A request in short. */
type Asked = { readonly what: "count" | "stream" | "page" | "any"; readonly window: Window };

/** A service in memory that counts, lists and exports people by UTC days, and whose time is the test's. */
export class ModelService {
  readonly people: Person[];
  readonly asked: Asked[] = [];
  readonly notices: Notice[] = [];
  readonly open = new Set<symbol>();
  /** What the key can read; undefined: the list fails. */
  sources: readonly string[] | undefined = [];
  now: number;
  readonly #options: typeof USUAL;
  #exports = 0;
  #pages = 0;

  constructor(options: ModelOptions) {
    this.#options = { ...USUAL, ...options };
    this.people = options.people;
    this.now = options.now;
  }

  /** The rows that the service would serve now, as lines. */
  served(): Map<string, string> {
    return new Map(this.people.filter(this.#options.filter).map((person) => [person.id, lineOf(person)]));
  }

  api(verify = true): Service {
    return {
      pageSize: this.#options.serverPageSize,
      count: (window, once = false) => this.#count(window, verify, once),
      stream: (window) => this.#stream(window),
      rowAt: async (window, place) => {
        await this.#ask("any", window);
        const listed = this.#listed(window);
        const person = listed[place - 1];
        return { row: person && this.#options.row(person), total: this.#total(window) };
      },
      page: (window, number) => this.#page(window, number),
      sources: async () => {
        this.asked.push({ what: "any", window: { kind: "all" } });
        if (this.sources === undefined) throw new TransientError("Cannot list sources");
        return this.sources;
      },
      backOff: async (failures) => {
        this.now += failures * 1_000;
        await this.#tick();
      },
      now: () => this.now,
      monotonic: () => this.now,
      notify: (notice) => void this.notices.push(notice),
    };
  }

  #rows(window: Window): Person[] {
    const source = window.kind === "closed" ? window.source : undefined;
    const isIn = inWindow(window);
    return this.people
      .filter((person) => this.#options.filter(person) && isIn(person))
      .filter((person) => source === undefined || person.sources?.includes(source))
      .sort((a, b) => (b.at ?? -Infinity) - (a.at ?? -Infinity) || (a.id < b.id ? -1 : 1));
  }

  #listed(window: Window): Person[] {
    return this.#options.list(this.#rows(window));
  }

  #total(window: Window): number | null {
    return this.#options.total(this.#rows(window).length, window);
  }

  async #tick(): Promise<void> {
    this.now += this.#options.latency;
    this.#options.moment(this);
    await Promise.resolve();
  }

  async #ask(what: Asked["what"], window: Window): Promise<void> {
    this.asked.push({ what, window });
    await this.#tick();
  }

  /** One request, and the moments that an HTTP client can know of it: whole seconds, from a Date header. */
  async #counted(window: Window) {
    const sent = this.now;
    await this.#ask("count", window);
    const said = this.#total(window);
    const total = said === null ? null : Math.max(said, Math.min(1, this.#listed(window).length));
    await this.#tick();
    const date = Math.floor(this.now / 1000) * 1000;
    const asked = Math.floor((date - (this.now - sent) - 1000) / 1000) * 1000;
    return { total, asked, answered: date + 1000 };
  }

  async #count(window: Window, verify: boolean, once: boolean): Promise<Count> {
    if (once && this.#options.checkFails(window)) throw new TransientError("Cannot count people");
    const both = window.kind === "undated" || (window.kind === "open" && window.undated);
    const dated = await this.#counted(both ? DATED : window);
    const all = both ? await this.#counted({ kind: "all" }) : dated;
    const { total: rows, asked, answered } = dated;
    if (rows === null || all.total === null) {
      if (verify) throw new Error("The model does not count");
      return { rows: 0, undated: 0, known: false, asked, answered };
    }
    return { rows, undated: Math.max(0, all.total - rows), known: true, asked, answered };
  }

  async *#stream(window: Window): AsyncGenerator<Batch> {
    this.asked.push({ what: "stream", window });
    const { batch, omits, filter, row } = this.#options;
    const cut = this.#options.cut(window, this.#exports++);
    const most = cut?.rows ?? Number.POSITIVE_INFINITY;
    const mark = Symbol("export");
    this.open.add(mark);
    try {
      await this.#tick();
      const planned = this.#rows(window);
      let shown = 0;
      for (let at = 0; at < planned.length; at += batch) {
        // Like a cursor over an index: who has moved on is not shown where they were.
        const left = planned.slice(at, at + batch).filter(inWindow(window));
        const rows = left.filter((person) => filter(person) && !omits(person)).slice(0, most - shown);
        shown += rows.length;
        yield rows.map(row);
        if (shown >= most) break;
        await this.#tick();
      }
      if (cut?.loud === true) throw new BodyError("The body broke off");
    } finally {
      this.open.delete(mark);
    }
  }

  async #page(window: Window, number: number): Promise<Page> {
    await this.#ask("page", window);
    if (this.#options.breaks(window, number, this.#pages++)) throw new BodyError("The page is no JSON");
    const { serverPageSize: size, row } = this.#options;
    const rows = this.#listed(window).slice((number - 1) * size, number * size);
    return { rows: rows.map(row), size, total: this.#total(window) };
  }
}

const DATED: Window = { kind: "open", from: BEGINNING, undated: false };

/** Returns whether a person is in a window. */
function inWindow(window: Window): (person: Person) => boolean {
  const to = window.kind === "closed" ? startOf(addDays(window.to, 1)) : Infinity;
  const isFrom = window.kind === "closed" || (window.kind === "open" && !window.undated);
  const from = isFrom ? startOf(window.from) : -Infinity;
  return ({ at }) => (at === null ? !isFrom : at >= from && at < to);
}

const cursorOf = ({ at }: Person): string | null => (at === null ? null : new Date(at).toISOString());

const lineOf = (person: Person): string => JSON.stringify({ id: person.id, discoveredAt: cursorOf(person) });

export function rowOf(person: Person): Row {
  return { raw: lineOf(person) as RawLine, key: JSON.stringify(person.id), cursor: cursorOf(person) };
}

/** People one after the other, `perDay` on each day of the list. */
export function peopleOn(days: readonly string[], perDay: number): Person[] {
  return days.flatMap((day, nth) =>
    Array.from({ length: perDay }, (_, index) => ({
      id: `p${nth}-${index}`,
      at: startOf(day as Day) + Math.floor(((index + 0.5) * 86_400_000) / perDay),
      user: index % 2 === 0,
    })),
  );
}

export function undatedPeople(count: number): Person[] {
  return Array.from({ length: count }, (_, index) => ({ id: `u${index}`, at: null, user: false }));
}
