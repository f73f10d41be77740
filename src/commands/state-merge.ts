import { ConfigError } from "../base/errors.ts";
import { JOB_STREAMS } from "../catalog/streams.ts";
import { readStateText } from "../output/files/read-file.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { mergeStates, type NamedState } from "../shards/merge.ts";
import { isSingerState, parseStateText, streamOfKey } from "../state/envelopes.ts";
import { parseRowState } from "../state/parse-state.ts";
import type { RowState } from "../sync/state.ts";

export type StateMergeOptions = {
  /** Files, or folders of `read --output`. */
  readonly states: readonly string[];
  /** Whether days that are in no state may be left to the next run. */
  readonly partial: boolean;
};

/** Prints the one state that several make together, in the language of the first. Throws ConfigError. */
export async function stateMerge(
  { states, partial }: StateMergeOptions,
  { stdout }: Runtime,
): Promise<number> {
  const streams = new Map<string, NamedState[]>();
  const texts = await Promise.all(states.map(readStateText));
  for (const [nth, text] of texts.entries()) {
    const name = `"${states[nth]}"`;
    for (const [key, state] of rowStatesIn(name, text))
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
  const isSinger = isSingerState(texts[0] ?? "");
  await write(stdout, `${asciiJson(isSinger ? { bookmarks: Object.fromEntries(merged) } : messages)}\n`);
  return 0;
}

/** The states of the streams with rows. Throws ConfigError for a state of jobs, and for one without such a stream. */
function rowStatesIn(name: string, text: string): readonly (readonly [key: string, state: RowState])[] {
  const { streams } = parseStateText(text);
  const job = JOB_STREAMS.find((spec) => [...streams.keys()].some((key) => streamOfKey(key) === spec.name));
  if (job !== undefined)
    throw new ConfigError(
      `Cannot merge the state ${name}: "${job.name}" is a stream of jobs, which shards do not read. Keep its ` +
        "state, which knows what was bought, with the run that buys",
    );
  const found = [...streams].flatMap(([key, value]) => {
    const state = parseRowState(key, value);
    return state === null ? [] : [[key, state] as const];
  });
  if (found.length === 0)
    throw new ConfigError(`Cannot merge the state ${name}: it contains no state of a stream with dates`);
  return found;
}
