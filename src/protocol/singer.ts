import { type JsonSchema, propertiesOf, type Selection } from "../source/selection.ts";
import type { Event, FieldSchema, Lines, StreamState } from "../sync/event.ts";
import { asciiJson, type Language, splice } from "./language.ts";
import { withoutNuls } from "./nul.ts";
import { pruner } from "./prune.ts";

export type SingerOptions = {
  readonly selections: readonly Selection[];
  /** The state that this run was given, `bookmarks` and all: what this run does not know of it goes out again. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Turns on ACTIVATE_VERSION for full tables. Must be greater than that of every earlier run. */
  readonly version?: number | undefined;
  /** Told of escaped NULs that were replaced. */
  readonly nuls?: (stream: string, count: number) => void;
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
  #lastState = "";
  #lastIsState = false;

  constructor({ selections, state = {}, version, nuls = () => {} }: SingerOptions) {
    const { bookmarks, ...rest } = state;
    this.#rest = rest;
    this.#bookmarks = new Map(Object.entries(isObject(bookmarks) ? bookmarks : {}));
    this.#streams = new Map(
      selections.map((selection) => [selection.stream, new SingerStream(selection, version, nuls)]),
    );
  }

  say(event: Event): string {
    switch (event.kind) {
      case "open":
        return this.#before(this.#of(event.stream).schema());
      case "fields":
        return this.#before(this.#of(event.stream).widened(event.added));
      case "records":
        return this.#before(this.#of(event.stream).records(event.lines, event.at));
      case "checkpoint":
        this.#bookmarks.set(event.stream, this.#of(event.stream).bookmark(event.state));
        return this.#state();
      case "close":
        return this.#close(event.stream, event.complete && event.error === undefined);
      case "end":
        return this.#end();
      case "estimate":
      case "limited":
      case "log":
      case "failed":
        return "";
    }
  }

  #close(stream: string, whole: boolean): string {
    return whole ? this.#before(this.#of(stream).activation()) : "";
  }

  /** Some targets lose the state if anything follows it, so every run ends with one. */
  #end(): string {
    if (!this.#lastIsState) this.#lastState = "";
    return this.#state();
  }

  #state(): string {
    const value = { ...this.#rest, bookmarks: Object.fromEntries(this.#bookmarks) };
    const text = line({ type: "STATE", value });
    if (text === this.#lastState) return "";
    this.#lastState = text;
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

class SingerStream {
  readonly #selection: Selection;
  readonly #version: number | undefined;
  readonly #nuls: (stream: string, count: number) => void;
  readonly #prune: ((line: string) => string) | undefined;
  #schema: JsonSchema;

  constructor(
    selection: Selection,
    version: number | undefined,
    nuls: (stream: string, count: number) => void,
  ) {
    this.#selection = selection;
    this.#schema = selection.schema;
    this.#version = selection.method === "FULL_TABLE" ? version : undefined;
    this.#nuls = nuls;
    this.#prune = selection.pruning && pruner(selection.pruning);
  }

  schema(): string {
    const { stream, keyProperties, replicationKey } = this.#selection;
    return line({
      type: "SCHEMA",
      stream,
      schema: this.#schema,
      key_properties: keyProperties,
      bookmark_properties: replicationKey === null ? undefined : [replicationKey],
    });
  }

  /** A user who has deselected anything has chosen the fields, so a new one is pruned instead. */
  widened(added: Readonly<Record<string, FieldSchema>>): string {
    if (this.#prune !== undefined) return "";
    const properties = { ...propertiesOf(this.#schema), ...added };
    this.#schema = { ...this.#schema, properties };
    return this.schema();
  }

  records(lines: Lines, at: number): string {
    const stream = asciiJson(this.#selection.stream);
    const version = this.#version === undefined ? "" : `,"version":${this.#version}`;
    const time = new Date(at).toISOString();
    const head = `{"type":"RECORD","stream":${stream}${version},"time_extracted":"${time}","record":`;
    return splice(head, "}\n", this.#cleaned(lines));
  }

  bookmark(state: StreamState): object {
    const { replicationKey } = this.#selection;
    const value = replicationKey === null ? null : (state[replicationKey] ?? null);
    return { ...state, replication_key: replicationKey, replication_key_value: value };
  }

  /** Only after the whole table: targets drop what has an older version at once. */
  activation(): string {
    if (this.#version === undefined) return "";
    return line({ type: "ACTIVATE_VERSION", stream: this.#selection.stream, version: this.#version });
  }

  #cleaned(lines: Lines): readonly string[] {
    const pruned = this.#prune === undefined ? lines : lines.map(this.#prune);
    let count = 0;
    const cleaned = pruned.map((text) => withoutNuls(text, () => count++));
    if (count > 0) this.#nuls(this.#selection.stream, count);
    return cleaned;
  }
}

const line = (message: object): string => `${asciiJson(message)}\n`;

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
