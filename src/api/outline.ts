/** An outline is kept up to this length: what is longer has a long text at its top, and says nothing of use. */
const LONGEST = 65_536;

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('"\\[]{}');

/** What an answer that is too long to keep says at its top: its JSON text, in which inner lists and objects are empty. */
export class Outline {
  /** How long the answer is so far. */
  bytes = 0;
  #kept = "";
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  add(bytes: Buffer): void {
    this.bytes += bytes.length;
    let from = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isText && byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#isText = !this.#isText;
      else if (this.#isText) continue;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        this.#depth += 1;
        if (this.#depth === 2) this.#keep(bytes, from, at + 1);
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        this.#depth -= 1;
        if (this.#depth === 1) from = at;
      }
    }
    if (this.#depth < 2) this.#keep(bytes, from, bytes.length);
  }

  toString(): string {
    return this.#kept.length > LONGEST ? "" : this.#kept;
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    if (this.#kept.length <= LONGEST)
      this.#kept += bytes.toString("latin1", from, Math.min(to, from + LONGEST + 1));
  }
}
