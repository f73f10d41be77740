import { connect } from "node:net";
import { gunzipSync } from "node:zlib";
import { request } from "undici";
import { describe, expect, it } from "vitest";
import { describeFaults, FAULTS } from "../../../sandbox/faults/faults.ts";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { dechunk, get, linesOf, PEOPLE, rawGet, STREAM, stream } from "./http.ts";

const started = (...faults: string[]): Promise<Sandbox> =>
  startSandbox({ people: 20, undated: 0, requestsPerMinute: 0, faults });

describe("answers that attack their reader", () => {
  it("are small until they are decompressed", async () => {
    await using sandbox = await started("gzip-bomb=8");
    const raw = await rawGet(sandbox, PEOPLE);
    expect(raw.head).toContain("content-encoding: gzip");
    const { content } = dechunk(raw.body);
    expect(content.length).toBeLessThan(100_000);
    const text = gunzipSync(content).toString();
    expect(text.length).toBeGreaterThan(8_000_000);
    expect(JSON.parse(text)).toMatchObject({ success: true, data: [] });
  });

  it("inform for ever and never answer", async () => {
    await using sandbox = await started("early-hints");
    const socket = connect(sandbox.port, "127.0.0.1");
    socket.write(`GET ${PEOPLE} HTTP/1.1\r\nhost: x\r\nx-api-key: ${sandbox.key}\r\n\r\n`);
    let text = "";
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      text += chunk.toString();
      if (text.split("HTTP/1.1 103 Early Hints").length > 2) break;
    }
    expect(text).not.toContain("HTTP/1.1 200");
  });

  it("drip a page as slowly as told", async () => {
    await using sandbox = await started("drip=1:every=1:path=/people$");
    const raw = await rawGet(sandbox, `${PEOPLE}?limit=1`);
    expect(raw.body.subarray(0, 3).toString()).toBe("1\r\n");
    expect(JSON.parse(dechunk(raw.body).content.toString()).data).toHaveLength(1);
  });

  it.each([
    ["endless=blank:every=5", /^\n{20,}/],
    ["endless=row:every=5", /^(\{"id":"per_[0-9a-f]{16}".*\n)\1/],
  ])("have no end: %s", async (fault, pattern) => {
    await using sandbox = await started(fault);
    const answer = await request(`${sandbox.url}${STREAM}`, { headers: { "x-api-key": sandbox.key } });
    let text = "";
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      text += chunk.toString("latin1");
      if (pattern.test(text)) break;
    }
    expect(text).toMatch(pattern);
  });

  it("nest deeper than anyone reads, in rows and in pages", async () => {
    await using sandbox = await started("deep=50:after=3:times=always");
    const [rows, page] = [await stream(sandbox), await get(sandbox, `${PEOPLE}?limit=2`)];
    expect(rows.map((row) => "nested" in row).indexOf(true)).toBe(3);
    expect(JSON.stringify(rows[3])).toContain("[".repeat(50));
    expect(page.text).toContain(`,"nested":${"[".repeat(50)}`);
    expect(() => JSON.parse(page.text)).not.toThrow();
  });

  it("hold what moves a terminal's cursor", async () => {
    await using sandbox = await started("terminal:after=0");
    const [row] = await stream(sandbox);
    const names = Object.keys(row ?? {});
    expect(names.at(-1)).toBe("\u001b[2J\u001b]0;title\u0007\u202egpj.\n");
    expect(linesOf((await get(sandbox, STREAM)).text)).toHaveLength(20);
  });
});

describe("describeFaults()", () => {
  it("says of each fault how to write it and what it does", () => {
    const lines = describeFaults().map(({ usage, description }) => `${usage} ${description}`);
    expect(lines).toHaveLength(FAULTS.size);
    expect(lines).toContain(
      "omit=K[:lists=…] streams leave out the same members every time; lists=too: lists as well",
    );
    expect(lines.find((line) => line.startsWith("dates="))).toContain("short-offset, offset, comma");
  });
});
