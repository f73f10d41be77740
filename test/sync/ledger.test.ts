import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LEDGER_LIMIT, Ledger, type Noted } from "../../src/sync/ledger.ts";

function noteIn(ledger: Ledger, key: string, identity: string | number, flags: number): Noted {
  ledger.expect(key, identity);
  return ledger.note(flags);
}

/** The same promises kept with a Map, which costs a hundred bytes a row. */
class PlainLedger {
  readonly #rows = new Map<string, { pass: number; flags: number }>();
  #pass = 0;

  begin(): void {
    this.#pass += 1;
  }

  note(
    key: string,
    identity: string | number,
    flags: number,
  ): { fresh: boolean; had: number; before: number } {
    let had = 0;
    let before = 0;
    for (const [name, row] of this.#rows) {
      if (JSON.parse(name)[0] !== key) continue;
      if (row.pass === this.#pass) had |= row.flags;
      else before = Math.max(before, row.pass);
    }
    const name = JSON.stringify([key, identity]);
    const known = this.#rows.get(name);
    const kept = known?.pass === this.#pass ? known.flags : 0;
    this.#rows.set(name, { pass: this.#pass, flags: kept | flags });
    return { fresh: known === undefined, had, before };
  }
}

const NOTE = fc.record({
  key: fc.constantFrom("a", "b", "c", "d", "", "é", "aa"),
  identity: fc.constantFrom<string | number>("1", "2", 3, 1_700_000_000_000),
  flags: fc.integer({ min: 1, max: 15 }),
});

describe("Ledger", () => {
  it("answers as a map of all rows does, over any passes that it tells apart", () => {
    fc.assert(
      fc.property(fc.array(fc.array(NOTE, { maxLength: 20 }), { maxLength: 13 }), (passes) => {
        const ledger = new Ledger();
        const plain = new PlainLedger();
        let offset: number | undefined;
        for (const notes of passes) {
          const number = ledger.begin();
          plain.begin();
          offset ??= number - 1;
          for (const { key, identity } of notes) ledger.expect(key, identity);
          for (const { key, identity, flags } of notes) {
            const { fresh, had, before } = ledger.note(flags);
            const expected = plain.note(key, identity, flags);
            expect({ fresh, had, before: before === 0 ? 0 : before - offset }).toEqual(expected);
          }
        }
      }),
    );
  });

  it("forgets at the start of a pass what an earlier one expected and did not note", () => {
    const ledger = new Ledger();
    ledger.begin();
    ledger.expect("never noted", 1);
    ledger.begin();
    expect(noteIn(ledger, "noted", 1, 1).fresh).toBe(true);
    expect(noteIn(ledger, "noted", 1, 1).fresh).toBe(false);
  });

  it("takes no row for seen that was not, over many rows and growth", () => {
    const ledger = new Ledger();
    ledger.begin();
    for (let row = 0; row < 300_000; row++) {
      const noted = noteIn(ledger, `per_${row.toString(16)}`, `2026-01-01T00:00:${row % 60}Z`, 1);
      if (!noted.fresh || noted.had !== 0 || noted.before !== 0) expect.fail(`row ${row} was taken for seen`);
    }
    ledger.begin();
    for (let row = 0; row < 300_000; row++) {
      const { fresh } = noteIn(ledger, `per_${row.toString(16)}`, `2026-01-01T00:00:${row % 60}Z`, 1);
      if (fresh) expect.fail(`row ${row} was forgotten`);
    }
  });

  it("never takes an old pass for a recent one when its pass numbers wrap", () => {
    const ledger = new Ledger();
    const first = ledger.begin();
    noteIn(ledger, "key", "identity", 1);
    const numbers = Array.from({ length: 40 }, () => ledger.begin());
    for (const number of numbers) expect(number).toBeGreaterThan(1);
    const { fresh, had, before } = noteIn(ledger, "key", "identity", 1);
    expect({ fresh, had }).toEqual({ fresh: false, had: 0 });
    expect(before).toBeLessThan(first);
  });

  it("keeps a row that this pass showed apart from those of others after a wrap", () => {
    const ledger = new Ledger();
    for (let pass = 0; pass < 50; pass++) {
      const number = ledger.begin();
      const noted = { ...noteIn(ledger, "key", "identity", 2) };
      expect(noted.had).toBe(0);
      expect(noted.before).toBeLessThan(number);
      expect(noteIn(ledger, "key", "identity", 4).had).toBe(2);
    }
  });

  it("costs at most sixteen bytes a row where the rows were counted", () => {
    const rows = 200_000;
    globalThis.gc?.();
    const before = process.memoryUsage().arrayBuffers;
    const ledger = new Ledger(rows);
    const bytes = process.memoryUsage().arrayBuffers - before;
    ledger.begin();
    for (let row = 0; row < rows; row++) noteIn(ledger, `k${row}`, "x", 1);
    expect(bytes).toBeLessThanOrEqual(rows * 16.05);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThanOrEqual(rows * 16.05 + 1_000_000);
  });

  it("stops remembering at its limit and says so", () => {
    const ledger = new Ledger(LEDGER_LIMIT);
    ledger.begin();
    for (let row = 0; row < LEDGER_LIMIT; row++) noteIn(ledger, String(row), "", 1);
    expect(ledger.full).toBe(true);
    expect(noteIn(ledger, "one more", "", 1).fresh).toBe(true);
    expect(noteIn(ledger, "one more", "", 1).fresh).toBe(true);
    expect(noteIn(ledger, "17", "", 1).fresh).toBe(false);
  });
});
