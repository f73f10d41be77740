import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { check } from "../../src/commands/check.ts";
import { CONNECTOR, connector, file, run } from "../support/cli.ts";
import { configFor } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { TAP } from "../support/tap.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

async function checked(config: string): Promise<{ status: string; message: string }> {
  const { code, stderr, messages } = await connector(["check", "--config", config], {
    clock: hurriedClock(),
  });
  expect(code).toBe(0);
  expect(stderr).toBe("");
  expect(messages.map(({ type }) => type)).toEqual(["CONNECTION_STATUS"]);
  return (messages[0] as unknown as { connectionStatus: { status: string; message: string } })
    .connectionStatus;
}

const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";

async function deadPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe("check", () => {
  it("says what the key can read", async () => {
    await using sandbox = await startSandbox({ people: 20, undated: 1, companies: 3, sources: 2 });
    expect(await checked(await configFor(sandbox))).toEqual({
      status: "SUCCEEDED",
      message: "This key can read people (21), companies (3), sources (2)",
    });
  });

  it("says of a wrong key whether it is from the file or the environment, as read and the tap do, once", async () => {
    await using sandbox = await startSandbox({ people: 3 });
    const wrong = KEY.replace("ff", "00");
    const inFile = await configFor(sandbox, { api_key: wrong });
    const good = await configFor(sandbox);
    const fromFile = `The key is from the config file "${inFile}". Create a key under Settings, then API and webhooks, and put it into api_key`;
    const fromEnvironment =
      "The key is from the environment variable CONTACT_INTELLIGENCE_API_KEY. Create a key under Settings, then API and webhooks, and put it into that variable";
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
        [good, fromEnvironment, { CONTACT_INTELLIGENCE_API_KEY: wrong }],
      ] as const) {
        const { stdout, stderr } = await run(program, [...words, "--config", config], { env });
        const said = `${stdout}${stderr}`.replaceAll('\\"', '"');
        expect(said, words.join(" ")).toContain(origin);
        const errors = said.split("\n").filter((line) => /"level":"error"|"ERROR"|FAILED/.test(line));
        expect(errors, words.join(" ")).toHaveLength(1);
      }
    }
  });

  it("says at a terminal what it waits for", async () => {
    await using sandbox = await startSandbox({ people: 3 });
    sandbox.fault("status=503:times=1");
    const stderr = new Terminal();
    const environment = {
      CONTACT_INTELLIGENCE_BASE_URL: sandbox.url,
      CONTACT_INTELLIGENCE_API_KEY: sandbox.key,
    };
    await check({ config: undefined }, testProcess({ environment, stderr }));
    expect(stderr.text).toMatch(/^Try 2 of 2: .*503\)\n$/);
  });

  it("exits with 1 when it fails, if asked to", async () => {
    await using sandbox = await startSandbox({ people: 3 });
    const good = await configFor(sandbox);
    const bad = await configFor(sandbox, { api_key: KEY.replace("ff", "00") });
    const codes = [good, bad].map(
      async (config) => (await connector(["check", "--config", config, "--exit-code"])).code,
    );
    expect(await Promise.all(codes)).toEqual([0, 1]);
  });

  it("says it in sentences at a terminal", async () => {
    await using sandbox = await startSandbox({ people: 20, undated: 0, companies: 3, sources: 2 });
    const shown = async (settings: object): Promise<string> => {
      const stdout = new Terminal();
      const config = await configFor(sandbox, { ...settings });
      await check({ config }, testProcess({ stdout }));
      return stdout.text;
    };
    expect(await shown({ colour: "grün" })).toBe(
      'Warning: Unknown setting "colour". It has no effect\n' +
        "The check succeeded. This key can read people (20), companies (3), sources (2)\n",
    );
    expect(await shown({ num_workers: 99, source_slug: "ü" })).toMatch(
      /^The check failed\. Cannot use the config file ".*": num_workers must be at most 8, not 99\n$/,
    );
  });

  it("warns of settings that do not exist", async () => {
    await using sandbox = await startSandbox({ people: 3 });
    const config = await configFor(sandbox, { start_dat: "2026-01-01" });
    const { messages } = await connector(["check", "--config", config]);
    expect(messages.map(({ type }) => type)).toEqual(["LOG", "CONNECTION_STATUS"]);
    expect(messages[0]).toMatchObject({
      log: { level: "WARN", message: 'Unknown setting "start_dat". Did you mean "start_date"?' },
    });
  });

  it("takes companies for readable where there is no list of them", async () => {
    await using sandbox = await startSandbox({ people: 20, undated: 1, companyList: false, sources: 2 });
    expect(await checked(await configFor(sandbox))).toMatchObject({
      message: expect.stringMatching(
        /^This key can read people \(21\), companies, sources \(2\)\. Cannot count "companies".*endpoints\.companies.*verify_counts/,
      ),
    });
  });

  it("names the path at which there is no list, and the setting that corrects it", async () => {
    await using sandbox = await startSandbox({ people: 2, undated: 0, companies: 3 });
    const endpoints = { sources: "/api/v1/public/products" };
    const { status, message } = await checked(await configFor(sandbox, { endpoints }));
    expect(status).toBe("SUCCEEDED");
    expect(message).toContain(
      "sources: Cannot read sources: the service has nothing at /api/v1/public/products (status 404). " +
        "Put the right path into endpoints.sources",
    );
  });

  it.each([
    [
      "need a total that is not there",
      true,
      'people, companies, sources. Cannot count people: .*"verify_counts".*',
    ],
    ["need none", false, "people, companies, sources"],
  ])("says of lists without totals what they cost where proofs %s", async (_what, verify, said) => {
    const server = createHttpServer((_, response) =>
      response.end(JSON.stringify({ success: true, data: [{ id: "1", domain: "a.example", slug: "crm" }] })),
    ).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const settings = { base_url: `http://127.0.0.1:${port}`, api_key: KEY, verify_counts: verify };
    const { status, message } = await checked(await file("config.json", settings));
    server.close();
    expect(status).toBe("SUCCEEDED");
    expect(message).toMatch(new RegExp(`^This key can read ${said}$`));
    expect(message).not.toMatch(/Cannot count sources|endpoints/);
  });

  it.each([
    [
      "a wrong key",
      {},
      { api_key: KEY.replace("ff", "00") },
      /API key is missing.*INVALID_API_KEY.*Create a key/,
    ],
    [
      "a wrong plan",
      { plan: "agency" as const },
      {},
      /plan.*ENDPOINT_NOT_ON_PLAN.*Use a key of the right plan/,
    ],
    ["no subscription", { plan: "inactive" as const }, {}, /no active subscription.*Renew/],
    [
      "a source that is not allowed",
      { allowedSources: [] },
      { source_slug: "harborline-crm" },
      /no access.*source_slug/,
    ],
    [
      "a service that fails",
      { faults: ["status=500:code=INTERNAL_ERROR:times=always"] },
      {},
      /service failed.*INTERNAL_ERROR/,
    ],
    [
      "a redirect",
      { faults: ["redirect=https://elsewhere.example/login?x=1:times=always"] },
      {},
      /redirects to https:\/\/elsewhere\.example .*base_url/,
    ],
    ["a web page", { faults: ["html:times=always"] }, {}, /not JSON.*base_url/],
    ["a wrong path", {}, { base_url: "PATH" }, /nothing at this address.*base_url/],
  ])("fails for %s and says what to do", async (_what, options, settings, message) => {
    await using sandbox = await startSandbox({ people: 5, ...options });
    const changed = "base_url" in settings ? { base_url: `${sandbox.url}/elsewhere` } : settings;
    const { status, message: said } = await checked(await configFor(sandbox, changed));
    expect(status).toBe("FAILED");
    expect(said).toMatch(message);
    expect(said).not.toContain("00112233445566778899aabbccddee");
  });

  it("fails for a dead host", async () => {
    const config = await file("config.json", {
      base_url: `http://127.0.0.1:${await deadPort()}`,
      api_key: KEY,
    });
    expect(await checked(config)).toMatchObject({
      status: "FAILED",
      message: expect.stringMatching(/the connection was refused.*base_url/),
    });
  });

  it("names the variable of a proxy that may be what refused the connection", async () => {
    const config = await file("config.json", { base_url: "https://contacts.example", api_key: KEY });
    const env = { HTTPS_PROXY: `http://someone:hunter2@127.0.0.1:${await deadPort()}` };
    const { stdout } = await connector(["check", "--config", config], { clock: hurriedClock(), env });
    expect(stdout).toMatch(/refused.*HTTPS_PROXY is set: check that proxy, too/);
    expect(stdout).not.toContain("hunter2");
  });

  it.each([
    ["no JSON", "{", /config file.*not JSON/],
    ["no object", "[1]", /not an object/],
    ["an empty object", "{}", /base_url.*api_key|api_key.*base_url/],
    [
      "http to another machine",
      { base_url: "http://service.example", api_key: KEY },
      /base_url.*https.*allow_insecure_http/,
    ],
    [
      "a number out of range",
      { base_url: "https://service.example", api_key: KEY, num_workers: 9 },
      /num_workers/,
    ],
    [
      "a date that is none",
      { base_url: "https://service.example", api_key: KEY, start_date: "2026-02-30" },
      /start_date/,
    ],
  ])("fails for a config that is %s", async (_what, content, message) => {
    const { status, message: said } = await checked(await file("config.json", content));
    expect(status).toBe("FAILED");
    expect(said).toMatch(message);
  });

  it("fails for a config file that is not there", async () => {
    expect(await checked("/nowhere/config.json")).toMatchObject({
      status: "FAILED",
      message: expect.stringMatching(/there is none/),
    });
  });
});
