/** A part of an item; undefined: the item has ended. `index`: in which place the item began. */
export type Step<Item, Part> = {
  readonly index: number;
  readonly item: Item;
  readonly part: Part | undefined;
};

/** `begins`: asked right before an item begins; a no ends the items. */
export type Reader<Item, Part> = {
  readonly isAlone: (item: Item) => boolean;
  readonly begins?: (item: Item) => boolean;
  readonly read: (item: Item) => AsyncGenerator<Part, void>;
};

/** The result of asking for the next item, or for the next part of one that is read. */
type Turn<Item, Part> =
  | { readonly kind: "item"; readonly next: IteratorResult<Item> }
  | {
      readonly kind: "part";
      readonly lane: Lane<Item, Part>;
      readonly next: IteratorResult<Part, void>;
    }
  | { readonly kind: "failed"; readonly lane?: Lane<Item, Part>; readonly error: unknown };

/** An item that is read. `turn`: of its next part. */
type Lane<Item, Part> = {
  readonly item: Item;
  readonly index: number;
  readonly parts: AsyncGenerator<Part, void>;
  turn: Promise<Turn<Item, Part>>;
};

/**
 * Reads up to `width` items at once and hands on their parts as they come; a reader goes on once its part was worked
 * through. An item that must be `alone` waits for all before it and keeps all after it waiting. After a failure nothing new
 * begins, what is under way is finished, and the first failure is thrown. As many items are asked for ahead, once the
 * first has given a part: to plan one may take requests, and the first part should not wait for them.
 */
export async function* parallel<Item, Part>(
  items: AsyncIterable<Item>,
  width: number,
  { isAlone, begins = () => true, read }: Reader<Item, Part>,
): AsyncGenerator<Step<Item, Part>> {
  type Next = Turn<Item, Part>;
  const source = items[Symbol.asyncIterator]();
  const failed = (error: unknown): Next => ({ kind: "failed", error });
  const ask = (): Promise<Next> => source.next().then((next) => ({ kind: "item", next }), failed);
  const goOn = (lane: Lane<Item, Part>): void => {
    lane.turn = lane.parts.next().then(
      (next) => ({ kind: "part", lane, next }),
      (error) => ({ kind: "failed", lane, error }),
    );
    // Behind the others, so that none waits for ever.
    lanes.delete(lane);
    lanes.add(lane);
  };
  const lanes = new Set<Lane<Item, Part>>();
  const asked: Promise<Next>[] = [ask()];
  const failures: unknown[] = [];
  let waiting: { readonly item: Item } | undefined;
  let [index, isOpen, hasBegun, isSingle] = [0, true, false, false];
  try {
    for (;;) {
      if (isOpen && waiting !== undefined && lanes.size < (isSingle || isAlone(waiting.item) ? 1 : width)) {
        const { item } = waiting;
        waiting = undefined;
        isOpen = begins(item);
        isSingle = isAlone(item);
        if (isOpen) goOn({ item, index: index++, parts: read(item), turn: new Promise(() => undefined) });
      }
      const asksAhead = isOpen && hasBegun && !(isSingle && lanes.size > 0);
      while (asksAhead && asked.length + (waiting === undefined ? 0 : 1) < width) asked.push(ask());
      const [next] = isOpen && waiting === undefined ? asked : [];
      const turns = [...lanes].map(({ turn }) => turn);
      if (next !== undefined) turns.push(next);
      if (turns.length === 0) break;
      const turn = await Promise.race(turns);
      if (turn.kind === "item") {
        asked.shift();
        if (turn.next.done === true) isOpen = false;
        else waiting = { item: turn.next.value };
        continue;
      }
      hasBegun = true;
      if (turn.kind === "failed") {
        failures.push(turn.error);
        isOpen = false;
        if (turn.lane !== undefined) lanes.delete(turn.lane);
      } else if (turn.next.done === true) {
        lanes.delete(turn.lane);
        yield { index: turn.lane.index, item: turn.lane.item, part: undefined };
      } else {
        yield { index: turn.lane.index, item: turn.lane.item, part: turn.next.value };
        goOn(turn.lane);
      }
    }
  } finally {
    await source.return?.();
    for (const { parts } of lanes) await parts.return(undefined as never).catch(() => undefined);
  }
  if (failures.length > 0) throw failures[0];
}
