import { rm } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder, removeLeftovers, replaceFile, tryReplacing } from "../output/files/replace.ts";

/** The rows that differ on one day of the service. Gone keys count on their day in the table. */
export type DayDifference = { lost: number; stale: number; gone: number };

/** The result of a comparison. */
export type Report = {
  readonly stream: string;
  /** When the comparison began (RFC 3339). */
  readonly at: string;
  readonly table_rows: number;
  /** Rows that the service showed in all reads. */
  readonly rows_read: number;
  readonly requests: number;
  readonly lost: number;
  readonly stale: number;
  readonly gone: number;
  /** Rows with a later date in the table than in the service. */
  readonly later: number;
  /** Rows that no sync had to deliver yet. */
  readonly new: number;
  /** Keys of the table whose rows are suppressed now. */
  readonly suppressed: number;
  /** By day; "none" for rows without a date. */
  readonly days: Readonly<Record<string, DayDifference>>;
  /** Reasons why the report does not answer which rows are gone. */
  readonly unanswered: readonly string[];
};

/** Writes a file of results. The content is a text or pieces. */
export type Publish = (name: string, content: string | AsyncIterable<string | Buffer>) => Promise<void>;

const FILES = ["lost.jsonl", "gone.csv", "suppressed.csv", "report.json"];

/** Opens the folder of results and removes earlier results, so that no old list deletes people. @throws ConfigError */
export async function openResults(folder: string): Promise<Publish> {
  await makeFolder(folder);
  for (const name of FILES) {
    await rm(join(folder, name), { force: true });
    await removeLeftovers(join(folder, name));
  }
  await tryReplacing(join(folder, "report.json"));
  return (name, content) => replaceFile(join(folder, name), content);
}

/** Writes nothing, if the user wants only the report. */
export const withoutFolder: Publish = async (_name, content) => {
  if (typeof content !== "string") for await (const _ of content);
};
