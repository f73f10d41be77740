import { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Writer } from "../../../src/protocol/writer.ts";
import type { Event, RawLine } from "../../../src/sync/event.ts";
import { runs } from "../../support/runs.ts";

/** Says a log's text and a batch's lines, and a checkpoint as one line. */
const say = (event: Event): string => {
  if (event.kind === "log") return `${event.text}\n`;
  if (event.kind === "checkpoint") return "STATE\n";
  return event.kind === "records" ? event.lines.map((line) => `${line}\n`).join("") : "";
};

const log = (text: string): Event => ({ kind: "log", level: "info", text });
const batch = (...lines: string[]): Event => ({
  kind: "records",
  stream: "a",
  lines: lines as RawLine[],
  at: 0,
});
const STATE: Event = { kind: "checkpoint", stream: "a", state: {} };
const LARGE = batch("x".repeat(300_000));

/** A stream whose writes end when the test says so. */
class Gate extends Writable {
  got = "";
  readonly #waiting: (() => void)[] = [];

  constructor() {
    super({ highWaterMark: 1024, decodeStrings: true });
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#waiting.push(() => {
      this.got += chunk.toString("latin1");
      done();
    });
  }

  /** Ends the write that is under way. */
  async step(): Promise<void> {
    await turn();
    this.#waiting.shift()?.();
    await turn();
  }

  async open(): Promise<void> {
    do await this.step();
    while (this.#waiting.length > 0);
  }
}

const gated = (): { readonly out: Gate; readonly writer: Writer } => {
  const out = new Gate();
  return { out, writer: new Writer(say, out) };
};

const turn = (): Promise<void> => sleep(2);

/** Whether a promise has settled after some turns of the event loop. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  const is = promise.then(
    () => true,
    () => true,
  );
  return await Promise.race([is, turn().then(() => false)]);
}

describe("Writer", () => {
  it("writes all that was said, in the order of the calls, under any reader", async () => {
    const lines = fc.array(
      fc.integer({ min: 0, max: 400_000 }).map((size) => `${size}`.padEnd(size, ".")),
      { maxLength: 4 },
    );
    const event = fc.oneof(
      lines.map((said) => batch(...said)),
      fc.string({ unit: fc.constantFrom("a", "b") }).map(log),
      fc.constant(STATE),
    );
    const delays = fc.infiniteStream(fc.integer({ min: 0, max: 2 }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(event, fc.boolean()), { maxLength: 12 }),
        delays,
        async (events, wait) => {
          const got: string[] = [];
          const out = new Writable({
            highWaterMark: 16_384,
            write(chunk, _encoding, done) {
              got.push(chunk.toString("latin1"));
              const ms = wait.next().value ?? 0;
              if (ms === 0) done();
              else setTimeout(done, ms);
            },
          });
          const writer = new Writer(say, out);
          for (const [each, awaited] of events) {
            const emitted = writer.emit(each);
            if (awaited) await emitted;
          }
          await writer.close();
          expect(got.join("") === events.map(([each]) => say(each)).join("")).toBe(true);
          expect(got.every((chunk) => chunk.endsWith("\n"))).toBe(true);
        },
      ),
      { numRuns: runs(10, 60) },
    );
  });

  it("makes an emit wait while the stream is full", async () => {
    const { out, writer } = gated();
    await writer.emit(LARGE);
    const second = writer.emit(LARGE);
    expect(await settled(second)).toBe(false);
    expect(out.writableLength).toBe(300_001);
    await out.open();
    expect(await settled(second)).toBe(true);
  });

  it("returns only when a checkpoint's bytes have left, even if it says nothing", async () => {
    for (const language of [say, (event: Event) => (event.kind === "checkpoint" ? "" : say(event))]) {
      const out = new Gate();
      const writer = new Writer(language, out);
      await writer.emit(batch("row"));
      const emitted = writer.emit(STATE);
      expect(await settled(emitted)).toBe(false);
      await out.open();
      expect(await emitted).toBe(true);
      expect(out.got.length).toBe(language(batch("row")).length + language(STATE).length);
    }
  });
});
