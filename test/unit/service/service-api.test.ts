import { describe, expect, it } from "vitest";
import type { Day } from "../../../src/base/time.ts";
import { PEOPLE, type RowStreamSpec } from "../../../src/catalog/streams.ts";
import type { Client } from "../../../src/service/client.ts";
import { RowParser } from "../../../src/service/rows.ts";
import { type Endpoint, StreamApi } from "../../../src/service/service-api.ts";
import type { Service } from "../../../src/sync/service.ts";
import type { Window } from "../../../src/sync/window.ts";
import { listOf, serve } from "../../support/serve.ts";
import { nameOf, openSession, sleepyClock } from "../../support/session.ts";

const SPEC: RowStreamSpec = { ...PEOPLE, listPath: "/list", exportPath: "/export" };
const ENDPOINT: Omit<Endpoint, "parser"> = {
  spec: SPEC,
  paths: { companies: "/companies", sources: "/sources", emailCheck: "/email-check" },
  filters: { is_user: "true" },
  verify: true,
};
const UNPROVEN = { verify: false };

const UNDATED: Window = { kind: "undated" };
const ALL: Window = { kind: "all" };

/** What a service answers: a body, or a status with the code of an error. */
type Answer = string | number | readonly [status: number, code: string];

const refusal = (code: string): string => JSON.stringify({ success: false, error: { code } });
const list = (data: unknown, pagination: unknown = { total: 1 }): string =>
  JSON.stringify({ data, pagination });
const row = (id: string, discoveredAt?: string | number): object => ({ id, discoveredAt });

const apiOf = (client: Client, given: Partial<Endpoint> = {}): Service => {
  const parser = new RowParser({ key: "id", cursor: "discoveredAt", schema: null });
  return new StreamApi(client, { ...ENDPOINT, parser, ...given }, () => undefined);
};

/** A stream of a service that gives these answers in turn, and the last one ever after. `asked`: its requests so far. */
async function open(answers: readonly Answer[], given: Partial<Endpoint> = {}) {
  const asked: string[] = [];
  const { url } = await serve(({ url: path = "" }, response) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)] ?? "";
    asked.push(path);
    response.setHeader("date", "Fri, 20 Mar 2026 10:00:00 GMT");
    const [status, code] = typeof answer === "object" ? answer : [answer, "NOT_OF_THE_INTERFACE"];
    if (status === 429) response.setHeader("retry-after", "300");
    if (typeof status === "number") response.writeHead(status).end(refusal(code));
    else response.end(status);
  });
  const { client } = openSession(url, { clock: sleepyClock() });
  return { api: apiOf(client, given), asked };
}

async function allOf(api: Service, window: Window, once: boolean): Promise<string> {
  const rows: unknown[] = [];
  for await (const batch of api.stream(window, once)) rows.push(...batch);
  return `${rows.length} rows`;
}

const rowsOf = async (page: ReturnType<Service["page"]>): Promise<string> =>
  `${(await page).rows.length} rows`;

/** Each question of the core, answered in a word. */
const CALLS = {
  count: async (api: Service, window: Window) => `${(await api.count(window)).rows} rows`,
  rowAt: async (api: Service, window: Window) => {
    const found = await api.rowAt(window, 7);
    return found === undefined ? "unknown" : `${found.row?.key ?? "no row"} of ${found.total}`;
  },
  page: (api: Service, window: Window) => rowsOf(api.page(window, 1)),
  "page 3": (api: Service, window: Window) => rowsOf(api.page(window, 3)),
  stream: (api: Service, window: Window) => allOf(api, window, false),
  "stream once": (api: Service, window: Window) => allOf(api, window, true),
  sources: async (api: Service) => (await api.sources()).join(),
} as const;
type Call = keyof typeof CALLS;

/** What comes of a call: its answer, or the class of its error and how often it was asked for. */
async function outcome(call: Call, answers: readonly Answer[], given: Partial<Endpoint> = {}, window = ALL) {
  const { api, asked } = await open(answers, given);
  const said = await CALLS[call](api, window).catch(nameOf);
  return asked.length === 1 ? said : `${said} (${asked.length} times)`;
}

it("a count of a source asks only for the people that the filters of the config leave", async () => {
  const window: Window = {
    kind: "closed",
    from: "2026-03-01" as Day,
    to: "2026-03-02" as Day,
    source: "crm",
  };
  const { api, asked } = await open([listOf(5)], { filters: { is_user: "true", source: "x" } });
  await api.count(window);
  const days = "discovered_from=2026-03-01&discovered_to=2026-03-02";
  expect(asked).toEqual([`/list?limit=1&${days}&source=x&is_user=true`]);
});

describe("a count", () => {
  it.each<[string, Answer[], Window, Partial<Endpoint>, object]>([
    ["is the total", [listOf(7)], ALL, {}, { rows: 7, undated: 0, known: true }],
    ["has the rest of all as undated", [listOf(7), listOf(10)], UNDATED, {}, { rows: 7, undated: 3 }],
    ["has no undated below none", [listOf(10), listOf(7)], UNDATED, {}, { rows: 10, undated: 0 }],
    [
      "is unknown if the dated were not counted",
      [listOf(null), listOf(7)],
      UNDATED,
      UNPROVEN,
      { known: false },
    ],
    ["is unknown if nobody counted all", [listOf(7), listOf(null)], UNDATED, UNPROVEN, { known: false }],
    ["is unknown if nobody counted", [listOf(null)], ALL, UNPROVEN, { rows: 0, known: false }],
    ["is never lower than the rows of its page", [listOf(0, [row("1")])], ALL, {}, { rows: 1 }],
    ["takes a list of null for an empty one", [list(null, { total: 0 })], ALL, {}, { rows: 0, known: true }],
  ])("%s", async (_, answers, window, given, count) => {
    const { api } = await open(answers, given);
    expect(await api.count(window)).toMatchObject(count);
  });
});

/** An answer of a list, and what the core is told of it. An answer without a form is tried twice before the first success. */
const NO_FORM = "TransientError (2 times)";
const NO_PAGE = "BodyError (2 times)";
const UNKNOWN = "unknown (2 times)";

it.each<[Answer, Record<"rowAt" | "page", string>]>([
  [list([]), { rowAt: "no row of 1", page: "0 rows" }],
  [list(null), { rowAt: "no row of 1", page: "0 rows" }],
  [list([row("1"), row("2")]), { rowAt: '"1" of 1', page: "2 rows" }],
  [list([row("1")], null), { rowAt: '"1" of null', page: "1 rows" }],
  [list(["no row"]), { rowAt: "no row of 1", page: "BodyError" }],
  ['{"data":null}', { rowAt: UNKNOWN, page: NO_PAGE }],
  [list([row("1")], { total: -1 }), { rowAt: UNKNOWN, page: NO_PAGE }],
  ["null", { rowAt: UNKNOWN, page: NO_PAGE }],
])("a list with the body %j is read by its form or refused", async (answer, said) => {
  for (const [call, expected] of Object.entries(said))
    expect(await outcome(call as Call, [answer]), call).toBe(expected);
});

const OUTAGE = "TransientError (5 times)";
const UNMADE = "BodyError (5 times)";
const MISPLACED = "ConfigError for all (2 times)";

it.each<[Answer, question: string, page: string, nextPage: string, exported: string, once: string]>([
  [[400, "INVALID_PARAMETER"], "ConfigError", "ConfigError", "0 rows", "ConfigError", "ConfigError"],
  [[401, "INVALID_API_KEY"], "ConfigError", "ConfigError", "ConfigError", "ConfigError", "ConfigError"],
  [404, MISPLACED, MISPLACED, MISPLACED, MISPLACED, MISPLACED],
  [503, OUTAGE, UNMADE, UNMADE, OUTAGE, "BodyError"],
  ["no JSON", NO_FORM, NO_PAGE, NO_PAGE, "BodyError", "BodyError"],
  [refusal("QUOTA_EXCEEDED"), "ConfigError", "ConfigError", "ConfigError", "BodyError", "BodyError"],
])("a service that answers %j fails each question by its kind", async (answer, question, ...rest) => {
  const calls: Call[] = ["count", "page", "page 3", "stream", "stream once"];
  const outcomes = await Promise.all(calls.map((call) => outcome(call, [answer])));
  expect(outcomes).toEqual([question, ...rest]);
  // A look past the end proves nothing without an answer. The daily check asks once.
  expect(await outcome("rowAt", [answer])).toMatch(/^unknown/);
  expect(await outcome("sources", [answer])).toMatch(/^\w+Error( for all)?( \(2 times\))?$/);
});

it.each(Object.keys(CALLS) as Call[])(
  "a key that stays limited is an outage and not a missing day: %s",
  async (call) => {
    expect(await outcome(call, [[429, "RATE_LIMITED"]])).toBe("TransientError (7 times)");
  },
);

describe("a stream", () => {
  it("that is only listed has no export, and a page that fails is an outage", async () => {
    expect(await outcome("page", [503], { spec: { ...SPEC, exportPath: null } })).toBe(
      "TransientError (5 times)",
    );
    const { api } = await open(["{}"], { spec: { ...SPEC, exportPath: null } });
    expect(() => api.stream(ALL)).toThrow("only listed");
  });

  it("has the sources of all pages of their list", async () => {
    const total = { total: 5 };
    const pages = [
      list([{ slug: "crm" }, { slug: 7 }, null], total),
      list([{ slug: "ads" }, { slug: "erp" }], total),
    ];
    expect(await outcome("sources", pages)).toBe("crm,ads,erp (2 times)");
    expect(await outcome("sources", [list([{ slug: "crm" }], { total: 2 }), list([], { total: 2 })])).toBe(
      "crm (2 times)",
    );
    const uncounted = [[{ slug: "crm" }], [{ slug: "ads" }], []].map((slugs) => list(slugs, {}));
    expect(await outcome("sources", uncounted)).toBe("crm,ads (3 times)");
    expect(await outcome("sources", uncounted.slice(0, 1))).toBe("crm (2 times)");
  });
});

it.each([
  [{ limit: 2, total: 3 }, 2],
  [{ limit: 0, total: 3 }, 1_000],
  [{ total: 3 }, 1_000],
])("a page is as long as the service says, else as long as was asked for: %j", async (pagination, size) => {
  const { api } = await open([list([row("1")], pagination)]);
  expect(await api.page(ALL, 7)).toMatchObject({ size, total: 3 });
});

it("a page keeps the text of its rows, digits beyond 2^53 too", async () => {
  const { api } = await open(['{"data":[{"id":"é", "n": 12345678901234567890}],"pagination":{"total":1}}']);
  const { rows } = await api.page(ALL, 1);
  expect(rows.map(({ raw }) => Buffer.from(raw, "latin1").toString())).toEqual([
    '{"id":"é","n":12345678901234567890}',
  ]);
});
