import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Book } from "../../../src/jobs/book.ts";
import { digestOf, newDigests, OLD_DIGESTS } from "../../../src/jobs/identity.ts";
import { subsOf } from "../../../src/jobs/lattice.ts";
import { parseJobState, type SavedJobs, tellBook } from "../../../src/jobs/state.ts";
import { type Day, dayOf } from "../../../src/time.ts";
import { bookFrom, keyIn, newBook, LOOKUPS as SPEC, stateOf } from "../../support/job-books.ts";
import { runs } from "../../support/runs.ts";

const STREAM = SPEC.name;
const DAY = "2026-03-02" as Day;
const AT = Date.parse("2026-03-02T10:00:00.000Z");
const [DIGEST, LOUD, OTHER] = ["abcdefghijklmnop", "ABCDEFGHIJKLMNOP", "0123456789abcdef"] as const;

/** A job as version 2 wrote it. */
const job = {
  ...{ item: DIGEST, step: "open", at: "2026-03-02T10:00:00.000Z", day: DAY, job_id: "job_1" },
  ...{ not_before: "2026-03-02T11:00:00.000Z", asked: null, misses: 1, tries: 0, unknowns: 0, cost: null },
  ...{ ended: null, code: "JOB_NOT_FOUND", sources: ["one"], is_refresh: false, owed: [STREAM] },
};
const ledger = { salt: "salt", normalization: 1, jobs: [job], done: [[DAY, DIGEST + LOUD]] };
const inputs = [{ from: "people", filters: "", through: DAY, full: DAY }];
const second = {
  ...{ version: 2, created_at: null, ...ledger, older: [{ ...ledger, salt: null, normalization: 0 }] },
  ...{ spent: [[DAY, 3, 12]], prices: [4], inputs },
};
/** A job as version 0.1.0 wrote it. */
const old = (item: string, step: string, jobId: string | null = "job_1") => ({
  ...{ item, step, at: job.at, job_id: jobId, not_before: null, tries: 0, resent: 0 },
});
const first = { version: 1, created_at: null, jobs: [old(DIGEST, "done"), old(OTHER, "submitted")] };
const sub = { id: "r.0", step: "open", at: job.at, day: DAY, sync: "7", job: "job_1", sources: ["one"] };
const handle = { id: "r.1", at: job.at, day: DAY, job: "job_2", sure: true, cost: 1 };
const items = [
  { item: DIGEST, subs: [sub] },
  { item: OTHER, day: DAY, handle },
];
const third = {
  ...{ version: 3, created_at: null, service: "here", generation: 4, salt: "salt", normalization: 1 },
  ...{ jobs: items, done: [[DAY, DIGEST]], paid: [[DAY, LOUD]] },
  ...{ older: [{ ...ledger, jobs: items, paid: [] }], inputs },
  ...{ spent: [[DAY, "7", "r", 3, 1, 12]], prices: [[AT, 4]], blind: [[STREAM, 4]] },
};
/** A state of version 3 in which nothing is bought. */
const NO_ITEMS = { ...third, jobs: [], done: [], paid: [], older: [] };

/** A value with one of its parts replaced. `where` chooses it. */
function replaced(value: unknown, [head, ...rest]: readonly number[], by: unknown): unknown {
  if (head === undefined || typeof value !== "object" || value === null) return by;
  const entries = Object.entries(value);
  if (entries.length === 0) return by;
  const [name] = entries[head % entries.length] ?? [];
  const changed = entries.map(([key, part]) => [key, key === name ? replaced(part, rest, by) : part]);
  return Array.isArray(value) ? changed.map(([, part]) => part) : Object.fromEntries(changed);
}

/** What a run does with a state: it looks up its items, and writes it again. */
function used(from: unknown): unknown {
  if (parseJobState(SPEC, from) === null) return {};
  const book = bookFrom(from);
  for (const text of ["a.example", "www.b.example"]) book.intend(keyIn(book, text), AT);
  for (const [key, item] of book.inFull())
    for (const { id } of subsOf(item)) book.answered(key, id, AT, 1, null);
  book.charged(DAY);
  book.probesLeft(AT);
  return stateOf(book, AT);
}

describe("parseJobState()", () => {
  it.each<[string, object, string]>([
    ["a done item of 0.1.0", { ...first, jobs: [{ ...first.jobs[0], item: "y" }] }, "jobs[0]"],
    ["an open item of 0.1.0", { ...first, jobs: [{ ...first.jobs[1], job_id: "" }] }, "jobs[0]"],
    ["an open item of version 2", { ...second, jobs: [{ ...job, item: "y" }] }, "jobs[0]"],
    ["finished items of version 2", { ...second, done: [[DAY, "y"]] }, "done[0]"],
    [
      "an item whose digest is too long",
      { ...third, jobs: [{ ...items[0], item: `${DIGEST}x` }] },
      "jobs[0]",
    ],
    [
      "an open item without a job",
      { ...third, jobs: [{ item: DIGEST, subs: [{ ...sub, job: null }] }] },
      "jobs[0]",
    ],
    ["a handle", { ...third, jobs: [items[0], { ...items[1], handle: { ...handle, day: "x" } }] }, "jobs[1]"],
    ["paid items", { ...third, paid: [[DAY, "y"]] }, "paid[0]"],
    ["what was spent", { ...third, spent: [[DAY, "7", "r", -1, 0, 0]] }, "spent[0]"],
    ["credits", { ...second, spent: [[DAY, 1, Number.POSITIVE_INFINITY]] }, "spent[0]"],
  ])("names the stream and the place where a state is not ours: %s", (_what, from, place) => {
    expect(() => parseJobState(SPEC, from)).toThrow(
      `Cannot use the state of "${STREAM}": ${place} is not what this connector writes`,
    );
  });

  it("refuses any other shape, and calls nothing no state", () => {
    for (const state of [{ version: 1 }, { version: 7, jobs: [] }, { version: 3, jobs: [] }, [], "x"])
      expect(() => parseJobState(SPEC, state)).toThrow(/never ignored/);
    for (const state of [undefined, null, {}]) expect(parseJobState(SPEC, state)).toBeNull();
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
    const where = fc.array(fc.nat(20), { maxLength: 5 });
    fc.assert(
      fc.property(fc.constantFrom<unknown>(third, second, first), where, value, (from, path, by) => {
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
      { numRuns: runs(1_000, 10_000) },
    );
  });
});

describe("a state of version 3", () => {
  it("is read but for cursors of inputs that are not ours, which only cost a second look", () => {
    const good = { from: "people", filters: "", through: DAY, full: DAY };
    const wrong = [{ from: 5 }, { filters: null }, { through: "x" }, { full: undefined }];
    const list = [...wrong.map((fields) => ({ ...good, ...fields })), { ...good, more: 1 }, null];
    expect(parseJobState(SPEC, { ...third, inputs: list })?.inputs).toEqual([good]);
    for (const none of [undefined, {}])
      expect(parseJobState(SPEC, { ...third, inputs: none })?.inputs).toEqual([]);
  });

  it.each<[object, string]>([
    [{ created_at: 5 }, 'its "created_at" is no text'],
    [{ version: "3" }, "its version is not 3"],
    [{ version: 0 }, "its version is not 3"],
    [{ service: 5 }, 'its "service" is no text'],
    [{ salt: 5 }, 'it has no "salt" and "normalization"'],
    [{ others: {} }, 'it has no list "others"'],
    [{ others: [{}] }, "others[0] is not what this connector writes"],
  ])("is refused with %j: %s", (fields, why) => {
    expect(() => parseJobState(SPEC, { ...third, ...fields })).toThrow(
      `Cannot use the state of "${STREAM}": ${why}. It knows what was paid for, so it is never ignored. Restore it, or ` +
        "remove it to buy again what the receipts do not know",
    );
  });

  it("says by which address and generation it was made, and how far it came", () => {
    const head = (fields: object): unknown => {
      const { cursor, service, generation } = parseJobState(SPEC, { ...third, ...fields }) ?? {};
      return [cursor, service, generation];
    };
    expect(head({})).toEqual([null, "here", 4]);
    expect(head({ created_at: job.at, service: null, generation: 1.5 })).toEqual([job.at, null, null]);
    expect(head({ created_at: undefined, service: undefined, generation: undefined })).toEqual([
      null,
      null,
      null,
    ]);
  });

  it("is all that this version knows: one of a newer version is called so", () => {
    expect(() => parseJobState(SPEC, { ...third, version: 4 })).toThrow(/newer version.*version 4/);
  });

  it("comes back as it was written", () => {
    const { service, generation, cursor } = parseJobState(SPEC, third) ?? {};
    expect({ service, generation, cursor }).toEqual({ service: "here", generation: 4, cursor: null });
    const book = bookFrom(third);
    expect(book.get(DIGEST).subs["r.0"]).toBeUndefined();
    const again = stateOf(bookFrom({ ...third, done: [], older: [] }), AT);
    const inAnyOrder = expect.arrayContaining(items);
    expect(again).toEqual({
      ...third,
      jobs: inAnyOrder,
      done: [],
      older: [],
      others: [],
      generation: null,
      inputs: [],
    });
  });

  it("holds no item, and of items that nobody named only what is out", () => {
    const knows = (state: object) => {
      const book = bookFrom(NO_ITEMS);
      for (const delta of bookFrom(state).toReceipts(() => true)) book.add(delta, 0);
      return book;
    };
    const book = knows({ ...third, older: [] });
    book.intend(keyIn(book, "mine.example"), AT);
    expect(JSON.stringify(stateOf(book, AT))).not.toContain("example");
    expect(stateOf(book, AT)).toMatchObject({ jobs: [{ subs: [{ id: ".0" }] }], done: [], paid: [] });
    const open = stateOf(knows({ ...third, done: [], older: [] }), AT);
    expect(open).toMatchObject({ jobs: [], others: [{ item: DIGEST }], done: [], paid: [] });
    // The next run knows whose they are.
    const next = new Book({ author: { sync: "", by: "" }, digests: book.digests, isFromRows: true });
    tellBook(next, SPEC.name, parseJobState(SPEC, open) as SavedJobs, true);
    expect(next.isWanted(DIGEST)).toBe(false);
    expect(stateOf(next, AT)).toEqual(open);
    expect(next.newsToReceipts().flatMap(({ items = [] }) => items.map(([key]) => key))).toEqual([DIGEST]);
  });
});

describe("the state of version 2", () => {
  const known = (fields: object) => {
    const book = bookFrom({ ...second, jobs: [{ ...job, ...fields }], done: [], older: [] });
    const { day, subs } = book.get(DIGEST);
    return { book, day, steps: subsOf({ day, handle: null, subs }).map(({ step }) => step), subs };
  };

  it.each<[object, string, readonly string[], boolean]>([
    [{}, "", ["open"], false],
    [{ step: "unknown", job_id: null, unknowns: 1 }, "", ["unknown", "unknown"], false],
    [{ step: "failed", tries: 3 }, "", ["failed", "failed", "failed"], false],
    [{ step: "open", tries: 1, is_refresh: true }, "1970-01-01", ["failed", "open"], false],
    [{ step: "failed", code: "INSUFFICIENT_CREDITS" }, "", ["unpaid"], false],
    [{ step: "failed", code: { toString: 1 } }, "", ["failed"], false],
    [{ step: "refused", job_id: null }, "", ["refused"], false],
    [{ step: "doubted", job_id: null }, "", ["void"], false],
    [{ step: "answered", ended: "2026-03-03T09:00:00Z" }, "2026-03-03", [], true],
    [{ step: "answered", owed: [] }, DAY, [], false],
  ])("%j is understood", (fields, day, steps, owed) => {
    const { book, ...rest } = known(fields);
    expect({ ...rest, subs: undefined }).toEqual({ day, steps, subs: undefined });
    expect([book.owes(STREAM, DIGEST), book.hasDelivered(STREAM, DIGEST)]).toEqual([
      owed,
      day !== "" && !owed,
    ]);
    if (day >= DAY) expect(book.handle(DIGEST)).toMatchObject({ job: "job_1", sure: true });
  });

  it("keeps what a job waits for, its sources, its day, and what was spent", () => {
    const charged = "2026-03-01" as Day;
    expect(Object.values(known({ day: charged }).subs).map(({ day }) => day)).toEqual([charged]);
    const { book, subs } = known({});
    expect(subs[`old.${AT}`]).toMatchObject({
      ...{ at: AT, notBefore: AT + 3_600_000, misses: 1, code: "JOB_NOT_FOUND" },
      ...{ job: "job_1", day: DAY, sources: ["one"] },
    });
    expect(book.charged(DAY).day).toEqual({ submitted: 3, credits: 12, open: 1 });
    expect([book.estimate, parseJobState(SPEC, second)?.inputs]).toEqual([4, second.inputs]);
  });
});

describe("the state of one of two streams", () => {
  it("keeps the job of an answer that the other stream lacks, and says that its own has it", () => {
    const streams = [STREAM, "company_lookup_contacts"];
    const book = newBook("r", ...streams);
    const key = keyIn(book, "a.example");
    const { id } = book.intend(key, AT);
    book.change(key, id, { step: "open", job: "job_1" });
    book.answered(key, id, AT, 2, null);
    for (const stream of streams) {
      book.deliver(stream, key);
      const again = bookFrom(stateOf(book, AT));
      const job1 = stream === STREAM ? "job_1" : undefined;
      expect([again.owes(STREAM, key), again.handle(key)?.job]).toEqual([false, job1]);
    }
  });
});

describe("the state of version 0.1.0", () => {
  it("is understood under every spelling, so that nothing of it is bought again", () => {
    const digest = (item: string): string =>
      createHash("sha256").update(item).digest().toString("base64url", 0, 12);
    const steps = ["submitted", "again", "lost", "denied"];
    const jobs = [
      ...steps.map((step) => old(digest(`${step}.example`), step)),
      old(digest("www.done.example"), "done"),
      old(digest("unknown.example"), "submitting", null),
      old(digest("v.example"), "again", null),
      old(digest("w.example"), "again", ""),
    ];
    const book = bookFrom({ ...first, jobs });
    expect(book.get(keyIn(book, "done.example"))).toEqual({ day: DAY, handle: null, subs: {} });
    expect(book.owes(STREAM, keyIn(book, "done.example"))).toBe(false);
    const stepOf = (item: string): unknown =>
      subsOf(book.get(keyIn(book, item))).map(({ step, job: id }) => [step, id])[0];
    expect(steps.map((step) => stepOf(`${step}.example`))).toEqual(steps.map(() => ["open", "job_1"]));
    expect(["Unknown.example.", "v.example", "w.example", "new.example"].map(stepOf)).toEqual([
      ...[["unknown", null], ["unknown", null], ["unknown", null], undefined],
    ]);
  });
});

describe("items under two ways of making digests", () => {
  it("are one item as soon as a run names it, and keep their keys", () => {
    const [current, old] = [
      digestOf(newDigests("salt"), "one.example"),
      digestOf(OLD_DIGESTS, "www.one.example."),
    ];
    const older = { ...ledger, salt: null, normalization: 0, jobs: [{ ...job, item: old }], done: [] };
    const book = bookFrom({ ...second, jobs: [], done: [[dayOf(AT - 86_400_000), current]], older: [older] });
    expect(book.size).toBe(2);
    const key = keyIn(book, "ONE.example");
    expect({ size: book.size, key }).toEqual({ size: 1, key: current });
    expect(book.get(old)).toEqual(book.get(current));
    book.answered(old, `old.${AT}`, AT, 1, null);
    expect(book.get(current)).toMatchObject({ day: DAY, subs: {} });
    expect(stateOf(book, AT)).toMatchObject({ salt: "salt", older: [] });
  });

  it("stay under the old one where nobody names them, and their life goes on there", () => {
    const older = { ...ledger, salt: "other", done: [] };
    const book = bookFrom({ ...second, jobs: [], done: [], older: [older] });
    book.answered(DIGEST, `old.${AT}`, AT, 1, null);
    book.deliver(STREAM, DIGEST);
    expect(stateOf(book, AT)).toMatchObject({
      done: [],
      older: [{ salt: "other", jobs: [], done: [[DAY, DIGEST]] }],
    });
  });
});
