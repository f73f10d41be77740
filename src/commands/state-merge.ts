import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { JOB_STREAMS } from "../catalog/streams.ts";
import { readText } from "../output/files/read-file.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { mergeStates, type NamedState } from "../shards/merge.ts";
import { isSingerState, parseStateText, streamOfKey } from "../state/envelopes.ts";
import { parseRowState } from "../state/parse-state.ts";

/** Streams that only one run may go on with. */
const JOB_NAMES: ReadonlySet<string> = new Set(JOB_STREAMS.map(({ name }) => name));

export type StateMergeOptions = {
  /** Files, or folders of `read --output`. */
  readonly states: readonly string[];
  /** Whether days that no state holds may be left to the next run. */
  readonly partial: boolean;
};

/** Prints the one state that several make together, in the language of the first. Throws ConfigError. */
export async function stateMerge(
  { states, partial }: StateMergeOptions,
  { stdout }: Runtime,
): Promise<number> {
  const streams = new Map<string, NamedState[]>();
  const texts = await Promise.all(states.map(stateText));
  for (const [index, text] of texts.entries()) {
    const name = `"${states[index]}"`;
    const saved = parseStateText(text).streams;
    const job = [...saved.keys()].find((stream) => JOB_NAMES.has(streamOfKey(stream)));
    if (job !== undefined)
      throw new ConfigError(
        `Cannot merge the state ${name}: "${streamOfKey(job)}" is a stream of jobs, which shards do not read. Keep its ` +
          "state, which knows what was bought, with the run that buys",
      );
    const found = [...saved].flatMap(([stream, value]) => {
      const state = parseRowState(stream, value);
      if (state !== null) streams.set(stream, [...(streams.get(stream) ?? []), { name, state }]);
      return state ?? [];
    });
    if (found.length === 0)
      throw new ConfigError(`Cannot merge the state ${name}: it holds no state of a stream with dates`);
  }
  const merged = [...streams].map(([name, parts]) => {
    if (parts.length < states.length)
      throw new ConfigError(`Cannot merge: "${name}" is in ${parts[0]?.name}, and not in every state`);
    return { name, state: mergeStates(name, parts, partial) };
  });
  const bookmarks = merged.map(({ name, state }): [string, object] => {
    const key = { replication_key: "discoveredAt", replication_key_value: state.discoveredAt };
    return [name, { ...state, ...key }];
  });
  const messages = merged.map(({ name, state }) => ({
    type: "STREAM",
    stream: { stream_descriptor: { name }, stream_state: state },
  }));
  const text = asciiJson(
    isSingerState(texts[0] ?? "") ? { bookmarks: Object.fromEntries(bookmarks) } : messages,
  );
  await write(stdout, `${text}\n`);
  return 0;
}

/** The text of the state of a file or a folder. Throws ConfigError. */
async function stateText(path: string): Promise<string> {
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true;
  return await readText("state", isFolder ? join(path, "state.json") : path);
}
