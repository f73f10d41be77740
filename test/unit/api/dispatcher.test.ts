import dns from "node:dns";
import { writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { lookupLoopback, openDispatcher, trusted } from "../../../src/api/dispatcher.ts";
import { ConfigError } from "../../../src/errors.ts";
import { serve } from "../../support/serve.ts";
import { tempDir } from "../../support/temp-dir.ts";

async function answerOf(url: string, environment: Record<string, string>): Promise<string> {
  const dispatcher = openDispatcher(new URL(url), environment);
  onTestFinished(() => dispatcher.close());
  const { body } = await request(url, { dispatcher });
  return await body.text();
}

describe("openDispatcher()", () => {
  it("asks no proxy for this machine, and the proxy for any other", async () => {
    const { url: proxy } = await serve((_, response) => response.end("proxy"));
    const { url } = await serve((_, response) => response.end("service"));
    const environment = { HTTP_PROXY: proxy, http_proxy: proxy, HTTPS_PROXY: proxy };
    for (const host of ["127.0.0.1", "localhost"])
      expect(await answerOf(url.replace("127.0.0.1", host), environment)).toBe("service");
    expect(await answerOf("http://service.invalid/", environment)).toBe("proxy");
    const around = answerOf("http://service.invalid/", { ...environment, NO_PROXY: "service.invalid" });
    await expect(around).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/);
  });
});

describe("openDispatcher() with a proxy", () => {
  it("takes its address with or without the protocol", async () => {
    const { url } = await serve((_, response) => response.end("proxy"));
    for (const proxy of [url, url.replace("http://", "")])
      expect(await answerOf("http://service.invalid/", { HTTP_PROXY: proxy })).toBe("proxy");
  });

  it.each([
    ["http", { HTTP_PROXY: "http://" }, "HTTP_PROXY"],
    ["http", { http_proxy: "host:port", HTTP_PROXY: "host" }, "http_proxy"],
    ["https", { https_proxy: "", HTTPS_PROXY: "a b", http_proxy: "host" }, "HTTPS_PROXY"],
    ["https", { http_proxy: "http://x:y" }, "http_proxy"],
    ["http", { https_proxy: "a b" }, undefined],
  ])("refuses an address over %s that is none, and names its variable: %j", (protocol, environment, name) => {
    const open = () => openDispatcher(new URL(`${protocol}://service.invalid/`), environment);
    if (name === undefined) expect(open).not.toThrow();
    else
      expect(open).toThrow(
        new ConfigError(
          `Cannot use the environment variable ${name}: it must be the address of a proxy, such as http://host:port`,
        ),
      );
  });
});

describe("openDispatcher() for a name of this machine", () => {
  it("connects to no other machine that a DNS gives that name", async () => {
    const { lookup } = dns;
    const elsewhere = (_name: string, ...rest: [object, () => void]) => lookup("192.0.2.1", ...rest);
    onTestFinished(() => {
      Object.assign(dns, { lookup });
      syncBuiltinESMExports();
    });
    Object.assign(dns, { lookup: elsewhere });
    syncBuiltinESMExports();
    await expect(answerOf("http://x.localhost:9/", {})).rejects.toMatchObject({ code: "NOT_LOOPBACK" });
  });
});

describe("lookupLoopback() of a name with several addresses", () => {
  it.each<[string[], unknown]>([
    [
      ["127.0.0.1", "::1"],
      ["127.0.0.1", "::1"],
    ],
    [["127.0.0.1", "192.0.2.1"], "NOT_LOOPBACK"],
    [["192.0.2.1", "127.0.0.1"], "NOT_LOOPBACK"],
    [[], undefined],
  ])("takes %j for %j", async (addresses, taken) => {
    const { lookup } = dns;
    const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    onTestFinished(() => {
      Object.assign(dns, { lookup });
      syncBuiltinESMExports();
    });
    const answer = (_name: string, _options: object, done: (error: null, all: object[]) => void) =>
      done(null, found);
    Object.assign(dns, { lookup: answer });
    syncBuiltinESMExports();
    const result = await new Promise((resolve) => {
      lookupLoopback("x.localhost", { all: true }, (error, all) =>
        resolve(
          Array.isArray(all) ? all.map(({ address }) => address) : (error as { code?: string } | null)?.code,
        ),
      );
    });
    expect(result).toEqual(taken);
  });
});

describe("openDispatcher() for requests one after the other", () => {
  it.each([true, false])("opens a connection for each unless they are reused (%s)", async (reuse) => {
    const ports = new Set<number | undefined>();
    const { url } = await serve((asked, response) => {
      ports.add(asked.socket.remotePort);
      response.end("service");
    });
    const dispatcher = openDispatcher(new URL(url), {}, { reuse });
    onTestFinished(() => dispatcher.close());
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
