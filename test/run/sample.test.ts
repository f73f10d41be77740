import { expect, it } from "vitest";
import { type RowStreamSpec, STREAMS } from "../../src/catalog/streams.ts";
import { sample } from "../../src/run/sample.ts";
import type { Session } from "../../src/run/session.ts";
import type { RawLine } from "../../src/streams/event.ts";
import type { Batch } from "../../src/streams/stream-api.ts";
import { apiWith } from "../support/run-rules.ts";

const PEOPLE = STREAMS.find(({ name }) => name === "people") as RowStreamSpec;

it.each([
  ["rows", 10, 100, 4],
  ["bytes", 1_000_000, 20_000_000, 4],
])("reads no further than so many %s", async (_, most, width, batches) => {
  let read = 0;
  const batch: Batch = {
    rows: [1, 2, 3].map((id) => ({
      ...{ key: `${id}`, cursor: null },
      raw: `{"id":${id},"x":"${"x".repeat(width / 3)}"}` as RawLine,
    })),
  };
  const stream = async function* (): AsyncGenerator<Batch> {
    for (; read < 100; ) {
      read += 1;
      yield batch;
    }
  };
  const session = { streamApi: () => apiWith({ stream }) } as unknown as Session;
  const rows = await sample(PEOPLE, {}, session, most);
  expect([read, rows.length]).toEqual([batches, Math.min(most, 3 * batches)]);
});
