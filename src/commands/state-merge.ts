import { ConfigError } from "../errors.ts";
import { readText } from "../files/read.ts";
import { asciiJson } from "../protocol/language.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import { mergeShards, type ShardState } from "../shards/merge.ts";
import { parsePlans } from "../shards/plan-file.ts";
import { parseDatedState } from "../state/dated.ts";
import { languageOf, parseStateText, type StateLanguage } from "../state/envelopes.ts";
import type { DatedState } from "../streams/dated-state.ts";

export type StateMergeOptions = { readonly plans: readonly string[]; readonly states: readonly string[] };

type Given = ShardState & { readonly stream: string; readonly language: StateLanguage };

/** Prints the one state that the states of all shards make, in the language that they are in. Throws ConfigError. */
export async function stateMerge({ plans, states }: StateMergeOptions, { stdout }: Runtime): Promise<number> {
  const texts = await Promise.all(plans.map((file) => readText("plan", file)));
  const all = texts.flatMap(parsePlans);
  const given = (await Promise.all(states.map(readState))).flat();
  const language = commonLanguage(given);
  const merged = new Map<string, DatedState>();
  for (const plan of all) {
    if (merged.has(plan.stream))
      throw new ConfigError(`Cannot merge: there are two plans of "${plan.stream}"`);
    merged.set(
      plan.stream,
      mergeShards(
        plan,
        given.filter(({ stream }) => stream === plan.stream),
      ),
    );
  }
  const unplanned = given.find(({ stream }) => !merged.has(stream));
  if (unplanned !== undefined) {
    throw new ConfigError(`Cannot merge ${unplanned.name}: no plan has the stream "${unplanned.stream}"`);
  }
  await write(stdout, `${asciiJson(inLanguage(language, merged))}\n`);
  return 0;
}

async function readState(file: string): Promise<readonly Given[]> {
  const text = await readText("state", file);
  const { streams } = parseStateText(text);
  const found = [...streams].flatMap(([stream, saved]) => {
    const state = parseDatedState(stream, saved);
    return state === null ? [] : [{ name: `"${file}"`, stream, state, language: languageOf(text) }];
  });
  if (found.length > 0) return found;
  throw new ConfigError(`Cannot merge the state "${file}": it holds no state of a shard`);
}

function commonLanguage(given: readonly Given[]): StateLanguage {
  const [first] = given;
  const other = given.find(({ language }) => language !== first?.language);
  if (first === undefined) throw new ConfigError("Cannot merge: name the states of all shards");
  if (other === undefined) return first.language;
  throw new ConfigError(
    `Cannot merge ${first.name} and ${other.name}: one is a state of ${first.language === "airbyte" ? "Airbyte" : "Singer"}, ` +
      "the other is not. Merge states of one language",
  );
}

const toBookmark = ([name, state]: [string, DatedState]): readonly [string, object] => [
  name,
  { ...state, replication_key: "discoveredAt", replication_key_value: state.discoveredAt },
];

function inLanguage(language: StateLanguage, merged: ReadonlyMap<string, DatedState>): object {
  if (language === "singer") return { bookmarks: Object.fromEntries([...merged].map(toBookmark)) };
  return [...merged].map(([name, stream_state]) => ({
    type: "STREAM",
    stream: { stream_descriptor: { name }, stream_state },
  }));
}
