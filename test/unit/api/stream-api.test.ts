import { expect, it } from "vitest";
import type { Client } from "../../../src/api/client.ts";
import { RowParser } from "../../../src/api/rows.ts";
import { type Endpoint, parseList, streamApi } from "../../../src/api/stream-api.ts";
import { ConnectorError } from "../../../src/errors.ts";
import { fromLatin1 } from "../../../src/latin1.ts";
import type { StreamApi } from "../../../src/streams/stream-api.ts";
import { describe, type Window } from "../../../src/streams/window.ts";
import type { Day } from "../../../src/time.ts";
import { deadPort, listOf, serve } from "../../support/serve.ts";
import { openSession, sleepyClock } from "../../support/session.ts";

const ENDPOINT: Omit<Endpoint, "parser"> = {
  stream: "people",
  list: "/list",
  listSetting: null,
  sources: "/sources",
  export: "/export",
  filters: { is_user: "true" },
  verify: true,
};

const [FROM, TO] = ["2026-03-01", "2026-03-02"] as Day[] as [Day, Day];
const CLOSED: Window = { kind: "closed", from: FROM, to: TO };
const WINDOWS: readonly Window[] = [
  CLOSED,
  { ...CLOSED, to: FROM, source: "crm", isUser: false },
  { kind: "open", from: FROM, undated: false },
  { kind: "open", from: FROM, undated: true },
  { kind: "undated" },
  { kind: "all" },
];
const ALL: Window = { kind: "all" };

/** What a service answers, in turn, and the last one ever after. A number: that status, with the code of an error. */
type Answer = string | number | readonly [status: number, code: string];

const refusal = (code: string): string => JSON.stringify({ success: false, error: { code } });
const list = (data: unknown, pagination: unknown = { total: 1 }): string =>
  JSON.stringify({ data, pagination });
const row = (id: string, discoveredAt?: string | number): object => ({ id, discoveredAt });

type Service = {
  readonly client: Client;
  readonly answers: Map<string, readonly Answer[]>;
  readonly asked: string[];
};

/** A service that answers below each folder what is wanted there. */
async function begin(): Promise<Service> {
  const answers = new Map<string, readonly Answer[]>();
  const asked: string[] = [];
  const { url } = await serve(({ url: path = "", method }, response) => {
    const [, folder = ""] = path.split("/");
    const mine = answers.get(folder) ?? [];
    const answer = mine[Math.min(asked.length, mine.length - 1)] ?? "";
    asked.push(`  ${method} ${path.slice(folder.length + 1)}`);
    response.setHeader("date", "Fri, 20 Mar 2026 10:00:00 GMT");
    const [status, code] = typeof answer === "object" ? answer : [answer, "NOT_OF_THE_INTERFACE"];
    if (typeof status === "number") response.writeHead(status).end(refusal(code));
    else response.end(status);
  });
  return { client: openSession(url, { clock: sleepyClock() }).client, answers, asked };
}

const apiOf = (client: Client, given: Partial<Endpoint> = {}): StreamApi => {
  const parser = new RowParser({ key: "id", cursor: "discoveredAt", schema: null });
  return streamApi(client, { ...ENDPOINT, parser, ...given }, () => undefined);
};

/** A value as text, a row as its line. */
const shown = (value: unknown): string =>
  JSON.stringify(value, (name, inner) => (name === "raw" ? fromLatin1(inner) : inner)) ?? "undefined";

async function allOf(api: StreamApi, window: Window, once = false): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const batch of api.stream(window, once)) rows.push(...batch.rows);
  return rows;
}

const CALLS = {
  count: (api: StreamApi, window: Window) => api.count(window),
  hasRows: (api: StreamApi, window: Window) => api.hasRows(window),
  rowAt: (api: StreamApi, window: Window) => api.rowAt(window, 7),
  page: (api: StreamApi, window: Window) => api.page(window, 1),
  "page 3": (api: StreamApi, window: Window) => api.page(window, 3),
  stream: (api: StreamApi, window: Window) => allOf(api, window),
  "stream once": (api: StreamApi, window: Window) => allOf(api, window, true),
  sources: (api: StreamApi) => api.sources(),
} as const;
type Call = keyof typeof CALLS;

type Situation = readonly [
  call: Call,
  answers: readonly Answer[],
  window?: Window,
  given?: Partial<Endpoint>,
];

/** A call, the requests that it makes, and what comes of it. */
async function told(
  { client, answers: all, asked }: Service,
  [call, answers, window = ALL, given = {}]: Situation,
): Promise<string> {
  const folder = `${all.size}`;
  all.set(folder, answers);
  asked.length = 0;
  const at = Object.fromEntries(["list", "sources", "export"].map((name) => [name, `/${folder}/${name}`]));
  const api = apiOf(client, { ...at, ...given });
  const ends = await (async () => CALLS[call](api, window))().then(shown, (error: unknown) => {
    if (!(error instanceof ConnectorError)) return String(error);
    const cause = error.cause === undefined ? "" : `; cause ${error.cause}`;
    return `${error.name} ${error.code ?? ""}: ${error.message}${cause}`;
  });
  const times = new Set(asked).size === 1 && asked.length > 1 ? ` (${asked.length} times)` : "";
  const requests = times === "" ? asked : [`${asked[0]}${times}`];
  const said = answers.map((one) => (typeof one === "string" ? one.trim() : shown(one))).join(" then ");
  const result = ends.replace(/127\.0\.0\.1:\d+/g, "HOST").replaceAll(`/${folder}/`, "/");
  return [`${call} (${describe(window)}): ${said}`, ...requests, `  → ${result}`].join("\n");
}

const LISTED: readonly Call[] = ["count", "hasRows", "rowAt", "page", "page 3"];
const EVERY = Object.keys(CALLS) as Call[];

/** Each window with each call. */
const WINDOW_CALLS = WINDOWS.flatMap((window) =>
  EVERY.filter((call) => call !== "sources").map((call): Situation => {
    const answer = call.startsWith("stream") ? '{"id":"1"}\n' : list([row("1", "2026-03-01T10:00:00Z")]);
    return [call, [answer], window];
  }),
);

/** Each kind of refusal and damage with each call. */
const FAILURES: readonly Answer[] = [
  ...([[400, "INVALID_PARAMETER"], [401, "INVALID_API_KEY"], 404, 418, 503] as const),
  ...["no JSON", '{"data":"x"}', refusal("QUOTA_EXCEEDED"), refusal("INTERNAL_ERROR")],
];

const COUNTS: readonly (readonly [Answer[], Window, Partial<Endpoint>?])[] = [
  [[listOf(7), listOf(10)], { kind: "undated" }],
  [[listOf(10), listOf(7)], { kind: "undated" }],
  [[listOf(null), listOf(7)], { kind: "undated" }, { verify: false }],
  [[listOf(7), listOf(null)], { kind: "undated" }, { verify: false }],
  [[listOf(null)], ALL],
  [[listOf(null)], ALL, { verify: false }],
  [[listOf(0, [row("1")]), listOf(1, [row("1")])], ALL],
  [[listOf(0, [row("1")])], ALL],
  [[listOf(0, [row("1"), row("2")])], ALL],
  [[listOf(0, [row("1")])], ALL, { verify: false }],
  [[listOf(5)], ALL, { filters: { limit: "9", source: "x" } }],
  [[listOf(1, [row("1", "2026-02-28T23:59:59.999Z")])], CLOSED],
  [[listOf(1, [row("1", "2026-03-01T00:00:00Z")])], CLOSED],
  [[listOf(1, [row("1", "2026-03-02T23:59:59.999Z")])], CLOSED],
  [[listOf(1, [row("1", "2026-03-03T00:00:00Z")])], CLOSED],
  // Whoever was checked since the count was asked for may stand there.
  [[listOf(1, [row("1", "2026-03-20T09:59:58.999Z")])], CLOSED],
  [[listOf(1, [row("1", "2026-03-20T09:59:59Z")])], CLOSED],
  [[listOf(1, [row("1", 1_774_000_800)])], CLOSED],
  [[listOf(1, [row("1", 1_772_323_200)])], CLOSED],
  [[listOf(1, [row("1", "whenever")])], CLOSED],
  [[listOf(1, [row("1")])], CLOSED],
  [[listOf(1, ["no row"])], CLOSED],
  [[listOf(1, [row("1", "2026-02-28T23:59:59.999Z")])], { kind: "open", from: FROM, undated: false }],
  [[listOf(1, [row("1", "2027-03-01T00:00:00Z")])], { kind: "open", from: FROM, undated: false }],
  [[listOf(1, [row("1")])], { kind: "open", from: FROM, undated: false }],
  [[listOf(1, [row("1")])], ALL],
];

const LISTS: readonly (readonly [Call, Answer])[] = [
  ...LISTED.flatMap((call) =>
    [
      list([]),
      list(null),
      list([row("1"), row("2")]),
      list([row("1")], null),
      '{"data":null}',
      '{"data":[]}',
    ].map((answer) => [call, answer] as const),
  ),
  ...[
    { total: -1 },
    { total: 1.5 },
    { total: "1" },
    { total: 0 },
    { limit: 1 },
    { limit: -1 },
    { limit: 1.5 },
    7,
  ].map((pagination) => ["page", list([row("1")], pagination)] as const),
  ...["null", "7", "[]", '""'].map((answer) => ["page", answer] as const),
  ["rowAt", list(["no row"])],
  ["page", list([row("1"), "no row"])],
  ["page", list([row("é\u2028"), { id: 2, big: 1e21 }])],
  ...[
    list([{ slug: "crm" }, { slug: 7 }, "x", null, { slug: "ads" }], { total: 5 }),
    list([{ slug: "crm" }], { total: 2 }),
    list([{ slug: "crm" }], { total: 1 }),
    list([{ slug: "crm" }], { total: null }),
    list([{ slug: "crm" }], null),
  ].map((answer) => ["sources", answer] as const),
];

it("asks the service with these requests, and makes this of its answers", async () => {
  const filters = { discovered_from: "2020-01-01", page: "9", limit: "2" };
  const groups: Readonly<Record<string, readonly Situation[]>> = {
    "each window": WINDOW_CALLS,
    counts: COUNTS.map(([answers, window, given = {}]) => ["count", answers, window, given]),
    lists: LISTS.map(([call, answer]) => [call, [answer]]),
    "each failure": EVERY.flatMap((call) => FAILURES.map((answer): Situation => [call, [answer]])),
    "a list that a setting names": LISTED.flatMap((call) =>
      ([404, [401, "INVALID_API_KEY"]] as const).map(
        (answer): Situation => [call, [answer], ALL, { listSetting: "endpoints.people" }],
      ),
    ),
    "a stream that is only listed": [
      ["stream", ["{}"], ALL, { export: undefined }],
      ...[503, 404, "no JSON"].map((answer): Situation => ["page", [answer], ALL, { export: undefined }]),
    ],
    "filters that the config has as well": EVERY.map((call) => [call, [listOf(1)], CLOSED, { filters }]),
  };
  const service = await begin();
  const parts: string[] = [];
  for (const [name, situations] of Object.entries(groups)) {
    parts.push(`# ${name}`);
    for (const situation of situations) parts.push(await told(service, situation));
    parts.push("");
  }
  await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/stream-api.txt");
});

it("says that a service which no connection reaches is down, whatever is asked of it", async () => {
  const api = apiOf(openSession(`http://127.0.0.1:${await deadPort()}`).client);
  for (const call of EVERY)
    await expect(CALLS[call](api, ALL), call).rejects.toMatchObject({ name: "UnreachableError" });
});

it("refuses a page of more than 100,000 elements, and takes one of as many", () => {
  const zeros = (data: number) => ({ data: Array(data).fill(0), pagination: { total: 1 } });
  expect(parseList(zeros(100_000), "people").elements).toHaveLength(100_000);
  expect(() => parseList(zeros(100_001), "people")).toThrow(
    "Cannot list people: a page holds 100,001 elements, more than 100,000. Tell the service's owner",
  );
});

it("goes by the client's clocks and patience, and hands notices on", async () => {
  const clock = sleepyClock();
  const { client } = openSession("http://127.0.0.1:9", { clock, random: () => 1 });
  const notices: unknown[] = [];
  const parser = new RowParser({ key: "id", cursor: null, schema: null });
  const api = streamApi(client, { ...ENDPOINT, parser }, (notice) => notices.push(notice));
  await api.backOff(3);
  const { waitedMs } = client.usage;
  expect([clock.time, api.now(), api.monotonic(), waitedMs]).toEqual([4_000, 4_000, 4_000, 4_000]);
  api.notify({ kind: "limited", until: 7 });
  expect(notices).toEqual([{ kind: "limited", until: 7 }]);
});
