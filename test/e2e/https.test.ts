import { readFileSync } from "node:fs";
import { request as ask, createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { idsOf } from "../support/airbyte-messages.ts";
import { connector, file } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { listen } from "../support/serve.ts";

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
