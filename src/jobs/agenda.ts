/** What is due when, the earliest first. */
export class Agenda<Value> {
  readonly #due: { readonly value: Value; readonly at: number }[] = [];

  /** When the next one is due; undefined if there is none. */
  get next(): number | undefined {
    return this.#due[0]?.at;
  }

  add(value: Value, at: number): void {
    let low = 0;
    let high = this.#due.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#due[middle]?.at ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    this.#due.splice(low, 0, { value, at });
  }

  /** Takes the earliest ones that are due, at most `most`. */
  take(now: number, most: number): readonly Value[] {
    let count = 0;
    while (count < most && (this.#due[count]?.at ?? Number.POSITIVE_INFINITY) <= now) count += 1;
    return this.#due.splice(0, count).map(({ value }) => value);
  }
}
