import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as ask, createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { connector, file } from "../support/cli.ts";

/** A key and a certificate for localhost and service.invalid that it signs itself, made for these tests: `openssl req -x509 …`, until 2126. */
const PEM = fileURLToPath(new URL("../support/localhost.pem", import.meta.url));

/** The sandbox behind TLS, and a proxy; `tunnels` is what the proxy was asked to connect to. */
async function serveTls(sandbox: Sandbox) {
  const pem = readFileSync(PEM);
  const front = createTlsServer({ key: pem, cert: pem }, ({ url, headers }, response) => {
    const onward = ask(`${sandbox.url}${url}`, { headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onward.end();
  }).listen(0, "127.0.0.1");
  const tunnels: string[] = [];
  const proxy = createServer((_, response) => response.writeHead(502).end()).listen(0, "127.0.0.1");
  proxy.on("connect", ({ url = "" }, socket) => {
    tunnels.push(url);
    const onward = connect(Number(url.split(":")[1]), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.pipe(onward).pipe(socket);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
  });
  await Promise.all([once(front, "listening"), once(proxy, "listening")]);
  const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
  return {
    url: `https://localhost:${portOf(front)}`,
    proxy: `http://127.0.0.1:${portOf(proxy)}`,
    tunnels,
    async [Symbol.asyncDispose]() {
      front.closeAllConnections();
      await Promise.all([
        new Promise((resolve) => front.close(resolve)),
        new Promise((resolve) => proxy.close(resolve)),
      ]);
    },
  };
}

describe("a service behind TLS", () => {
  it.each(["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"])("is trusted by the CA that %s names", async (name) => {
    await using sandbox = await startSandbox({ people: 20, undated: 0 });
    await using service = await serveTls(sandbox);
    const config = await file("config.json", { base_url: service.url, api_key: sandbox.key });
    const { code, messages, stderr } = await connector(["read", "--config", config, "--stream", "people"], {
      asProcess: true,
      env: { [name]: PEM },
    });
    expect(code, stderr).toBe(0);
    expect(messages.filter(({ type }) => type === "RECORD")).toHaveLength(20);
  });

  it("is not trusted otherwise, and the error says what to do", async () => {
    await using sandbox = await startSandbox({ people: 5 });
    await using service = await serveTls(sandbox);
    const config = await file("config.json", { base_url: service.url, api_key: sandbox.key });
    const { stdout } = await connector(["check", "--config", config]);
    expect(stdout).toContain("FAILED");
    expect(stdout).toMatch(/certificate .*NODE_EXTRA_CA_CERTS/);
    expect(sandbox.requests).toEqual([]);
  });

  it("is reached through a tunnel where HTTPS_PROXY says so", async () => {
    await using sandbox = await startSandbox({ people: 5 });
    await using service = await serveTls(sandbox);
    // No proxy is asked for localhost.
    const away = new URL(service.url);
    away.hostname = "service.invalid";
    const config = await file("config.json", { base_url: away.href, api_key: sandbox.key });
    const { stdout } = await connector(["check", "--config", config], {
      env: { NODE_EXTRA_CA_CERTS: PEM, HTTPS_PROXY: service.proxy },
    });
    expect(stdout).toContain("SUCCEEDED");
    expect(service.tunnels).toContain(away.host);
  });
});
