import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import { readText } from "../files/read.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { type ShardState, unite } from "../shards/unite.ts";
import { parseDatedState } from "../state/dated.ts";
import { languageOf, parseStateText } from "../state/envelopes.ts";
import type { DatedState } from "../streams/dated-state.ts";

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
  const texts = await Promise.all(states.map(async (path) => await readText("state", await fileAt(path))));
  const parts = texts.flatMap((text, index) => partsOf(text, `"${states[index]}"`));
  const merged = [...new Set(parts.map(({ stream }) => stream))].map((stream): [string, DatedState] => {
    const own = parts.filter((part) => part.stream === stream);
    if (own.length === states.length) return [stream, unite(stream, own, partial)];
    throw new ConfigError(`Cannot merge: "${stream}" is in ${own[0]?.name}, and not in every state`);
  });
  const state = languageOf(texts[0] ?? "") === "singer" ? toBookmarks(merged) : merged.map(toMessage);
  await write(stdout, `${asciiJson(state)}\n`);
  return 0;
}

const fileAt = async (path: string): Promise<string> =>
  (await stat(path).catch(() => undefined))?.isDirectory() === true ? join(path, "state.json") : path;

function partsOf(text: string, name: string): readonly (ShardState & { readonly stream: string })[] {
  const parts = [...parseStateText(text).streams].flatMap(([stream, saved]) => {
    const state = parseDatedState(stream, saved);
    return state === null ? [] : [{ name, stream, state }];
  });
  if (parts.length > 0) return parts;
  throw new ConfigError(`Cannot merge the state ${name}: it holds no state of a stream with dates`);
}

const toBookmarks = (merged: readonly (readonly [string, DatedState])[]): object => ({
  bookmarks: Object.fromEntries(
    merged.map(([name, state]) => [
      name,
      { ...state, replication_key: "discoveredAt", replication_key_value: state.discoveredAt },
    ]),
  ),
});

const toMessage = ([name, stream_state]: readonly [string, DatedState]): object => ({
  type: "STREAM",
  stream: { stream_descriptor: { name }, stream_state },
});
