import { describe, expect, it } from "vitest";
import { jobSpecsOf } from "../../src/catalog/streams.ts";
import { type Config, parseConfig } from "../../src/config/config.ts";
import { describeCaps, describeJobState } from "../../src/jobs/report.ts";
import { keyIn, LOOKUPS, newBook, stateOf } from "../support/job-books.ts";
import { jobConfig } from "../support/job-stage.ts";

const AT = Date.parse("2026-03-02T10:00:00Z");
const DAY_MS = 86_400_000;

const configOf = (jobs: object): Config =>
  parseConfig(jobConfig({ url: "https://a.example", key: "svc_0a1b2c3d_one" }, jobs), {});
const [SPEC] = jobSpecsOf(configOf({ company_lookup: { domains: ["a.example"] } }));

describe("describeJobState()", () => {
  const shown = (state: unknown): readonly string[] => {
    if (SPEC === undefined) throw new Error("no stream of look-ups");
    return describeJobState(SPEC, state);
  };

  it("says what is out, what is finished and what each day cost", () => {
    const book = newBook("me", LOOKUPS.name);
    const names = ["open", "lost", "done", "owed"].map((name) => `${name}.example`);
    const [open = "", lost = "", ...answered] = names.map((name) => keyIn(book, name));
    book.change(open, book.intend(open, AT).id, { step: "open", job: "j" });
    book.intend(lost, AT + DAY_MS);
    for (const [nth, key] of answered.entries())
      book.answered(key, book.intend(key, AT).id, AT, nth + 1, null);
    book.deliver(LOOKUPS.name, answered[0] ?? "");
    const cursor = "2026-03-02T10:00:00.000Z";
    expect(shown(stateOf(book, AT, { cursor }))).toEqual([
      `delivered up to ${cursor}`,
      "items: 1 open, 1 unknown, 2 finished",
      "2026-03-02: 1 submitted, 0 credits",
      "2026-03-03: 3 submitted, 3 credits",
    ]);
    expect(shown(stateOf(book, AT))[0]).toBe("nothing is delivered yet");
    expect(shown(undefined)).toEqual(["nothing is submitted yet"]);
  });
});

describe("describeCaps()", () => {
  const [domains, emails] = [["a.example"], ["a@x.example"]];

  it.each([
    [{}, undefined],
    [
      { company_lookup: { domains, max_lookups_per_sync: 1, max_credits_per_sync: 7 } },
      "At most 1 company look-up and 7 credits a sync, no cap by day, no cap by month",
    ],
    [
      {
        company_lookup: { domains, max_credits_per_day: 1, max_credits_per_month: 2_000 },
        email_check: { emails, max_per_sync: 3, max_per_day: 4 },
      },
      "At most 100 company look-ups and 100 credits a sync, 1 credit a day, 2,000 credits a month; at most 3 e-mail checks a sync, 4 a day",
    ],
  ])("says of %j what it may cost", (jobs, text) => {
    expect(describeCaps(configOf(jobs))).toBe(text);
  });
});
