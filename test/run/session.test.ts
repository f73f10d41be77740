import { expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { listOf, serve } from "../support/serve.ts";
import { KEY } from "../support/session.ts";

it.each([["check"], ["discover"], ["read", "--stream", "sources"]])(
  "%s leaves no connection open, to either API",
  async (...words) => {
    const [publicApi, externalApi] = await Promise.all(
      ["public", "external"].map(() =>
        serve((_, response) => void response.setHeader("keep-alive", "timeout=60").end(listOf(0))),
      ),
    );
    const config = await file("config.json", {
      base_url: publicApi?.url,
      api_key: KEY,
      external_api: { api_url: externalApi?.url, api_key: KEY },
      company_lookup: { domains: ["a.example"] },
    });
    await run(CONNECTOR, [...words, "--config", config]);
    const sockets = [publicApi, externalApi].flatMap(
      (api) => api?.requests.map(({ socket }) => socket) ?? [],
    );
    expect(sockets).not.toEqual([]);
    // The service would keep them for five seconds, the client for longer.
    await expect
      .poll(() => sockets.every(({ destroyed }) => destroyed), { interval: 20, timeout: 4_000 })
      .toBe(true);
  },
);
