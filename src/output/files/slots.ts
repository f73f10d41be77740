import { mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { OutputError } from "../../base/errors.ts";
import { codeOf, reasonOf } from "./reason.ts";

/** How long (ms) a slot that has passed is kept: longer than two machines' clocks may differ. */
const KEEP_MS = 600_000;

/**
 * Lets the runs that share a folder share a number of starts: time is cut into slots, and a start belongs to whoever makes
 * the file with the number of its slot. Nobody holds anything, so a run that is killed leaves nothing behind, and what a
 * run does not use the others have. The machines' clocks must agree to a second or so.
 */
export class Slots {
  readonly #folder: string;
  readonly #interval: number;
  readonly #now: () => number;

  /**
   * @param interval ms between two slots
   * @param now epoch ms
   */
  constructor(folder: string, interval: number, now: () => number) {
    this.#folder = folder;
    this.#interval = interval;
    this.#now = now;
  }

  /**
   * Takes the next free slot that is `ahead` ms away or more, and returns in how many ms it begins: less than 0 where making
   * the file took longer. Throws OutputError.
   */
  async take(ahead = 0): Promise<number> {
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      const now = this.#now();
      let slot = Math.ceil((now + ahead) / this.#interval);
      while (!(await this.#isFree(slot))) slot++;
      if (slot % 100 === 0) await this.#clear((now - KEEP_MS) / this.#interval);
      return slot * this.#interval - this.#now();
    } catch (cause) {
      throw new OutputError(`Cannot share requests in the folder "${this.#folder}": ${reasonOf(cause)}`, {
        cause,
      });
    }
  }

  async #isFree(slot: number): Promise<boolean> {
    try {
      await (await open(join(this.#folder, `${slot}`), "wx", 0o600)).close();
      return true;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      return false;
    }
  }

  async #clear(before: number): Promise<void> {
    const names = await readdir(this.#folder);
    for (const name of names) if (Number(name) < before) await rm(join(this.#folder, name), { force: true });
  }
}
