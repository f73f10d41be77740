import { toRawLine } from "../api/decode.ts";
import { RowNotes } from "../api/row-notes.ts";
import { isObject, objectOf } from "../json.ts";
import { streamOfKey } from "../state/envelopes.ts";
import type { Event, WindowRecord } from "../streams/event.ts";
import { instant } from "../time.ts";

/** The stream, and the key under which the states of others hold its records. */
const NAME = "sync_windows";

type SyncWindow = WindowRecord & {
  readonly id: string;
  readonly run_started_at: string;
  readonly ordinal: number;
  readonly stream: string;
};

/**
 * The records of `sync_windows`, one for each window that a checkpoint covers. They stand in the state of that checkpoint and
 * in those after it, until the stream's own state says that they have left. What earlier runs left over comes first.
 */
export class SyncWindows {
  readonly #isAsked: boolean;
  /** Later than the start of every run that left records. */
  readonly #startedAt: string;
  /** By the key of the state that holds them. */
  readonly #waiting: Map<string, readonly SyncWindow[]>;
  readonly #left: unknown;
  #ordinal = 0;

  /**
   * @param states what the state says of each stream
   * @param now epoch ms
   */
  constructor(isAsked: boolean, states: ReadonlyMap<string, unknown>, now: number) {
    this.#isAsked = isAsked;
    const [own] = [...states].flatMap(([key, state]) => (streamOfKey(key) === NAME ? [state] : []));
    const { run_started_at = null } = objectOf(own);
    this.#left = run_started_at;
    const left = instant(String(run_started_at)) || 0;
    const waiting = [...states].map(([key, state]) => [key, recordsIn(state, left)] as const);
    this.#waiting = new Map(waiting);
    const starts = waiting.flatMap(([, records]) => records.map((one) => instant(one.run_started_at)));
    this.#startedAt = new Date(
      starts.reduce((a, b) => Math.max(a, b + 1), Math.max(now, left + 1)),
    ).toISOString();
  }

  /** Takes in what a checkpoint covers, and gives its state what has not left. @param key of that state */
  note(event: Event, key: string): Event {
    if (event.kind !== "checkpoint") return event;
    const { stream, records = [] } = event;
    const news = (this.#isAsked ? records : []).map((record): SyncWindow => {
      const { kind, first_day, last_day } = record;
      const [run_started_at, ordinal] = [this.#startedAt, this.#ordinal++];
      const id = [stream, first_day ?? kind, last_day ?? kind, run_started_at, ordinal].join(" ");
      return { id, run_started_at, ordinal, stream, ...record };
    });
    const waiting = [...(this.#waiting.get(key) ?? []), ...news];
    this.#waiting.set(key, waiting);
    return waiting.length === 0 ? event : { ...event, state: { ...event.state, [NAME]: waiting } };
  }

  /** The events of the stream: all that has not left. */
  *read(): Generator<Event> {
    const records = [...this.#waiting.values()]
      .flat()
      .sort((a, b) => instant(a.run_started_at) - instant(b.run_started_at) || a.ordinal - b.ordinal);
    const notes = new RowNotes();
    const lines = records.map((record) => toRawLine(record, notes));
    yield { kind: "records", stream: NAME, lines, at: instant(this.#startedAt) };
    const state = { version: 1, run_started_at: records.at(-1)?.run_started_at ?? this.#left };
    yield { kind: "checkpoint", stream: NAME, state };
    yield { kind: "close", stream: NAME, complete: true };
  }
}

/** The records in a stream's state of runs that began after a moment. */
function recordsIn(state: unknown, left: number): readonly SyncWindow[] {
  const { [NAME]: records } = objectOf(state);
  const isWaiting = (one: unknown): one is SyncWindow =>
    isObject(one) && typeof one["id"] === "string" && instant(String(one["run_started_at"])) > left;
  return Array.isArray(records) ? records.filter(isWaiting) : [];
}
