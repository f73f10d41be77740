import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../src/errors.ts";
import { digestOf, parseJobState, toJobState } from "../../src/source/job-state.ts";
import type { Job, Step } from "../../src/sync/job-moves.ts";

const parse = (blob: unknown): ReturnType<typeof parseJobState> =>
  parseJobState("company_lookups", blob, "created_at");
const AT = "2026-03-02T10:00:00.000Z";
const entry = { item: "x", step: "done", at: AT, job_id: null, not_before: null, tries: 0, resent: 0 };

const moment = fc.integer({ min: 0, max: Date.UTC(9000, 0) });
const jobs = fc.dictionary(
  fc.string(),
  fc.record<Job>({
    step: fc.constantFrom<Step>("submitting", "submitted", "again", "done", "lost", "denied"),
    at: moment,
    jobId: fc.string({ minLength: 1 }),
    notBefore: fc.option(moment),
    tries: fc.nat(3),
    resent: fc.nat(1),
  }),
);

describe("parseJobState()", () => {
  it("reads what was written", () => {
    fc.assert(
      fc.property(jobs, fc.option(fc.constant(AT)), (dictionary, cursor) => {
        const known = new Map(Object.entries(dictionary));
        const blob = JSON.parse(JSON.stringify(toJobState("created_at")(known, cursor)));
        expect(parse(blob)).toEqual({ jobs: known, cursor });
        expect(parse({ ...blob, replication_key: "created_at", replication_key_value: cursor }).jobs).toEqual(
          known,
        );
      }),
    );
  });

  it.each([[undefined], [null], [{}]])("takes %j for no state", (blob) => {
    expect(parse(blob)).toEqual({ jobs: null, cursor: null });
  });

  it.each([
    [[]],
    ["text"],
    [{ version: 2, jobs: [] }],
    [{ jobs: [] }],
    [{ version: 1 }],
    [{ version: 1, jobs: {} }],
    [{ version: 1, jobs: [], created_at: 7 }],
    [{ version: 1, jobs: [null] }],
    [{ version: 1, jobs: [{ ...entry, step: "other" }] }],
    [{ version: 1, jobs: [{ ...entry, item: 7 }] }],
    [{ version: 1, jobs: [{ ...entry, at: "soon" }] }],
    [{ version: 1, jobs: [{ ...entry, step: "submitted" }] }],
  ])("refuses %j: nothing is bought by mistake", (blob) => {
    expect(() => parse(blob)).toThrow(ConfigError);
  });
});

describe("toJobState()", () => {
  it("writes every key every time", () => {
    expect(toJobState("created_at")(new Map(), null)).toEqual({ version: 1, created_at: null, jobs: [] });
    const job: Job = {
      step: "done",
      at: Date.parse(AT),
      jobId: null,
      notBefore: null,
      tries: 0,
      resent: 0,
    };
    expect(toJobState("created_at")(new Map([["x", job]]), AT)).toEqual({
      version: 1,
      created_at: AT,
      jobs: [entry],
    });
  });
});

describe("digestOf()", () => {
  it("is the same for ever, and tells nothing by itself", () => {
    expect(digestOf("1.example")).toBe("rHWev47k7zDyCcxw");
    expect(digestOf("2.example")).not.toBe(digestOf("1.example"));
  });
});
