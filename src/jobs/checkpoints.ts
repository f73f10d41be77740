import { isDeepStrictEqual } from "node:util";
import type { Event, StreamState } from "../sync/event.ts";
import type { JobRun } from "./job-run.ts";

/** Platforms give up on a stream that is silent for long; its state, said again, is a sign of life. */
const SIGN_OF_LIFE_MS = 180_000;

/** Records up to this moment were delivered. */
export function advance({ states }: JobRun, cursor: string | null): void {
  states.covering = undefined;
  if (cursor !== null && (states.cursor === null || cursor > states.cursor)) states.cursor = cursor;
}

/**
 * The state as it is now. `announces`: submissions are about to leave that only this state remembers.
 * @param known the state, if it was made already
 */
export function* checkpoint(run: JobRun, announces = false, known?: StreamState): Generator<Event> {
  const { context, states, stream, spent } = run;
  states.share.begin(context.clock.monotonic());
  const state = known ?? stateNow(run);
  states.covering = state;
  states.isWaiting = false;
  yield { kind: "checkpoint", stream, state, spent: { ...spent }, ...(announces && { announces }) };
  states.share.end(context.clock.monotonic());
}

/** The state after an answer, if the last one is long ago for the time that it took. */
export function* checkpointAfterAnswer(run: JobRun): Generator<Event> {
  run.states.isWaiting = !run.states.share.isDue(run.context.clock.monotonic());
  if (!run.states.isWaiting) yield* checkpoint(run);
}

/** A state that had to wait, or the last one once more during a long wait. */
export function* signOfLife(run: JobRun): Generator<Event> {
  const silentMs = run.context.clock.monotonic() - run.states.share.writtenAt;
  if (run.states.isWaiting || silentMs >= SIGN_OF_LIFE_MS) yield* checkpointAfterAnswer(run);
}

/** The last state of the run, unless it was written already: a large one takes its time. */
export function* lastCheckpoint(run: JobRun): Generator<Event> {
  const state = stateNow(run);
  if (!isDeepStrictEqual(state, run.states.covering)) yield* checkpoint(run, false, state);
}

const stateNow = ({ context: { memory, task, client }, states }: JobRun): StreamState =>
  memory.state(task.spec, states.cursor, client.now());
