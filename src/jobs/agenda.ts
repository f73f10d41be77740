/** What is due when, the earliest first. */
export class Agenda {
  readonly #due: { readonly key: string; readonly at: number }[] = [];

  /** When the next one is due; undefined if there is none. */
  get next(): number | undefined {
    return this.#due[0]?.at;
  }

  get size(): number {
    return this.#due.length;
  }

  add(key: string, at: number): void {
    let low = 0;
    let high = this.#due.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#due[middle]?.at ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    this.#due.splice(low, 0, { key, at });
  }

  /** Takes the earliest one if it is due. */
  take(now: number): string | undefined {
    const [first] = this.#due;
    if (first === undefined || first.at > now) return undefined;
    this.#due.shift();
    return first.key;
  }
}
