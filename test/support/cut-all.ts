import { type Cut, cutRange, shardsFor, shardWindow } from "../../src/shards/cut.ts";
import type { StreamApi } from "../../src/streams/stream-api.ts";

/** All shards of a range, as `plan` cuts them. */
export async function cutAll(
  api: Pick<StreamApi, "count" | "rowAt">,
  { from, to }: Pick<Cut, "from" | "to">,
  wanted: number | undefined,
): Promise<readonly Cut[]> {
  const size = await api.count(shardWindow(from, to));
  const cuts: Cut[] = [];
  for await (const cut of cutRange(api, { from, to }, size, shardsFor(size, to, wanted))) cuts.push(cut);
  return cuts;
}
