import { describe, expect, it } from "vitest";
import type { ConfiguredStream } from "../../src/source/catalog.ts";
import { plainState, resumeDated } from "../../src/source/resume.ts";

const FILTERS = { source_slug: null, is_user: "all" } as const;

const asked = (syncMode: string): ConfiguredStream => ({
  name: "companies",
  syncMode,
  destinationSyncMode: null,
  generationId: 1,
  syncId: 1,
  schema: null,
});

describe("resumeDated()", () => {
  it.each(["incremental", "full_refresh"])(
    "%s: reads anew a stream whose records had no date when the state was made",
    (syncMode) => {
      for (const before of ["incremental", "full_refresh"]) {
        const resume = resumeDated(asked(syncMode), plainState(asked(before)), FILTERS);
        expect(resume.kind).toBe("anew");
      }
      const { why } = {
        why: undefined,
        ...resumeDated(asked("incremental"), plainState(asked("incremental")), FILTERS),
      };
      expect(why).toContain('"companies"');
    },
  );

  it("knows such a state in Singer's words", () => {
    const bookmark = {
      ...plainState(asked("incremental")),
      replication_key: null,
      replication_key_value: null,
    };
    expect(resumeDated(asked("incremental"), bookmark, FILTERS).kind).toBe("anew");
  });

  it("refuses a state that lost its cursor", () => {
    const lost = { version: 1, missing_days: [], full_refresh: null };
    expect(() => resumeDated(asked("incremental"), lost, FILTERS)).toThrow("no discoveredAt");
  });
});
