const SAID = /"credits_used"\s{0,9}:\s{0,9}"?(\d+(?:\.\d+)?)/g;
/** More than the field and its number take, in bytes. */
const LONGEST = 100;

/** Looks for the cost in an answer that is too long to keep. */
export class CostScan {
  /** How long the answer is so far. */
  bytes = 0;
  /** The largest `credits_used` that it says; null: none so far. */
  credits: number | null = null;
  #end = "";

  add(bytes: Buffer): void {
    this.bytes += bytes.length;
    const text = this.#end + bytes.toString("latin1");
    for (const [, said] of text.matchAll(SAID)) this.credits = Math.max(this.credits ?? 0, Number(said));
    this.#end = text.slice(-LONGEST);
  }
}
