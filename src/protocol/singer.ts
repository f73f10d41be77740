import { isDeepStrictEqual } from "node:util";
import { isObject } from "../base/json.ts";
import { propertiesOf } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import { canRefresh } from "../catalog/streams.ts";
import type { Event, FieldSchema, Lines, StreamState } from "../sync/event.ts";
import { asciiJson, jsonLine, type Language, splice } from "./language.ts";

export type SingerOptions = {
  readonly selections: readonly Selection[];
  /** The incoming state with its `bookmarks`. The run sends unknown parts of the state back. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Turns on ACTIVATE_VERSION for full tables. Each run needs a greater version than all earlier runs. */
  readonly version?: number | undefined;
  /** Monotonic ms. */
  readonly monotonic?: () => number;
};

const LARGE_STATE_EVERY_MS = 5_000;

/** The messages of the Singer protocol, without logs. */
export function singer(options: SingerOptions): Language {
  const run = new SingerRun(options);
  return (event) => run.say(event);
}

class SingerRun {
  readonly #streams: ReadonlyMap<string, SingerStream>;
  readonly #rest: Readonly<Record<string, unknown>>;
  /** A Map, because the name of a stream may be `__proto__`. */
  readonly #bookmarks: Map<string, unknown>;
  readonly #monotonic: () => number;
  /** Whether the state may be large, because it contains the state of jobs. */
  readonly #hasJobs: boolean;
  #stateAt = Number.NEGATIVE_INFINITY;
  #lastIsState = false;

  constructor({ selections, state = {}, version, monotonic = () => 0 }: SingerOptions) {
    this.#monotonic = monotonic;
    const { bookmarks, ...rest } = state;
    this.#rest = rest;
    this.#bookmarks = new Map(Object.entries(isObject(bookmarks) ? bookmarks : {}));
    this.#streams = new Map(selections.map((one) => [one.stream, singerStream(one, version)]));
    const names = [...this.#streams.keys(), ...this.#bookmarks.keys()];
    this.#hasJobs = names.some((stream) => !canRefresh(stream));
  }

  say(event: Event): string {
    // A stream that the tap does not know has no messages. The log reports its failure.
    const stream = "stream" in event ? this.#streams.get(event.stream ?? "") : undefined;
    switch (event.kind) {
      case "open":
        return this.#before(stream?.schemaLine());
      case "fields":
        return this.#before(stream?.widened(event.added));
      case "records":
        return this.#before(stream?.records(event.lines, event.at));
      case "checkpoint":
        return stream === undefined ? "" : this.#checkpoint(event.stream, stream.bookmark(event.state));
      case "close":
        if (!event.complete || event.error !== undefined) return "";
        return this.#before(stream?.activation());
      case "end":
        // Some targets lose a state that other messages follow, so every run ends with a state.
        return this.#lastIsState ? "" : this.#state();
      default:
        return "";
    }
  }

  /** Skips an unchanged state. A large state is written less often, except before a purchase. */
  #checkpoint(stream: string, bookmark: object): string {
    const isFirst = this.#stateAt === Number.NEGATIVE_INFINITY;
    const isNew = isFirst || !isDeepStrictEqual(bookmark, this.#bookmarks.get(stream));
    this.#bookmarks.set(stream, bookmark);
    if (!isNew) return "";
    const isDue = this.#monotonic() - this.#stateAt >= LARGE_STATE_EVERY_MS;
    if (!canRefresh(stream) || !this.#hasJobs || isDue) return this.#state();
    this.#lastIsState = false;
    return "";
  }

  #state(): string {
    const bookmarks = Object.fromEntries(this.#bookmarks);
    this.#stateAt = this.#monotonic();
    this.#lastIsState = true;
    return jsonLine({ type: "STATE", value: { ...this.#rest, bookmarks } });
  }

  #before(text = ""): string {
    if (text !== "") this.#lastIsState = false;
    return text;
  }
}

type SingerStream = ReturnType<typeof singerStream>;

/** The messages of one selected stream. */
function singerStream({ stream, keyProperties, replicationKey, ...selection }: Selection, latest?: number) {
  const version = selection.method === "FULL_TABLE" ? latest : undefined;
  let { schema } = selection;
  const schemaLine = (): string =>
    jsonLine({
      type: "SCHEMA",
      stream,
      schema,
      key_properties: keyProperties,
      bookmark_properties: replicationKey === null ? undefined : [replicationKey],
    });
  return {
    schemaLine,
    /** Adds fields to the schema, because some targets refuse unknown fields. */
    widened(added: Readonly<Record<string, FieldSchema>>): string {
      schema = { ...schema, properties: { ...propertiesOf(schema), ...added } };
      return schemaLine();
    },
    records(lines: Lines, at: number): string {
      const versioned = version === undefined ? "" : `,"version":${version}`;
      const time = new Date(at).toISOString();
      const head = `{"type":"RECORD","stream":${asciiJson(stream)}${versioned},"time_extracted":"${time}","record":`;
      return splice(head, "}\n", lines);
    },
    bookmark(state: StreamState): object {
      const value = replicationKey === null ? null : (state[replicationKey] ?? null);
      return { ...state, replication_key: replicationKey, replication_key_value: value };
    },
    /** After this message, targets drop all rows with an older version. So all rows of the table must be before the message. */
    activation: (): string =>
      version === undefined ? "" : jsonLine({ type: "ACTIVATE_VERSION", stream, version }),
  };
}
