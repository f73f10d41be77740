import { type Counter, type Cut, cutRange, shardsFor } from "../../src/shards/cut.ts";

/** All shards of a range, as `plan` cuts them. */
export async function cutAll(
  counter: Counter,
  { from, to }: Pick<Cut, "from" | "to">,
  wanted: number | undefined,
): Promise<readonly Cut[]> {
  const size = await counter.count(from, to);
  const cuts: Cut[] = [];
  for await (const cut of cutRange(counter, { from, to }, size, shardsFor(size, to, wanted))) cuts.push(cut);
  return cuts;
}
