import { describe, expect, it } from "vitest";
import { SubmitFailures } from "../../../src/jobs/failures.ts";

const error = new Error("no");

describe("SubmitFailures", () => {
  it("begin with nothing, and keep the first of several", () => {
    const failures = new SubmitFailures();
    expect({ ...failures, isProbing: failures.isProbing }).toEqual({
      ...{ failure: undefined, ended: false, isOutOfCredits: false, hasTaken: false, retries: 0 },
      isProbing: true,
    });
    failures.end("a text");
    failures.end(error);
    expect([failures.ended, failures.failure]).toEqual([true, new Error("a text")]);
  });

  it("gives up on a rate limit that lasts for half an hour, and begins again after a success", () => {
    const failures = new SubmitFailures();
    expect(failures.refused(error, "limit", 0)).toBe("again");
    expect(failures.refused(error, "limit", 1_800_000)).toBe("again");
    failures.taken();
    expect(failures.refused(error, "limit", 1_900_000)).toBe("again");
    expect(failures.refused(error, "limit", 3_700_001)).toBe("end");
    expect(failures.failure).toBe(error);
  });

  it("ends after three lost answers in a row, not after three in all", () => {
    const failures = new SubmitFailures();
    for (let nth = 0; nth < 5; nth++) {
      failures.unknown(error);
      failures.unknown(error);
      expect(failures.isProbing).toBe(true);
      failures.taken();
      expect(failures.isProbing).toBe(false);
    }
    expect(failures.ended).toBe(false);
    for (let nth = 0; nth < 3; nth++) failures.unknown(error);
    expect(failures.ended).toBe(true);
  });

  it("gives what time heals five tries in a row", () => {
    const failures = new SubmitFailures();
    for (let nth = 1; nth < 5; nth++)
      expect([failures.refused(error, "time", 0), failures.retries]).toEqual(["again", nth]);
    failures.taken();
    for (let nth = 1; nth < 5; nth++) expect(failures.refused(error, "time", 0)).toBe("again");
    expect(failures.refused(error, "time", 0)).toBe("end");
  });

  it("doubts its own form until one is taken", () => {
    const failures = new SubmitFailures();
    expect(failures.refused(error, "other-item", 0)).toBe("doubt");
    failures.taken();
    for (let nth = 0; nth < 30; nth++) expect(failures.refused(error, "other-item", 0)).toBe("refuse");
    expect(failures.ended).toBe(false);
  });

  it("ends after three refusals where none was ever taken, and says that the form may be wrong", () => {
    const failures = new SubmitFailures();
    for (let nth = 0; nth < 2; nth++) failures.refused(error, "other-item", 0);
    expect(failures.ended).toBe(false);
    expect(failures.refused(error, "other-item", 0)).toBe("doubt");
    expect(failures.ended).toBe(true);
    expect(failures.failure).toMatchObject({ name: "ConfigError", cause: error });
    expect(failures.failure?.message).toContain("The service refused 3 submissions and took none");
  });

  it("refuses an item alone whose refusal is its answer, and ends at what the operator must mend", () => {
    const failures = new SubmitFailures();
    for (let nth = 0; nth < 30; nth++) expect(failures.refused(error, "is-answer", 0)).toBe("refuse");
    expect(failures.ended).toBe(false);
    expect(failures.refused(error, "operator", 0)).toBe("end");
    expect(failures).toMatchObject({ ended: true, failure: error });
  });

  it("ends without a failure when credits are used up", () => {
    const failures = new SubmitFailures();
    expect(failures.refused(error, "credits", 0)).toBe("end");
    expect(failures).toMatchObject({ ended: true, failure: undefined, isOutOfCredits: true });
  });
});
