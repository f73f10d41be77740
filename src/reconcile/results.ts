import { randomBytes } from "node:crypto";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Part } from "../output/files/part.ts";
import { makeFolder, removeLeftovers, replaceFile, syncFolder } from "../output/files/replace.ts";

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

/** Lists of keys, by the name of their file. */
export type Lists = Readonly<Record<string, AsyncIterable<string>>>;

const FILES = ["lost.jsonl", "gone.csv", "suppressed.csv", "report.json"];
/** The rows of a comparison that did not end. */
const UNFINISHED = /^\.lost-[0-9a-f]{16}\.part$/;

/** The folder of results. Files of an earlier comparison are removed first, so that no old list deletes people. */
export class Results {
  readonly #folder: string;
  readonly #lost: Part;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#lost = new Part(join(folder, `.lost-${randomBytes(8).toString("hex")}.part`), false, 256 * 1024);
  }

  /** Throws ConfigError, and the system's errors as they are. */
  static async open(folder: string): Promise<Results> {
    await makeFolder(folder);
    const parts = (await readdir(folder)).filter((name) => UNFINISHED.test(name));
    for (const name of [...FILES, ...parts]) {
      await rm(join(folder, name), { force: true });
      await removeLeftovers(join(folder, name));
    }
    await syncFolder(folder);
    return new Results(folder);
  }

  /** Adds a row as it leaves, in latin1. */
  async lose(line: string): Promise<void> {
    await this.#lost.append(`${line}\n`, 1);
  }

  /** Publishes the rows, the lists and, last, the report. */
  async publish(report: Report, lists: Lists): Promise<void> {
    await this.#lost.seal();
    await rename(this.#lost.path, join(this.#folder, "lost.jsonl"));
    for (const [name, list] of Object.entries(lists)) await replaceFile(join(this.#folder, name), list);
    await replaceFile(join(this.#folder, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  }

  /** Removes rows that were not published. */
  async discard(): Promise<void> {
    await this.#lost.discard();
  }
}
