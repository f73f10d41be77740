import { describe, expect, it } from "vitest";
import { BodyError, SilenceError, UnmadeError } from "../../../src/errors.ts";
import { readBounded, readWhileNew } from "../../../src/streams/endless.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import { Pass } from "../../../src/streams/proof.ts";
import { readUndated } from "../../../src/streams/read-undated.ts";
import { readWindow } from "../../../src/streams/read-window.ts";
import { SeenRows } from "../../../src/streams/seen-rows.ts";
import { type Batch, NOT_COUNTED, type Row, type StreamApi } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import type { Day } from "../../../src/time.ts";
import { apiWith, drain, rulesWith } from "../../support/run-rules.ts";

const DAY: Window = { kind: "closed", from: "2026-03-02" as Day, to: "2026-03-02" as Day };
const SECOND = 1_000;
const IDLE_SECONDS = 60;
const NOW = Date.parse("2026-03-20T10:00:00Z");
/** A body that has not ended by then would go on for ever. */
const FOR_EVER = 1_000;

const rowOf = (id: number, cursor: string | null = "2026-03-02T12:00:00Z"): Row => ({
  raw: `{"id":${id},"discoveredAt":${JSON.stringify(cursor)}}` as RawLine,
  key: String(id),
  cursor,
});

/** A service whose exports send one row a second, on a clock that only they and `rest` move. */
class OneRowASecond {
  sent = 0;
  exports = 0;
  #now = 0;
  readonly #rowAt: (nth: number, nthExport: number) => Row | undefined;

  /** @param rowAt the row of a second of an export; undefined: its end */
  constructor(rowAt: (nth: number, nthExport: number) => Row | undefined) {
    this.#rowAt = rowAt;
  }

  rest(ms: number): void {
    this.#now += ms;
  }

  api(rows: number, undated = 0): StreamApi {
    return apiWith({
      now: () => NOW,
      monotonic: () => this.#now,
      backOff: async () => {},
      count: async () => ({ rows, undated, known: true, asked: NOW, answered: NOW }),
      rowAt: async () => ({ row: undefined, total: rows + undated }),
      page: async () => ({ rows: [], size: 10, total: rows + undated }),
      stream: () => this.#stream(),
    });
  }

  async *#stream(): AsyncGenerator<Batch> {
    const nthExport = this.exports++;
    for (let nth = 0; nth < FOR_EVER; nth++) {
      const row = this.#rowAt(nth, nthExport);
      if (row === undefined) return;
      this.#now += SECOND;
      this.sent += 1;
      yield { rows: [row] };
    }
  }
}

async function readAll(service: OneRowASecond, restMs = 0): Promise<void> {
  const rules = rulesWith({ api: service.api(3), idleMs: IDLE_SECONDS * SECOND });
  const pass = new Pass(DAY, NOT_COUNTED, new SeenRows(), rules);
  for await (const batch of readWhileNew(DAY, NOT_COUNTED, pass, rules)) {
    pass.accept(batch);
    service.rest(restMs);
  }
}

describe("an export that shows nothing new", () => {
  it("is given up once the patience is over, whatever number of old rows it sends", async () => {
    const service = new OneRowASecond(() => rowOf(1));
    await expect(readAll(service)).rejects.toThrow(BodyError);
    expect(service.sent).toBe(1 + IDLE_SECONDS + 1);
  });

  it.each([
    [SilenceError, 1],
    [UnmadeError, 0],
  ])("fails as %o where it shows %i rows, and says for how long it waited", async (Failure, shown) => {
    const service = new OneRowASecond(() => ({ ...rowOf(1), key: shown === 0 ? "" : "1" }));
    const error: unknown = await readAll(service).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      name: Failure.name,
      message: "Cannot read 2026-03-02 to its end: no new row came for 60 s, although rows go on to come",
    });
  });

  it("is read on as long as a new row comes within the patience", async () => {
    const service = new OneRowASecond((nth) => rowOf(Math.floor(nth / IDLE_SECONDS)));
    await readAll(service);
    expect(service.sent).toBe(FOR_EVER);
  });

  it("costs no patience while the reader rests", async () => {
    const service = new OneRowASecond((nth) => (nth < IDLE_SECONDS ? rowOf(1) : undefined));
    await readAll(service, 600 * SECOND);
    expect(service.sent).toBe(IDLE_SECONDS);
  });

  it("is a failed pass of its window, which the next pass closes", async () => {
    const service = new OneRowASecond((nth, nthExport) =>
      nthExport === 0 ? rowOf(0) : nth < 3 ? rowOf(nth) : undefined,
    );
    const planned = { window: DAY, clears: null };
    const { lines, result } = await drain(readWindow(planned, rulesWith({ api: service.api(3) })));
    expect(result).toMatchObject([{ kind: "proven" }]);
    expect(lines).toHaveLength(3);
    expect(service.exports).toBe(2);
  });

  it.each([
    ["fewer rows than are counted", 3, true],
    ["as many rows as are counted, which nobody verifies", 1, false],
  ])("is no proof where it shows %s", async (_, rows, verifyCounts) => {
    const api = new OneRowASecond(() => rowOf(0)).api(rows);
    const rules = rulesWith({ api, verifyCounts, isListed: false });
    const { result } = await drain(readWindow({ window: DAY, clears: null }, rules));
    const why = "Cannot read 2026-03-02 to its end: no new row came for 60 s, although rows go on to come";
    expect(result).toMatchObject([{ kind: "missing", cause: { message: why } }]);
  });

  it.each([
    ["dated", rowOf(7)],
    ["undated", rowOf(7, null)],
  ])("ends the search for people without a date where a %s row repeats", async (_, row) => {
    const undated = [rowOf(1, null), rowOf(2, null)];
    const service = new OneRowASecond((nth, nthExport) => (nthExport === 0 ? row : undated[nth]));
    const rules = rulesWith({ api: service.api(5, 2) });
    const { result } = await drain(readUndated({ window: { kind: "undated" }, clears: null }, rules));
    expect(result).toMatchObject({ kind: "proven" });
    expect(service.exports).toBe(2);
  });

  it("lets many dated rows pass while people without a date are looked for", async () => {
    const service = new OneRowASecond((nth) =>
      nth < 300 ? rowOf(nth) : nth === 300 ? rowOf(nth, null) : undefined,
    );
    const rules = rulesWith({ api: service.api(300, 1) });
    const { result } = await drain(readUndated({ window: { kind: "undated" }, clears: null }, rules));
    expect(result).toMatchObject({ kind: "proven", undatedRows: 1 });
    expect(service.exports).toBe(1);
  });
});

describe("readBounded()", () => {
  it.each([
    [10_000, 3, 0],
    [20_000, 9_000, 1_000],
    [20_001, null, 0],
    [10_001, 3, 0, "10,001 rows came, and the service counts 3 rows"],
    [20_001, 9_000, 1_000, "20,001 rows came, and the service counts 10,000 rows"],
  ])(
    "of %i rows where %j and %i are counted ends with an error: %s",
    async (sent, dated, undated, why?: string) => {
      const stream = async function* (): AsyncGenerator<Batch> {
        yield { rows: Array.from({ length: sent }, (_, nth) => rowOf(nth)) };
      };
      const count = { ...NOT_COUNTED, known: dated !== null, rows: dated ?? 0, undated };
      const read = async (): Promise<void> => {
        for await (const { rows } of readBounded(DAY, count, { api: apiWith({ stream }), idleMs: 1 }))
          expect(rows[0]?.cursor).not.toBe("read too far");
      };
      if (why === undefined) await read();
      else await expect(read()).rejects.toThrow(why);
    },
  );

  it.each([
    ["rows without a key that differ", (nth: number) => ({ ...rowOf(nth), key: "" }), 300],
    ["rows of one key, whatever else they say", (nth: number) => ({ ...rowOf(nth), key: "1" }), 62],
  ])("goes on while new rows come: %s", async (_, rowAt, most) => {
    const service = new OneRowASecond((nth) => (nth < 300 ? rowAt(nth) : undefined));
    const bounds = { api: service.api(3), idleMs: IDLE_SECONDS * SECOND };
    const read = async (): Promise<void> => {
      for await (const _batch of readBounded(DAY, NOT_COUNTED, bounds));
    };
    await read().catch((error: unknown) => expect(error).toBeInstanceOf(BodyError));
    expect(service.sent).toBe(most);
  });
});

it("asks an export once that may have shown all that was counted, and any other again", async () => {
  const asked: (boolean | undefined)[] = [];
  const api = apiWith({
    stream: async function* (_window, once) {
      asked.push(once);
      yield { rows: [rowOf(1)] };
    },
  });
  const pass = { distinct: 0, hasTooMany: false };
  const bounds = { api, idleMs: IDLE_SECONDS * SECOND };
  for (const isShown of [() => true, undefined])
    for await (const _ of readWhileNew(DAY, NOT_COUNTED, pass, bounds, isShown));
  expect(asked).toEqual([true, false]);
});
