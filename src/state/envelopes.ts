import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, kindOf, objectOf, tryParseJson } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";

/** State of an earlier run: the blob of each stream, and what else a Singer state held, to be handed on. */
export type SavedState = { readonly streams: ReadonlyMap<string, unknown>; readonly rest: JsonObject };

/**
 * Under which a stream's blob stands in SavedState, and among the bookmarks of a state file: its name, with the
 * namespace before a slash if it has one. No name of a stream has a slash.
 */
export function stateKey(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** The name of the stream whose blob stands under a key. */
export const streamOfKey = (key: string): string => key.slice(key.lastIndexOf("/") + 1);

/** In whose words a state is kept: Airbyte's list of STREAM states, or Singer's bookmarks, as in our state files. */
export type StateLanguage = "airbyte" | "singer";

/** Tells the language of a state's text, which `parseStateText` must be able to read. */
export const languageOf = (text: string): StateLanguage =>
  /"(?:bookmarks|singer_state)"\s*:/.test(text) ? "singer" : "airbyte";

/** Streams by which a state without any envelope is known as ours. */
const KNOWN: ReadonlySet<string> = new Set(STREAMS.map(({ name }) => name));

/** Lines of a run's output that are no state. */
const OTHER_MESSAGES =
  /^(?:ACTIVATE_VERSION|BATCH|CATALOG|CONNECTION_STATUS|CONTROL|LOG|RECORD|SCHEMA|SPEC|TRACE)$/;

/**
 * Reads a state in every envelope that platforms, targets and people keep it in: Airbyte's list or single messages
 * (STREAM, GLOBAL, LEGACY), what Airbyte's API exports (`stateType`, `streamState`, `globalState`), Singer's `bookmarks`, `singer_state`, `airbyte_state`, Meltano's state file, complete STATE
 * messages, and a bare object of streams. Nothing, `[]` and `{}` are no state; a null blob resets its stream.
 * Of two blobs for a stream the last wins. Throws ConfigError for any other shape: a state is never ignored.
 */
export function parseState(value: unknown): SavedState {
  const state = new Collected();
  collect(value, state);
  return state;
}

/** Reads a state file: one JSON value, or the saved output of a run or of a target, a line each. A byte order mark is no content. */
export function parseStateText(text: string): SavedState {
  const content = text.trim();
  if (content === "") return new Collected();
  const value = tryParseJson(content);
  return value === undefined ? parseLines(content.split(/\r?\n/)) : parseState(value);
}

class Collected implements SavedState {
  readonly streams = new Map<string, unknown>();
  readonly rest: JsonObject = {};

  set(name: string, savedState: unknown): void {
    if (savedState === null || savedState === undefined) this.streams.delete(name);
    else this.streams.set(name, savedState);
  }
}

/** Lines that are no JSON objects are a program's talk; a last line that was cut had not been saved yet. */
function parseLines(lines: readonly string[]): SavedState {
  const state = new Collected();
  let found = false;
  for (const [index, line] of lines.entries()) {
    if (!/^\s*[[{]/.test(line)) continue;
    const value = tryParseJson(line);
    if (value === undefined && index < lines.length - 1)
      throw unreadableState(`line ${index + 1} is not complete JSON`);
    const type = isObject(value) ? value["type"] : undefined;
    if (value === undefined || (typeof type === "string" && OTHER_MESSAGES.test(type))) continue;
    collect(value, state);
    found = true;
  }
  if (!found) throw unreadableState("the text is not JSON, nor are there lines with STATE messages in it");
  return state;
}

function collect(value: unknown, state: Collected): void {
  if (value === null || value === undefined || value === "") return;
  if (Array.isArray(value)) {
    for (const message of value) {
      if (!isObject(message) || isEmpty(message)) throw unknownShape([message]);
      collect(message, state);
    }
    return;
  }
  const open = isObject(value) ? ENVELOPES.find(([fits]) => fits(value))?.[1] : undefined;
  if (!isObject(value) || open === undefined) throw unknownShape(value);
  const { within, streams = [], blobs, rest } = open(value);
  collect(within, state);
  if (!Array.isArray(streams)) throw unreadableState("a state of several streams has no list of them");
  for (const stream of streams) collectStream(stream, state);
  if (blobs !== undefined && blobs !== null && !isObject(blobs)) throw unknownShape(value);
  for (const [name, savedState] of Object.entries(blobs ?? {})) state.set(name, savedState);
  Object.assign(state.rest, rest);
}

/** `within`: a state in another envelope; `streams`: Airbyte's states of single streams; `blobs`: by name; `rest`: handed on. */
type Contents = {
  readonly within?: unknown;
  readonly streams?: unknown;
  readonly blobs?: unknown;
  readonly rest?: JsonObject;
};
type Envelope = readonly [fits: (value: JsonObject) => boolean, open: (value: JsonObject) => Contents];

/** What Airbyte's API gives of a connection's state. The parts that the type does not name are null there. */
const isExport =
  (type: string) =>
  ({ stateType }: JsonObject): boolean =>
    typeof stateType === "string" && stateType.toLowerCase() === type;
const isAirbyte = (type: string) => (value: JsonObject) => airbyteType(value) === type;
const listIn = (value: unknown, name: string): unknown => objectOf(value)[name] ?? null;

/** The first that fits is opened. */
const ENVELOPES: readonly Envelope[] = [
  [isEmpty, () => ({})],
  // A complete output line: Airbyte's has `state`, Singer's has `value`.
  [
    ({ type, state, value }) => type === "STATE" && isObject(state ?? value),
    ({ state, value }) => ({ within: state ?? value }),
  ],
  [isExport("not_set"), () => ({})],
  [isExport("legacy"), ({ state }) => ({ within: state })],
  [isExport("stream"), (value) => ({ streams: listIn(value, "streamState") })],
  [isExport("global"), ({ globalState }) => ({ streams: listIn(globalState, "streamStates") })],
  [(value) => "streamDescriptor" in value, (value) => ({ streams: [value] })],
  [isAirbyte("STREAM"), ({ stream }) => ({ streams: [stream] })],
  // The shared state belongs to no stream of this source.
  [isAirbyte("GLOBAL"), ({ global, global_ }) => ({ streams: listIn(global ?? global_, "stream_states") })],
  [isAirbyte("LEGACY"), ({ data }) => ({ within: data })],
  [(value) => "singer_state" in value, ({ singer_state }) => ({ within: singer_state })],
  // Meltano merges the partial states of runs since the last complete one into it, key by key.
  [isStateFile, ({ completed, partial }) => ({ within: merged(completed ?? {}, partial ?? {}) })],
  // `airbyte_state` is what a tap around an Airbyte source left; the bookmarks beside it are younger.
  [
    (value) => "bookmarks" in value || "airbyte_state" in value,
    ({
      bookmarks: blobs,
      airbyte_state: within,
      stream_descriptor: _descriptor,
      stream_state: _state,
      ...rest
    }) => ({ within, blobs, rest }),
  ],
  [isBare, (blobs) => ({ blobs })],
];

function isEmpty(value: JsonObject): boolean {
  return Object.keys(value).length === 0;
}

/** Airbyte's kind of state message; one without `type` is told by its one part that is not null. */
function airbyteType({ type, stream, global, global_, data }: JsonObject): unknown {
  if (type !== undefined && type !== null) return type;
  if (isObject(stream) && "stream_descriptor" in stream) return "STREAM";
  if (isObject(global ?? global_)) return "GLOBAL";
  return isObject(data) ? "LEGACY" : undefined;
}

function collectStream(stream: unknown, state: Collected): void {
  const value = objectOf(stream);
  const { stream_descriptor: descriptor = value["streamDescriptor"] } = value;
  const { stream_state: savedState = value["streamState"] } = value;
  const { name, namespace } = objectOf(descriptor);
  if (typeof name !== "string") throw unreadableState("a STREAM state has no stream_descriptor with a name");
  const isNamed = typeof namespace === "string" && namespace !== "";
  state.set(stateKey(name, isNamed ? namespace : undefined), savedState);
}

function isStateFile({ completed, partial }: JsonObject): boolean {
  const halves = [completed, partial].filter((half) => half !== undefined && half !== null);
  return (
    halves.length > 0 && halves.every((half) => isObject(half) && ("singer_state" in half || isEmpty(half)))
  );
}

function merged(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over;
  const entries = Object.entries(over).map(([key, value]) => [
    key,
    key in base ? merged(base[key], value) : value,
  ]);
  return { ...base, ...Object.fromEntries(entries) };
}

function isBare(value: JsonObject): boolean {
  const areBlobs = Object.values(value).every((blob) => blob === null || isObject(blob));
  return areBlobs && Object.keys(value).some((name) => KNOWN.has(name));
}

const unknownShape = (value: unknown): ConfigError => unreadableState(`it is ${shapeOf(value)}`);

const unreadableState = (why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state: ${why}. Accepted are Airbyte's list of STREAM states, Singer's {"bookmarks": …}, ` +
      "what Meltano prints or stores, and STATE lines of an earlier run; an empty file starts from the beginning",
  );

const MOST_KEYS = 5;
const LONGEST_KEY = 40;

/** Kinds and names only, never values. */
function shapeOf(value: unknown): string {
  if (Array.isArray(value)) {
    const [first = "nothing"] = value
      .slice(0, 1)
      .map((inner) => (Array.isArray(inner) ? "a list" : shapeOf(inner)));
    return `a list that holds ${first}`;
  }
  if (!isObject(value)) return value === null ? "null" : `a ${kindOf(value)}`;
  if (isEmpty(value)) return "an empty object";
  const keys = Object.entries(value).map(
    ([key, inner]) => `${JSON.stringify(key.slice(0, LONGEST_KEY))} (${kindOf(inner)})`,
  );
  const more = keys.length > MOST_KEYS ? ` and ${keys.length - MOST_KEYS} more` : "";
  return `an object with ${keys.slice(0, MOST_KEYS).join(", ")}${more}`;
}
