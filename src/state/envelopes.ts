import { STREAMS } from "../catalog/streams.ts";
import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject, kindOf } from "../json.ts";

/** State of an earlier run: the blob of each stream, and what else a Singer state held, to be handed on. */
export type SavedState = { readonly streams: ReadonlyMap<string, unknown>; readonly rest: JsonObject };

/**
 * Under which a stream's blob stands in SavedState, and among the bookmarks of a state file: its name, with the
 * namespace before a slash if it has one. No name of a stream has a slash.
 */
export function stateKey(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

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
  const value = jsonOf(content);
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
    const value = jsonOf(line);
    if (value === undefined && index < lines.length - 1)
      throw unreadableState(`line ${index + 1} is not complete JSON`);
    if (value === undefined || (isObject(value) && OTHER_MESSAGES.test(String(value["type"])))) continue;
    collect(value, state);
    found = true;
  }
  if (!found) throw unreadableState("the text is not JSON, nor are there lines with STATE messages in it");
  return state;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
  const read = isObject(value) ? ENVELOPES.find(([fits]) => fits(value)) : undefined;
  if (!isObject(value) || read === undefined) throw unknownShape(value);
  read[1](value, state);
}

type Envelope = readonly [
  fits: (value: JsonObject) => boolean,
  collect: (value: JsonObject, state: Collected) => void,
];

/** The first that fits reads the value. */
const ENVELOPES: readonly Envelope[] = [
  [isEmpty, () => {}],
  [({ type }) => type === "STATE", collectMessage],
  [({ stateType }) => typeof stateType === "string", collectExported],
  [(value) => "streamDescriptor" in value, collectStream],
  [(value) => airbyteType(value) === "STREAM", ({ stream }, state) => collectStream(stream, state)],
  [
    (value) => airbyteType(value) === "GLOBAL",
    ({ global, global_ }, state) => collectStreams(global ?? global_, "stream_states", state),
  ],
  [(value) => airbyteType(value) === "LEGACY", ({ data }, state) => collect(data, state)],
  [(value) => "singer_state" in value, ({ singer_state }, state) => collect(singer_state, state)],
  // Meltano merges the partial states of runs since the last complete one into it, key by key.
  [isStateFile, ({ completed, partial }, state) => collect(merged(completed ?? {}, partial ?? {}), state)],
  [(value) => "bookmarks" in value || "airbyte_state" in value, collectSinger],
  [isBare, collectBlobs],
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

/** A complete output line: Airbyte's has `state`, Singer's has `value`. */
function collectMessage(message: JsonObject, state: Collected): void {
  const { state: airbyte, value: singer } = message;
  if (!isObject(airbyte ?? singer)) throw unknownShape(message);
  collect(airbyte ?? singer, state);
}

/** What Airbyte's API gives of a connection's state. The parts that the type does not name are null there. */
function collectExported(value: JsonObject, state: Collected): void {
  const type = String(value["stateType"]).toLowerCase();
  if (type === "legacy") collect(value["state"], state);
  else if (type === "stream") collectStreams(value, "streamState", state);
  else if (type === "global") collectStreams(value["globalState"], "streamStates", state);
  else if (type !== "not_set")
    throw unreadableState(`stateType is ${JSON.stringify(type.slice(0, LONGEST_KEY))}`);
}

/** One stream's state, as the protocol or as Airbyte's API spells it. */
function collectStream(stream: unknown, state: Collected): void {
  const value = isObject(stream) ? stream : {};
  const { stream_descriptor: descriptor = value["streamDescriptor"] } = value;
  const { stream_state: savedState = value["streamState"] } = value;
  const { name, namespace } = isObject(descriptor) ? descriptor : {};
  if (typeof name !== "string") throw unreadableState("a STREAM state has no stream_descriptor with a name");
  state.set(
    stateKey(name, typeof namespace === "string" && namespace !== "" ? namespace : undefined),
    savedState,
  );
}

/** The shared state of a GLOBAL one belongs to no stream of this source. */
function collectStreams(value: unknown, name: string, state: Collected): void {
  const list = isObject(value) ? value[name] : undefined;
  if (!Array.isArray(list)) throw unreadableState(`a state of several streams has no list ${name}`);
  for (const stream of list) collectStream(stream, state);
}

/** `airbyte_state` is what a tap around an Airbyte source left; the bookmarks beside it are younger. */
function collectSinger(value: JsonObject, state: Collected): void {
  const { bookmarks, airbyte_state, stream_descriptor: _descriptor, stream_state: _state, ...rest } = value;
  collect(airbyte_state, state);
  if (bookmarks !== undefined && bookmarks !== null && !isObject(bookmarks)) throw unknownShape(value);
  collectBlobs(bookmarks ?? {}, state);
  Object.assign(state.rest, rest);
}

function collectBlobs(blobs: JsonObject, state: Collected): void {
  for (const [name, savedState] of Object.entries(blobs)) state.set(name, savedState);
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
const DEEPEST_SHOWN = 3;

/** Kinds and names only, never values. */
function shapeOf(value: unknown, depth = 0): string {
  if (Array.isArray(value)) {
    if (depth === DEEPEST_SHOWN) return "a list";
    return `a list that holds ${value.length === 0 ? "nothing" : shapeOf(value[0], depth + 1)}`;
  }
  if (!isObject(value)) return value === null ? "null" : `a ${kindOf(value)}`;
  if (isEmpty(value)) return "an empty object";
  const keys = Object.entries(value).map(
    ([key, inner]) => `${JSON.stringify(key.slice(0, LONGEST_KEY))} (${kindOf(inner)})`,
  );
  const more = keys.length > MOST_KEYS ? ` and ${keys.length - MOST_KEYS} more` : "";
  return `an object with ${keys.slice(0, MOST_KEYS).join(", ")}${more}`;
}
