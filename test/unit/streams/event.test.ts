import { expect, it } from "vitest";
import { NO_FACTS, recordsOf, retryText, type UsualNames } from "../../../src/streams/event.ts";
import { rawLine } from "../../support/events.ts";

const LINES = [rawLine('{"id":1}')];
const NAMES: readonly UsualNames[] = [["id"]];
const FACTS = { ...NO_FACTS, held: 2 };
const OF_ALL = { kind: "records", stream: "people", at: 9 };

it.each([
  ["lines", { lines: LINES }, undefined, { ...OF_ALL, lines: LINES }],
  ["lines of a window", { lines: LINES }, 0, { ...OF_ALL, lines: LINES, window: 0 }],
  [
    "lines and their names",
    { lines: LINES, names: NAMES },
    undefined,
    { ...OF_ALL, lines: LINES, names: NAMES },
  ],
  [
    "lines that taught something",
    { lines: LINES, facts: FACTS },
    3,
    { ...OF_ALL, lines: LINES, facts: FACTS, window: 3 },
  ],
  [
    "everything",
    { lines: LINES, names: NAMES, facts: FACTS },
    3,
    { ...OF_ALL, lines: LINES, names: NAMES, facts: FACTS, window: 3 },
  ],
  [
    "what held rows taught",
    { lines: [], names: [], facts: FACTS },
    3,
    { ...OF_ALL, lines: [], names: [], facts: FACTS, window: 3 },
  ],
])("the event of a batch has no more than the batch: %s", (_, batch, window, event) => {
  const [found, ...others] = recordsOf("people", batch, 9, window);
  expect(found).toStrictEqual(event);
  expect(others).toEqual([]);
});

it.each([[{ lines: [] }], [{ lines: [], names: [] }], [{ lines: [], facts: undefined }]])(
  "a batch without lines that taught nothing has no event: %j",
  (batch) => {
    expect(recordsOf("people", batch, 9, 3)).toEqual([]);
  },
);

it.each([
  [2, 1_349, "Cannot count people: it is down. Try 2 of 5 in 1.3 s"],
  [5, 60_000, "Cannot count people: it is down. Try 5 of 5 in 60.0 s"],
])("a retry says which of how many tries comes when: %i after %i ms", (attempt, waitMs, text) => {
  const retrying = { what: "count people", reason: "it is down", attempt, attempts: 5, waitMs };
  expect(retryText({ kind: "retrying", ...retrying })).toBe(text);
});

it("rows that obey their schema teach nothing", () => {
  const { newFields, contradictions, ...numbers } = NO_FACTS;
  expect([newFields.size, contradictions.size]).toEqual([0, 0]);
  expect(numbers).toEqual({ withoutKey: 0, replaced: 0, unreadable: 0, held: 0 });
});
