import { type DateRange, shardWindow, splitRange } from "../../src/shards/split.ts";
import type { Service } from "../../src/sync/service.ts";

/** All shards of a range, as `plan` splits them. */
export async function splitAll(
  api: Pick<Service, "count" | "rowAt">,
  { from, to }: Pick<DateRange, "from" | "to">,
  wanted: number | undefined,
): Promise<readonly DateRange[]> {
  const cuts: DateRange[] = [];
  const size = await api.count(shardWindow(from, to));
  for await (const cut of splitRange(api, { from, to }, size, wanted)) cuts.push(cut);
  return cuts;
}
