/** `part`: a part of the item; undefined: the item has ended. `index`: the number of items that began before the item. */
type Step<Item, Part> = { readonly index: number; readonly item: Item; readonly part: Part | undefined };

/** `isLast`: whether no item follows. `begins`: called right before an item; false: the item and later items are not read. */
type Reader<Item, Part> = {
  readonly isLast: (item: Item) => boolean;
  readonly begins: (item: Item) => boolean;
  readonly read: (item: Item) => AsyncIterable<Part>;
};

/**
 * Reads up to `width` items at once and yields their parts in the order of arrival.
 * The reader of an item continues after the caller has processed the item's part. The last item begins after all items have ended.
 * @throws the first failure. After a failure no item begins, and open items are read to their ends.
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
    // `Promise.race` takes the first lane that is ready. This lane moves to the end, so that no lane waits forever.
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
      // Other lanes start only now, so that the first part does not wait until other items are planned.
      for (; more > 0; more--) ask(lane());
    }
  } finally {
    isOpen = false;
    await Promise.all([planned, ...lanes.keys()].map((one) => one.return(undefined)));
  }
  if (failures.length > 0) throw failures[0];
}

/** Requests the next item while an item is read, because planning an item may need requests. */
async function* ahead<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
  let next = items.next();
  try {
    for (let { done, value } = await next; done !== true; { done, value } = await next) {
      next = items.next();
      // The failure is thrown where `next` is awaited.
      next.catch(() => undefined);
      yield value;
    }
  } finally {
    await items.return(undefined);
  }
}
