import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parallel, type Stepped } from "../../../src/streams/merge.ts";

type Item = { readonly id: number; readonly parts: number; readonly alone: boolean; readonly fails: boolean };

type Items = readonly Item[] | AsyncIterable<Item>;

/** Readers that say when they begin and end, so that a test sees who was under way together. */
class Readers {
  readonly begun: number[] = [];
  readonly underWay = new Set<number>();
  most = 0;
  aloneBroken = false;
  #alone = false;

  async *read(item: Item): AsyncGenerator<string, number> {
    this.begun.push(item.id);
    this.underWay.add(item.id);
    this.most = Math.max(this.most, this.underWay.size);
    this.aloneBroken ||= this.#alone || (item.alone && this.underWay.size > 1);
    this.#alone ||= item.alone;
    try {
      for (let part = 0; part < item.parts; part++) {
        await turns(((item.id * 7 + part * 3) % 5) + 1);
        yield `${item.id}.${part}`;
      }
      if (item.fails) throw new Error(`item ${item.id}`);
      return item.id;
    } finally {
      this.underWay.delete(item.id);
      if (item.alone) this.#alone = false;
    }
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Promise.resolve();
}

async function* source(items: Items, ended: { value: boolean }): AsyncGenerator<Item> {
  try {
    for await (const item of items) {
      await turns(item.id % 3);
      yield item;
    }
  } finally {
    ended.value = true;
  }
}

type Seen = {
  steps: Stepped<Item, string, number>[];
  error: unknown;
  readers: Readers;
  sourceEnded: boolean;
};

async function consume(items: Items, width: number, stopAfter = Number.POSITIVE_INFINITY): Promise<Seen> {
  const readers = new Readers();
  const ended = { value: false };
  const steps: Stepped<Item, string, number>[] = [];
  let error: unknown;
  try {
    for await (const step of parallel(source(items, ended), width, {
      isAlone: ({ alone }) => alone,
      read: (item) => readers.read(item),
    })) {
      steps.push(step);
      await turns(steps.length % 4);
      if (steps.length >= stopAfter) break;
    }
  } catch (thrown) {
    error = thrown;
  }
  return { steps, error, readers, sourceEnded: ended.value };
}

const ITEMS = (fails: fc.Arbitrary<boolean>): fc.Arbitrary<Item[]> =>
  fc
    .array(fc.record({ parts: fc.nat(4), alone: fc.boolean(), fails }), { maxLength: 12 })
    .map((items) => items.map((item, id) => ({ ...item, id })));

describe("parallel()", () => {
  it("hands on every part before its end, and every end once, within its width", async () => {
    await fc.assert(
      fc.asyncProperty(ITEMS(fc.constant(false)), fc.integer({ min: 1, max: 8 }), async (items, width) => {
        const { steps, error, readers, sourceEnded } = await consume(items, width);
        expect(error).toBeUndefined();
        expect(sourceEnded).toBe(true);
        expect(readers.most).toBeLessThanOrEqual(width);
        expect(readers.aloneBroken).toBe(false);
        expect(readers.begun).toEqual(items.map(({ id }) => id));
        const ends = steps.flatMap((step) => (step.kind === "end" ? [step.index] : []));
        expect([...ends].sort((a, b) => a - b)).toEqual(items.map(({ id }) => id));
        for (const item of items) {
          const own = steps.flatMap((step) => {
            if (step.kind === "end") return step.item.id === item.id ? ["end"] : [];
            return step.part.startsWith(`${item.id}.`) ? [step.part] : [];
          });
          expect(own).toEqual([
            ...Array.from({ length: item.parts }, (_, part) => `${item.id}.${part}`),
            "end",
          ]);
        }
      }),
    );
  });

  it("asks for the next item while its readers are busy, but not before the first part has come", async () => {
    const said: string[] = [];
    async function* items(): AsyncGenerator<number> {
      for (const item of [0, 1]) {
        said.push(`plan ${item}`);
        yield item;
      }
    }
    async function* read(item: number): AsyncGenerator<string, number> {
      await turns(50);
      said.push(`read ${item}`);
      yield "part";
      await turns(50);
      said.push(`end ${item}`);
      return item;
    }
    for await (const _ of parallel(items(), 1, { isAlone: () => false, read })) void _;
    expect(said).toEqual(["plan 0", "read 0", "plan 1", "end 0", "read 1", "end 1"]);
  });

  it("asks right before an item begins whether it may", async () => {
    const items = [0, 1, 2].map((id) => ({ id, parts: 2, alone: false, fails: false }));
    const readers = new Readers();
    let ended = 0;
    const steps = parallel(source(items, { value: false }), 1, {
      isAlone: () => false,
      begins: () => ended < 2,
      read: (item: Item) => readers.read(item),
    });
    for await (const { kind } of steps) ended += kind === "end" ? 1 : 0;
    expect(readers.begun).toEqual([0, 1]);
  });

  it("begins nothing after a failure, finishes what is under way, and throws the first", async () => {
    await fc.assert(
      fc.asyncProperty(ITEMS(fc.boolean()), fc.integer({ min: 1, max: 8 }), async (items, width) => {
        const { steps, error, readers, sourceEnded } = await consume(items, width);
        const failing = items.filter(({ fails }) => fails).map(({ id }) => `item ${id}`);
        expect(error === undefined).toBe(failing.length === 0);
        if (error !== undefined) expect(failing).toContain((error as Error).message);
        expect(readers.underWay.size).toBe(0);
        expect(sourceEnded).toBe(true);
        const ended = new Set(steps.flatMap((step) => (step.kind === "end" ? [step.item.id] : [])));
        for (const id of readers.begun) expect(ended.has(id)).toBe(items[id]?.fails !== true);
      }),
    );
  });

  it("throws what the source throws, after what is under way", async () => {
    async function* broken(): AsyncGenerator<Item> {
      yield { id: 0, parts: 4, alone: false, fails: false };
      throw new Error("no plan");
    }
    const { steps, error } = await consume(broken(), 2);
    expect(error).toEqual(new Error("no plan"));
    expect(steps).toHaveLength(5);
  });

  it("closes every reader and the source when the consumer goes away at any step", async () => {
    await fc.assert(
      fc.asyncProperty(
        ITEMS(fc.constant(false)),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 40 }),
        async (items, width, stopAfter) => {
          const { readers, sourceEnded, error } = await consume(items, width, stopAfter);
          expect(error).toBeUndefined();
          expect(readers.underWay.size).toBe(0);
          expect(sourceEnded).toBe(true);
        },
      ),
    );
  });

  it("reads no further ahead than one part a lane", async () => {
    const items = [0, 1, 2].map((id) => ({ id, parts: 100, alone: false, fails: false }));
    let made = 0;
    const read = async function* (item: Item): AsyncGenerator<string, number> {
      for (let part = 0; part < item.parts; part++) {
        made += 1;
        yield "";
      }
      return item.id;
    };
    let taken = 0;
    for await (const step of parallel(source(items, { value: false }), 3, { isAlone: () => false, read })) {
      if (step.kind === "part") taken += 1;
      await turns(50);
      expect(made - taken).toBeLessThanOrEqual(3);
    }
  });
});

it.each([1, 2, 3, 5])(
  "asks ahead for as many items as are read at once, once a part has come: %i",
  async (width) => {
    let asked = 0;
    const items: AsyncIterable<Item> = {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          asked += 1;
          if (asked > 1) await new Promise(() => undefined);
          return { value: { id: 0, parts: 3, alone: false, fails: false } };
        },
      }),
    };
    const steps = parallel(items, width, { isAlone: () => false, read: (item) => new Readers().read(item) });
    const most: number[] = [];
    for (let part = 0; part < 3; part++) {
      await steps.next();
      most.push(asked);
    }
    expect(most).toEqual([1, 1 + width, 1 + width]);
  },
);
