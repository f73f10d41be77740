import { expect, it } from "vitest";
import { compare } from "../../src/reconcile/reconcile.ts";
import type { Report } from "../../src/reconcile/results.ts";
import type { Event, RawLine } from "../../src/streams/event.ts";
import { file } from "../support/cli.ts";

/** Compares a table of keys with the rows that a service shows. */
async function compared(keys: readonly (string | number)[], rows: readonly string[]): Promise<Report> {
  return compare({
    ...{ stream: "things", table: await file("keys.csv", `id\n${keys.join("\n")}\n`), state: undefined },
    ...{ form: { key: "id", cursor: null, zone: undefined }, mode: "full", mostGone: undefined },
    ...{ startDate: null, endDate: null, isFiltered: false },
    ...{ api: { now: () => 0, count: () => Promise.reject(new Error("Not asked for")) } },
    ...{ emit: async () => {}, requests: () => 1, results: undefined, isSuppressed: () => false },
    ...{ keyOf: (key) => key, leave: (line) => line },
    read: async function* (): AsyncGenerator<Event> {
      yield { kind: "records", stream: "things", at: 0, lines: rows as RawLine[] };
      yield { kind: "close", stream: "things", complete: true };
    },
  });
}

it("calls a key unclear that the service shows as a number and as a text, and no other", async () => {
  const shown = ['{"id":1}', '{"id":"1"}', '{"id":2}', '{"id":2}', '{"id":"3"}'];
  const report = await compared([1, 2, 3, 4], shown);
  expect(report).toMatchObject({ unclear: 1, gone: 1, lost: 0, suppressed: 0, rows_read: 5 });
});

it.each([
  [200, 100, 100, 0],
  [200, 101, 101, 1],
  [20_000, 200, 200, 0],
  [20_000, 201, 201, 1],
])(
  "of %i keys %i may not be gone unless the user says so, above a hundred or 1 %%",
  async (size, lacking, gone, unanswered) => {
    const keys = Array.from({ length: size }, (_, nth) => `k${nth}`);
    const report = await compared(
      keys,
      keys.slice(lacking).map((id) => JSON.stringify({ id })),
    );
    expect([report.gone, report.unanswered.length]).toEqual([gone, unanswered]);
  },
);
