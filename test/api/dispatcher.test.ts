import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { request } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import { lookupLoopback, openDispatcher, trusted } from "../../src/api/dispatcher.ts";
import { tempDir } from "../support/temp-dir.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function serve(text: string): Promise<number> {
  const server = createServer((_, response) => response.end(text)).listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function answerOf(url: URL, environment: Record<string, string>): Promise<string> {
  const dispatcher = openDispatcher(url, environment);
  closers.push(() => dispatcher.close());
  const { body } = await request(url, { dispatcher });
  return await body.text();
}

describe("openDispatcher()", () => {
  it("asks no proxy for this machine, and the proxy for any other", async () => {
    const proxy = `http://127.0.0.1:${await serve("proxy")}`;
    const port = await serve("service");
    const environment = { HTTP_PROXY: proxy, http_proxy: proxy, HTTPS_PROXY: proxy };
    for (const host of ["127.0.0.1", "localhost"]) {
      expect(await answerOf(new URL(`http://${host}:${port}/`), environment)).toBe("service");
    }
    expect(await answerOf(new URL("http://service.invalid/"), environment)).toBe("proxy");
  });
});

describe("openDispatcher() for requests one after the other", () => {
  it.each([true, false])("opens a connection for each unless they are reused (%s)", async (reuse) => {
    const ports = new Set<number | undefined>();
    const server = createServer((asked, response) => {
      ports.add(asked.socket.remotePort);
      response.end("service");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const dispatcher = openDispatcher(url, {}, { reuse });
    closers.push(
      () => dispatcher.close(),
      () => void server.close(),
    );
    for (let nth = 0; nth < 10; nth++) await (await request(url, { dispatcher })).body.text();
    if (reuse) expect(ports.size).toBeLessThan(10);
    else expect(ports.size).toBe(10);
  });
});

describe("lookupLoopback()", () => {
  const lookedUp = (name: string): Promise<string> =>
    new Promise((resolve) => {
      lookupLoopback(name, {}, (error, address) =>
        resolve(error === null ? String(address) : String(error.code)),
      );
    });

  it("takes a name of this machine, and no other", async () => {
    expect(["127.0.0.1", "::1"]).toContain(await lookedUp("localhost"));
    expect(await lookedUp("127.0.0.2")).toBe("127.0.0.2");
    expect(await lookedUp("192.0.2.1")).toBe("NOT_LOOPBACK");
    expect(await lookedUp("0.0.0.0")).toBe("NOT_LOOPBACK");
  });
});

describe("trusted()", () => {
  it("has the CAs of Node, whatever others are named", async () => {
    const file = join(await tempDir(), "ca.pem");
    writeFileSync(file, "MINE");
    for (const environment of [{}, { NODE_EXTRA_CA_CERTS: file }, { SSL_CERT_FILE: file }]) {
      const all = trusted(environment);
      expect(all).toEqual(expect.arrayContaining([...rootCertificates]));
      expect(all.includes("MINE")).toBe(Object.keys(environment).length > 0);
    }
  });
});
