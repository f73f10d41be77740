import { describe, expect, it } from "vitest";
import { Tally } from "../../src/commands/tally.ts";
import { checkpoint, close, open, records } from "../support/events.ts";

describe("Tally", () => {
  it("shows rows, rate, windows and an end, as far as they are known", () => {
    let now = 0;
    const tally = new Tally(() => now);
    expect(tally.line()).toBe("connecting");
    tally.note(open("people"));
    expect(tally.line()).toBe("people: 0 rows");
    tally.note({ kind: "estimate", stream: "people", rows: 3000 });
    now = 500;
    tally.note(records("people", ...Array.from({ length: 1500 }, (_, id) => ({ id }))));
    tally.note(checkpoint("people", {}));
    expect(tally.line()).toBe(
      "people: 1,500 of about 3,000 rows, 3,000 rows/s, 1 of about 2 windows done, about 0.5 s left",
    );
    tally.note({ kind: "limited", until: 9 });
    expect(tally.line()).toMatch(/waiting for the rate limit$/);
    tally.note(records("people", { id: 1 }));
    expect(tally.line()).not.toContain("waiting");
  });

  it("sums up each stream, and how it ended", () => {
    let now = 0;
    const tally = new Tally(() => now);
    tally.note(open("people"));
    tally.note(records("people", { id: 1 }, { id: 2 }));
    now = 4000;
    tally.note(close("people"));
    now = 200_000;
    tally.note(open("sources"));
    tally.note(close("sources", false, new Error("x")));
    tally.note(open("companies"));
    expect(tally.summary()).toBe(
      "people: 2 rows in 4.0 s (1 rows/s), complete\n" +
        "sources: 0 rows in 0.0 s (0 rows/s), incomplete\n" +
        "companies: 0 rows in 0.0 s (0 rows/s), interrupted\n",
    );
  });
});
