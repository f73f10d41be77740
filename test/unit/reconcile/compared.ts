import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Comparison, compare } from "../../../src/reconcile/compare.ts";
import { openResults, type Report } from "../../../src/reconcile/results.ts";
import type { RawLine } from "../../../src/sync/event.ts";
import { file } from "../../support/cli.ts";
import { tempDir } from "../../support/temp-dir.ts";

export const NOW = Date.parse("2024-03-20T12:00:00Z");
export const DATED: Comparison["form"] = { key: "id", cursor: "discoveredAt", zone: undefined };
export const UNDATED: Comparison["form"] = { ...DATED, cursor: null };

/** What the service shows, read by read; `isFiltered`: under the filters of the config. */
export type Shown = (isFiltered: boolean, nth: number) => readonly unknown[];

type Found = Report & { readonly lists: Readonly<Record<string, string>>; readonly reads: number };

/** Compares a table with what a service shows, in a folder of results. */
export async function compared(table: string, shown: Shown, more: Partial<Comparison> = {}): Promise<Found> {
  const folder = await tempDir();
  let reads = 0;
  const report = await compare({
    ...{ stream: "things", table: await file("keys.csv", table), form: DATED, began: NOW },
    ...{ mostGone: undefined, hasFilters: false, isExpected: () => true, isSuppressed: () => false },
    ...{ publish: await openResults(folder), requests: () => 1, keyOf: (key) => key, mask: (line) => line },
    count: async () => ({ rows: 0, asked: NOW }),
    read: async function* (isFiltered) {
      yield shown(isFiltered, reads++).map(toRaw);
    },
    ...more,
  });
  const names = ["lost.jsonl", "suppressed.csv", "gone.csv"];
  const texts = names.map((name) => [name, textOf(join(folder, name))]);
  return { ...report, lists: Object.fromEntries(texts), reads };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "none";
  }
}

export const listOf = (keys: readonly string[]): string => ["id", ...keys, ""].join("\n");

/** A row as the service sends it: bytes of UTF-8. */
const toRaw = (row: unknown): RawLine => Buffer.from(JSON.stringify(row)).toString("latin1") as RawLine;
