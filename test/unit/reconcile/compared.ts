import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compare, type Question } from "../../../src/reconcile/reconcile.ts";
import { type Report, Results } from "../../../src/reconcile/results.ts";
import type { Event, RawLine } from "../../../src/sync/event.ts";
import { file } from "../../support/cli.ts";
import { tempDir } from "../../support/temp-dir.ts";

export const NOW = Date.parse("2024-03-20T12:00:00Z");
export const DATED: Question["form"] = { key: "id", cursor: "discoveredAt", zone: undefined };
export const UNDATED: Question["form"] = { ...DATED, cursor: null };

/** What the service shows when it is read, look by look; the last for ever. */
export type Shown = (look: Parameters<Question["read"]>[0], nth: number) => readonly unknown[];

type Found = Report & { readonly lists: Readonly<Record<string, string>>; readonly looks: number };

/** Compares a table with what a service shows, in a folder of results. */
export async function compared(table: string, shown: Shown, asked: Partial<Question> = {}): Promise<Found> {
  const folder = await tempDir();
  const results = await Results.open(folder);
  let looks = 0;
  const report = await compare({
    ...{ stream: "things", table: await file("keys.csv", table), state: undefined, form: DATED },
    ...{ mode: "full", mostGone: undefined, startDate: null, endDate: null, isFiltered: false },
    ...{ api: { now: () => NOW, count: () => Promise.reject(new Error("Not asked for")) } },
    ...{ emit: async () => {}, requests: () => 1, results, isSuppressed: () => false },
    ...{ keyOf: (key) => key, leave: (line) => line },
    read: async function* (look): AsyncGenerator<Event> {
      const lines = shown(look, looks++).map(toRaw);
      yield { kind: "records", stream: "things", at: 0, lines };
      yield { kind: "close", stream: "things", complete: true };
    },
    ...asked,
  });
  const names = ["lost.jsonl", "suppressed.csv", "unclear.csv"];
  if (report.gone !== null) names.push("gone.csv");
  const texts = names.map((name) => [name, textOf(join(folder, name))]);
  return { ...report, lists: Object.fromEntries(texts), looks };
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
