import { ConfigError } from "../base/errors.ts";
import { plural, toLatin1 } from "../base/text.ts";
import { JOB_STREAMS } from "../catalog/streams.ts";
import { readState } from "../output/state-file.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { mergeStates, type NamedState } from "../shards/merge.ts";
import { type SavedState, streamOfKey } from "../state/envelopes.ts";
import { parseRowState } from "../state/parse-state.ts";
import { covered, isProven } from "../sync/coverage.ts";
import { inWords } from "./state.ts";

export type StateMergeOptions = {
  /** Paths of state files or of folders of `read --output`. */
  readonly states: readonly string[];
  /** Whether days may be in no state. The next run reads these days. */
  readonly partial: boolean;
  /** Whether a terminal gets the state, and not sentences. */
  readonly json: boolean;
};

/** Prints the union of states in the form of the first state, or sentences at a terminal. @throws ConfigError */
export async function stateMerge(options: StateMergeOptions, { stdout }: Runtime): Promise<number> {
  const { states, partial, json } = options;
  const streams = new Map<string, NamedState[]>();
  const read = await Promise.all(states.map((path) => readState(path)));
  for (const [nth, saved] of read.entries()) {
    const name = `"${states[nth]}"`;
    for (const [key, state] of rowStatesIn(name, saved))
      streams.set(key, [...(streams.get(key) ?? []), { name, state }]);
  }
  const merged = [...streams].map(([key, parts]) => {
    if (parts.length < states.length)
      throw new ConfigError(`Cannot merge: "${key}" is in ${parts[0]?.name}, and not in every state`);
    return [key, mergeStates(key, parts, partial)] as const;
  });
  const messages = merged.map(([name, state]) => ({
    type: "STREAM",
    stream: { stream_descriptor: { name }, stream_state: state },
  }));
  if (stdout.isTTY === true && !json) {
    const lines = merged.map(([key, { days }]) => {
      const proven = inWords(covered(days.filter(isProven))) || "none";
      return `${key}: ${plural(states.length, "state")} merged. Proven days: ${proven}`;
    });
    await write(stdout, toLatin1(`${lines.join("\n")}\nTo save the merged state, add: > state.json\n`));
    return 0;
  }
  const isSinger = read[0]?.isSinger;
  await write(stdout, `${asciiJson(isSinger ? { bookmarks: Object.fromEntries(merged) } : messages)}\n`);
  return 0;
}

/** The states of streams with rows. @throws ConfigError for a state of jobs, and for a state without rows */
function rowStatesIn(name: string, { streams }: SavedState) {
  const job = JOB_STREAMS.find((spec) => [...streams.keys()].some((key) => streamOfKey(key) === spec.name));
  if (job !== undefined)
    throw new ConfigError(
      `Cannot merge the state ${name}: shards do not read "${job.name}". Keep the state for the run that buys, ` +
        "because the state lists all purchases",
    );
  const found = [...streams].flatMap(([key, value]) => {
    const state = parseRowState(key, value);
    return state === null ? [] : [[key, state] as const];
  });
  if (found.length === 0)
    throw new ConfigError(`Cannot merge the state ${name}: it has no stream with dates`);
  return found;
}
