import { describe, expect, it } from "vitest";
import { openBook } from "../../src/jobs/adopt.ts";
import { newDigests } from "../../src/jobs/digest.ts";
import { JobCheckpoints } from "../../src/jobs/job-checkpoints.ts";
import type { JobContext } from "../../src/jobs/job-context.ts";

const STREAM = { name: "company_lookups", syncMode: "incremental" };

/** What checkpoints ask of a run. */
const contextWith = (cursor: string | null): JobContext =>
  ({
    ...{ stream: STREAM.name, cursorField: "created_at", cursor },
    book: openBook(new Map(), [STREAM], newDigests("salt"), []).book,
    stateBudget: { share: 1, times: 20, besides: () => 0 },
    now: () => Date.parse("2026-03-02T10:00:00Z"),
    monotonic: () => 0,
  }) as unknown as JobContext;

describe("JobCheckpoints", () => {
  it("never moves the cursor back, whatever order answers come in", () => {
    const checkpoints = new JobCheckpoints(contextWith("2026-03-01T00:00:00Z"));
    const cursors = ["2026-02-01T00:00:00Z", "2026-03-02T00:00:00Z", null, "2026-03-01T12:00:00Z"].map(
      (answered) => {
        checkpoints.advance(answered);
        const event = checkpoints.write();
        return event.kind === "checkpoint" ? event.state["created_at"] : undefined;
      },
    );
    expect(cursors).toEqual(["2026-03-01T00:00:00Z", ...Array<string>(3).fill("2026-03-02T00:00:00Z")]);
  });

  it("begins with the first cursor where there was none", () => {
    const checkpoints = new JobCheckpoints(contextWith(null));
    checkpoints.advance("2026-03-02T00:00:00Z");
    expect(checkpoints.write()).toMatchObject({ state: { created_at: "2026-03-02T00:00:00Z" } });
  });
});
