import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../../sandbox/server.ts";
import { CONNECTOR, run, TAP } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { listen } from "../support/serve.ts";

const FAR = `--require=${fileURLToPath(new URL("../support/far-network.cjs", import.meta.url))}`;

/** A sandbox at an address of a network in which all machines are far away. */
async function far(host: string) {
  const { sandbox } = await sandboxWith({ people: 3 });
  const base_url = sandbox.url.replace("127.0.0.1", host);
  const config = await configFor(sandbox, { base_url, allow_insecure_http: true });
  const check = async (env: Readonly<Record<string, string>>) => {
    const options = { asProcess: true, env: { NODE_OPTIONS: FAR, ...env } };
    return (await run(CONNECTOR, ["check", "--config", config], options)).stdout;
  };
  return { sandbox, check };
}

/** A proxy in front of a sandbox; `logins`: the credentials of each request. */
async function serveProxy({ url }: Sandbox) {
  const logins: (string | undefined)[] = [];
  const note = (header: string | undefined) =>
    logins.push(header && Buffer.from(header.replace("Basic ", ""), "base64").toString("latin1"));
  const server = createServer(async ({ url: asked = "", headers }, response) => {
    note(headers["proxy-authorization"]);
    const { pathname, search } = new URL(asked);
    const answer = await fetch(`${url}${pathname}${search}`, {
      headers: { "x-api-key": String(headers["x-api-key"]) },
    });
    response.writeHead(answer.status).end(await answer.text());
  });
  server.on("connect", ({ headers }, socket) => {
    note(headers["proxy-authorization"]);
    socket.end("HTTP/1.1 403 No\r\n\r\n");
  });
  return { port: await listen(server), logins };
}

describe("a host that is far away and has an address without a route", () => {
  it.each(["400", "1500"])("is reached after %s ms", async (ms) => {
    const { check } = await far("contacts.example");
    expect(await check({ FAR_MS: ms, FAR_ROUTES: "4" })).toContain("SUCCEEDED");
  });

  it("may be a proxy", async () => {
    const { sandbox, check } = await far("contacts.example");
    const { port, logins } = await serveProxy(sandbox);
    const env = { FAR_MS: "400", FAR_ROUTES: "4", HTTP_PROXY: `proxy.example:${port}` };
    expect(await check(env)).toContain("SUCCEEDED");
    expect(logins.length).toBeGreaterThan(0);
  });
});

it("each request is in the log once at the level debug, and none at another level", async () => {
  const faults = ["end:times=1:after=100", "status=500:times=1:skip=1"];
  const { sandbox, config } = await sandboxWith({ people: 200, undated: 0, faults });
  const logged = async (program: string, words: readonly string[], env = {}) => {
    sandbox.fault(...faults);
    const asked = sandbox.requests.length;
    const args = [...words, "--config", config];
    const { stdout, stderr } = await run(program, args, { env, clock: hurriedClock() });
    const lines = `${stdout}${stderr}`
      .split("\n")
      .filter((line) => /"level":"debug"|\bDEBUG\b/i.test(line) && !line.includes(" attempt"));
    return { lines, requests: sandbox.requests.length - asked };
  };
  const people = ["read", "--stream", "people"];
  const first = await logged(CONNECTOR, [...people, "--format", "jsonl", "--log-level", "debug"]);
  for (const said of [
    /Count of people, 1970-01-02 to now: status 200, 200 rows counted, \d+\.\d s/,
    /Count of people, all days: the service failed \(INTERNAL_ERROR, status 500\), \d+\.\d s/,
    /Export of people, all days: status 200, 100 rows, \d+\.\d s/,
    /Page 1 of sources, all days: status 200, 5 rows, 5 rows counted, /,
  ])
    expect(first.lines.join("\n")).toMatch(said);
  for (const { lines, requests } of [
    first,
    await logged(CONNECTOR, people, { LOGLEVEL: "debug" }),
    await logged(TAP, ["--log-level", "debug"]),
  ])
    expect(lines).toHaveLength(requests);
  for (const [program, words] of [
    [CONNECTOR, people],
    [TAP, []],
  ] as const)
    expect((await logged(program, words)).lines).toEqual([]);
});

describe("a proxy", () => {
  it.each([
    ["u:secret%@", "u:secret%"],
    ["CORP\\u:a b@c@", "CORP\\u:a b@c"],
  ])("whose address has %j gets %j", async (login, sent) => {
    const { sandbox } = await sandboxWith({ people: 3 });
    const { port, logins } = await serveProxy(sandbox);
    for (const scheme of ["http", "https"]) {
      const base_url = `${scheme}://contacts.example`;
      const config = await configFor(sandbox, { base_url, allow_insecure_http: true });
      const env = { HTTP_PROXY: `http://${login}127.0.0.1:${port}` };
      await run(CONNECTOR, ["check", "--config", config], { env });
      expect(logins.at(-1)).toBe(sent);
    }
  });

  it("whose address is none is named by each command, without its password", async () => {
    const { sandbox } = await sandboxWith({ people: 3 });
    const config = await configFor(sandbox, { base_url: "https://contacts.example" });
    for (const value of ["socks4://u:hunter2@proxy", "http://u:hunter2@proxy/path"])
      for (const [program, ...words] of [
        [CONNECTOR, "check"],
        [CONNECTOR, "discover"],
        [CONNECTOR, "read"],
        [CONNECTOR, "plan"],
        [TAP, "--test"],
        [TAP, "--discover"],
      ] as const) {
        const args = [...words, "--config", config];
        const { stdout, stderr } = await run(program, args, { env: { https_proxy: value } });
        expect(`${stdout}${stderr}`).toMatch(/environment variable https_proxy: it must be the address/);
        expect(`${stdout}${stderr}`).not.toMatch(/hunter2|a bug/);
      }
  });
});
