import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { errorsOf, idsOf, recordsOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { catalogFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { deadPort, listOf, serve } from "../support/serve.ts";
import { KEY } from "../support/session.ts";

type Answer = {
  readonly status?: number;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string | Buffer;
};

const give = (response: ServerResponse, { status = 200, headers = [], body = "" }: Answer): void =>
  void response.writeHead(status, headers.flat()).end(body);

const IDS = ["1", "2", "3"];
const ROWS = IDS.map((id) => ({ id, discoveredAt: "2026-03-01T00:00:00Z" }));
const LINES = ROWS.map((row) => `${JSON.stringify(row)}\n`).join("");

type Odd = {
  /** The answer to each export. */
  readonly exported?: (lines: string) => Answer;
  /** The answer to the first request whose path this is. */
  readonly once?: readonly [path: RegExp, answer: Answer];
  readonly total?: number;
};

/** A service with three people, and one that is odd; `exports`: how many it was asked for. */
async function serveOdd({ exported = (body) => ({ body }), once, total = IDS.length }: Odd) {
  let isOnce = once !== undefined;
  const { url, requests } = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://service");
    const of = (name: string, otherwise: string) => searchParams.get(name) ?? otherwise;
    const isIn = "2026-03-01" >= of("discovered_from", "") && "2026-03-01" <= of("discovered_to", "9999");
    if (isOnce && once?.[0].test(pathname) === true) {
      isOnce = false;
      give(response, once[1]);
    } else if (pathname.endsWith("/stream")) give(response, exported(isIn && total > 0 ? LINES : ""));
    else if (pathname.endsWith("/people") && total > 0)
      give(response, {
        body: isIn
          ? listOf(total, of("page", "1") === "1" ? ROWS.slice(0, Number(of("limit", "9"))) : [])
          : listOf(0),
      });
    else give(response, { body: listOf(0) });
  });
  const config = await file("config.json", { base_url: url, api_key: KEY, requests_per_minute: 6000 });
  const exports = () => requests.filter((one) => one.url?.includes("/stream")).length;
  const read = async () => {
    const args = ["read", "--config", config, "--stream", "people"];
    const { code, messages } = await connector(args, { clock: hurriedClock() });
    const warned = messages.flatMap(({ log }) => (log?.level === "WARN" ? log.message : []));
    return { code, ids: idsOf(messages).toSorted(), warned };
  };
  return { config, exports, read, requests };
}

describe("a header that comes twice", () => {
  const RETRY = ["1", "1, 1", "-5", "1.5", "", "9999999999999999", "soon", "0x10"];
  const DATE = "Fri, 20 Mar 2026 10:00:00 GMT";

  it.each([429, 503])("or has any text does not fail a request that is answered by %i", async (status) => {
    const values = [...RETRY.map((value) => [value]), ["1", "1"], [DATE, DATE], [`${DATE}, ${DATE}`]];
    for (const value of values)
      for (const path of [/people$/, /stream$/]) {
        const headers = value.map((one) => ["Retry-After", one] as const);
        const { read } = await serveOdd({ once: [path, { status, headers, body: "{}" }] });
        expect(await read(), `${value} ${path}`).toMatchObject({ code: 0, ids: IDS });
      }
  });

  it.each<[names: readonly string[], times: number]>([
    [["gzip", "gzip"], 1],
    [["gzip, gzip"], 1],
    [["identity, GZIP"], 1],
    [["x-gzip,"], 1],
    [["identity"], 0],
    [[""], 0],
  ])("as %j is one label of an encoding", async (names, times) => {
    const { read, exports } = await serveOdd({
      exported: (lines) => ({
        headers: names.map((name) => ["Content-Encoding", name] as const),
        body: times > 0 ? gzipSync(lines) : lines,
      }),
    });
    expect(await read()).toEqual({ code: 0, ids: IDS, warned: [] });
    expect(exports()).toBeLessThan(3);
  });
});

describe("an export with the label of gzip and no byte", () => {
  const LABEL = ["Content-Encoding", "gzip"] as const;
  const EMPTY: Readonly<Record<string, Answer>> = {
    "no content": { status: 204, headers: [LABEL] },
    "a length of 0": { headers: [LABEL, ["Content-Length", "0"]] },
    "no chunk": { headers: [LABEL, ["Transfer-Encoding", "chunked"]] },
  };

  it.each(Object.entries(EMPTY))("is an empty export: %s", async (_, answer) => {
    const { read, exports } = await serveOdd({ exported: () => answer, total: 0 });
    expect(await read()).toEqual({ code: 0, ids: [], warned: [] });
    expect(exports()).toBe(1);
  });

  it.each(Object.entries(EMPTY))("is not complete where rows are counted: %s", async (_, answer) => {
    const { read } = await serveOdd({ exported: () => answer });
    expect(await read()).toMatchObject({ code: 0, ids: IDS });
  });
});

describe("an export that is something else than lines", () => {
  const json = (lines: string, indent?: number) =>
    JSON.stringify(
      lines
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
      null,
      indent,
    );
  it.each<[form: string, write: (lines: string) => string | Buffer]>([
    ["one JSON array", (lines) => json(lines)],
    ["one JSON array", (lines) => `\ufeff\n ${json(lines, 2)}`],
    ["JSON over several lines", (lines) => json(lines, 2).slice(1, -1)],
    ["JSON over several lines", (lines) => lines.replaceAll("}\n", "},\n")],
    ["a stream of events", (lines) => `: hi\n${lines.replaceAll("{", "data: {")}`],
    ["a table", () => '"id";"discoveredAt"\n1;2026-03-01\n'],
    ["one JSON object with", (lines) => listOf(3, JSON.parse(json(lines)))],
    ["one JSON object with", (lines) => `{"people":${json(lines)}}`],
    ["compressed more often", (lines) => gzipSync(lines)],
    ["UTF-16", (lines) => Buffer.from(lines, "utf16le")],
  ])("is named once as %s, and read page by page", async (form, write) => {
    const { read, exports } = await serveOdd({ exported: (lines) => ({ body: write(lines || "\n") }) });
    const { code, ids, warned } = await read();
    expect([code, ids]).toEqual([0, IDS]);
    expect(warned).toEqual([expect.stringContaining(`the export is ${form}`)]);
    expect(exports()).toBe(1);
  });

  it("is a gateway's web page once: the next exports are read", async () => {
    let pages = 0;
    const { read, exports } = await serveOdd({
      exported: (lines) => ({ body: pages++ === 0 ? "<!doctype html><p>Sign in</p>" : lines }),
    });
    const { code, ids, warned } = await read();
    expect([code, ids, warned]).toEqual([0, IDS, []]);
    expect(exports()).toBeGreaterThan(1);
  });
});

describe("a key that is limited", () => {
  it.each([
    [429, "3600"],
    [429, "20"],
    [503, "3600"],
  ])("for long does not make check, discover and the tap wait: %i, %s", async (status, seconds) => {
    const { url, requests } = await serve((_, response) =>
      give(response, { status, headers: [["Retry-After", seconds]], body: "{}" }),
    );
    const config = await file("config.json", { base_url: url, api_key: KEY });
    for (const [program, words] of [
      [CONNECTOR, ["check"]],
      [CONNECTOR, ["discover"]],
      [TAP, ["--test"]],
      [TAP, ["--discover"]],
    ] as const) {
      const before = requests.length;
      const clock = hurriedClock();
      const { stdout, stderr } = await run(program, [...words, "--config", config], { clock });
      expect(`${stdout}${stderr}`).toMatch(/Cannot read .*The service limits requests until 2/);
      expect(requests.length - before, words.join(" ")).toBeLessThan(4);
    }
  });
});

describe("an answer that concerns all streams", () => {
  const nothing = "(status 404). Check base_url (/api/v1/v1)";
  it.each<[what: string, answer: Answer, said: string]>([
    ["404", { status: 404, body: '{"error":"Not Found"}' }, nothing],
    [
      "404 with a code",
      { status: 404, body: '{"success":false,"error":{"code":"NOT_FOUND","message":"?"}}' },
      nothing,
    ],
    ["a web page", { body: "<!doctype html><p>Sign in</p>" }, "a web page, not the API. Check base_url"],
    [
      "a wrong key",
      { status: 401, body: '{"success":false,"error":{"code":"INVALID_API_KEY","message":"?"}}' },
      "API key is missing, malformed, unknown or revoked",
    ],
    [
      "a redirect",
      { status: 308, headers: [["location", "https://b.example"]] },
      "Put the final address into base_url",
    ],
  ])("is said once, by each command: %s", async (_, answer, said) => {
    const { url } = await serve((_request, response) => give(response, answer));
    const config = await file("config.json", { base_url: `${url}/api/v1/v1`, api_key: KEY });
    const catalog = await catalogFor({ companies: {}, people: {}, sources: {} });
    for (const [program, words] of [
      [CONNECTOR, ["check"]],
      [CONNECTOR, ["discover"]],
      [CONNECTOR, ["read"]],
      [CONNECTOR, ["read", "--catalog", catalog]],
      [TAP, []],
      [TAP, ["--discover"]],
    ] as const) {
      const clock = hurriedClock();
      const { stdout, stderr } = await run(program, [...words, "--config", config], { clock });
      const lines = `${stdout}${stderr}`
        .split("\n")
        .filter((line) => /"level":"critical"|"ERROR"|FAILED/.test(line));
      expect(lines, words.join(" ")).toEqual([expect.stringContaining(said)]);
      expect(`${stdout}${stderr}`).not.toContain("verify_counts");
    }
  });

  it("stops no stream of the Public API if it is the External API's", async () => {
    const external_api = { api_url: `http://127.0.0.1:${await deadPort()}`, api_key: KEY };
    const settings = { external_api, company_lookup: { domains: ["a.example"] } };
    const { sandbox, config } = await sandboxWith({ people: 3 }, settings);
    const { code, messages } = await connector(["read", "--config", config], { clock: hurriedClock() });
    expect([code, idsOf(messages).length]).toEqual([1, sandbox.people().length]);
    expect(errorsOf(messages).map((error) => error.stream_descriptor?.name)).toEqual(["company_lookups"]);
  });

  it("is not that of a service whose list of companies alone is missing", async () => {
    const { config } = await sandboxWith(
      { companies: 3, faults: ["no-company-list"] },
      { verify_counts: false },
    );
    const { messages } = await connector(["read", "--config", config, "--stream", "companies"]);
    expect(recordsOf(messages, "companies")).toHaveLength(3);
  });
});
