import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, kindOf, merged, objectOf, quoted, tryParseJson } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";

/** The state of an earlier run: a value for each stream, and other keys of a Singer state, which are sent on. */
export type SavedState = { readonly streams: ReadonlyMap<string, unknown>; readonly rest: JsonObject };

/** The key of a stream in a state: "name" or "namespace/name". */
export const stateKey = (name: string, namespace: string | undefined): string =>
  namespace === undefined ? name : `${namespace}/${name}`;

/** The name of the stream in a key. */
export const streamOfKey = (key: string): string => key.slice(key.lastIndexOf("/") + 1);

/** The states of streams without their namespaces, because a purchase counts in every namespace. */
export const statesByName = (states: ReadonlyMap<string, unknown>): ReadonlyMap<string, unknown> =>
  new Map([...states].map(([key, state]) => [streamOfKey(key), state]));

/** Whether the text of a state has Singer's bookmarks. Otherwise it has Airbyte's STREAM states. */
export const isSingerState = (text: string): boolean => /"(?:bookmarks|singer_state)"\s*:/.test(text);

/** A state with one of these names of streams is from this program. */
const KNOWN: ReadonlySet<string> = new Set(STREAMS.map(({ name }) => name));

/** Lines of a run's output that are not states. */
const OTHER_MESSAGES =
  /^(?:ACTIVATE_VERSION|BATCH|CATALOG|CONNECTION_STATUS|CONTROL|LOG|RECORD|SCHEMA|SPEC|TRACE)$/;

/** Reads a state in the form of any platform. Null resets a stream. @throws ConfigError, whose message continues a file's name */
export function parseState(value: unknown): SavedState {
  const state = new ParsedState();
  collect(value, state);
  return state.checked();
}

/** Reads the text of a state file: one JSON value, or lines of a run or of a target. */
export function parseStateText(text: string): SavedState {
  const content = text.trim();
  if (content === "") return new ParsedState();
  const value = tryParseJson(content);
  return value === undefined ? parseLines(content.split(/\r?\n/)) : parseState(value);
}

class ParsedState implements SavedState {
  readonly streams = new Map<string, unknown>();
  readonly rest: JsonObject = {};
  /** The keys of all streams that were added, also with null. */
  readonly keys: string[] = [];

  /** @param blobs the states of streams, by their keys */
  addAll(blobs: unknown): void {
    if (!isNothing(blobs) && !isObject(blobs)) throw unknownShape({ bookmarks: blobs });
    for (const [key, blob] of Object.entries(objectOf(blobs))) this.#add(key, blob);
  }

  /** @param value Airbyte's state of one stream */
  addStream(value: unknown): void {
    const { stream_descriptor: descriptor, stream_state: blob } = objectOf(value);
    const { name, namespace } = objectOf(descriptor);
    if (typeof name !== "string")
      throw new ConfigError("a STREAM state has no stream_descriptor with a name");
    const isNamed = typeof namespace === "string" && namespace !== "";
    this.#add(stateKey(name, isNamed ? namespace : undefined), blob);
  }

  /** @throws ConfigError for a state of another program, because the run would read everything again */
  checked(): this {
    const isEmpty = [...this.streams.values()].every(isNothing);
    const [first = ""] = this.keys;
    if (isEmpty || this.keys.some((key) => KNOWN.has(streamOfKey(key)))) return this;
    throw new ConfigError(`it has the stream ${quoted(first)}, and no stream of this program`);
  }

  #add(key: string, blob: unknown): void {
    this.keys.push(key);
    if (blob === null || blob === undefined) this.streams.delete(key);
    else this.streams.set(key, blob);
  }
}

/** Skips lines of other programs, which are not JSON objects, and a last line that is cut. */
function parseLines(lines: readonly string[]): SavedState {
  const state = new ParsedState();
  let found = false;
  for (const [index, line] of lines.entries()) {
    if (!/^\s*[[{]/.test(line)) continue;
    const value = tryParseJson(line);
    if (value === undefined && index < lines.length - 1)
      throw new ConfigError(`line ${index + 1} is not complete JSON`);
    const type = isObject(value) ? value["type"] : undefined;
    if (value === undefined || (typeof type === "string" && OTHER_MESSAGES.test(type))) continue;
    collect(value, state);
    found = true;
  }
  if (!found) throw new ConfigError("it is not JSON, and has no line with a STATE message");
  return state.checked();
}

/** Keys that contain a state. Only the first key is read, because older messages repeat the state as `data`. Python: `global_`. */
const WRAPPERS = ["state", "value", "stream", "global", "global_", "data", "singer_state"];

/** Keys that may contain a state, and keys that never contain a state of this program. */
const PARTS = [...WRAPPERS, "completed", "partial", "bookmarks", "airbyte_state", "stream_states"];
const NO_STATE = /^(?:currently_syncing|output|shared_state|sourceStats|destinationStats|id|state_id)$/;
const TYPES: readonly unknown[] = ["STATE", "STREAM", "GLOBAL", "LEGACY"];

function collect(value: unknown, state: ParsedState): void {
  if (isNothing(value) || (Array.isArray(value) && value.every(isNothing))) return;
  if (Array.isArray(value)) {
    for (const message of value) {
      if (!isObject(message) || isNothing(message)) throw unknownShape(value);
      collect(message, state);
    }
    return;
  }
  if (!isObject(value)) throw unknownShape(value);
  const before = state.keys.length;
  const read = openEnvelope(value, state);
  if (state.keys.length > before) return;
  // Refuses an envelope without a stream if it has unknown parts, because a stream may be in an unknown part.
  const { type = "STATE", ...parts } = value;
  const isEmpty = ([key, part]: [string, unknown]): boolean =>
    read.length > 0
      ? isNothing(part) || read.includes(key) || NO_STATE.test(key)
      : isNothing(part) && (PARTS.includes(key) || NO_STATE.test(key));
  if (!TYPES.includes(type) || !Object.entries(parts).every(isEmpty)) throw unknownShape(value);
}

/** Collects the states in an envelope. Returns the keys that it read. */
function openEnvelope(value: JsonObject, state: ParsedState): readonly string[] {
  const { stream_states: streams, completed, partial } = value;
  const wrapper = WRAPPERS.find((key) => !isNothing(value[key]) && isObject(value[key]));
  const inner = wrapper ?? (Array.isArray(streams) ? "stream_states" : undefined);
  if ("bookmarks" in value || "airbyte_state" in value) {
    // A tap around an Airbyte source writes `airbyte_state`, which is older than the bookmarks.
    const { bookmarks, airbyte_state, stream_descriptor: _descriptor, stream_state: _state, ...rest } = value;
    collect(airbyte_state, state);
    state.addAll(bookmarks);
    Object.assign(state.rest, rest);
    return ["bookmarks", "airbyte_state"];
  }
  if (isObject(completed ?? partial)) {
    // Meltano's partial state has the changes since its last complete state.
    const isBoth = isObject(completed) && isObject(partial);
    collect(isBoth ? merged(completed, partial) : (partial ?? completed), state);
    return ["completed", "partial"];
  }
  if (inner !== undefined) {
    collect(value[inner], state);
    return [inner];
  }
  if ("stream_descriptor" in value || "stream_state" in value) state.addStream(value);
  else if (isBare(value)) state.addAll(value);
  return [];
}

function isBare(value: JsonObject): boolean {
  const areBlobs = Object.values(value).every((blob) => blob === null || isObject(blob));
  return areBlobs && Object.keys(value).some((name) => KNOWN.has(name));
}

const isNothing = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === "" ||
  (typeof value === "object" && Object.keys(value).length === 0);

const unknownShape = (value: unknown): ConfigError =>
  new ConfigError(`it is not a state, but ${shapeOf(value)}`);

/** Describes a value by types and names, never by its contents. */
function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.slice(0, 1).map(kindOf).join()}`;
  if (!isObject(value)) return kindOf(value);
  const keys = Object.entries(value).map(([key, inner]) => `${quoted(key)} (${kindOf(inner)})`);
  return `an object with ${keys.slice(0, 5).join(", ")}`;
}
