export type Stepped<Item, Part, Result> =
  | { readonly kind: "part"; readonly index: number; readonly part: Part }
  | { readonly kind: "end"; readonly index: number; readonly item: Item; readonly result: Result };

/** `begins`: asked right before an item begins; a no ends the items. */
export type Reader<Item, Part, Result> = {
  readonly isAlone: (item: Item) => boolean;
  readonly begins?: (item: Item) => boolean;
  readonly read: (item: Item) => AsyncGenerator<Part, Result>;
};

/**
 * Reads up to `width` items at once and hands on their parts as they come. An item that must be `alone` waits for all
 * before it and keeps all after it waiting. After a failure nothing new begins, what is under way is finished, and
 * the first failure is thrown. As many items are asked for ahead, once the first has given a part: to plan one may take
 * requests, and the first part should not wait for them.
 */
export async function* parallel<Item, Part, Result>(
  items: AsyncIterable<Item>,
  width: number,
  { isAlone, begins = () => true, read }: Reader<Item, Part, Result>,
): AsyncGenerator<Stepped<Item, Part, Result>> {
  const handover = new Handover<Stepped<Item, Part, Result>>();
  const lanes = new Set<Promise<void>>();
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });

  const run = async (item: Item, index: number): Promise<void> => {
    const parts = read(item);
    try {
      for (;;) {
        const next = await parts.next();
        begin();
        if (next.done === true) {
          await handover.give({ kind: "end", index, item, result: next.value });
          return;
        }
        await handover.give({ kind: "part", index, part: next.value });
      }
    } catch (error) {
      handover.fail(error);
    } finally {
      begin();
      await parts.return(undefined as never).catch(() => undefined);
    }
  };

  const feed = async (): Promise<void> => {
    const source = items[Symbol.asyncIterator]();
    const asked: Promise<IteratorResult<Item>>[] = [];
    try {
      for (let index = 0; !handover.failed; index++) {
        const next = await (asked.shift() ?? source.next());
        if (next.done === true) break;
        const single = isAlone(next.value);
        while (lanes.size >= (single ? 1 : width)) await Promise.race(lanes);
        if (handover.failed || !begins(next.value)) break;
        const lane: Promise<void> = run(next.value, index).then(() => void lanes.delete(lane));
        lanes.add(lane);
        await (single ? lane : begun);
        while (asked.length < width) {
          asked.push(source.next());
          // Its failure is nobody's business until it is awaited.
          asked.at(-1)?.catch(() => undefined);
        }
      }
    } catch (error) {
      handover.fail(error);
    } finally {
      await source.return?.();
      await Promise.all(lanes);
      handover.end();
    }
  };

  const feeding = feed();
  try {
    for (let given = await handover.take(); given !== undefined; given = await handover.take()) {
      try {
        yield given.value;
      } finally {
        given.taken();
      }
    }
  } finally {
    handover.abandon();
    await feeding;
  }
}

class Abandoned extends Error {}

/** Passes values from many givers to one taker; a giver goes on once its value was worked through. */
class Handover<Value> {
  readonly #waiting: { value: Value; taken: () => void; refuse: (error: Error) => void }[] = [];
  #wake: () => void = () => undefined;
  #ended = false;
  #abandoned = false;
  #failure: { error: unknown } | undefined;

  get failed(): boolean {
    return this.#failure !== undefined || this.#abandoned;
  }

  give(value: Value): Promise<void> {
    if (this.#abandoned) return Promise.reject(new Abandoned());
    return new Promise((taken, refuse) => {
      this.#waiting.push({ value, taken, refuse });
      this.#wake();
    });
  }

  fail(error: unknown): void {
    if (!this.#abandoned) this.#failure ??= { error };
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  abandon(): void {
    this.#abandoned = true;
    for (const { refuse } of this.#waiting.splice(0)) refuse(new Abandoned());
  }

  /** The next value, with what lets its giver go on; undefined after the last. Throws the first failure once all have ended. */
  async take(): Promise<{ readonly value: Value; readonly taken: () => void } | undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) return next;
      if (this.#ended) {
        if (this.#failure !== undefined) throw this.#failure.error;
        return undefined;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
