import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../../src/api/clock.ts";
import { jobSpecsOf } from "../../../src/catalog/streams.ts";
import { type Config, parseConfig } from "../../../src/config/config.ts";
import type { Book } from "../../../src/jobs/book.ts";
import { type JobContext, JobRun } from "../../../src/jobs/job-run.ts";
import type { Trouble } from "../../../src/jobs/job-type.ts";
import { jobTypeOf } from "../../../src/jobs/kinds.ts";
import {
  describeCaps,
  describeJobState,
  type Forecast,
  finalReport,
  forecastsOf,
  openingReport,
  progressReport,
} from "../../../src/jobs/report.ts";
import { file } from "../../support/cli.ts";
import { keyIn, LOOKUPS, newBook, stateOf } from "../../support/job-books.ts";
import { CAPS, JobService, Tape } from "../../support/job-model.ts";
import { jobConfig } from "../../support/job-stage.ts";

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

/** A run of look-ups at 2026-03-02T10:00:00Z that knows of nothing. */
function runOf(changes: { readonly type?: object; readonly task?: object } = {}): JobRun {
  const base = new JobService(new Tape([])).context([], null);
  const [type, task] = [
    { ...base.type, ...changes.type },
    { ...base.task, ...changes.task },
  ];
  return new JobRun({ ...base, type, task } as JobContext);
}

/** An open or a lost submission of an item. */
function submitted({ context }: JobRun, item: string, notBefore: number | null | undefined): string {
  const { book } = context;
  const key = book.keyOf({ item, kind: "domain", text: item });
  const { id } = book.intend(key, AT);
  if (notBefore !== undefined) book.change(key, id, { step: "open", job: "j", notBefore });
  return id;
}

describe("progressReport()", () => {
  it("says what is out, when the next is asked for, and what was used", () => {
    const run = runOf({ type: { caps: { ...CAPS, credits: { ...CAPS.credits, sync: 1 } } } });
    submitted(run, "a.example", null);
    submitted(run, "b.example", AT + 5_000);
    submitted(run, "c.example", undefined);
    const said = (): string => {
      const { kind, level, text } = progressReport(run) as { kind: string; level: string; text: string };
      expect([kind, level]).toEqual(["log", "info"]);
      return text;
    };
    const used = "; 0 credits used in this sync, 0 today, 0 this month";
    expect(said()).toBe(`company_lookups: waiting for 2 jobs${used}`);
    const at = (due: number) => {
      run.collecting.agenda = [{ key: "", id: "", job: "", at: 0, due }];
      return said();
    };
    expect(at(AT + 5_000)).toBe(
      `company_lookups: waiting for 2 jobs, the next is asked for at 2026-03-02T10:00:05.000Z${used}`,
    );
    // What is due is asked for now.
    expect(at(0)).toContain("asked for at 2026-03-02T10:00:00.000Z");
    const free = runOf();
    submitted(free, "a.example", null);
    expect((progressReport(free) as { text: string }).text).toBe("company_lookups: waiting for 1 job");
  });
});

describe("finalReport()", () => {
  const said = (run: JobRun): readonly string[] =>
    [...finalReport(run)].map((event) =>
      event.kind === "log" ? `${event.level} ${event.text}` : event.kind,
    );

  it("says what was done and what waits, and nothing more of a run without trouble", () => {
    const run = runOf();
    expect(said(run)).toEqual([
      "info 0 answered, 0 submitted; 0 jobs left open until the next sync; 0 items left for later syncs",
    ]);
    run.context.inputs.waiting = 1_500;
    run.spent.submissions = 1_200;
    run.collecting.answered = 1_100;
    submitted(run, "a.example", AT + 20_000);
    submitted(run, "b.example", AT + 10_000);
    submitted(run, "c.example", AT - 1);
    submitted(run, "d.example", null);
    expect(said(run)).toEqual([
      "info 1,100 answered, 1,200 submitted; 4 jobs left open until the next sync, " +
        "the first answer is due at 2026-03-02T10:00:10.000Z; 300 items left for later syncs",
    ]);
    run.spent.submissions = 2_000;
    expect(said(run)[0]).toContain("; 0 items left for later syncs");
    expect([...finalReport(run)][0]).toMatchObject({ endOf: "company_lookups" });
  });

  it("says of a setting's second stream only what was answered", () => {
    const run = runOf({ task: { isSecond: true } });
    run.collecting.answered = 2;
    run.failures.outOfCredits();
    expect(said(run)).toEqual(["info 2 answered"]);
  });

  it("says what the operator must know, each thing once", () => {
    const run = runOf({ type: { caps: { ...CAPS, submissions: { sync: 1, day: 1 } } } });
    submitted(run, "a.example", undefined);
    submitted(run, "b.example", undefined);
    run.context.inputs.waiting = 3;
    run.failures.outOfCredits();
    for (let nth = 1; nth <= 7; nth++) run.submitting.refused.push({ place: `place ${nth}`, code: "BAD" });
    const inVain = (id: string, code?: string) => {
      const trouble: Trouble | undefined =
        code === undefined ? undefined : { kind: "known", error: new Error("x"), code };
      run.collecting.jobs.set(id, { key: "", id, job: id, at: 0, due: 0, trouble });
    };
    for (const [id, code] of [
      ["1", "A"],
      ["2", "B"],
      ["3", "A"],
      ["4", undefined],
    ] as const)
      inVain(id, code);
    run.collecting.charged = 40;
    const [first, ...warnings] = said(run);
    expect(first).toMatch(/^info 0 answered, /);
    const again = "Later syncs ask again, which is free; nothing is submitted again";
    const refused = (nth: number) =>
      `the service refuses place ${nth} (BAD). It is submitted again after 30 days, or when its next refresh is due`;
    expect(warnings).toEqual(
      [
        "2 submissions got no answer and may have been charged. To submit again, set company_lookup.retry_unknown to true for one sync",
        "out of credits or quota, with 3 items waiting. The next sync tries one",
        ...[1, 2, 3, 4, 5].map(refused),
        "the service refuses 2 other items as well",
        `no result for 2 jobs (A). ${again}`,
        `no result for 1 job (B). ${again}`,
        "answers that are longer than 32 MiB cost 40 credits, so nothing more was submitted in this sync",
      ].map((text) => `warn company_lookups: ${text}`),
    );
  });

  it("names five refused items at most, and no others where there are none", () => {
    const run = runOf();
    for (let nth = 1; nth <= 5; nth++) run.submitting.refused.push({ place: `place ${nth}`, code: "BAD" });
    expect(said(run)).toHaveLength(6);
    run.submitting.refused.push({ place: "place 6", code: "BAD" });
    expect(said(run).at(-1)).toBe("warn company_lookups: the service refuses 1 other item as well");
  });

  it("says which cap was passed", () => {
    const run = runOf({ type: { caps: { ...CAPS, credits: { sync: 1, day: 4, month: 9 } } } });
    const { book } = run.context;
    const id = submitted(run, "a.example", null);
    const key = book.keyOf({ item: "a.example", kind: "domain", text: "a.example" });
    book.answered(key, id, AT, 5, null);
    const texts = said(run);
    expect(texts[0]).toContain("; 5 credits used in this sync, 5 today, 5 this month; 0 jobs left open");
    expect(
      texts.slice(1).map((text) => text.replace(/^warn company_lookups: a cap was passed: /, "")),
    ).toEqual([
      expect.stringContaining("a sync may use 1 credit"),
      expect.stringContaining("a day may use 4 credits"),
    ]);
  });
});

describe("openingReport()", () => {
  const [domains, emails] = [["a.example"], ["a@x.example"]];
  const config = configOf({
    company_lookup: { domains, from_companies: true, from_people: true, max_lookups_per_sync: 7 },
    email_check: { emails, max_per_sync: 1_200 },
  });
  const NEW = "there is no state, and the receipts are new, so nothing is known of what was submitted before";
  const BARE =
    "there is no state and there are no receipts, so nothing is known of what was submitted before";

  type Known = {
    readonly invalid?: readonly string[];
    readonly most?: number;
    readonly hasReceipts?: boolean;
  };
  const told = (setting: "companyLookup" | "emailCheck", count: number, known?: Known): readonly string[] => {
    const { invalid = [], most, hasReceipts = true } = known ?? {};
    const context = {
      type: jobTypeOf(setting, config),
      inputs: { invalid: { count: invalid.length, places: invalid.slice(0, 5) } },
      task: { knowsThePast: known?.most === undefined, mostSubmissions: most },
      memory: { hasReceipts },
    };
    const notices = [...openingReport({ context, stream: "s" } as unknown as JobRun, count)];
    return notices.map((one) => (one.kind === "log" ? `${one.level} ${one.text}` : one.kind));
  };
  const places = Array.from({ length: 6 }, (_, nth) => `p[${nth}]`);
  const none = Number.POSITIVE_INFINITY;

  it("names the places of the first five entries that are no items", () => {
    const [one, two, five] = [places.slice(0, 1), places.slice(0, 2), places.slice(0, 5)];
    expect(told("emailCheck", 9)).toEqual([]);
    expect(told("emailCheck", 9, { invalid: one })).toEqual([
      "warn s: 1 invalid e-mail address, never sent: p[0]",
    ]);
    expect(told("emailCheck", 9, { invalid: two })).toEqual([
      "warn s: 2 invalid e-mail addresses, never sent: p[0], p[1]",
    ]);
    expect(told("companyLookup", 9, { invalid: five })).toEqual([
      `warn s: 5 invalid domains, never sent: ${five.join(", ")}`,
    ]);
    expect(told("companyLookup", 9, { invalid: places })).toEqual([
      `warn s: 6 invalid domains, never sent: ${five.join(", ")} and others`,
    ]);
  });

  it("says what a sync submits that knows nothing of the past, and at most how much", () => {
    const rows = "what the rows of companies and people name";
    expect(told("emailCheck", 0, { most: none })).toEqual([]);
    expect(told("emailCheck", 1_300, { most: none })).toEqual([
      `warn s: ${NEW}. This sync submits up to 1,200 of 1,300 items of "email_check" (at most 1,200 submissions a sync)`,
    ]);
    expect(told("emailCheck", 1, { most: none })).toEqual([
      `warn s: ${NEW}. This sync submits up to 1 of 1 item of "email_check" (at most 1,200 submissions a sync)`,
    ]);
    const caps = "(at most 7 submissions and 100 credits a sync)";
    expect(told("companyLookup", 0, { most: none })).toEqual([
      `warn s: ${NEW}. This sync submits ${rows} ${caps}`,
    ]);
    const few = "will be submitted, because there is neither a state nor a receipts file";
    expect(told("companyLookup", 9, { most: 5, hasReceipts: false })).toEqual([
      `warn s: ${BARE}. This sync submits up to 5 of 9 items of "company_lookup", and ${rows} ${caps}`,
      `warn s: at most 5 items ${few}`,
    ]);
    expect(told("emailCheck", 5, { most: 5, hasReceipts: false })).toHaveLength(1);
    expect(told("emailCheck", 6, { most: 5, hasReceipts: false })[1]).toBe(`warn s: at most 5 items ${few}`);
    expect(told("companyLookup", 0, { most: 1, hasReceipts: false })[1]).toBe(
      `warn s: at most 1 item ${few}`,
    );
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

describe("forecastsOf()", () => {
  const HOUR = 3_600_000;
  const [names, emails] = [
    ["new", "open", "far", "lost", "no", "odd", "failed", "dry", "done", "owed", "back"],
    ["a@x.example"],
  ];
  const domains = [...names.map((name) => `${name}.example`), "NEW.example", "not one", "held.example"];

  /** What a run would do that begins a day and an hour after the items came to where they are. */
  async function forecast(
    settings: object,
    states: readonly (readonly [string, unknown])[] = [],
  ): Promise<readonly Forecast[]> {
    const clock = vi.spyOn(systemClock, "now").mockReturnValue(AT + DAY_MS + HOUR);
    onTestFinished(() => clock.mockRestore());
    return await forecastsOf(configOf({ receipts_file: "", ...settings }), {}, new Map(states));
  }

  /** Takes an item to where it is: what the service is asked, and what it answers. */
  const PATHS: Readonly<Record<string, (book: Book, key: string) => unknown>> = {
    open: (book, key) => {
      const { id } = book.intend(key, AT);
      book.change(key, id, { step: "open", job: "j1", notBefore: AT + 26 * HOUR, asked: AT + 2 * HOUR });
    },
    far: (book, key) => {
      const { id } = book.intend(key, AT + HOUR);
      book.change(key, id, {
        step: "open",
        job: "j2",
        charged: 4,
        misses: 1,
        asked: AT + 2 * DAY_MS,
        code: "JOB_NOT_FOUND",
      });
    },
    lost: (book, key) => book.intend(key, AT),
    no: (book, key) => book.notTaken(key, book.intend(key, AT + DAY_MS).id, "refused", "INVALID_DOMAIN"),
    odd: (book, key) => book.notTaken(key, book.intend(key, AT).id, "void", "INVALID_BODY"),
    failed: (book, key) => {
      const { id } = book.intend(key, AT);
      book.change(key, id, {
        step: "failed",
        job: "j3",
        ended: AT + DAY_MS + HOUR / 2,
        code: "INTERNAL_ERROR",
      });
    },
    dry: (book, key) => {
      const { id } = book.intend(key, AT);
      book.change(key, id, { step: "unpaid", job: "j4", ended: AT, code: "QUOTA_EXCEEDED" });
    },
    done: (book, key) => answer(book, key, 7, true),
    owed: (book, key) => answer(book, key, 3, false),
    back: (book, key) => book.notTaken(key, book.intend(key, AT).id, "void", null),
    again: (book, key) => {
      PATHS["odd"]?.(book, key);
      book.notTaken(key, book.intend(key, AT + HOUR).id, "void", null);
    },
  };

  function answer(book: Book, key: string, cost: number, isDelivered: boolean): void {
    const { id } = book.intend(key, AT + DAY_MS);
    book.change(key, id, { step: "open", job: `j.${cost}` });
    book.answered(key, id, AT + DAY_MS, cost, null);
    if (isDelivered) book.deliver(LOOKUPS.name, key);
  }

  function stateAfter(...paths: readonly string[]): readonly [string, unknown] {
    const book = newBook("me", LOOKUPS.name);
    for (const name of paths) PATHS[name]?.(book, keyIn(book, `${name}.example`));
    return [LOOKUPS.name, stateOf(book, AT, { service: null })];
  }

  const times = {
    at: "2026-03-02T10:00:00.000Z",
    later: "2026-03-02T11:00:00.000Z",
    next: "2026-03-03T10:00:00.000Z",
  };
  const nothing = { job_id: null, submitted: null, due: null, credits: null, code: null };

  it("doubts an item no longer that the service did not complain of the last time", async () => {
    const one = { company_lookup: { domains: ["again.example"] } };
    const [first] = await forecast(one, [stateAfter("again")]);
    expect(first?.items).toMatchObject([{ item: "again.example", step: "new", code: "INVALID_BODY" }]);
  });

  it("says where each item stands, what is due when, and what the caps leave for the next run", async () => {
    const caps = { max_credits_per_sync: 30, max_credits_per_day: 40, max_credits_per_month: 15 };
    const suppress_file = await file("suppressed.txt", "held.example\n");
    const lookups = { domains, ...caps };
    const [first] = await forecast({ company_lookup: lookups, suppress_file }, [stateAfter(...names)]);
    const items = [
      { step: "new" },
      { step: "open", job_id: "j1", submitted: times.at, due: "2026-03-03T12:00:00.000Z" },
      {
        step: "open",
        job_id: "j2",
        credits: 4,
        submitted: times.later,
        due: "2026-03-04T11:00:00.000Z",
        code: "JOB_NOT_FOUND",
      },
      { step: "unknown", submitted: times.at },
      { step: "refused", submitted: times.next, due: "2026-04-02T10:00:00.000Z", code: "INVALID_DOMAIN" },
      { step: "doubted", submitted: times.at, code: "INVALID_BODY" },
      {
        step: "failed",
        job_id: "j3",
        submitted: times.at,
        due: "2026-03-03T11:30:00.000Z",
        code: "INTERNAL_ERROR",
      },
      { step: "unpaid", job_id: "j4", submitted: times.at, code: "QUOTA_EXCEEDED" },
      { step: "done" },
      { step: "answered", job_id: "j.3", submitted: times.next, credits: 3 },
      { step: "new" },
    ];
    expect(first).toEqual({
      ...{ setting: "company_lookup", would_submit: 3, waiting: 4, unknown_inputs: [], may_cost: 5 },
      ...{ open: 2, unknown: 1, suppressed: 1, submitted_today: 4, submitted_this_month: 7 },
      ...{ spent_today: 10, spent_this_month: 10 },
      invalid: { count: 1, places: ["company_lookup.domains[12]"] },
      spent: [
        ["2026-03-02", 3, 0],
        ["2026-03-03", 4, 10],
      ],
      items: items.map((status, nth) => ({
        ...{ ...nothing, ...status, item: domains[nth], place: `company_lookup.domains[${nth}]` },
      })),
    });
  });

  it.each<[string, object, readonly string[], object]>([
    [
      "by the credits of a month",
      { max_credits_per_month: 13 },
      ["done", "owed"],
      { would_submit: 3, may_cost: 3 },
    ],
    [
      "by the credits of a day",
      { max_credits_per_day: 14 },
      ["done", "owed"],
      { would_submit: 4, may_cost: 4 },
    ],
    ["by the credits of a sync", { max_credits_per_sync: 2 }, ["done"], { would_submit: 2, may_cost: 2 }],
    [
      "by a day that is used up",
      { max_credits_per_day: 10 },
      ["done", "owed"],
      { would_submit: 0, may_cost: 0 },
    ],
    [
      "by a day that is overdrawn",
      { max_credits_per_day: 8, from_people: true },
      ["done", "owed"],
      { may_cost: 0 },
    ],
    ["by the submissions of a sync", { max_lookups_per_sync: 3 }, [], { would_submit: 3, may_cost: 100 }],
    ["for rows alone", { domains: [], from_people: true }, ["done"], { would_submit: 0, may_cost: 100 }],
    ["for no row", { domains: [], from_people: true, max_lookups_per_sync: 0 }, ["done"], { may_cost: 0 }],
  ])("limits look-ups %s", async (_what, settings, paths, limits) => {
    const states = paths.length === 0 ? [] : [stateAfter(...paths)];
    const [first] = await forecast({ company_lookup: { domains, ...settings } }, states);
    expect(first).toMatchObject(limits);
  });

  it("says nothing of credits where nothing costs any, and forecasts each setting once", async () => {
    const all = await forecast({
      company_lookup: { domains },
      email_check: { emails, max_per_sync: 0 },
      email_verification: { emails, from_people: true, max_per_day: 1 },
    });
    expect(all.map(({ setting, would_submit, may_cost }) => [setting, would_submit, may_cost])).toEqual([
      ["company_lookup", 10, 100],
      ["email_check", 0, null],
      ["email_verification", 1, null],
    ]);
    expect(all[2]?.unknown_inputs).toEqual(["people"]);
  });

  it("throws for a file of items that cannot be read", async () => {
    const settings = { email_check: { emails_file: "/not/there.csv" } };
    await expect(forecast(settings)).rejects.toThrow('Cannot read the file of items "/not/there.csv"');
  });
});
