import { type Cut, cutRange, shardWindow } from "../../src/shards/split.ts";
import type { Service } from "../../src/sync/service.ts";

/** All shards of a range, as `plan` cuts them. */
export async function cutAll(
  api: Pick<Service, "count" | "rowAt">,
  { from, to }: Pick<Cut, "from" | "to">,
  wanted: number | undefined,
): Promise<readonly Cut[]> {
  const cuts: Cut[] = [];
  const size = await api.count(shardWindow(from, to));
  for await (const cut of cutRange(api, { from, to }, size, wanted)) cuts.push(cut);
  return cuts;
}
