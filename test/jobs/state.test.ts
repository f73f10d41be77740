import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openBook } from "../../src/jobs/adopt.ts";
import { newDigests } from "../../src/jobs/digest.ts";
import { entriesOf } from "../../src/jobs/items.ts";
import { parseJobState, toJobState } from "../../src/jobs/state.ts";
import type { Day } from "../../src/time.ts";
import { runs } from "../support/runs.ts";

const STREAM = "company_lookups";
const CURSOR = "created_at";
const DAY = "2026-03-02" as Day;
const DIGEST = "abcdefghijklmnop";

const job = {
  item: DIGEST,
  step: "open",
  at: "2026-03-02T10:00:00.000Z",
  day: DAY,
  job_id: "job_1",
  not_before: "2026-03-02T11:00:00.000Z",
  asked: null,
  misses: 1,
  tries: 0,
  unknowns: 0,
  cost: null,
  ended: null,
  code: "JOB_NOT_FOUND",
  sources: ["one"],
  is_refresh: false,
  owed: [STREAM],
};
const ledger = { salt: "salt", normalization: 1, jobs: [job], done: [[DAY, DIGEST + DIGEST.toUpperCase()]] };
const state = {
  version: 2,
  [CURSOR]: null,
  ...ledger,
  older: [{ ...ledger, salt: null, normalization: 0 }],
  spent: [[DAY, 3, 12]],
  prices: [4],
  inputs: [{ from: "people", filters: "", through: DAY, full: DAY }],
};
const old = {
  version: 1,
  [CURSOR]: null,
  jobs: [
    { item: DIGEST, step: "done", at: job.at, job_id: "job_1", not_before: null, tries: 0, resent: 0 },
    { item: "0123456789abcdef", step: "submitted", at: job.at, job_id: "job_2", not_before: null },
  ],
};

/** A value with one of its parts replaced. `where` chooses it. */
function replaced(value: unknown, where: readonly number[], by: unknown): unknown {
  const [first, ...rest] = where;
  if (first === undefined || typeof value !== "object" || value === null) return by;
  const entries = Object.entries(value);
  if (entries.length === 0) return by;
  const [name] = entries[first % entries.length] ?? [];
  const changed = entries.map(
    ([key, part]) => [key, key === name ? replaced(part, rest, by) : part] as const,
  );
  return Array.isArray(value) ? changed.map(([, part]) => part) : Object.fromEntries(changed);
}

/** What a run does with a state: it looks up its items, and writes it again. */
function used(from: unknown): unknown {
  const saved = new Map([[STREAM, parseJobState(STREAM, from, CURSOR)]]);
  const selected = [{ name: STREAM, syncMode: "incremental" }];
  const { book } = openBook(saved, selected, newDigests("salt"), []);
  for (const entry of entriesOf("domain", "a.example, www.b.example")) book.get(book.keyOf(entry));
  for (const [key] of book.jobs()) book.finish(key, DAY);
  book.charged(book.dayToCharge(DAY));
  return JSON.parse(JSON.stringify(toJobState(CURSOR, null, book.knowledge(DAY))));
}

describe("parseJobState()", () => {
  it.each([
    ["a done item of 0.1.0", { ...old, jobs: [{ ...old.jobs[0], item: "y" }] }, "jobs[0]"],
    ["an open item of 0.1.0", { ...old, jobs: [{ ...old.jobs[1], item: "" }] }, "jobs[0]"],
    ["an open item", { ...state, jobs: [{ ...job, item: "y" }] }, "jobs[0]"],
    ["finished items", { ...state, done: [[DAY, "y"]] }, "done[0]"],
    ["what was spent", { ...state, spent: [[DAY, -1, 0]] }, "spent[0]"],
    ["credits", { ...state, spent: [[DAY, 1, Number.POSITIVE_INFINITY]] }, "spent[0]"],
  ])("names the stream and the place where a state is not ours: %s", (_what, from, place) => {
    expect(() => parseJobState(STREAM, from, CURSOR)).toThrow(
      `Cannot use the state of "${STREAM}": ${place} is not what this connector writes`,
    );
  });

  it("takes a state that a run can use and that comes back, or names the stream", () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom("y", DIGEST, "+010000-01-01T00:00:00Z", "9999-12-31", "0000-01-01", "__proto__"),
    );
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      text,
      fc.constantFrom(-1, 1e308, Infinity, 0.5, null),
    );
    const where = fc.array(fc.nat(20), { maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom<unknown>(state, old), where, value, (from, path, by) => {
        let again: unknown;
        try {
          again = used(replaced(from, path, by));
        } catch (error) {
          expect(error).toMatchObject({
            name: "ConfigError",
            message: expect.stringContaining(`"${STREAM}"`),
          });
          return;
        }
        expect(() => used(again)).not.toThrow();
      }),
      { numRuns: runs(1_000, 3_000) },
    );
  });
});
