import { isDeepStrictEqual } from "node:util";
import type { Selection } from "../catalog/singer-selection.ts";
import { STREAMS } from "../catalog/streams.ts";
import { isObject } from "../json.ts";
import type { Event } from "../streams/event.ts";
import { jsonLine, type Language } from "./language.ts";
import { RowStates } from "./row-states.ts";
import { SingerStream } from "./singer-stream.ts";

export type SingerOptions = {
  readonly selections: readonly Selection[];
  /** The state that this run was given, `bookmarks` and all: what this run does not know of it goes out again. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Turns on ACTIVATE_VERSION for full tables. Must be greater than that of every earlier run. */
  readonly version?: number | undefined;
};

/** The Singer protocol's messages. Logs are none of them. */
export function singer(options: SingerOptions): Language {
  const run = new SingerRun(options);
  return (event) => run.say(event);
}

class SingerRun {
  readonly #streams: ReadonlyMap<string, SingerStream>;
  readonly #rest: Readonly<Record<string, unknown>>;
  /** A Map, because a stream's name is no safe key of an object. */
  readonly #bookmarks: Map<string, unknown>;
  /** Undefined where no state holds jobs: then every one is small. */
  readonly #rowStates: RowStates | undefined;
  /** Characters of the last STATE; 0: there was none. */
  #size = 0;
  #lastIsState = false;

  constructor({ selections, state = {}, version }: SingerOptions) {
    const { bookmarks, ...rest } = state;
    this.#rest = rest;
    this.#bookmarks = new Map(Object.entries(isObject(bookmarks) ? bookmarks : {}));
    this.#streams = new Map(
      selections.map((selection) => [selection.stream, new SingerStream(selection, version)]),
    );
    const rows = [...this.#streams.keys()].filter((stream) => !isJob(stream)).length;
    const hasJobs = [...this.#streams.keys(), ...this.#bookmarks.keys()].some(isJob);
    this.#rowStates = hasJobs ? new RowStates(rows) : undefined;
  }

  say(event: Event): string {
    this.#rowStates?.note(event);
    switch (event.kind) {
      case "open":
        return this.#before(this.#of(event.stream).schema());
      case "fields":
        return this.#before(this.#of(event.stream).widened(event.added));
      case "records":
        return this.#before(this.#of(event.stream).records(event.lines, event.at));
      case "checkpoint":
        return this.#checkpoint(event.stream, this.#of(event.stream).bookmark(event.state));
      case "close":
        return this.#close(event.stream, event.complete && event.error === undefined);
      case "end":
        // Some targets lose the state if anything follows it, so every run ends with one.
        return this.#lastIsState ? "" : this.#state();
      case "estimate":
      case "limited":
      case "retrying":
      case "log":
      case "failed":
        return "";
    }
  }

  #close(stream: string, isComplete: boolean): string {
    return isComplete ? this.#before(this.#of(stream).activation()) : "";
  }

  /** A state that says nothing new is not said again. A large one waits, unless it says what is about to be bought. */
  #checkpoint(stream: string, bookmark: object): string {
    const isNews = this.#size === 0 || !isDeepStrictEqual(bookmark, this.#bookmarks.get(stream));
    this.#bookmarks.set(stream, bookmark);
    if (!isNews) return "";
    if (isJob(stream) || this.#rowStates === undefined) return this.#state();
    if (!this.#rowStates.lets(this.#size)) {
      this.#lastIsState = false;
      return "";
    }
    const text = this.#state();
    this.#rowStates.wrote(text.length);
    return text;
  }

  #state(): string {
    const bookmarks = Object.fromEntries(this.#bookmarks);
    const text = jsonLine({ type: "STATE", value: { ...this.#rest, bookmarks } });
    this.#size = text.length;
    this.#lastIsState = true;
    return text;
  }

  #before(text: string): string {
    if (text !== "") this.#lastIsState = false;
    return text;
  }

  #of(stream: string): SingerStream {
    const known = this.#streams.get(stream);
    if (known === undefined) throw new Error(`Cannot write to stream "${stream}": it is not selected`);
    return known;
  }
}

const isJob = (stream: string): boolean =>
  STREAMS.some(({ name, reading }) => name === stream && reading === "job");
