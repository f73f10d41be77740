import { expect, it } from "vitest";
import { type Config, parseConfig } from "../../../src/config/config.ts";
import { Suppression } from "../../../src/config/suppress.ts";
import { type Cut, cutRange, shardWindow } from "../../../src/shards/cut.ts";
import {
  isRead,
  isWholePlan,
  parsePlan,
  planDigest,
  type ShardLine,
  shardConfig,
  wholeLines,
} from "../../../src/shards/plan.ts";
import { unite } from "../../../src/shards/unite.ts";
import type { Coverage } from "../../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import type { Row } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import { addDays, BEGINNING, type Day, startOf } from "../../../src/time.ts";
import { outcome } from "../../support/outcome.ts";

const TODAY = "2026-11-21" as Day;
const ASKED = startOf(TODAY) + 3_600_000;
const ago = (days: number): Day => addDays(TODAY, -days);

type Held = Readonly<Record<number, number>>;
const even = (days: number, rows: number, since = 0): Held =>
  Object.fromEntries(Array.from({ length: days }, (_, nth) => [nth + since, rows]));

/** A service that holds rows on days of some ages, and what it was asked. */
class Account {
  readonly asked: string[] = [];
  readonly #held: Held;
  readonly #list: "tells" | "has no dates" | "has no totals" | "is absent";

  constructor(held: Held, list: "tells" | "has no dates" | "has no totals" | "is absent" = "tells") {
    this.#held = held;
    this.#list = list;
  }

  #within(window: Window): readonly (readonly [Day, number])[] {
    const [from, to] = "from" in window ? [window.from, window.kind === "closed" ? window.to : TODAY] : [];
    this.asked.push(`${from}…${to === TODAY ? "" : to}`);
    return Object.entries(this.#held)
      .map(([age, rows]) => [ago(Number(age)), rows] as const)
      .filter(([day]) => day >= (from ?? "") && day <= (to ?? ""));
  }

  async count(window: Window) {
    const rows = this.#within(window).reduce((sum, [, many]) => sum + many, 0);
    return { rows, undated: 0, known: true, asked: ASKED, answered: ASKED };
  }

  async rowAt(window: Window, place: number) {
    const days = this.#within(window).toSorted(([a], [b]) => (a < b ? 1 : -1));
    this.asked.push(`#${place}`);
    if (this.#list === "is absent") return undefined;
    const total = days.reduce((sum, [, many]) => sum + many, 0);
    const day = days.flatMap(([one, many]) => Array<Day>(many).fill(one))[place - 1];
    const cursor = this.#list === "has no dates" ? null : `${day}T10:00:00Z`;
    return {
      row: day === undefined ? undefined : ({ cursor } as Row),
      total: this.#list === "has no totals" ? null : total,
    };
  }
}

const ACCOUNTS: readonly (readonly [
  what: string,
  account: () => Account,
  range: Pick<Cut, "from" | "to">,
  wanted?: number | undefined,
  known?: readonly Cut[],
])[] = [
  ...[1, 2, 3, 7].map(
    (wanted) => ["even days", () => new Account(even(60, 7)), { from: null, to: null }, wanted] as const,
  ),
  ...(["has no dates", "has no totals", "is absent"] as const).flatMap((list) =>
    [3, 5].map(
      (wanted) =>
        [
          `even days of a list that ${list}`,
          () => new Account(even(40, 9, 3), list),
          { from: null, to: null },
          wanted,
        ] as const,
    ),
  ),
  ["few days", () => new Account({ 3: 1, 9: 1 }), { from: null, to: null }, 9],
  ["a day that holds most", () => new Account({ 3: 5, 9: 900, 20: 3, 21: 3 }), { from: null, to: null }, 5],
  ["the last days", () => new Account({ 0: 50, 1: 40, 2: 30, 3: 20, 4: 10 }), { from: null, to: null }, 5],
  ["nothing", () => new Account({}), { from: null, to: null }, 3],
  ...[1, 2, 3, 4, 30].map(
    (age) =>
      [`an end ${age} days ago`, () => new Account(even(50, 4)), { from: ago(60), to: ago(age) }, 4] as const,
  ),
  ["a day alone", () => new Account(even(50, 4)), { from: ago(9), to: ago(9) }, 4],
  ["two days", () => new Account(even(50, 4)), { from: ago(10), to: ago(9) }, 4],
  ["millions of rows", () => new Account(even(100, 25_000)), { from: null, to: null }],
  ["a million rows", () => new Account(even(100, 10_000)), { from: null, to: null }],
  ["a million rows that end", () => new Account(even(100, 20_000)), { from: null, to: ago(50) }],
  [
    "a range behind known shards",
    () => new Account(even(100, 20_000)),
    { from: ago(50), to: null },
    undefined,
    [{ from: null, to: ago(51), rows: 1_500_000 }],
  ],
  [
    "a range behind as many shards as are wanted",
    () => new Account(even(100, 20)),
    { from: ago(50), to: null },
    4,
    [ago(90), ago(70), ago(51)].map((to) => ({ from: null, to, rows: 50 })),
  ],
];

it("cuts accounts so, with these requests", async () => {
  const lines: string[] = [];
  for (const [what, make, range, wanted, known] of ACCOUNTS) {
    const account = make();
    const size = await account.count(shardWindow(range.from, range.to));
    lines.push(`# ${what}, ${range.from ?? ""}…${range.to ?? ""}, ${wanted ?? "as usual"}`);
    for await (const { from, to, rows } of cutRange(account, range, size, wanted, known))
      lines.push(`  ${account.asked.splice(0).join(" ")}`, `  = ${from ?? ""}…${to ?? ""}: ${rows}`);
    lines.push(`  ${account.asked.join(" ")}`.trimEnd());
  }
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/shard-cuts.txt");
});

const configOf = (settings: object = {}): Config =>
  parseConfig({ base_url: "https://contacts.example.com", api_key: "k", ...settings }, {}, "x");
const CONFIG = configOf();
const SIZE = { rows: 33, asked: ASKED };
const PLAN = planDigest(CONFIG, "people", SIZE, 3);
const lineOf = (more: object = {}): object => ({
  ...{ version: 2, plan: PLAN, stream: "people", shard: 0, from: null, to: null, rows: 3 },
  ...more,
});
const LINES = [
  lineOf({ to: "2020-01-01" }),
  lineOf({ shard: 1, from: "2020-01-02", to: "2021-12-31" }),
  lineOf({ shard: 2, from: "2022-01-01" }),
] as ShardLine[];
const [FIRST, MIDDLE, OPEN] = LINES as [ShardLine, ShardLine, ShardLine];

const TEXTS: readonly (readonly object[])[] = [
  ...[
    [],
    LINES,
    LINES.slice(0, 2),
    LINES.toReversed(),
    [OPEN],
    [MIDDLE, OPEN],
    [FIRST, OPEN],
    [FIRST, FIRST],
  ],
  ...["version", "plan", "stream", "shard", "from", "to", "rows"].flatMap((key) =>
    [undefined, null, 1, -1, 1.5, "x", "2020-1-1"].map((value) => [lineOf({ [key]: value })]),
  ),
  [lineOf({ plan: `${PLAN}0` })],
  [lineOf({ plan: PLAN.slice(1) })],
  [lineOf({ plan: PLAN.toUpperCase().replace(/^./, "A") })],
  [lineOf({ stream: "People" })],
  [lineOf({ stream: "p".repeat(65) })],
  [lineOf({ from: "2020-01-011" })],
  [FIRST, { ...MIDDLE, plan: "0".repeat(32) }],
  [FIRST, { ...MIDDLE, from: "2020-01-03" }],
  [FIRST, { ...MIDDLE, from: "2020-01-01" }],
  [FIRST, { ...MIDDLE, from: null }],
  [{ ...FIRST, to: null }, MIDDLE],
  [FIRST, { ...OPEN, stream: "companies" }],
  [{ ...FIRST, plan: "0".repeat(32) }],
];

it("reads these plans, and refuses these", async () => {
  const text = (lines: readonly object[]): string => lines.map((line) => JSON.stringify(line)).join("\n");
  const told = TEXTS.flatMap((lines) => [
    text(lines),
    ...["people", undefined].map((stream) => {
      const read = outcome(() => parsePlan(text(lines), stream, CONFIG).map(({ shard }) => shard));
      return `  ${stream}: ${read}`;
    }),
  ]);
  const whole = LINES.map((_, nth) => isWholePlan(LINES.slice(0, nth + 1), CONFIG));
  const ended = isWholePlan(LINES.slice(0, 2), configOf({ end_date: "2021-12-31" }));
  told.push(`whole: ${whole.join()}, with its end: ${ended}`);
  for (const cut of ["", '{"a":1}', '{"a":1}\n', '{"a":1}\n{"b"', '{"a"', '{"a":1}\n{"b":2}'])
    told.push(`${JSON.stringify(cut)} has ${JSON.stringify(wholeLines(cut))}`);
  await expect(`${told.join("\n")}\n`).toMatchFileSnapshot("../../golden/shard-plans.txt");
});

/** A plan of today is read by later versions under the same settings, so its digest stays. */
it("knows plans under these digests, and reads shards under these configs", async () => {
  const all: readonly object[] = [
    {},
    ...[
      { source_slug: "crm" },
      { is_user: "true" },
      { start_date: "2020-01-01" },
      { end_date: "2020-01-01" },
    ],
    ...[{ verify_counts: false }, { ignore_missing_days: ["2020-01-02", "2020-01-01"] }],
    ...[{ drop_fields: ["phone", "email"] }, { drop_fields: ["email", "phone"] }, { only_fields: ["email"] }],
    { hash_fields: ["email"], hash_salt: "0123456789abcdef" },
  ];
  const told = all.map(
    (settings) => `${JSON.stringify(settings)} ${planDigest(configOf(settings), "people", SIZE, 3)}`,
  );
  for (const [stream, size, wanted] of [
    ["companies", SIZE, 3],
    ["people", { ...SIZE, rows: 34 }, 3],
    ["people", { ...SIZE, asked: 1 }, 3],
    ["people", SIZE, undefined],
  ] as const)
    told.push(`${stream} ${JSON.stringify(size)} ${wanted} ${planDigest(CONFIG, stream, size, wanted)}`);
  const suppressed = new Suppression([["ada@example.com"]]);
  told.push(`suppressed: ${planDigest({ ...CONFIG, suppressed }, "people", SIZE, 3)}`);
  for (const [settings, line, many] of [
    [{ requests_per_minute: 10 }, MIDDLE, 3],
    [{ requests_per_minute: 10, lookback_window_days: 4 }, OPEN, 10],
    [{ requests_per_minute: 10, end_date: "2030-01-01" }, OPEN, 1],
    [{ requests_per_minute: 10 }, OPEN, 11],
    [{ max_run_seconds: 60 }, FIRST, 1],
  ] as const) {
    const read = outcome(() => {
      const { requestsPerMinute, startDate, endDate, lookbackWindowDays } = shardConfig(
        configOf(settings),
        line,
        many,
      );
      return { requestsPerMinute, startDate, endDate, lookbackWindowDays };
    });
    told.push(`${JSON.stringify(settings)}, shard ${line.shard} of ${many} at once: ${read}`);
  }
  const states: readonly [ShardLine, unknown][] = [
    [FIRST, null],
    ...[FIRST, MIDDLE, OPEN].flatMap((line) =>
      [
        { plan: null },
        { plan: "other" },
        { plan: PLAN, days: [[BEGINNING, "2020-01-01", 4]] },
        { plan: PLAN, days: [["2020-01-02", "2021-12-31", 4]] },
        { plan: PLAN, days: [[BEGINNING, "2030-01-01", null, "again"]] },
        { plan: PLAN, days: [[BEGINNING, "2030-01-01", null, "missing"]] },
        {
          plan: PLAN,
          days: [
            [BEGINNING, "2021-12-31", 4],
            ["2022-01-01", "2022-01-01", null, "missing"],
          ],
        },
      ].map((state): [ShardLine, unknown] => [line, { ...NEW_STATE, ...state }]),
    ),
  ];
  for (const [line, state] of states) {
    const { plan, days } = (state ?? {}) as Partial<DatedState>;
    told.push(`shard ${line.shard}, ${plan} ${JSON.stringify(days)}: ${outcome(() => isRead(line, state))}`);
  }
  await expect(`${told.join("\n")}\n`).toMatchFileSnapshot("../../golden/shard-settings.txt");
});

it("unites these states", async () => {
  const witness = { keys: ["a"], cursor: "2026-01-01T00:00:00Z", key: "k" };
  const parts: readonly Partial<DatedState>[] = [
    {
      days: [[BEGINNING, "2020-01-01" as Day, 4]],
      discoveredAt: "2020-01-01T00:00:00Z",
      asked: "2026-11-21T01:00:00Z",
    },
    {
      days: [["2020-01-02" as Day, "2021-12-31" as Day, 5]],
      discoveredAt: "2021-01-01T00:00:00Z",
      ...{ asked: "2026-11-21T00:30:00Z", sources: ["a", "b"], service: "s" },
    },
    {
      days: [["2022-01-01" as Day, "2026-11-19" as Day, 6, "again"]],
      ...{ discoveredAt: "2026-11-20T00:00:00Z", asked: "2026-11-21T02:00:00Z", checked: TODAY },
      ...{ undated: { rows: 3, seen: ["x"] }, witness, sources: ["b", "c"] },
    },
    { ...{ undated: { rows: 4, seen: [] }, asked: "2026-11-21T03:00:00Z", sources: [] }, plan: "q" },
    { days: [["2019-01-01" as Day, "2020-06-01" as Day, 9]] as Coverage, discoveredAt: null },
    {
      filters: { source_slug: "crm", is_user: "all" },
      full_refresh: { generation_id: 1, sync_id: 1, done: true },
    },
    { filters: { source_slug: null, is_user: "all" }, service: "t" },
  ];
  const named = parts.map((state, nth) => ({
    name: `part ${nth}`,
    state: { ...NEW_STATE, plan: "p", ...state },
  }));
  const groups = Array.from({ length: 2 ** parts.length }, (_, bits) =>
    named.filter((_part, nth) => (bits >> nth) % 2 === 1),
  ).filter(({ length }) => length > 0 && length < 4);
  const told = groups.flatMap((group) => [
    group.map(({ name }) => name).join(", "),
    ...[false, true].map(
      (isPartial) =>
        `  ${isPartial ? "partial" : "whole"}: ${outcome(() => news(unite("people", group, isPartial)))}`,
    ),
  ]);
  await expect(`${told.join("\n")}\n`).toMatchFileSnapshot("../../golden/shard-unions.txt");
});

/** What a state says beyond a new one. */
const news = (state: DatedState): object =>
  Object.fromEntries(
    Object.entries(state).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(NEW_STATE[key as keyof DatedState]),
    ),
  );
