/** A part of an item; undefined: the item has ended. `index`: in which place the item began. */
export type Step<Item, Part> = {
  readonly index: number;
  readonly item: Item;
  readonly part: Part | undefined;
};

/** `isLast`: the item ends the items. `begins`: asked right before an item begins; a no ends the items too. */
export type Reader<Item, Part> = {
  readonly isLast: (item: Item) => boolean;
  readonly begins: (item: Item) => boolean;
  readonly read: (item: Item) => AsyncIterable<Part>;
};

/**
 * Reads up to `width` items at once and hands on their parts as they come; a reader continues once its part was worked
 * through. The last item waits for all before it. After a failure nothing new begins, what is under way is finished, and the
 * first failure is thrown.
 */
export async function* parallel<Item, Part>(
  items: AsyncGenerator<Item>,
  width: number,
  { isLast, begins, read }: Reader<Item, Part>,
): AsyncGenerator<Step<Item, Part>> {
  type Lane = AsyncGenerator<Step<Item, Part>, void>;
  const planned = ahead(items);
  const failures: unknown[] = [];
  let [isOpen, index, open, more] = [true, 0, 0, width - 1];
  let wake = (): void => undefined;

  async function* lane(): Lane {
    open += 1;
    try {
      while (isOpen) {
        const { done, value: item } = await planned.next();
        if (done === true) return;
        while (isLast(item) && open > 1) await new Promise<void>((resolve) => (wake = resolve));
        isOpen &&= begins(item);
        if (!isOpen) return;
        const step = { index: index++, item };
        for await (const part of read(item)) yield { ...step, part };
        yield { ...step, part: undefined };
      }
    } catch (error) {
      isOpen = false;
      failures.push(error);
    } finally {
      open -= 1;
      wake();
    }
  }

  const lanes = new Map<Lane, Promise<readonly [Lane, IteratorResult<Step<Item, Part>, void>]>>();
  const ask = (one: Lane): void => {
    const turn = one.next().then((result) => [one, result] as const);
    // Behind the others, so that none waits for ever.
    lanes.delete(one);
    lanes.set(one, turn);
  };
  ask(lane());
  try {
    while (lanes.size > 0) {
      const [one, { done, value }] = await Promise.race(lanes.values());
      if (done === true) {
        lanes.delete(one);
        continue;
      }
      yield value;
      ask(one);
      // The first part does not wait for the plan of other items.
      for (; more > 0; more--) ask(lane());
    }
  } finally {
    isOpen = false;
    await Promise.all([planned, ...lanes.keys()].map((one) => one.return(undefined)));
  }
  if (failures.length > 0) throw failures[0];
}

/** Asks for an item while the one before it is read: to plan one may take requests. */
async function* ahead<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
  let next = items.next();
  try {
    for (let { done, value } = await next; done !== true; { done, value } = await next) {
      next = items.next();
      // It is thrown where it is awaited.
      next.catch(() => undefined);
      yield value;
    }
  } finally {
    await items.return(undefined);
  }
}
