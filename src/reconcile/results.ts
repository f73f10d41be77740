import { rm } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder, removeLeftovers, replaceFile, tryReplacing } from "../output/files/replace.ts";

/** How many rows differ on one day of the service. Gone keys count on the day that the table has. */
export type DayDifference = { lost: number; stale: number; gone: number };

/** The result of a comparison. */
export type Report = {
  readonly stream: string;
  /** When the comparison began. */
  readonly at: string;
  readonly table_rows: number;
  /** Rows that the service showed in all reads. */
  readonly rows_read: number;
  readonly requests: number;
  readonly lost: number;
  readonly stale: number;
  readonly gone: number;
  /** The table has a later date than the service. */
  readonly later: number;
  /** No sync had to deliver them yet. */
  readonly new: number;
  /** Keys of the table whose rows are suppressed now. */
  readonly suppressed: number;
  /** By day; "none" is rows without a date. */
  readonly days: Readonly<Record<string, DayDifference>>;
  /** Why the question is not answered. */
  readonly unanswered: readonly string[];
};

/** Takes a file of results: all at once, or in pieces. */
export type Publish = (name: string, content: string | AsyncIterable<string | Buffer>) => Promise<void>;

const FILES = ["lost.jsonl", "gone.csv", "suppressed.csv", "report.json"];

/** Opens the folder of results and removes earlier results, so that no old list deletes people. Throws ConfigError. */
export async function openResults(folder: string): Promise<Publish> {
  await makeFolder(folder);
  for (const name of FILES) {
    await rm(join(folder, name), { force: true });
    await removeLeftovers(join(folder, name));
  }
  await tryReplacing(join(folder, "report.json"));
  return (name, content) => replaceFile(join(folder, name), content);
}

/** Where only the report is wanted. */
export const withoutFolder: Publish = async (_name, content) => {
  if (typeof content !== "string") for await (const _ of content);
};
