import { readFileSync } from "node:fs";
import { rm, symlink, writeFile } from "node:fs/promises";
import { request as ask, createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { idsOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { deadPort, listen, serve } from "../support/serve.ts";
import { KEY } from "../support/session.ts";
import { tempDir } from "../support/temp-dir.ts";

async function checked(config: string) {
  const args = ["check", "--config", config];
  const { code, stderr, messages } = await connector(args, { clock: hurriedClock() });
  const statuses = messages.flatMap(({ connectionStatus }) => connectionStatus ?? []);
  expect([code, stderr, statuses.length]).toEqual([0, "", 1]);
  const { status, message = "" } = { status: "", ...statuses[0] };
  if (status === "FAILED") expect(message).toMatch(/^Cannot .{20,}/);
  return { status, message, warnings: messages.flatMap(({ log }) => log?.message ?? []) };
}

const WRONG = { api_key: KEY.replace("ff", "00") };

const ROWS: Readonly<Record<string, object>> = {
  people: { id: "1", discoveredAt: "2026-01-02T00:00:00Z" },
  companies: { domain: "a.example" },
  sources: { slug: "a" },
};

const listWith = (total: unknown, ...data: unknown[]) => ({ success: true, data, pagination: { total } });
const refusedAs = (code: string) => ({ success: false, error: { code, message: "no" } });

/** What a service answers where it does not do as it should. */
type Oddity = readonly [path: RegExp, status: number, body: unknown];

/** A service of one person, one company and one source, and a config for it. */
async function serviceWith(oddities: readonly Oddity[], settings: object = {}) {
  const { url } = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
    const [, name = "", isExport] = /(people|companies|sources)(\/stream)?$/.exec(pathname) ?? [];
    const [from, to] = ["discovered_from", "discovered_to"].map((filter) => searchParams.get(filter));
    const isThere = (from ?? "0") <= "2026-01-02" && (to ?? "9") >= "2026-01-02";
    const rows = isThere && (searchParams.get("page") ?? "1") === "1" ? [ROWS[name]] : [];
    const usual = isExport
      ? rows.map((row) => `${JSON.stringify(row)}\n`).join("")
      : listWith(rows.length, ...rows);
    const odd = oddities.find(([path]) => path.test(pathname));
    const [, status, body] = odd ?? [undefined, 200, usual];
    response.writeHead(status, { "content-type": "application/json", location: "https://other.example/" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  const external_api = { api_url: url, api_key: KEY };
  const config = { base_url: url, api_key: KEY, external_api, requests_per_minute: 6000, ...settings };
  return await file("config.json", config);
}

// CC1, CC2 of Airbyte's acceptance tests: checked() expects one status and exit code 0 for every config.
describe("check", () => {
  it("asks for one stream only where the answer concerns everything that the key reads", async () => {
    const faults = ["status=403:code=SUBSCRIPTION_INACTIVE:times=always"];
    const { sandbox, config } = await sandboxWith({ people: 3, faults });
    const { status, message } = await checked(config);
    expect([status, sandbox.requests.length]).toEqual(["FAILED", 1]);
    expect(message).toMatch(/SUBSCRIPTION_INACTIVE.*Renew the subscription[^.]*$/);
  });

  it("says of a wrong key whether it is from the file or the environment, as read and the tap do, once", async () => {
    await using sandbox = await startSandbox({ people: 3 });
    const inFile = await configFor(sandbox, WRONG);
    const good = await configFor(sandbox);
    const fromFile = `from the config file "${inFile}"`;
    const fromEnvironment = "from the environment variable CONTACT_INTELLIGENCE_API_KEY";
    const bare = ["--format", "jsonl", "--stream", "people"];
    for (const [program, words] of [
      [CONNECTOR, ["check"]],
      [CONNECTOR, ["read"]],
      [CONNECTOR, ["read", ...bare]],
      [CONNECTOR, ["discover"]],
      [TAP, []],
      [TAP, ["--test"]],
      [TAP, ["--discover"]],
    ] as const) {
      for (const [config, origin, env] of [
        [inFile, fromFile, {}],
        [good, fromEnvironment, { CONTACT_INTELLIGENCE_API_KEY: WRONG.api_key }],
      ] as const) {
        const { stdout, stderr } = await run(program, [...words, "--config", config], { env });
        const said = `${stdout}${stderr}`.replaceAll('\\"', '"');
        expect(said, words.join(" ")).toContain(origin);
        const errors = said
          .split("\n")
          .filter((line) => /"level":"critical"|Z ERROR |"ERROR"|FAILED/.test(line));
        expect(errors, words.join(" ")).toHaveLength(1);
      }
    }
  });

  it.each<[setting: string, status: number, body: unknown, isOpen: boolean]>([
    ["email_check", 404, { success: false, error: { code: "JOB_NOT_FOUND", message: "?" } }, true],
    ["email_check", 200, { success: true, job_id: "job_0_check", status: "pending" }, true],
    ["email_check", 404, { success: false, error: { code: "NOT_FOUND", message: "?" } }, false],
    ["email_check", 200, "<html>", false],
    ["company_lookup", 404, { error: "no such job" }, true],
    ["company_lookup", 202, "", true],
    ["company_lookup", 401, { error: "who are you" }, false],
    ["company_lookup", 404, "<html>", false],
  ])(
    "asks for a made-up job of %s: status %d with %j means that the key works: %j",
    async (setting, ...told) => {
      const [status, body, isOpen] = told;
      const { url } = await serve((request, response) => {
        const isProbe = request.url?.includes("job_0_check") === true;
        const data = [{ id: "1", domain: "a.example", slug: "crm" }];
        const list = { success: true, data, meta: { page: 1, page_size: 100, total: 1, total_pages: 1 } };
        response.writeHead(isProbe ? status : 200, { "content-type": "application/json" });
        const answer = isProbe ? body : list;
        response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
      });
      const items = setting === "email_check" ? { emails: ["a@x.example"] } : { domains: ["x.example"] };
      const external = { api_url: url, api_key: KEY };
      const settings = { base_url: url, api_key: KEY, external_api: external, verify_counts: false };
      const { message } = await checked(await file("config.json", { ...settings, [setting]: items }));
      expect(
        /^This key can read people, companies, sources, (email_checks|company_lookups)/.test(message),
      ).toBe(isOpen);
    },
  );

  it("says all that it learnt, in the order of the streams: refusals, counts, costs and suppressed people", async () => {
    const suppress_file = await file("held.txt", `a@b.example\nc1\n${"0a".repeat(32)}\n`);
    const settings = { suppress_file, max_workers: 4, company_lookup: { domains: ["1.example"] } };
    const oddities: readonly Oddity[] = [
      [/companies$/, 404, {}],
      [/sources$/, 403, refusedAs("ENDPOINT_NOT_ON_PLAN")],
      [/job_0_check/, 404, { error: "no such job" }],
    ];
    const config = await serviceWith(oddities, settings);
    const { status, message, warnings } = await checked(config);
    expect(status).toBe("SUCCEEDED");
    expect(warnings).toEqual([
      `Unknown setting "max_workers" in the config file "${config}". It has no effect`,
      `The suppress_file "${suppress_file}" has only hexadecimal digits in line 3: they are read as an id, ` +
        'and 64 digits as a digest too. Write "sha256:" before a digest. Digests of other kinds match no person',
    ]);
    const parts = [
      "people \\(1\\), companies, company_lookups",
      '"sources" is left out: the plan of this key',
      'Cannot count "companies": .*endpoints.companies',
      "100 credits a sync",
      "3 entries",
    ];
    expect(message).toMatch(new RegExp(parts.join(".*")));
  });

  // A sync of all streams fails exactly where the check does.
  it.each<[what: string, ...Oddity, message: RegExp | undefined]>([
    ["nothing", /^$/, 200, "", undefined],
    ["no totals", /people$/, 200, listWith(null, ROWS["people"]), /without a total.*verify_counts/],
    ["no totals of the list of sources", /sources$/, 200, listWith(null, ROWS["sources"]), undefined],
    [
      "a web page everywhere",
      /./,
      200,
      "<title>Sign in</title>",
      /a web page \("Sign in"\), not the API\. Check base_url$/,
    ],
    ["a web page at one list", /companies$/, 200, "<p>", /companies.*a web page, not the API/],
    ["a web page at an export", /people\/stream$/, 200, "<p>", undefined],
    ["an empty object as a list", /people$/, 200, {}, /not JSON of the interface's form/],
    [
      "no list in a list",
      /companies$/,
      200,
      { data: { a: 1 } },
      /companies.*not JSON of the interface's form/,
    ],
    ["texts as rows", /sources$/, 200, listWith(1, "x"), /sources.*not an object/],
    ["rows without a key", /people/, 200, listWith(1, { name: "x" }), /people.*no "id"/],
    ["rows without a key in the list alone", /people$/, 200, listWith(1, { name: "x" }), undefined],
    [
      "an object as a date",
      /people$/,
      200,
      listWith(1, { id: "1", discoveredAt: { toString: 1 } }),
      undefined,
    ],
    ["a redirect", /./, 302, "", /redirects to https:\/\/other\.example, .*base_url/],
    ["no list of sources", /sources$/, 404, {}, /sources.*endpoints\.sources/],
    ["no export", /companies\/stream$/, 404, {}, /nothing at \S+companies\/stream .*owner/],
    ["failures", /./, 500, {}, /the service failed/],
    ["a failing export", /people\/stream$/, 500, {}, undefined],
    ["a plan without people", /people/, 403, refusedAs("ENDPOINT_NOT_ON_PLAN"), undefined],
    [
      "a plan without an export",
      /people\/stream$/,
      403,
      refusedAs("ENDPOINT_NOT_ON_PLAN"),
      /people .*plan of/,
    ],
    ["another refusal", /sources$/, 403, refusedAs("FORBIDDEN"), /sources.*FORBIDDEN/],
  ])("agrees with a sync about a service with %s", async (_, path, status, body, message) => {
    const config = await serviceWith([[path, status, body]]);
    const { message: said, ...found } = await checked(config);
    expect(found.status).toBe(message === undefined ? "SUCCEEDED" : "FAILED");
    if (message !== undefined) expect(said).toMatch(message);
    const words = ["read", "--config", config, "--output", await tempDir()];
    const { code } = await run(CONNECTOR, words, { clock: hurriedClock() });
    expect(code === 0).toBe(message === undefined);
  });

  it.each<[string, SandboxOptions, string, object, RegExp]>([
    ["a wrong plan", { plan: "agency" }, "", {}, /plan.*ENDPOINT_NOT_ON_PLAN.*Use a key of the right plan/],
    ["no subscription", { plan: "inactive" }, "", {}, /no active subscription.*Renew/],
    ["a foreign source", { allowedSources: [] }, "", { source_slug: "crm" }, /no access.*source_slug/],
    ["a service that speaks http", {}, "https", {}, /not in https/],
  ])("fails for %s and says what to do", async (_what, options, place, settings, message) => {
    await using sandbox = await startSandbox({ people: 5, ...options });
    const base_url = place === "https" ? sandbox.url.replace("http", "https") : `${sandbox.url}${place}`;
    const { status, message: said } = await checked(await configFor(sandbox, { base_url, ...settings }));
    expect([status, said]).toEqual(["FAILED", expect.stringMatching(message)]);
  });

  it.each([
    ["company_lookup", "domains_file", "a.example\n", "site,name\na.example,A\n", /no column "domain"/],
    ["email_verification", "emails_file", "email;name\na@b.example;A\n", undefined, /it does not exist/],
  ])("fails for a file of items of %s that no run could use", async (job, setting, good, bad, message) => {
    await using sandbox = await startSandbox({ people: 1 });
    const external_api = { api_url: sandbox.url, api_key: KEY };
    const path = await file("items.csv", good);
    const config = await configFor(sandbox, { external_api, [job]: { [setting]: path } });
    expect((await checked(config)).status).toBe("SUCCEEDED");
    if (bad === undefined) await rm(path);
    else await writeFile(path, bad);
    const { status, message: said } = await checked(config);
    expect([status, said]).toEqual(["FAILED", expect.stringMatching(message)]);
    expect(said).toContain(path);
  });

  it.each([
    ["https_proxy", { HTTP_PROXY: "http://proxy.invalid" }],
    ["HTTPS_PROXY", { HTTP_PROXY: "http://proxy.invalid" }],
    ["http_proxy", {}],
    ["HTTP_PROXY", {}],
  ])(
    "names %s, whose proxy may be what refused the connection, and not its password",
    async (name, others) => {
      const config = await file("config.json", { base_url: "https://contacts.example", api_key: KEY });
      for (const scheme of ["", "http://someone:hunter2@"]) {
        const env = { ...others, [name]: `${scheme}127.0.0.1:${await deadPort()}` };
        const { stdout } = await connector(["check", "--config", config], { clock: hurriedClock(), env });
        expect(stdout).toMatch(new RegExp(`refused.*${name} is set: check that proxy, too`));
        expect(stdout).not.toContain("hunter2");
      }
    },
  );

  it.each([
    [403, /contacts.example: the proxy refused to connect .*PROXY_REFUSED\)\. Check .*HTTPS_PROXY/],
    [407, /the proxy wants credentials \(PROXY_407\)\. Put name and password into HTTPS_PROXY/],
  ])("says that a proxy answered with %i", async (status, message) => {
    const config = await file("config.json", { base_url: "https://contacts.example", api_key: KEY });
    const server = createServer();
    server.on("connect", (_, socket) => socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`));
    const env = { HTTPS_PROXY: `http://127.0.0.1:${await listen(server)}` };
    const { stdout } = await connector(["check", "--config", config], { clock: hurriedClock(), env });
    expect(stdout).toMatch(message);
  });
});

/** A key and a certificate for localhost and service.invalid that it signs itself, made for these tests: `openssl req -x509 …`, until 2126. */
const PEM = fileURLToPath(new URL("../support/localhost.pem", import.meta.url));

/** A sandbox behind TLS, and a proxy, until the test ends; `tunnels` is what the proxy was asked to connect to. */
async function serveTls() {
  const { sandbox } = await sandboxWith({ people: 20, undated: 0 });
  const pem = readFileSync(PEM);
  const front = createTlsServer({ key: pem, cert: pem }, ({ url, headers }, response) => {
    const onward = ask(`${sandbox.url}${url}`, { headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onward.end();
  });
  const tunnels: string[] = [];
  const proxy = createServer((_, response) => response.writeHead(502).end());
  proxy.on("connect", ({ url = "" }, socket) => {
    tunnels.push(url);
    const onward = connect(Number(url.split(":")[1]), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.pipe(onward).pipe(socket);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
  });
  const url = `https://localhost:${await listen(front)}`;
  /** A config for the service at an address. */
  const configAt = (base_url: string) => file("config.json", { base_url, api_key: sandbox.key });
  return { sandbox, url, configAt, proxy: `http://127.0.0.1:${await listen(proxy)}`, tunnels };
}

describe("a service behind TLS", () => {
  it.each(["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"])("is trusted by the CA that %s names", async (name) => {
    const { url, configAt } = await serveTls();
    const args = ["read", "--config", await configAt(url), "--stream", "people"];
    const { code, messages, stderr } = await connector(args, { asProcess: true, env: { [name]: PEM } });
    expect(code, stderr).toBe(0);
    expect(idsOf(messages)).toHaveLength(20);
  });

  it("is not trusted otherwise, and the error says what to do", async () => {
    const { sandbox, url, configAt } = await serveTls();
    const { stdout } = await connector(["check", "--config", await configAt(url)]);
    expect(stdout).toContain("FAILED");
    expect(stdout).toMatch(/certificate .*NODE_EXTRA_CA_CERTS/);
    expect(sandbox.requests).toEqual([]);
  });

  it("is trusted by one usable file; if no file is usable, the message names it", async () => {
    const { url, configAt } = await serveTls();
    const folder = await tempDir();
    await symlink("loop", join(folder, "loop"));
    const der = Buffer.from(
      readFileSync(PEM, "latin1").replace(/^.*CERTIFICATE-----|-----END.*/gs, ""),
      "base64",
    );
    await writeFile(join(folder, "der"), der);
    const args = ["check", "--config", await configAt(url)];
    for (const [bad, reason] of [
      [folder, "it is a folder"],
      [join(folder, "loop"), "links"],
      [join(folder, "none"), "it does not exist"],
      [join(folder, "der"), "no certificate"],
      [await file("empty.pem", ""), "no certificate"],
      ["/proc/self/mem", "i/o error"],
    ] as const) {
      for (const [name, other] of [
        ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"],
        ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"],
      ] as const) {
        const alone = await connector(args, { env: { [name]: bad } });
        expect(alone.stdout).toMatch(new RegExp(`FAILED.*certificate.*${name} names .*${reason}`));
        expect(alone.stdout).toContain(bad);
        const both = await connector(args, { env: { [name]: bad, [other]: PEM } });
        expect(both.stdout).toContain("SUCCEEDED");
      }
    }
  });

  it("is reached through a tunnel where HTTPS_PROXY says so", async () => {
    const { url, configAt, proxy, tunnels } = await serveTls();
    // No proxy is asked for localhost.
    const away = url.replace("localhost", "service.invalid");
    const env = { NODE_EXTRA_CA_CERTS: PEM, HTTPS_PROXY: proxy };
    const { stdout } = await connector(["check", "--config", await configAt(away)], { env });
    expect(stdout).toContain("SUCCEEDED");
    expect(tunnels).toContain(new URL(away).host);
  });
});
