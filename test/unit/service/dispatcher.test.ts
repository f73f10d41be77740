import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import { request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { openDispatcher } from "../../../src/service/dispatcher.ts";
import { serve } from "../../support/serve.ts";

const POOL = { reuse: true, insecure: false };

async function answerOf(url: string, environment: Record<string, string>): Promise<string> {
  const dispatcher = openDispatcher(new URL(url), environment, POOL);
  onTestFinished(() => dispatcher.close());
  const { body } = await request(url, { dispatcher });
  return await body.text();
}

/** Until the test ends, a DNS gives every name this address. */
function resolveTo(address: string): void {
  const { lookup } = dns;
  const answer = (_name: string, options: { all?: boolean }, done: (...found: unknown[]) => void) =>
    options.all === true ? done(null, [{ address, family: 4 }]) : done(null, address, 4);
  onTestFinished(() => {
    Object.assign(dns, { lookup });
    syncBuiltinESMExports();
  });
  Object.assign(dns, { lookup: answer });
  syncBuiltinESMExports();
}

describe("a proxy", () => {
  it("is asked for every machine but this one, and those that NO_PROXY names", async () => {
    const { url: proxy } = await serve((_, response) => response.end("proxy"));
    const { url } = await serve((_, response) => response.end("service"));
    const environment = { HTTP_PROXY: proxy, http_proxy: proxy, HTTPS_PROXY: proxy };
    for (const host of ["127.0.0.1", "localhost"])
      expect(await answerOf(url.replace("127.0.0.1", host), environment)).toBe("service");
    expect(await answerOf("http://service.invalid/", environment)).toBe("proxy");
    const bare = { HTTP_PROXY: proxy.replace("http://", "") };
    expect(await answerOf("http://service.invalid/", bare)).toBe("proxy");
    const around = answerOf("http://service.invalid/", { ...environment, NO_PROXY: "service.invalid" });
    await expect(around).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/);
  });
});

it("takes a name such as x.localhost for this machine, whatever a DNS says: the key would go there in clear", async () => {
  const { url } = await serve((_, response) => response.end("service"));
  resolveTo("192.0.2.1");
  expect(await answerOf(url.replace("127.0.0.1", "x.localhost"), {})).toBe("service");
});
