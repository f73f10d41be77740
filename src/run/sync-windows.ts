import { isObject, objectOf } from "../base/json.ts";
import { instant } from "../base/time.ts";
import { toRawLine } from "../service/decode.ts";
import { RowNotes } from "../service/row-notes.ts";
import { streamOfKey } from "../state/envelopes.ts";
import type { Event, WindowRecord } from "../sync/event.ts";

/** The name of the stream, and the key under which the states of others hold its records. */
export const PROOF = "sync_windows";

export type SyncWindow = WindowRecord & {
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
  readonly #left: string | null;
  #ordinal = 0;

  /**
   * @param states what the state says of each stream
   * @param now epoch ms
   */
  constructor(isAsked: boolean, states: ReadonlyMap<string, unknown>, now: number) {
    this.#isAsked = isAsked;
    this.#left = leftUntil(states);
    this.#waiting = new Map(waitingIn(states));
    const starts = [...this.#waiting.values()].flat().map((one) => instant(one.run_started_at) + 1);
    const earliest = (instant(this.#left ?? "") || 0) + 1;
    this.#startedAt = new Date(
      starts.reduce((a, b) => Math.max(a, b), Math.max(now, earliest)),
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
    return waiting.length === 0 ? event : { ...event, state: { ...event.state, [PROOF]: waiting } };
  }

  /** The events of the stream: all that has not left. */
  *read(): Generator<Event> {
    const records = [...this.#waiting.values()]
      .flat()
      .sort((a, b) => instant(a.run_started_at) - instant(b.run_started_at) || a.ordinal - b.ordinal);
    const notes = new RowNotes();
    const lines = records.map((record) => toRawLine(record, notes));
    yield { kind: "records", stream: PROOF, lines, at: instant(this.#startedAt) };
    const state = { version: 1, run_started_at: records.at(-1)?.run_started_at ?? this.#left };
    yield { kind: "checkpoint", stream: PROOF, state };
    yield { kind: "close", stream: PROOF, complete: true };
  }
}

/** When the newest run began whose records have left. */
function leftUntil(states: ReadonlyMap<string, unknown>): string | null {
  const [own] = [...states].flatMap(([key, state]) => (streamOfKey(key) === PROOF ? [objectOf(state)] : []));
  return typeof own?.["run_started_at"] === "string" ? own["run_started_at"] : null;
}

/** The records that have not left, by the key of the state that holds them. */
export function waitingIn(states: ReadonlyMap<string, unknown>): ReadonlyMap<string, readonly SyncWindow[]> {
  const left = instant(leftUntil(states) ?? "") || 0;
  const isWaiting = (one: unknown): one is SyncWindow =>
    isObject(one) && typeof one["id"] === "string" && instant(String(one["run_started_at"])) > left;
  return new Map(
    [...states].map(([key, state]) => {
      const { [PROOF]: records } = objectOf(state);
      return [key, Array.isArray(records) ? records.filter(isWaiting) : []];
    }),
  );
}
